//! The launcher's manners.

use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::{Platform, hetrace, trace};

#[test]
fn exit_statuses_are_a_shells() {
    let folder = tempfile::tempdir().expect("scratch");
    let status = |program: &str| {
        run(Command::new(hetrace()).current_dir(folder.path()).args(["run", "--", program])).status
    };
    assert_eq!(status("/does/not/exist"), 127);
    assert_eq!(status("/etc/passwd"), 126);
    assert_eq!(status("true"), 0);
    assert_eq!(status("false"), 1);
}

#[test]
fn an_option_that_there_is_not_is_no_program() {
    let folder = tempfile::tempdir().expect("scratch");
    let line = |words: &[&str]| run(Command::new(hetrace()).current_dir(folder.path()).args(words));
    for words in [&["run", "--no-such", "--", "true"], &["cost", "--no-such", "--", "true"][..]] {
        let done = line(words);
        assert_eq!(done.status, 2, "{}", done.err);
        assert!(done.err.contains("unexpected argument '--no-such'"), "{}", done.err);
    }
    assert_eq!(folder.path().read_dir().expect("the folder").count(), 0);
    // Behind the program, and behind `--`, everything is the program's.
    assert_eq!(line(&["run", "-q", "sh", "-c", "exit 7"]).status, 7);
    assert_eq!(line(&["run", "-q", "--", "--no-such"]).status, 127);
}

#[test]
fn a_trace_is_never_overwritten() {
    let folder = tempfile::tempdir().expect("scratch");
    let done = run(Command::new(hetrace()).arg("run").arg("-o").arg(folder.path()).args(["--", "true"]));
    assert_eq!(done.status, 125);
    assert!(done.err.contains("already exists"), "{}", done.err);
}

#[test]
fn names_of_traces_count_up() {
    let folder = tempfile::tempdir().expect("scratch");
    for _ in 0..2 {
        run(Command::new(hetrace()).current_dir(folder.path()).arg("true"));
    }
    assert!(folder.path().join("hetrace-true-1/metadata").exists());
    assert!(folder.path().join("hetrace-true-2/metadata").exists());
}

#[test]
fn a_static_program_runs_untraced_and_that_is_said() {
    let traced = trace(Platform::Pocl, &["static"]);
    assert_eq!(traced.done.status, 0);
    assert!(traced.done.err.contains("statically linked"), "{}", traced.done.err);
}

#[test]
fn a_setuid_program_is_named_as_untraceable() {
    let me = run(Command::new("id").arg("-u")).out;
    let program = ["/usr/bin/su", "/bin/su"].into_iter().find(|p| std::path::Path::new(p).exists());
    let Some(program) = program else { panic!("no su on this machine") };
    let folder = tempfile::tempdir().expect("scratch");
    let done = run(Command::new(hetrace()).arg("run").arg("-o").arg(folder.path().join("t")).args([
        "--",
        program,
        "--version",
    ]));
    assert_eq!(done.status, 0);
    // For root a setuid-root program changes nothing, so nothing stands in the way.
    assert_eq!(done.err.contains("setuid"), me.trim() != "0", "{}", done.err);
}

#[test]
fn stdout_and_stderr_are_the_programs() {
    let folder = tempfile::tempdir().expect("scratch");
    let done = run(Command::new(hetrace()).arg("run").arg("-o").arg(folder.path().join("t")).args([
        "--",
        "sh",
        "-c",
        "echo out; echo err >&2",
    ]));
    assert_eq!(done.out, "out\n");
    assert!(done.err.starts_with("err\n"), "{}", done.err);
}

#[test]
fn nothing_is_left_in_shared_memory() {
    let folder = tempfile::tempdir().expect("scratch");
    // A memory file system of its own: other launchers use the machine's at the same time.
    let script = "mount -t tmpfs -o mode=1777 tmpfs /dev/shm; \
        \"$HETRACE\" run -q -o t -- \"$POLLS\" user 10 >/dev/null; ls /dev/shm";
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", script]).current_dir(folder.path());
    let polls = hetrace_tests::bed::program("polls");
    let done = run(command.env("HETRACE", hetrace()).env("POLLS", polls));
    assert_eq!((done.status, &*done.out), (0, ""), "{}", done.err);
    assert!(folder.path().join("t/metadata").exists());
}

