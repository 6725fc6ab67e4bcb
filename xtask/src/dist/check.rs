//! Each package is installed in a root folder of its own, in which there is nothing but the C library and two
//! small programs, and what it installed is run there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};

use super::{Made, Package, checked, text_of, tree};
use crate::repo;

/// Marks a range by the header that the package installed, and ends with a status of its own.
const PROGRAM: &str = r#"
#include "hetrace.h"
int main(void) {
    for (int i = 0; i < 3; i++) {
        hetrace_push("a step of it");
        hetrace_pop();
    }
    return 7;
}
"#;

/// Opens each library, with all that it needs.
const OPENER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **names) {
    for (int i = 1; i < n; i++)
        if (!dlopen(names[i], RTLD_NOW)) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    printf("%d opened\n", n - 1);
    return 0;
}
"#;

/// Installs all packages and runs what they install.
pub fn all(package: &Package, made: &Made) -> Result<()> {
    let place = tempfile::tempdir()?;
    for (what, install) in [
        ("tarball", tarball as fn(&Made, &Path) -> Result<Installed>),
        ("deb", deb),
        ("rpm", rpm),
        ("wheel", wheel),
    ] {
        let root = place.path().join(what);
        fs::create_dir(&root)?;
        match install(made, &root).with_context(|| format!("{what}: installing it"))? {
            Installed::In(prefix) => {
                let how = Root { path: root, prefix }.check(package).with_context(|| what)?;
                println!("{what}: installed, and runs {how}");
            }
            Installed::Not(why) => println!("{what}: not checked: {why}"),
        }
    }
    Ok(())
}

/// What became of an installation.
enum Installed {
    /// Its prefix, as a path in the root.
    In(String),
    /// What the machine lacks.
    Not(String),
}

fn tarball(made: &Made, root: &Path) -> Result<Installed> {
    // At a path that nobody knows beforehand.
    let place = root.join("home/somebody/any where");
    fs::create_dir_all(&place)?;
    checked(Command::new("tar").arg("-xzf").arg(&made.tarball).arg("-C").arg(&place))?;
    let name = fs::read_dir(&place)?.next().context("the archive is empty")??.file_name();
    Ok(Installed::In(format!("/home/somebody/any where/{}", name.to_string_lossy())))
}

fn deb(made: &Made, root: &Path) -> Result<Installed> {
    if !is_there("dpkg") {
        return Ok(Installed::Not("no dpkg here".to_owned()));
    }
    let state = root.join("var/lib/dpkg");
    for folder in ["updates", "info", "triggers"] {
        fs::create_dir_all(state.join(folder))?;
    }
    for file in ["status", "available"] {
        fs::write(state.join(file), "")?;
    }
    // The root has no package of the C library, though it has its files.
    let mut dpkg = as_root("dpkg");
    dpkg.arg(format!("--root={}", root.display())).args(["--force-depends", "--force-not-root", "-i"]);
    let output = dpkg.arg(&made.deb).output()?;
    ensure!(output.status.success(), "dpkg: {}", String::from_utf8_lossy(&output.stderr));
    let root = format!("--root={}", root.display());
    let status = text_of(Command::new("dpkg-query").args([&*root, "-W", "-f=${Status}", "hetrace"]))?;
    ensure!(status == "install ok installed", "dpkg says {status}");
    Ok(Installed::In("/usr".to_owned()))
}

