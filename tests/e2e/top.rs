//! `hetrace top` and `hetrace run --live`: what a program does, while it does it.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hetrace_tests::bed::{program, run};
use hetrace_tests::{Platform, hetrace};
use serde_json::Value;

const LAUNCH: &str = "clEnqueueNDRangeKernel";
/// Longer than anything here takes; only a test that fails waits so long.
const LIMIT: Duration = Duration::from_secs(300);

/// A traced program that waits for files.
struct Beside {
    scratch: tempfile::TempDir,
    child: Child,
}

impl Beside {
    fn start(options: &[&str], script: &[&str]) -> Self {
        let scratch = tempfile::tempdir().expect("a scratch folder");
        let file = |name: &str| std::fs::File::create(scratch.path().join(name)).expect("a file");
        let mut line = Command::new(hetrace());
        line.args(["run", "-o", "trace"]).args(options).arg("--").arg(program("windows")).args(script);
        line.current_dir(scratch.path()).stdout(file("out")).stderr(file("err"));
        let child = line.envs(Platform::Pocl.environment(scratch.path())).spawn().expect("hetrace");
        Beside { scratch, child }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Waits until the program has made a file.
    fn until(&self, name: &str) {
        until(|| self.path(name).exists(), name);
    }

    fn go(&self, name: &str) {
        std::fs::write(self.path(name), "").expect("a file");
    }

    fn top(&self, options: &[&str]) -> Command {
        let mut line = Command::new(hetrace());
        line.arg("top").arg(self.child.id().to_string()).args(options);
        line
    }

    /// What there is now.
    fn now(&self) -> Value {
        let done = run(&mut self.top(&["--once", "--format", "json"]));
        assert_eq!(done.status, 0, "{}", done.err);
        pictures(&done.out).pop().expect("a picture")
    }

    fn end(&mut self) {
        assert!(self.child.wait().expect("a child").success(), "{}", self.read("err"));
    }

    fn tally(&self) -> Value {
        let done = run(Command::new(hetrace()).args(["tally", "--json"]).arg(self.path("trace")));
        assert_eq!(done.status, 0, "{}", done.err);
        serde_json::from_str(&done.out).expect("JSON")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until(mut done: impl FnMut() -> bool, what: &str) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn pictures(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Calls of a function in a picture or a tally.
fn calls(tally: &Value, name: &str) -> u64 {
    let rows = tally["host"].as_array().expect("rows").iter();
    rows.filter(|row| row["name"] == name).map(|row| row["calls"].as_u64().expect("a number")).sum()
}

fn of_picture(picture: &Value, name: &str) -> u64 {
    calls(&picture["picture"]["tally"], name)
}

/// Calls, errors, and commands: what is counted.
fn counted(tally: &Value) -> Value {
    let rows = |table: &str, members: &[&str]| -> Vec<Value> {
        let rows = tally[table].as_array().expect("rows").iter();
        let mut rows: Vec<Value> =
            rows.map(|row| members.iter().map(|m| row[*m].clone()).collect::<Value>()).collect();
        rows.sort_by_key(Value::to_string);
        rows
    };
    serde_json::json!({
        "host": rows("host", &["api", "name", "calls", "errors", "total_ns", "self_ns", "min_ns", "max_ns"]),
        "device": rows("device", &["kind", "name", "calls", "total_ns", "bytes"]),
        "traffic": tally["traffic"], "errors": tally["errors"], "lost": tally["lost_events"],
    })
}

#[test]
fn numbers_grow_and_agree_with_tally_in_the_end() {
    let script = ["launch:30", "touch:a", "wait:b", "launch:12", "touch:c", "wait:d", "launch:5"];
    let mut beside = Beside::start(&["-q"], &script);
    beside.until("a");
    assert_eq!(of_picture(&beside.now(), LAUNCH), 30);
    let mut top = beside.top(&["--interval", "20ms", "--format", "json"]);
    let mut top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hetrace");
    beside.go("b");
    beside.until("c");
    let now = beside.now();
    assert_eq!(of_picture(&now, LAUNCH), 42);
    assert_eq!(now["progress"], "running");
    // Device commands may be ordered a little later than their calls.
    let commands = |now: &Value| {
        let rows = now["picture"]["tally"]["device"].as_array().expect("rows").iter();
        rows.map(|row| row["calls"].as_u64().expect("a number")).sum::<u64>()
    };
    until(|| commands(&beside.now()) == 42, "42 commands");
    beside.go("d");
    beside.end();
    let mut out = String::new();
    top.stdout.take().expect("a pipe").read_to_string(&mut out).expect("text");
    let mut err = String::new();
    top.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
    assert!(top.wait().expect("a child").success(), "{err}");
    assert!(err.contains("the program has ended with status 0; next: hetrace tally"), "{err}");
    let pictures = pictures(&out);
    let launches: Vec<u64> = pictures.iter().map(|picture| of_picture(picture, LAUNCH)).collect();
    assert!(launches.is_sorted(), "{launches:?}");
    let last = pictures.last().expect("a picture");
    assert_eq!((last["progress"].as_str(), of_picture(last, LAUNCH)), (Some("ended"), 47));
    assert_eq!(counted(&last["picture"]["tally"]), counted(&beside.tally()));
}

#[test]
fn a_finished_trace_is_shown_as_tally_shows_it() {
    let mut beside = Beside::start(&["-q", "--compress"], &["launch:300"]);
    beside.end();
    let done = run(Command::new(hetrace()).args(["top", "--format", "json"]).arg(beside.path("trace")));
    assert_eq!(done.status, 0, "{}", done.err);
    let pictures = pictures(&done.out);
    assert_eq!(pictures.len(), 1);
    assert_eq!(counted(&pictures[0]["picture"]["tally"]), counted(&beside.tally()));
}

#[test]
fn several_processes_and_threads_are_rows_of_their_own() {
    let script = ["children:2", "threads:2", "launch:40", "touch:ready", "wait:go"];
    let mut beside = Beside::start(&["-q"], &script);
    // Four threads in two processes launch 40 each.
    let all = || run(&mut beside.top(&["--once", "--format", "json"]));
    let launches = || pictures(&all().out).pop().map_or(0, |picture| of_picture(&picture, LAUNCH));
    until(|| launches() == 160, "160 launches");
    for (by, rows) in [("process", 2), ("thread", 4)] {
        let keys = format!("name,{by}");
        let done = run(&mut beside.top(&["--once", "--format", "json", "--by", &keys]));
        let picture = pictures(&done.out).pop().expect("a picture");
        let host = picture["picture"]["tally"]["host"].as_array().expect("rows").clone();
        let of: Vec<&Value> = host.iter().filter(|row| row["name"] == LAUNCH).collect();
        assert_eq!(of.len(), rows, "{of:#?}");
        assert!(of.iter().all(|row| row["calls"] == 160 / rows), "{of:#?}");
    }
    beside.go("go");
    beside.end();
}

#[test]
fn not_a_terminal_has_no_escapes() {
    let mut beside = Beside::start(&["-q"], &["launch:30", "touch:a", "wait:b"]);
    beside.until("a");
    let done = run(beside.top(&["--once"]).env("COLUMNS", "60"));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(done.out.contains(LAUNCH) && done.out.contains("addone"), "{}", done.out);
    assert!(!done.out.contains('\x1b'), "{:?}", done.out);
    let tables = done.out.lines().filter(|line| line.contains(" | ") && !line.starts_with("hetrace top"));
    assert!(
        tables.clone().count() > 4 && tables.clone().all(|line| line.chars().count() <= 60),
        "{}",
        done.out
    );
    beside.go("b");
    beside.end();
}

/// Runs a shell command on a pseudo-terminal. When `seen` is shown there, `then` is done: what that prints are keys.
/// Returns what was shown.
fn on_a_terminal(beside: &Beside, command: &str, seen: &str, then: &str) -> String {
    let screen = beside.path("screen");
    std::fs::write(&screen, "").expect("a file");
    let script = format!("stty rows 30 cols 100; {command}; echo STATUS $?; stty -a; echo END");
    let wait = |what: &str| format!("until grep -aq '{what}' screen; do sleep 0.05; done");
    let keys = format!("{}; {then}; {}", wait(seen), wait("^END"));
    let mut line = Command::new("sh");
    line.args(["-c", &format!("({keys}) | script -qefc \"$1\" screen > shown"), "sh", &script]);
    let environment = Platform::Pocl.environment(beside.scratch.path());
    let done = run(line.current_dir(beside.scratch.path()).env_remove("NO_COLOR").envs(environment));
    assert_eq!(done.status, 0, "{}", done.err);
    let shown = std::fs::read(&screen).expect("what was shown");
    // The first line has the command.
    String::from_utf8_lossy(&shown).split_once('\n').expect("lines").1.to_owned()
}

#[test]
fn a_terminal_is_drawn_in_place_and_restored() {
    let mut beside = Beside::start(&["-q"], &["launch:30", "touch:a", "wait:b"]);
    beside.until("a");
    let top = format!("{} top {} --interval 50ms", hetrace().display(), beside.child.id());
    // By the signal, the shell does not wait for keys.
    // The file has the command, too, which must not be what is looked for.
    let killed = format!(
        "{top} & top=$!; until grep -aq 'addon[e]' screen; do sleep 0.05; done; kill $top; wait $top"
    );
    for (command, key) in [(&top, "printf q"), (&top, "printf '\\003'"), (&killed, ":")] {
        let out = on_a_terminal(&beside, command, LAUNCH, key);
        assert!(out.contains("STATUS 0"), "{key}: {out:?}");
        for (on, off) in
            [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h"), ("\x1b[?7l", "\x1b[?7h")]
        {
            let (on, off) = (out.find(on), out.rfind(off));
            assert!(on.is_some() && on < off && off < out.find("STATUS"), "{key}: {out:?}");
        }
        let modes = out.split("STATUS").nth(1).unwrap_or_default();
        assert!([" icanon", " echo ", "isig "].iter().all(|mode| modes.contains(mode)), "{modes}");
        assert!(
            !modes.contains("-icanon") && !modes.contains("-echo ") && !modes.contains("-isig"),
            "{modes}"
        );
        assert!(out.contains("\x1b[1m"), "{out:?}");
    }
    let plain = on_a_terminal(&beside, &format!("NO_COLOR=1 {top}"), LAUNCH, "printf q");
    assert!(!plain.contains("\x1b[1m"), "{plain:?}");
    beside.go("b");
    beside.end();
}

#[test]
fn the_last_picture_stays_when_the_program_ends() {
    let mut beside = Beside::start(&["-q"], &["launch:30", "touch:a", "wait:b", "launch:12"]);
    beside.until("a");
    let top = format!("{} top {} --interval 50ms", hetrace().display(), beside.child.id());
    let out = on_a_terminal(&beside, &top, LAUNCH, "touch b");
    let last = out.rsplit("\x1b[?1049l").next().unwrap_or_default();
    assert!(last.contains("ended after") && last.contains(LAUNCH), "{out:?}");
    assert!(last.contains("the program has ended with status 0"), "{last}");
    beside.end();
}

#[test]
fn a_launcher_that_is_killed_or_stopped_is_noticed() {
    let mut beside = Beside::start(&["-q"], &["launch:30", "touch:a", "wait:b", "touch:c"]);
    beside.until("a");
    let pid = beside.child.id().to_string();
    let signal = |signal: &str| assert_eq!(run(Command::new("kill").args([signal, &pid])).status, 0);
    signal("-STOP");
    let done = run(&mut beside.top(&["--once"]));
    assert!(done.status == 0 && done.out.contains("does not answer"), "{}{}", done.out, done.err);
    signal("-CONT");
    let mut top = beside.top(&["--interval", "20ms", "--format", "json"]);
    let mut top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hetrace");
    let mut first = [0; 1];
    top.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("a picture");
    signal("-KILL");
    let _ = beside.child.wait();
    let done = top.wait_with_output().expect("a child");
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && err.contains("was killed") && err.contains("hetrace recover"), "{err}");
    // Else it would wait for a file in a folder that is gone.
    beside.go("b");
    beside.until("c");
}

#[test]
fn nothing_to_follow_is_an_error_that_says_what_to_do() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    for asked in [scratch.path().to_str().expect("a path"), "nonsense"] {
        let done = run(Command::new(hetrace()).args(["top", asked]));
        assert_eq!(done.status, 125, "{}", done.err);
        assert!(done.err.contains("hetrace"), "{}", done.err);
    }
    let done = run(Command::new(hetrace()).args(["top", "--by", "range"]));
    assert!(done.status == 125 && done.err.contains("hetrace tally --by range"), "{}", done.err);
}

#[test]
fn run_live_leaves_the_program_and_its_output_alone() {
    let mut beside = Beside::start(&["-q", "--live"], &["launch:30"]);
    beside.end();
    let out = beside.read("out");
    assert!(out.starts_with("LAUNCHED") && out.lines().count() == 1, "{out}");
    let err = beside.read("err");
    assert!(err.contains("records,") && !err.contains('\x1b'), "{err}");
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let mut line = Command::new(hetrace());
    line.args(["run", "--live", "-q", "-o", "trace", "--", "sh", "-c", "exit 7"]).current_dir(scratch.path());
    assert_eq!(run(&mut line).status, 7);
    let mut line = Command::new(hetrace());
    line.args(["run", "--live", "-q", "-o", "trace2", "--", "./not-there"]).current_dir(scratch.path());
    assert_eq!(run(&mut line).status, 127);
}

#[test]
fn run_live_takes_the_last_lines_of_a_terminal_and_gives_them_back() {
    let mut beside = Beside::start(&["-q"], &["launch:1"]);
    beside.end();
    let line = format!(
        "{} run --live -q -o live -- {} launch:30 touch:a wait:b launch:5",
        hetrace().display(),
        program("windows").display()
    );
    let out = on_a_terminal(&beside, &line, "clBuildProgram", "touch b");
    assert!(out.contains("STATUS 0") && out.contains("LAUNCHED"), "{out:?}");
    assert!(out.contains("hetrace run --live"), "{out:?}");
    // The whole terminal scrolls again.
    let (taken, given) = (out.find("\x1b[1;16r"), out.rfind("\x1b[r"));
    assert!(taken.is_some() && taken < given && given < out.find("STATUS"), "{out:?}");
}