/// Each process has its own variables, and only numbers of those that are known are kept.
#[test]
fn ranks_are_found_in_the_environment_of_each_process() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let polls = hetrace_tests::bed::program("polls");
    // More than a ring holds, and nothing may be lost: so it lives until its ring is found.
    let line = format!(
        "for rank in 3 4; do RANK=$rank WORLD_SIZE=8 LOCAL_RANK=no TOKEN=7 {} user 30000 & done; wait",
        polls.display()
    );
    let done = run(Command::new(hetrace())
        .args(["run", "-q", "-m", "full", "--on-full", "block", "--buffer", "64", "-o"])
        .arg(&folder)
        .args(["--", "sh", "-c", &line])
        .env("SLURM_PROCID", "2")
        .env("SLURM_NTASKS", "x"));
    assert_eq!(done.status, 0, "{}", done.err);
    let text = std::fs::read_to_string(folder.join("hetrace/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(manifest["job"], serde_json::json!({"SLURM_PROCID": 2}));
    let mut ranks: Vec<_> =
        manifest["processes"].as_array().expect("processes").iter().map(|p| p["job"].clone()).collect();
    ranks.sort_by_key(|job| job["RANK"].as_u64());
    let expected = |rank| serde_json::json!({"RANK": rank, "WORLD_SIZE": 8, "SLURM_PROCID": 2});
    assert_eq!(ranks, [expected(3), expected(4)]);
    let tally = run(Command::new(hetrace()).args(["tally", "--by", "rank"]).arg(&folder));
    assert_eq!(tally.status, 0, "{}", tally.err);
    for rank in ["\n3 ", "\n4 "] {
        assert!(tally.out.contains(rank), "{}", tally.out);
    }
}

/// The worst case: the program may wait for room, and who makes room is gone.
#[test]
fn a_killed_launcher_neither_stops_the_program_nor_loses_what_was_written() {
    let scratch = tempfile::tempdir().expect("scratch");
    let (folder, done) = (scratch.path().join("t"), scratch.path().join("done"));
    let polls = hetrace_tests::bed::program("polls");
    let line = format!("{} user 3000000; echo $? > {}", polls.display(), done.display());
    let mut launcher = Command::new(hetrace())
        .args(["run", "-q", "-m", "full", "--on-full", "block", "--buffer", "64", "-o"])
        .arg(&folder)
        .args(["--", "sh", "-c", &line])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("hetrace");
    // Until more was written than the calls before the first poll: the first packet may hold
    // just these.
    let stream = || {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let streams = entries.filter(|e| e.file_name().to_string_lossy().starts_with("opencl-"));
        streams.filter_map(|e| e.metadata().ok()).any(|file| file.len() > 64 << 10)
    };
    for _ in 0..60_000 {
        if stream() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    launcher.kill().expect("killed");
    launcher.wait().expect("buried");
    let mut ended = String::new();
    for _ in 0..60_000 {
        ended = std::fs::read_to_string(&done).unwrap_or_default();
        if ended.ends_with('\n') {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(ended, "0\n", "the program goes on to its own end");
    // What was written is described, for others as well.
    let events = run(Command::new("babeltrace2").arg(&folder));
    assert!(events.status == 0 && events.out.contains("clGetEventInfo_entry"), "{}", events.err);
    let tally = run(Command::new(hetrace()).arg("tally").arg(&folder));
    assert_eq!(tally.status, 0, "{}", tally.err);
    assert!(tally.out.contains("clGetEventInfo") && tally.out.contains("INCOMPLETE"), "{}", tally.out);
    // The next run clears away what the dead launcher left in shared memory.
    trace(Platform::Pocl, &["linked", "1"]);
}
