//! Limits, and days on which all goes wrong: the programs run on, and what is missing is counted.

use super::*;

#[test]
fn processes_beyond_the_limit_are_counted_and_run_on() {
    let mut bench = Bench::new(None);
    bench.serve(&["--max-processes", "1"]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["launch:5", "touch:a1", "wait:1", "launch:5"]);
    bench.wait_for("a1");
    bench.until("a process", || bench.status()["service"]["session"]["processes"] == 1);
    bench.dormant(&["launch:50", "touch:b1"]);
    bench.wait_for("b1");
    bench.until("the refusal", || bench.status()["service"]["session"]["refused"][0] == 1);
    assert!(bench.well(&["status"]).contains("1 process beyond the limit"));
    bench.go("1");
    bench.ended();
    // There is room again.
    bench.until("its end", || bench.status()["service"]["session"]["processes"] == 0);
    bench.dormant(&["launch:7"]);
    bench.ended();
    let said = bench.well(&["stop"]);
    assert!(said.contains("LOST") && said.contains("--max-processes"), "{said}");
    assert_eq!(calls(&bench.seen("trace"), LAUNCH), 17);
    let manifest = bench.manifest("trace");
    assert!(manifest["losses"]["records"].as_u64() >= Some(100), "{}", manifest["losses"]);
    assert_eq!(manifest["processes"].as_array().map(Vec::len), Some(2));
    let text = bench.well(&["tally", "trace"]);
    assert!(text.contains("--max-processes"), "{text}");
}

#[test]
fn threads_beyond_the_limit_are_counted() {
    let mut bench = Bench::new(None);
    bench.serve(&["--max-threads", "2"]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["threads:4", "launch:20"]);
    bench.ended();
    bench.until("refusals", || bench.status()["service"]["session"]["refused"][1].as_u64() >= Some(1));
    let said = bench.well(&["stop"]);
    assert!(said.contains("--max-threads") && said.contains("LOST"), "{said}");
    is_whole_but_for_losses(&bench, "trace");
}

/// Nothing is damaged, and what is lost is counted.
fn is_whole_but_for_losses(bench: &Bench, trace: &str) {
    let seen = bench.seen(trace);
    assert!(seen.damage.is_empty() && seen.disorder == 0, "{seen:?}");
    assert!(bench.manifest(trace)["losses"]["records"].as_u64() > Some(0));
}

#[test]
fn folders_that_no_process_uses_are_removed() {
    let bench = Bench::new(None);
    let script = "S=standby-1-0123456789abcdef; eval \"$(\"$HETRACE\" env)\"; D=$(dirname $HETRACE_SESSION); \
                  cp -r $HETRACE_SESSION $D/$S; \"$HETRACE\" status; exec 3<$D/$S/control; \
                  \"$HETRACE\" status --clean; ls -d $D/$S; exec 3>&-; \"$HETRACE\" status --clean; ls -d $D/$S; ls $HETRACE_SESSION";
    let done = apart(bench.scratch.path(), "64M", script);
    let lines: Vec<&str> = done.out.lines().collect();
    let of = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!(of("stay dormant"), 2, "before, and as long as somebody has it: {done:?}");
    assert_eq!(of("removed, as no process uses it"), 1, "{done:?}");
    assert_eq!(
        lines.iter().filter(|line| line.ends_with("cdef") && line.starts_with('/')).count(),
        1,
        "{done:?}"
    );
    assert!(lines.contains(&"control") && lines.contains(&"lock"), "that of this build stays: {done:?}");
}

#[test]
fn a_service_that_is_killed_at_any_stage_leaves_programs_and_trace_whole() {
    let mut bench = Bench::new(None);
    // Nothing is recorded.
    bench.serve(&[]);
    bench.dormant(&[
        "launch:1",
        "touch:a1",
        "wait:1",
        "launch:10",
        "touch:a2",
        "wait:2",
        "launch:20",
        "touch:a3",
        "wait:3",
    ]);
    bench.wait_for("a1");
    bench.end_service("KILL");
    bench.serve(&[]);
    assert!(bench.status()["service"]["session"].is_null());
    // A session has begun, and nothing has come of it.
    bench.well(&["start", "-o", "trace"]);
    bench.end_service("KILL");
    bench.serve(&[]);
    bench.go("1");
    bench.wait_for("a2");
    // Paused: that stays so.
    bench.well(&["pause"]);
    bench.end_service("KILL");
    bench.serve(&[]);
    assert_eq!(bench.status()["service"]["session"]["paused"], true);
    bench.well(&["resume"]);
    bench.end_service("KILL");
    bench.serve(&[]);
    bench.go("2");
    bench.wait_for("a3");
    // While it ends the session.
    let mut stop = bench.command(hetrace());
    let mut stop = stop.arg("stop").stderr(Stdio::null()).spawn().expect("a command");
    std::thread::sleep(Duration::from_millis(100));
    bench.end_service("KILL");
    stop.wait().expect("its end");
    bench.serve(&[]);
    // It was ended, or goes on: then it is ended now.
    if bench.status()["service"]["session"].is_object() {
        bench.well(&["stop"]);
    }
    bench.go("3");
    bench.ended();
    let seen = bench.seen("trace");
    assert!(seen.damage.is_empty() && seen.disorder == 0, "{seen:?}");
    // At each kill up to a quarter of a second may be missing; nothing comes twice.
    assert!(seen.total().get(LAUNCH).copied().unwrap_or(0) <= 30, "{seen:?}");
    bench.well(&["tally", "trace"]);
    // And the next session is as if nothing had been.
    bench.well(&["start", "-o", "next"]);
    bench.dormant(&["launch:4"]);
    bench.ended();
    bench.well(&["stop"]);
    assert_eq!(calls(&bench.seen("next"), LAUNCH), 4);
    is_whole(&bench, "next");
}

