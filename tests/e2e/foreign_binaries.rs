//! Programs that our libraries can't be loaded into, and surroundings that are odd: all
//! runs as without us, and what is not traced is said once.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::{Done, program, run};
use hetrace_tests::counts::{complete, manifest};
use hetrace_tests::{Platform, hetrace, programs};
use tempfile::TempDir;

/// A program of another kind, if it can be built and run here.
fn foreign(name: &str) -> Option<String> {
    let path = programs().join("foreign").join(name);
    let there = path.metadata().is_ok_and(|m| m.len() > 0);
    let runs = there && Command::new(&path).output().is_ok_and(|o| o.status.code() == Some(3));
    if !runs {
        eprintln!("no {name} programs on this machine: run scripts/install-deps.sh");
    }
    runs.then(|| path.display().to_string())
}

struct Runs {
    scratch: TempDir,
    variables: Vec<(String, String)>,
}

impl Runs {
    fn new() -> Runs {
        let scratch = TempDir::new().expect("a scratch folder");
        Runs { variables: Platform::Pocl.environment(scratch.path()), scratch }
    }

    fn with(mut self, name: &str, value: impl AsRef<Path>) -> Runs {
        self.variables.push((name.to_owned(), value.as_ref().display().to_string()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn bare(&self, line: &[&str]) -> Done {
        run(Command::new(line[0]).args(&line[1..]).envs(self.variables.clone()))
    }

    /// Runs under trace, preloaded.
    fn traced(&self, line: &[&str]) -> Done {
        self.traced_by(&hetrace(), "preload", line)
    }

    fn traced_by(&self, launcher: &Path, way: &str, line: &[&str]) -> Done {
        let folder = self.path("trace");
        let _ = std::fs::remove_dir_all(&folder);
        let mut command = Command::new(launcher);
        command.args(["run", "-q", "--interpose", way, "-o"]).arg(&folder);
        run(command.arg("--").args(line).envs(self.variables.clone()))
    }

    fn complete(&self, done: &Done) {
        assert_eq!(done.status, 0, "{}", done.err);
        assert!(done.out.contains("EXPECT"), "{}", done.out);
        complete(&self.path("trace"), &done.out).expect("each call recorded once");
    }

    /// A script that may be run.
    fn script(&self, text: &str) -> String {
        let path = self.path("script");
        std::fs::write(&path, text).expect("a scratch file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a scratch file");
        path.display().to_string()
    }
}

/// Lines of stderr that are not the launcher's.
fn errors(done: &Done) -> Vec<&str> {
    done.err.lines().filter(|l| !l.starts_with("hetrace: ")).collect()
}

/// As bare, and the launcher says this, once.
fn untouched(runs: &Runs, line: &[&str], said: &str) {
    let (bare, done) = (runs.bare(line), runs.traced(line));
    assert_eq!((done.status, &done.out), (bare.status, &bare.out), "{}", done.err);
    assert_eq!(errors(&done), errors(&bare));
    assert_eq!(done.err.matches("runs untraced").count(), 1, "{}", done.err);
    assert!(done.err.contains(said), "{}", done.err);
}

#[test]
fn a_program_of_musl_runs_untouched() {
    let Some(path) = foreign("musl") else { return };
    untouched(&Runs::new(), &[&path, "x"], "its dynamic loader is /lib/ld-musl");
    let loader = "/lib/ld-musl-x86_64.so.1";
    if Path::new(loader).exists() {
        untouched(&Runs::new(), &[loader, &path, "x"], "its dynamic loader is ");
    }
}

#[test]
fn a_32_bit_program_runs_untouched() {
    let Some(path) = foreign("i386") else { return };
    untouched(&Runs::new(), &[&path, "x"], "it is a 32-bit x86 program");
}

#[test]
fn interpreters_of_scripts_are_looked_at() {
    let Some(path) = foreign("i386") else { return };
    let runs = Runs::new();
    let script = runs.script(&format!("#!{path}\n"));
    untouched(&runs, &[&script], "it is a 32-bit x86 program");
    let folder = programs().join("foreign");
    let search = format!("{}:{}", folder.display(), std::env::var("PATH").expect("a PATH"));
    let runs = runs.with("PATH", search);
    let script = runs.script("#!/usr/bin/env i386\n");
    untouched(&runs, &[&script], "it is a 32-bit x86 program");
}

/// The launcher sees a shell only: musl's loader is led past our libraries, and the
/// children that can be traced are.
#[test]
fn a_child_of_musl_is_not_disturbed_and_its_siblings_are_traced() {
    let Some(musl) = foreign("musl") else { return };
    let runs = Runs::new();
    let line = format!("{musl} a || {musl} b; {} 2", program("linked").display());
    let done = runs.traced(&["sh", "-c", &line]);
    assert!(done.out.starts_with("hello 2 a\nhello 2 b\n"), "{done:?}");
    assert_eq!(errors(&done), [""; 0], "{}", done.err);
    runs.complete(&done);
}

/// The 32-bit loader says a line for each library that it leaves out (decision 0035).
#[test]
fn a_32_bit_child_runs_and_its_siblings_are_traced() {
    let Some(path) = foreign("i386") else { return };
    let runs = Runs::new();
    let line = format!("{path} a; echo $?; {} 2", program("linked").display());
    let done = runs.traced(&["sh", "-c", &line]);
    assert!(done.out.starts_with("hello 2 a\n3\n"), "{done:?}");
    assert!(
        errors(&done).iter().all(|l| l.contains("wrong ELF class") && l.ends_with("ignored.")),
        "{done:?}"
    );
    runs.complete(&done);
}

/// Only headers are read: the file may be larger than memory.
#[test]
fn programs_of_a_terabyte_are_recognised() {
    let runs = Runs::new();
    let large = |name: &str| {
        let path = runs.path(name);
        std::fs::copy(program(name), &path).expect("a scratch file");
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("a scratch file");
        let done = file.set_len(1 << 40);
        done.map(|()| path.display().to_string())
    };
    let (Ok(fixed), Ok(linked)) = (large("static"), large("linked")) else {
        return eprintln!("no files of a terabyte with a hole here");
    };
    untouched(&runs, &[&fixed], "it is statically linked");
    runs.complete(&runs.traced(&[&linked, "2"]));
}

/// Opening it would wait for a writer, for ever.
#[test]
fn a_fifo_is_no_program() {
    let runs = Runs::new();
    let path = runs.path("fifo").display().to_string();
    assert_eq!(run(Command::new("mkfifo").arg(&path)).status, 0);
    assert_eq!(runs.traced(&[&path]).status, 126);
    assert_eq!(runs.traced(&[&runs.script(&format!("#!{path}\n"))]).status, 126);
}

#[test]
fn a_dynamic_loader_may_be_the_program() {
    let runs = Runs::new();
    let loader = "/lib64/ld-linux-x86-64.so.2";
    if !Path::new(loader).exists() {
        return eprintln!("no {loader} on this machine");
    }
    let done = runs.traced(&[loader, &program("linked").display().to_string(), "2"]);
    assert!(!done.err.contains("untraced"), "{}", done.err);
    runs.complete(&done);
}

/// A launcher with its OpenCL library in another folder.
fn installed(folder: &Path) -> PathBuf {
    std::fs::create_dir_all(folder).expect("a scratch folder");
    for name in ["hetrace", "libhetrace_opencl.so"] {
        std::fs::copy(hetrace().with_file_name(name), folder.join(name)).expect("a copy");
    }
    folder.join("hetrace")
}

#[test]
fn a_folder_that_ld_preload_can_not_name_is_said() {
    let runs = Runs::new();
    let (line, folder) = ([program("linked").display().to_string()], runs.path("a b"));
    let line: Vec<&str> = line.iter().map(String::as_str).chain(["2"]).collect();
    let launcher = installed(&folder);
    let done = runs.traced_by(&launcher, "preload", &line);
    assert_eq!((done.status, errors(&done)), (0, Vec::new()));
    let notes = manifest(&runs.path("trace"))["notes"].to_string();
    assert!(notes.contains("a b") && notes.contains("install hetrace elsewhere"), "{notes}");
    // As a layer a space does no harm.
    let done = runs.traced_by(&launcher, "layer", &line);
    runs.complete(&done);
    let launcher = installed(&runs.path("a:b"));
    let done = runs.traced_by(&launcher, "layer", &line);
    assert_eq!((done.status, errors(&done)), (0, Vec::new()));
    let notes = manifest(&runs.path("trace"))["notes"].to_string();
    assert!(notes.contains("a:b") && notes.contains("install hetrace elsewhere"), "{notes}");
}

/// Through a link without such characters it still is the folder behind it that counts.
#[test]
fn a_launcher_behind_a_link_finds_its_libraries() {
    let runs = Runs::new();
    installed(&runs.path("here"));
    symlink(runs.path("here"), runs.path("link")).expect("a link");
    let launcher = runs.path("link").join("hetrace");
    let done = runs.traced_by(&launcher, "preload", &[&program("linked").display().to_string(), "2"]);
    runs.complete(&done);
}

#[test]
fn what_the_user_preloads_and_audits_stays() {
    let other = program("audit.so").display().to_string();
    let line = format!("echo $LD_PRELOAD | tr : '\\n' | grep -c audit.so; {} 2", program("linked").display());
    let runs = Runs::new().with("LD_AUDIT", &other).with("LD_PRELOAD", vec![other.as_str(); 1000].join(":"));
    let done = runs.traced(&["sh", "-c", &line]);
    assert!(done.out.starts_with("1000\n"), "{done:?}");
    runs.complete(&done);
}

#[test]
fn calls_are_recorded_under_an_auditor() {
    let runs = Runs::new().with("LD_AUDIT", program("audit.so"));
    let done = runs.traced(&[&program("linked").display().to_string(), "2"]);
    runs.complete(&done);
}

/// The inner one records; the outer one has nothing to record, and names nothing twice.
#[test]
fn a_launcher_in_a_launcher_records_each_call_once() {
    for way in ["layer", "preload"] {
        let runs = Runs::new();
        let (launcher, inner) = (hetrace().display().to_string(), runs.path("inner"));
        let (linked, inner) = (program("linked").display().to_string(), inner.display().to_string());
        let line = [&*launcher, "run", "-q", "--interpose", way, "-o", &*inner, "--", &*linked, "2"];
        let done = runs.traced_by(&hetrace(), way, &line);
        assert_eq!(done.status, 0, "{}", done.err);
        complete(Path::new(&inner), &done.out).expect("each call recorded once");
        assert_eq!(manifest(&runs.path("trace"))["written"]["records"], 0);
    }
}

/// An empty entry of `PATH` is the current folder.
#[test]
fn programs_are_found_as_a_shell_finds_them() {
    let Some(path) = foreign("i386") else { return };
    let runs = Runs::new();
    let search = format!("/does/not/exist::{}", std::env::var("PATH").expect("a PATH"));
    let mut command = Command::new(hetrace());
    command.args(["run", "-q", "--interpose", "preload", "-o"]).arg(runs.path("trace")).args(["--", "i386"]);
    command.env("PATH", search).current_dir(Path::new(&path).parent().expect("a folder"));
    let done = run(&mut command);
    assert_eq!((done.status, done.out.as_str()), (3, "hello 1 \n"), "{}", done.err);
    assert_eq!((errors(&done), done.err.contains("32-bit")), (Vec::new(), true));
}

#[test]
fn a_current_folder_that_is_gone_changes_nothing() {
    let runs = Runs::new();
    let text = |command: &str| {
        let gone = runs.path("gone").display().to_string();
        format!("mkdir {gone} && cd {gone} && rmdir {gone} && {command}")
    };
    let launcher =
        format!("{} run -q --interpose preload -o {} --", hetrace().display(), runs.path("trace").display());
    let linked = program("linked").display().to_string();
    let done = runs.bare(&["sh", "-c", &text(&format!("{launcher} {linked} 2"))]);
    runs.complete(&done);
    let _ = std::fs::remove_dir_all(runs.path("trace"));
    let done = runs.bare(&["sh", "-c", &text(&format!("{launcher} ../linked"))]);
    assert_eq!(done.status, 127, "{}", done.err);
}
