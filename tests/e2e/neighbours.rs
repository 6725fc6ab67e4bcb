//! Several launchers at once, and other users on the machine.

use std::process::{Command, Stdio};

use hetrace_tests::bed::run;
use hetrace_tests::{Done, hetrace};

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