/// A clock that goes back by a day when a file is there.
const CLOCK: &str = "
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t id, struct timespec *time)
{
    int result = syscall(SYS_clock_gettime, id, time);
    if (!result && id == CLOCK_REALTIME && !access(getenv(\"SET_BACK\"), F_OK))
        time->tv_sec -= 86400;
    return result;
}
";

#[test]
fn a_clock_that_is_set_back_changes_no_time() {
    let mut bench = Bench::new(None);
    fs::write(bench.path("clock.c"), CLOCK).expect("a file");
    let (source, library) = (bench.path("clock.c"), bench.path("clock.so"));
    let built = run(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source));
    assert_eq!(built.status, 0, "{}", built.err);
    let mut command = bench.command(hetrace());
    command.arg("service").stderr(Stdio::null());
    command.env("LD_PRELOAD", &library).env("SET_BACK", bench.path("back"));
    bench.service = Some(command.spawn().expect("a service"));
    bench.until("a service that answers", || bench.status()["service"].is_object());
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["launch:10", "touch:1", "wait:2", "launch:20"]);
    bench.wait_for("1");
    bench.until("records", || bench.status()["service"]["session"]["records"].as_u64() > Some(20));
    bench.go("back");
    std::thread::sleep(Duration::from_millis(600));
    bench.go("2");
    bench.ended();
    bench.well(&["stop"]);
    let seen = bench.seen("trace");
    assert_eq!(calls(&seen, LAUNCH), 30);
    is_whole(&bench, "trace");
    let times = seen.entries.values().flatten().map(|(time, _)| *time);
    let (first, last) = (times.clone().min().expect("a call"), times.max().expect("a call"));
    assert!(
        last - first < 3_600_000_000_000,
        "{first} to {last}: less than the day that the clock went back"
    );
}

#[test]
fn few_descriptors_leave_the_session_with_less_and_say_so() {
    let bench = Bench::new(None);
    let script = format!(
        "FILES=16; {SERVED} \"$HETRACE\" start -o t --os tree --sample 2>&1; echo $?; eval \"$(\"$HETRACE\" env)\"; \
         \"$WINDOWS\" launch:10 >out; echo $?; \"$HETRACE\" stop 2>&1; kill $S; wait $S"
    );
    let done = apart(bench.scratch.path(), "256M", &script);
    assert!(
        done.status == 0 && done.out.contains("\n0\n"),
        "the program runs and the service ends: {done:?}"
    );
}

#[test]
fn noise_in_the_control_file_spoils_the_session_and_no_more() {
    let mut bench = Bench::new(None);
    bench.serve(&[]);
    bench.well(&["start", "-o", "trace"]);
    bench.dormant(&["launch:9", "touch:a1", "wait:2", "launch:1"]);
    bench.wait_for("a1");
    let standby = PathBuf::from(format!("/dev/shm/hetrace-{}", user()));
    let is_control = |p: &PathBuf| p.ends_with("control") && p.to_string_lossy().contains("standby-");
    let recorded: Vec<PathBuf> =
        walk(&standby).into_iter().filter(|p| is_control(p) && p.with_file_name("trace").exists()).collect();
    let [control] = &recorded[..] else { panic!("one session: {recorded:?}") };
    use std::os::unix::fs::FileExt;
    // What programs can't do by accident: it is theirs to read.
    assert_eq!(fs::metadata(control).expect("a control file").permissions().mode() & 0o777, 0o400);
    fs::set_permissions(control, fs::Permissions::from_mode(0o600)).expect("its mode");
    let file = fs::OpenOptions::new().read(true).write(true).open(control).expect("a control file");
    let mut before = vec![0; file.metadata().expect("its size").len() as usize];
    file.read_exact_at(&mut before, 0).expect("its content");
    let mut state = 0x1234_5678_9abc_def1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(before.len() - 4096)
    .collect();
    // Notes, flags and the window's page.
    file.write_all_at(&noise, 4096).expect("noise");
    std::thread::sleep(Duration::from_millis(600));
    assert!(bench.status()["service"].is_object(), "the service lives");
    let stopped = bench.hetrace(&["stop"]);
    assert!(stopped.status == 0 || stopped.status == 125, "{stopped:?}");
    bench.go("2");
    let codes: Vec<bool> =
        bench.programs.drain(..).map(|mut c| c.wait().expect("an end").success()).collect();
    assert!(codes[0], "the program runs on");
    bench.end_service("KILL");
    file.write_all_at(&before[4096..], 4096).expect("as it was");
    let _ = bench.hetrace(&["tally", "trace"]);
    fs::remove_dir_all(control.parent().expect("a folder")).expect("removed");
}