fn rpm(made: &Made, root: &Path) -> Result<Installed> {
    if !is_there("rpm") {
        return Ok(Installed::Not("no rpm here".to_owned()));
    }
    let mut rpm = as_root("rpm");
    // The same: no package of the C library. Debian's rpm asks not to be used without --force-debian.
    rpm.arg("--root").arg(root).args(["--nodeps", "--force-debian", "-i"]).arg(&made.rpm);
    let output = rpm.output()?;
    if !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("force-debian") {
        let mut rpm = as_root("rpm");
        checked(rpm.arg("--root").arg(root).args(["--nodeps", "-i"]).arg(&made.rpm))?;
    } else {
        ensure!(output.status.success(), "rpm: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut verify = as_root("rpm");
    text_of(verify.arg("--root").arg(root).args(["--nodeps", "-V", "hetrace"]))?;
    Ok(Installed::In("/usr".to_owned()))
}

fn wheel(made: &Made, root: &Path) -> Result<Installed> {
    let made_venv = Command::new("python3").args(["-m", "venv"]).arg(root.join("venv")).output();
    if !made_venv.is_ok_and(|output| output.status.success()) {
        return Ok(Installed::Not("no python3 with venv and pip here".to_owned()));
    }
    let mut pip = Command::new(root.join("venv/bin/python"));
    pip.args(["-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check"]);
    checked(pip.arg(&made.wheel))?;
    Ok(Installed::In("/venv".to_owned()))
}

/// A root folder with an installation.
struct Root {
    path: PathBuf,
    /// Where in it the installation is.
    prefix: String,
}

impl Root {
    /// Runs what is installed. Returns where it was run.
    fn check(&self, package: &Package) -> Result<&'static str> {
        let installed = self.path.join(self.prefix.trim_start_matches('/'));
        for (_, file) in tree::COMPLETIONS {
            ensure!(installed.join(file).is_file(), "{file} is missing");
        }
        for file in [
            "share/man/man1/hetrace.1.gz",
            "share/man/man1/hetrace-run.1.gz",
            "share/doc/hetrace/LICENSE-MIT",
        ] {
            ensure!(installed.join(file).is_file(), "{file} is missing");
        }
        ensure!(self.prefix != "/usr" || installed.join(tree::UNIT).is_file(), "the unit is missing");
        let include = installed.join("include");
        compile(PROGRAM, &self.path.join("program"), &[&format!("-I{}", include.display())])?;
        compile(OPENER, &self.path.join("opener"), &["-ldl"])?;
        let libraries = self.libraries(&installed)?;
        self.bring_c_library(&installed)?;
        let alone = self.run("/program", &[])?.status.code() == Some(7);
        let hetrace = format!("{}/bin/hetrace", self.prefix);
        // Where nothing can be mounted it runs beside this machine's own files.
        let how = if alone { "in a root with nothing but it and the C library" } else { "on this machine" };
        let run = |program: &str, arguments: &[&str]| {
            if alone { self.run(program, arguments) } else { self.run_here(program, arguments) }
        };
        let version = expect(&run(&hetrace, &["--version"])?, 0)?;
        ensure!(version.contains(package.version), "--version prints {version}");
        // Each in a process of its own, as programs have them from the start: what is opened late shares little
        // memory for variables of threads.
        for library in &libraries {
            expect(&run("/opener", &[library])?, 0)?;
        }
        let trace = if alone { "/trace".to_owned() } else { self.path.join("trace").display().to_string() };
        let program =
            if alone { "/program".to_owned() } else { self.path.join("program").display().to_string() };
        expect(&run(&hetrace, &["run", "-o", &trace, "--", &program])?, 7)?;
        let tally = expect(&run(&hetrace, &["tally", &trace])?, 0)?;
        ensure!(tally.contains("a step of it"), "no range in the tables:\n{tally}");
        expect(&run(&hetrace, &["check", &trace])?, 0)?;
        self.opencl(&hetrace)?;
        Ok(how)
    }

    /// The interposers, as paths in the root.
    fn libraries(&self, installed: &Path) -> Result<Vec<String>> {
        let names = repo::apis()?.into_iter().map(|api| format!("lib/hetrace/libhetrace_{api}.so"));
        names
            .map(|name| {
                ensure!(installed.join(&name).is_file(), "{name} is missing");
                Ok(format!("{}/{name}", self.prefix))
            })
            .collect()
    }

    /// Copies what the binaries say that they are linked to.
    fn bring_c_library(&self, installed: &Path) -> Result<()> {
        let mut files =
            vec![self.path.join("program"), self.path.join("opener"), installed.join("bin/hetrace")];
        for entry in fs::read_dir(installed.join("lib/hetrace"))? {
            files.push(entry?.path());
        }
        let said = text_of(Command::new("ldd").args(&files).env("LC_ALL", "C"))?;
        ensure!(!said.contains("not found"), "{said}");
        for path in
            said.split_whitespace().filter(|word| word.starts_with("/lib") || word.starts_with("/usr/lib"))
        {
            let to = self.path.join(path.trim_start_matches('/'));
            if !to.exists() {
                fs::create_dir_all(to.parent().context("a library without folder")?)?;
                fs::copy(path, &to).with_context(|| path.to_owned())?;
            }
        }
        for folder in ["proc", "dev/shm", "tmp"] {
            fs::create_dir_all(self.path.join(folder))?;
        }
        fs::write(self.path.join("dev/null"), "")?;
        Ok(())
    }

    /// Runs a program of the root with it as its root folder.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        let script = "set -e; cd \"$1\"; shift
            mount --rbind /proc proc; mount -t tmpfs tmpfs dev/shm; mount --bind /dev/null dev/null
            exec chroot . \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", script, "sh"]).arg(&self.path).arg(program).args(arguments);
        clean(&mut command).output().context("unshare")
    }

    /// Runs a program of the root with this machine's.
    fn run_here(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        let inside = |path: &str| self.path.join(path.trim_start_matches('/'));
        let is_ours = |path: &str| path.starts_with(&self.prefix);
        let arguments =
            arguments.iter().map(|path| if is_ours(path) { inside(path) } else { PathBuf::from(path) });
        let mut command = Command::new(inside(program));
        clean(command.args(arguments)).output().context("run")
    }

    /// Traces a program that uses OpenCL, where this machine has one.
    fn opencl(&self, hetrace: &str) -> Result<()> {
        if !is_there("clinfo")
            || !text_of(&mut Command::new("clinfo")).is_ok_and(|s| s.contains("Platform Name"))
        {
            return Ok(());
        }
        let trace = self.path.join("clinfo").display().to_string();
        let hetrace = self.path.join(hetrace.trim_start_matches('/'));
        text_of(clean(Command::new(&hetrace).args(["run", "-o", &trace, "--", "clinfo"])))?;
        let tally = text_of(clean(Command::new(&hetrace).args(["tally", &trace])))?;
        ensure!(tally.contains("clGetPlatformIDs"), "clinfo: no OpenCL in the tables:\n{tally}");
        Ok(())
    }
}

