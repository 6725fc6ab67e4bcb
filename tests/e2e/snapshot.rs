//! `hetrace snapshot` of programs that run: what they have called by then can be read, and they go on.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, Platform, Seen, hetrace};

const LAUNCH: &str = "clEnqueueNDRangeKernel";

/// A traced program that waits for files.
struct Beside {
    scratch: tempfile::TempDir,
    child: Child,
}

impl Beside {
    fn start(script: &[&str]) -> Self {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let mut line = Command::new(hetrace());
        line.args(["run", "-q", "-o", "trace", "--"]).arg(program("windows")).args(script);
        line.current_dir(scratch.path()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = line.envs(Platform::Pocl.environment(scratch.path())).spawn().expect("hetrace");
        Beside { scratch, child }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Waits until the program has made a file.
    fn until(&self, name: &str) {
        let begun = Instant::now();
        while !self.path(name).exists() {
            assert!(begun.elapsed() < Duration::from_secs(300), "{name} never came");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: &str) {
        let done = run(Command::new("kill").args([signal, &self.child.id().to_string()]));
        assert_eq!(done.status, 0, "{}", done.err);
    }

    fn snapshot(&self, options: &[&str]) -> Done {
        run(Command::new(hetrace()).arg("snapshot").args(options).arg(self.child.id().to_string()))
    }

    /// Launches that can be read now.
    fn launches(&self) -> u64 {
        Seen::read(&self.path("trace")).total().get(LAUNCH).copied().unwrap_or(0)
    }

    fn end(mut self) -> Seen {
        assert!(self.child.wait().expect("a child").success());
        Seen::read(&self.path("trace"))
    }
}

#[test]
fn what_was_called_can_be_read_while_the_program_runs() {
    let script = ["launch:30", "touch:a", "wait:b", "launch:12", "touch:c", "wait:d", "launch:5"];
    let program = Beside::start(&script);
    for (reached, go, launches) in [("a", "b", 30), ("c", "d", 42)] {
        program.until(reached);
        let done = program.snapshot(&["--wait", "300"]);
        assert_eq!(done.status, 0, "{}", done.err);
        let trace = program.path("trace").canonicalize().expect("a trace");
        assert!(done.err.contains(&format!("hetrace tally {}", trace.display())), "{}", done.err);
        assert_eq!(program.launches(), launches);
        let tally = run(Command::new(hetrace()).arg("tally").arg(program.path("trace")));
        assert!(tally.status == 0 && tally.out.contains(LAUNCH), "{}{}", tally.out, tally.err);
        std::fs::write(program.path(go), "").expect("a file");
    }
    let seen = program.end();
    assert!(seen.damage.is_empty() && seen.discarded == 0, "{seen:?}");
    assert_eq!(seen.total().get(LAUNCH), Some(&47));
}

#[test]
fn a_launcher_that_is_stopped_is_named_and_answers_later() {
    let program = Beside::start(&["launch:10", "touch:a", "wait:b"]);
    program.until("a");
    program.signal("-STOP");
    let done = program.snapshot(&["--wait", "0"]);
    program.signal("-CONT");
    assert_eq!(done.status, 125, "{}", done.err);
    let named = format!("hetrace (process {}) did not answer within 0 s", program.child.id());
    assert!(done.err.contains(&named), "{}", done.err);
    let done = program.snapshot(&["--wait", "300"]);
    assert_eq!((done.status, program.launches()), (0, 10), "{}", done.err);
    std::fs::write(program.path("b"), "").expect("a file");
    assert_eq!(program.end().total().get(LAUNCH), Some(&10));
}

#[test]
fn nothing_to_ask_is_said() {
    // A process that no session has started: the first of all.
    let done = run(Command::new(hetrace()).args(["snapshot", "1"]));
    assert_eq!(done.status, 125, "{}", done.err);
    let none = done.err.contains("no program of this user is being recorded");
    assert!(none || done.err.contains("nothing that is being recorded belongs to 1"), "{}", done.err);
}
