//! Several launchers at once, and other users on the machine.

use std::process::{Command, Stdio};

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, Platform, Seen, hetrace};

#[test]
fn runs_at_once_in_one_folder_get_a_trace_each() {
    let scratch = tempfile::tempdir().expect("scratch");
    let start = || {
        let mut command = Command::new(hetrace());
        command.args(["run", "-q", "--", "sh", "-c", "exit 7"]).current_dir(scratch.path());
        command.stderr(Stdio::piped()).spawn().expect("hetrace")
    };
    let all: Vec<_> = (0..16).map(|_| start()).collect();
    for child in all {
        let done = child.wait_with_output().expect("an end");
        assert_eq!(done.status.code(), Some(7), "{}", String::from_utf8_lossy(&done.stderr));
    }
    for n in 1..=16 {
        let manifest = scratch.path().join(format!("hetrace-sh-{n}/hetrace/manifest.json"));
        assert!(std::fs::read_to_string(manifest).expect("a manifest").contains("\"code\": 7"));
    }
}

/// Runs a script where `/dev/shm` is a new memory file system. `$OTHER` is another user, if this
/// one may give files away.
fn with_own_memory(script: &str) -> Done {
    let root = run(Command::new("id").arg("-u")).out.trim() == "0";
    let mut command = Command::new("unshare");
    command.arg(if root { "-m" } else { "-rm" });
    command.args(["sh", "-ec", &format!("mount -t tmpfs -o mode=1777 tmpfs /dev/shm; {script}")]);
    command.env("HETRACE", hetrace()).env("OTHER", if root { "65534" } else { "0" });
    run(&mut command)
}

#[test]
fn what_others_plant_in_shared_memory_hangs_and_diverts_nobody() {
    let scratch = tempfile::tempdir().expect("scratch");
    let elsewhere = scratch.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    for plant in [
        "mkfifo hetrace-0".to_owned(),
        format!("ln -s {} hetrace-0", elsewhere.display()),
        "mkdir -m 777 hetrace-0; chown $OTHER hetrace-0".to_owned(),
        "mkdir -p hetrace-0/x; mkfifo hetrace-0/x/lock; chown -R $OTHER hetrace-0".to_owned(),
        // As names were once: foreseeable.
        "mkdir hetrace-0-1-0; mkfifo hetrace-0-1-0/lock; chown -R $OTHER hetrace-0-1-0".to_owned(),
        "mkdir -p hetrace-0/x; ln -s /dev/zero hetrace-0/x/lock".to_owned(),
    ] {
        let script = format!(
            "cd /dev/shm; {plant}; find . >{0}/before; cd {0}; \
             timeout 600 $HETRACE run -q -o t -- sh -c 'stat -c %u:%a $HETRACE_SESSION $HETRACE_SESSION/..' || echo failed; \
             rm -r t; cd /dev/shm; find . | diff {0}/before -",
            scratch.path().display()
        );
        let done = with_own_memory(&script);
        assert_eq!((done.status, &*done.out), (0, "0:700\n0:700\n"), "{plant}: {}", done.err);
        assert_eq!(std::fs::read_dir(&elsewhere).expect("a folder").count(), 0, "{plant}");
    }
}

/// A program of the session itself may put anything in the place of its files: those that begin then don't hang.
#[test]
fn what_stands_in_the_place_of_a_sessions_files_hangs_no_program() {
    let scratch = tempfile::tempdir().expect("scratch");
    for name in ["control", "reported"] {
        for plant in [
            "mkfifo $f",
            "mkdir $f",
            "ln -s /dev/zero $f",
            "mknod $f p; chmod 400 $f",
            "python3 -c \"$socket\" $f",
        ] {
            let socket = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])";
            let script = format!("f=$HETRACE_SESSION/{name}; rm $f; {plant}; $PROGRAM launch:3 fail");
            // Around all of it, since each program in it may be the one that hangs.
            let mut command = Command::new("timeout");
            command.args(["-s", "KILL", "60"]).arg(hetrace());
            command.args(["run", "-q", "--interpose", "preload", "--", "sh", "-c", &script]);
            command.current_dir(scratch.path());
            command.env("socket", socket).env("PROGRAM", program("windows"));
            let done = run(command.envs(Platform::Pocl.environment(scratch.path())));
            assert_eq!(done.status, 3, "{name}: {plant}: {}", done.err);
        }
    }
}

#[test]
fn many_starts_and_ends_at_once_lose_no_session() {
    let scratch = tempfile::tempdir().expect("scratch");
    // Each looks for its session's files while others clear away.
    let line = "\"$HETRACE\" run -q -- sh -c 'test -e \"$HETRACE_SESSION/control\" && test -e \"$HETRACE_SESSION/lock\"'";
    let script = format!("for i in $(seq 8); do ({line}; {line}; {line}) || echo lost & done; wait");
    let done =
        run(Command::new("sh").args(["-c", &script]).current_dir(scratch.path()).env("HETRACE", hetrace()));
    assert_eq!(done.out, "", "{}", done.err);
}