/// Installs the package in a whole Debian with `apt`, which looks at what it depends on, and runs it there.
pub fn debian(suite: &str, deb: &Path, package: &Package) -> Result<()> {
    let place = tempfile::tempdir()?;
    let root = place.path().join("root");
    checked(Command::new("debootstrap").args(["--variant=minbase", suite]).arg(&root))?;
    fs::copy(deb, root.join("hetrace.deb"))?;
    let script = "set -e; mount --rbind /proc \"$1/proc\"; mount -t tmpfs tmpfs \"$1/dev/shm\"
        exec chroot \"$1\" sh -c 'dpkg -i /hetrace.deb && hetrace --version && hetrace run -o /trace -- sh -c true &&
            hetrace check /trace && getconf GNU_LIBC_VERSION &&
            for l in /usr/lib/hetrace/*.so; do
                LD_BIND_NOW=1 LD_PRELOAD=$l true 2>/said && test ! -s /said || { cat /said >&2; exit 1; }
            done && dpkg -r hetrace && ! test -e /usr/lib/hetrace'";
    let text = text_of(clean(Command::new("unshare").args(["-m", "sh", "-c", script, "sh"]).arg(&root)))?;
    ensure!(text.contains(package.version), "{text}");
    println!("deb: installed in a Debian {suite}, and runs there:\n{text}");
    Ok(())
}

/// A command that is root as far as the folder that it changes is concerned.
fn as_root(program: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["-r", program]);
    // Debian's root has these on its PATH, users have not.
    command.env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()));
    command
}

/// Without what the caller says to hetrace.
fn clean(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("HETRACE") {
            command.env_remove(name);
        }
    }
    command
}

fn expect(output: &Output, status: i32) -> Result<String> {
    let text = [&*output.stdout, &output.stderr].map(String::from_utf8_lossy).concat();
    if output.status.code() != Some(status) {
        bail!("ended with {} and not with {status}:\n{text}", output.status);
    }
    Ok(text)
}

fn compile(source: &str, to: &Path, arguments: &[&str]) -> Result<()> {
    let file = to.with_extension("c");
    fs::write(&file, source)?;
    checked(Command::new("cc").arg("-o").arg(to).arg(&file).args(arguments))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o755))?)
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}
