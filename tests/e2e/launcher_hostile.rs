//! The program's status comes first, whatever happens to the launcher and its files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, hetrace};

/// Runs a shell's script in which `$HETRACE` is the launcher.
fn shell(scratch: &Path, script: &str) -> Done {
    run(Command::new("sh")
        .args(["-c", script])
        .current_dir(scratch)
        .env("HETRACE", hetrace())
        .env("CALLER", program("caller"))
        .env("POLLS", program("polls")))
}

/// The same where file systems may be mounted.
fn shell_with_mounts(scratch: &Path, script: &str) -> Done {
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).current_dir(scratch);
    run(command.env("HETRACE", hetrace()).env("POLLS", program("polls")))
}

fn manifest(scratch: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(scratch.join("t/hetrace/manifest.json")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

const ENDS: [(&str, i32); 2] = [("exit 7", 7), ("kill -SEGV $$", 139)];

#[test]
fn a_report_that_cannot_be_written_changes_no_status() {
    for (end, status) in ENDS {
        for stderr in ["2>/dev/full", "2>&-", "2>&- >&- <&-", "2</dev/null", ">/dev/full 2>/dev/full"] {
            let scratch = tempfile::tempdir().expect("scratch");
            let done = shell(scratch.path(), &format!("\"$HETRACE\" run -o t -- sh -c '{end}' {stderr}"));
            assert_eq!(done.status, status, "{end} {stderr}");
            assert_ne!(manifest(scratch.path())["exit"], serde_json::Value::Null);
        }
    }
}

#[test]
fn a_closed_pipe_for_stderr_changes_no_status() {
    use std::io::Write;
    use std::os::unix::process::ExitStatusExt;
    for (end, status) in ENDS {
        let scratch = tempfile::tempdir().expect("scratch");
        let mut child = Command::new(hetrace())
            .args(["run", "-o", "t", "--", "sh", "-c", &format!("read line; {end}")])
            .current_dir(scratch.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("hetrace");
        drop(child.stderr.take());
        // It ends only now that nobody reads.
        child.stdin.take().expect("piped").write_all(b"\n").expect("a line");
        let ended = child.wait().expect("an end");
        assert_eq!(ended.code().unwrap_or(128 + ended.signal().unwrap_or(0)), status, "{end}");
    }
}

#[test]
fn a_caller_that_ignores_its_children_gets_the_status_and_the_streams() {
    let scratch = tempfile::tempdir().expect("scratch");
    let line =
        "exec \"$CALLER\" ignore:17 -- \"$HETRACE\" run -q -o t -- sh -c '\"$POLLS\" user 1000; exit 7'";
    let done = shell(scratch.path(), line);
    assert_eq!(done.status, 7, "{}", done.err);
    let manifest = manifest(scratch.path());
    assert_eq!(manifest["exit"]["code"], 7);
    assert!(manifest["written"]["records"].as_u64().expect("a number") > 0);
}

#[test]
fn where_no_trace_can_be_written_nothing_is_run() {
    let scratch = tempfile::tempdir().expect("scratch");
    let run = |place: &str| format!("\"$HETRACE\" run -o {place} -- touch ran");
    let done = shell(scratch.path(), &run("/no/such/folder/t"));
    assert_eq!(done.status, 125);
    assert!(done.err.contains("/no/such/folder/t: No such file"), "{}", done.err);
    let full = "mkdir small; mount -t tmpfs -o size=256k tmpfs small; \
                head -c 300k /dev/zero >small/fill 2>/dev/null;";
    let done =
        shell_with_mounts(scratch.path(), &format!("{full} {}; s=$?; ls small; exit $s", run("small/t")));
    assert_eq!(done.status, 125, "{}", done.err);
    assert!(done.err.contains("small/t: No space left"), "{}", done.err);
    assert_eq!(done.out, "fill\n", "what was begun is removed");
    assert!(!scratch.path().join("ran").exists());
}

/// Runs a program that calls much, in a file system of so much, and looks at what is there.
#[test]
fn on_a_disk_that_gets_full_the_program_runs_on_and_what_fits_is_kept() {
    let scratch = tempfile::tempdir().expect("scratch");
    let script = "mkdir small; mount -t tmpfs -o size=12m tmpfs small; \
        \"$HETRACE\" run -m full --on-full block -o small/t -- \
            sh -c '\"$POLLS\" user 400000 >/dev/null; touch ended; exit 7'; \
        echo $?; cp small/t/hetrace/manifest.json .; \"$HETRACE\" tally small/t >tally; echo $?";
    let done = shell_with_mounts(scratch.path(), script);
    assert_eq!(done.out, "7\n0\n", "{}", done.err);
    assert!(scratch.path().join("ended").exists());
    assert!(done.err.contains("could not be written: No space left on device"), "{}", done.err);
    let text = std::fs::read_to_string(scratch.path().join("manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(manifest["exit"]["code"], 7);
    assert!(manifest["losses"]["unwritten_bytes"].as_u64().expect("a number") > 0);
    let tally = std::fs::read_to_string(scratch.path().join("tally")).expect("a tally");
    assert!(tally.contains("clGetEventInfo"), "{tally}");
}

#[test]
fn a_trace_that_is_removed_meanwhile_costs_the_program_nothing() {
    // Until nothing is left: the launcher may be writing a file into it.
    for (deed, said) in [
        ("until rm -rf t; do :; done", "t was removed during recording"),
        ("until rm -rf t; do :; done; mkdir t", "t was removed during recording"),
        ("until rm -rf t/hetrace; do :; done; touch t/hetrace", "cannot write t/hetrace/manifest.json"),
    ] {
        let scratch = tempfile::tempdir().expect("scratch");
        let script =
            format!("\"$HETRACE\" run -o t -- sh -c '{deed}; \"$POLLS\" user 1000; touch ended; exit 7'");
        let done = shell(scratch.path(), &script);
        assert_eq!(done.status, 7, "{deed}: {}", done.err);
        assert!(done.err.contains(said), "{deed}: {}", done.err);
        assert!(scratch.path().join("ended").exists());
    }
}

#[test]
fn a_limit_on_the_size_of_files_ends_nobody() {
    let scratch = tempfile::tempdir().expect("scratch");
    // In blocks of 512 bytes: the program has the limit, the session and the trace have more.
    let script = "ulimit -S -f 8; \"$HETRACE\" run -q -o t -- sh -c 'ulimit -f; exit 7'";
    let done = shell(scratch.path(), script);
    assert_eq!((done.status, &*done.out), (7, "8\n"), "{}", done.err);
    assert_eq!(manifest(scratch.path())["exit"]["code"], 7);
    // Where nobody may have more, nothing is begun.
    let script = "ulimit -f 8; \"$HETRACE\" run -q -o u -- touch ran; echo $?; ls";
    let done = shell(scratch.path(), script);
    assert_eq!(done.out, "125\nt\n", "{}", done.err);
    assert!(done.err.contains("File too large"), "{}", done.err);
}

#[test]
fn more_threads_than_open_files_are_recorded() {
    let scratch = tempfile::tempdir().expect("scratch");
    // As many processes as threads would be: a stream each.
    let script = "ulimit -n 40; \"$HETRACE\" run -q -o t -- sh -c \
        'for i in 1 2 3 4 5 6 7 8; do for j in 1 2 3 4 5 6 7; do \"$POLLS\" user 1 >/dev/null & done; wait; done'";
    let done = shell(scratch.path(), script);
    assert_eq!(done.status, 0, "{}", done.err);
    let manifest = manifest(scratch.path());
    assert_eq!(manifest["losses"]["unwritten_bytes"], 0, "{}", done.err);
    assert_eq!(manifest["processes"].as_array().expect("processes").len(), 56);
}

#[test]
fn a_trace_is_its_owners_whatever_the_umask() {
    for (umask, option, folder_mode, file_mode) in
        [("000", "", 0o700, 0o600), ("0777", "", 0o700, 0o600), ("0077", "--share group", 0o750, 0o640)]
    {
        let scratch = tempfile::tempdir().expect("scratch");
        let script = format!(
            "umask {umask}; \"$HETRACE\" run {option} --sources -o t -- sh -c 'umask; \"$POLLS\" user 10'; chmod u+rwx ."
        );
        let done = shell(scratch.path(), &script);
        assert_eq!(done.status, 0, "{}", done.err);
        assert!(done.out.starts_with(&format!("{:0>4}\n", umask.trim_start_matches('0'))), "{}", done.out);
        let mut found = 0;
        let mut look = |path: &Path| {
            let metadata = std::fs::metadata(path).expect("there");
            let wanted = if metadata.is_dir() { folder_mode } else { file_mode };
            assert_eq!(metadata.permissions().mode() & 0o777, wanted, "{}", path.display());
            found += 1;
        };
        let mut folders = vec![scratch.path().join("t")];
        while let Some(folder) = folders.pop() {
            look(&folder);
            for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
                if entry.path().is_dir() { folders.push(entry.path()) } else { look(&entry.path()) }
            }
        }
        assert!(found > 5, "{found} files and folders");
    }
}

/// Each is something that would hang or mislead who opens it.
#[test]
fn traps_in_place_of_stored_contents_are_left_out_and_reported() {
    let scratch = tempfile::tempdir().expect("scratch");
    let script = "\"$HETRACE\" run --sources -o t -- sh -c '\"$POLLS\" user 10; cd \"$HETRACE_SESSION\" && \
        mkfifo blob-0000000000000001 && mkdir blob-0000000000000002 && ln -s /dev/zero blob-0000000000000003 && \
        truncate -s 5G blob-0000000000000004 && touch blob-..x && echo good >blob-0000000000000005 && exit 7'";
    let done = shell(scratch.path(), script);
    assert_eq!(done.status, 7, "{}", done.err);
    assert!(
        done.err.contains("5 entries of the session's folder have names of stored contents"),
        "{}",
        done.err
    );
    let good = std::fs::read_to_string(scratch.path().join("t/hetrace/blobs/0000000000000005"));
    assert_eq!(good.expect("what a program stored last"), "good\n");
}