/// Of one user, each in a session of its own: the one overwrites all memory of ours that it can write, the other is
/// recorded whole.
#[test]
fn noise_in_one_session_is_of_no_consequence_in_another() {
    let scratch = tempfile::tempdir().expect("scratch");
    let environment = Platform::Pocl.environment(scratch.path());
    let begin = |trace: &str, options: &[&str], script: &[&str]| {
        let mut command = Command::new(hetrace());
        command.args(["run", "-o", trace]).args(options).arg("--").arg(program("windows")).args(script);
        command.current_dir(scratch.path()).envs(environment.clone());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hetrace")
    };
    let broken = begin("broken", &[], &["launch:20", "touch:a1", "wait:b1", "noise:40", "touch:a2", "fail"]);
    // One whose window its programs open has that where they write.
    let counting = ["wait:b1", "launch:20", "noise:8", "launch:20", "fail"];
    let counting = begin("counting", &["--launches", "5..10"], &counting);
    let sound = begin("sound", &[], &["wait:a1", "touch:b1", "launch:500", "wait:a2", "launch:7"]);
    let [broken, counting, sound] = [broken, counting, sound].map(|child| {
        let done = child.wait_with_output().expect("an end");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    });
    for (name, (code, out, err)) in [("broken", &broken), ("counting", &counting)] {
        assert_eq!(*code, Some(3), "{name}: the program's own status: {err}");
        let sprayed = out.lines().find(|line| line.starts_with("SPRAYED")).expect("what it did");
        for none in [" reported=0", " arenas=0", " fixed=0"] {
            assert!(!sprayed.contains(none), "{name}: {sprayed}");
        }
        assert!(err.contains("overwritten"), "{name}: {err}");
        let trace = scratch.path().join(name);
        for command in ["tally", "print"] {
            let done = run(Command::new(hetrace()).arg(command).arg(&trace));
            assert_eq!(done.status, 0, "{name}: {command}: {}", done.err);
        }
    }
    assert!(counting.2.contains("count launches"), "{}", counting.2);
    let (code, _, err) = &sound;
    assert!(*code == Some(0) && !err.contains("overwritten"), "{err}");
    let seen = Seen::read(&scratch.path().join("sound"));
    assert!(seen.damage.is_empty() && seen.disorder == 0 && seen.discarded == 0, "{seen:?}");
    assert_eq!(seen.total().get("clEnqueueNDRangeKernel"), Some(&507));
    for command in ["check", "tally"] {
        let done = run(Command::new(hetrace()).arg(command).arg(scratch.path().join("sound")));
        assert!(done.status == 0 && !done.out.contains("INCOMPLETE"), "{command}: {done:?}");
    }
}

/// A program that brings in a library of another build runs, and the report says why nothing is recorded of it.
#[test]
fn a_library_of_another_version_stays_out_and_leaves_word() {
    let scratch = tempfile::tempdir().expect("scratch");
    let library = hetrace().with_file_name("libhetrace_opencl.so");
    let path = |name: &str| scratch.path().join(name);
    let read = run(Command::new("objcopy")
        .arg("-O")
        .arg("binary")
        .arg("--only-section=.hetrace.abi")
        .arg(&library)
        .arg(path("own")));
    assert_eq!(read.status, 0, "{}", read.err);
    let own = std::fs::read(path("own")).expect("a version");
    let own = u32::from_le_bytes(own.try_into().expect("four bytes"));
    for version in [own - 1, own + 1] {
        std::fs::write(path("version"), version.to_le_bytes()).expect("a file");
        let other = path(&format!("libhetrace_opencl-{version}.so"));
        let section = format!(".hetrace.abi={}", path("version").display());
        let made =
            run(Command::new("objcopy").args(["--update-section", &section]).arg(&library).arg(&other));
        assert_eq!(made.status, 0, "{}", made.err);
        let line = format!(
            "OPENCL_LAYERS={} LD_PRELOAD= {} launch:5; exit 7",
            other.display(),
            program("windows").display()
        );
        let trace = format!("trace-{version}");
        let done = run(Command::new(hetrace())
            .args(["run", "-o", &trace, "--", "sh", "-c", &line])
            .current_dir(scratch.path())
            .envs(Platform::Pocl.environment(scratch.path())));
        assert!(done.status == 7 && done.out.contains(" 5\n"), "the program runs: {done:?}");
        let said = format!(
            "the opencl library of another build of hetrace (shared memory version {version}, not {own})"
        );
        assert!(done.err.contains(&said), "{}", done.err);
        assert_eq!(Seen::read(&path(&trace)).calls.len(), 0, "untraced");
    }
}
