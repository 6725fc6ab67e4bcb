//! Runs one case bare and traced, and judges it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use super::case::{Case, Need, Way};
use super::counted::Counted;
use super::outcome::Outcome;
use super::place::Place;
use super::stdout::Stdout;

/// No case takes this long, however busy the machine; one that does hangs.
const LIMIT: Duration = Duration::from_secs(600);
/// Whether a memory control group can be made, in either version of the file system.
const MEMORY_GROUP: &str = "p=/sys/fs/cgroup; l=memory.max; \
    if [ -d $p/memory ]; then p=$p/memory; l=memory.limit_in_bytes; fi; g=$p/torture-need-$$; \
    mkdir $g || exit 1; test -w $g/$l; s=$?; rmdir $g; exit $s";
/// With this status each program ends.
const DONE: i32 = 7;

/// How a command ended.
struct Ended {
    /// As a shell shows it; nothing if it had to be killed.
    status: Option<i32>,
    out: String,
    err: String,
}

/// Runs a case.
pub fn run(case: &Case, place: &Place, way: Way, seed: u64) -> Outcome {
    let started = Instant::now();
    let title = format!("{} ({}, {}, seed {seed})", case.name, way.name(), place.user);
    let mut outcome = Outcome { title, ..Outcome::default() };
    outcome.skipped = case.needs.iter().find_map(|need| lacks(*need, place));
    if outcome.skipped.is_none() {
        judge(case, place, way, seed, &mut outcome);
    }
    outcome.seconds = started.elapsed().as_secs_f64();
    outcome
}

fn judge(case: &Case, place: &Place, way: Way, seed: u64, outcome: &mut Outcome) {
    let scratch = place.scratch();
    let trace = scratch.path().join("trace");
    let program = inside(case, place, seed);
    let bare = execute(case, place, scratch.path(), &program, false);
    if bare.status != Some(DONE) {
        let how = last_lines(&bare.err);
        outcome.faults.push(format!("the bare program fails: status {:?}, {how}", bare.status));
        return;
    }
    let mut line: Vec<OsString> = vec![place.hetrace.clone().into(), "run".into(), "-q".into()];
    line.extend(["--interpose", way.name()].map(OsString::from));
    line.extend(case.options.split_whitespace().map(OsString::from));
    line.extend(["-o".into(), trace.clone().into(), "--".into()]);
    line.extend(program);
    let traced = execute(case, place, scratch.path(), &line, case.kills_launcher);
    let (said, bare_said) = (Stdout::parse(&traced.out), Stdout::parse(&bare.out));
    outcome.figures.kills += u64::from(case.kills_launcher);
    outcome.program(&said);
    outcome.disturbance(case, &bare_said, &said);
    if traced.status.is_none() {
        outcome.faults.push(format!("hangs; stderr {:?}", last_lines(&traced.err)));
        return;
    }
    if traced.err.contains("panicked") {
        outcome.faults.push(format!("the launcher panicked: {}", last_lines(&traced.err)));
    }
    if case.kills_launcher {
        // Whoever records next clears away what the killed one left.
        let next = [place.hetrace.clone().into(), "-q".into(), "true".into()];
        execute(case, place, scratch.path(), &next, false);
        return;
    }
    if traced.status != bare.status {
        // Without its report there is nothing to compare a trace with.
        let (with, without) = (traced.status, bare.status);
        outcome.faults.push(format!("status {with:?}, bare {without:?}: {}", last_lines(&traced.err)));
        return;
    }
    match Counted::read(&trace) {
        Ok(seen) => outcome.compare(case, &said, &seen),
        Err(error) => outcome.faults.push(error),
    }
}

/// The program's command line, with the shell around it if the case has one.
fn inside(case: &Case, place: &Place, seed: u64) -> Vec<OsString> {
    let mut words = case.command.split_whitespace();
    let name = words.next().expect("a program");
    let program = place.program(case.api, name);
    let argument = |word: &str| match word.strip_prefix('@') {
        Some(name) => place.program(case.api, name).into(),
        None => OsString::from(word.replace("SEED", &seed.to_string())),
    };
    let line = std::iter::once(program.into()).chain(words.map(argument)).collect();
    shell(case.inside, line)
}

fn shell(text: Option<&str>, line: Vec<OsString>) -> Vec<OsString> {
    let Some(text) = text else { return line };
    let mut all: Vec<OsString> = ["sh", "-c", text, "sh"].map(OsString::from).into();
    all.extend(line);
    all
}

fn execute(case: &Case, place: &Place, scratch: &Path, line: &[OsString], kill_early: bool) -> Ended {
    let mut words = place.become_user.clone();
    words.extend(shell(case.around, line.to_vec()));
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(scratch).process_group(0);
    command.envs(place.environment(case.api, scratch));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|e| panic!("{words:?}: {e}"));
    let deadline = Instant::now() + LIMIT;
    let (ready, out) = lines(child.stdout.take().expect("piped"));
    let (_, err) = lines(child.stderr.take().expect("piped"));
    if kill_early {
        // Also when the program ended without that line.
        let _ = ready.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        let _ = child.kill();
    }
    let status = wait(&mut child, deadline);
    // Whoever still holds the pipes was started by the program.
    let ended =
        out.recv_timeout(deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(1)));
    if status.is_none() || ended.is_err() {
        kill_group(child.id());
        let _ = child.wait();
    }
    let last = |text: Receiver<String>| text.recv_timeout(Duration::from_secs(60)).unwrap_or_default();
    let hangs = ended.is_err();
    let out = ended.unwrap_or_else(|_| last(out));
    Ended { status: status.filter(|_| !hangs), out, err: last(err) }
}

/// Reads to the end: a message when a line says `ready`, and all of it at the end.
fn lines(pipe: impl Read + Send + 'static) -> (Receiver<()>, Receiver<String>) {
    let ((ready, is_ready), (all, text)) = (channel(), channel());
    std::thread::spawn(move || {
        let (mut pipe, mut bytes) = (BufReader::new(pipe), Vec::new());
        let mut from = 0;
        while pipe.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            if &bytes[from..] == b"ready\n" {
                let _ = ready.send(());
            }
            from = bytes.len();
        }
        drop(ready);
        let _ = all.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    (is_ready, text)
}

fn wait(child: &mut Child, deadline: Instant) -> Option<i32> {
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return Some(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
        }
        if Instant::now() > deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The group that the command was started in: it and all that it started.
fn kill_group(leader: u32) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{leader}")]).status();
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(3)..].join(" | ")
}

/// Why the machine can't do what the case needs.
fn lacks(need: Need, place: &Place) -> Option<String> {
    let works = |line: &[&str]| {
        let mut words = place.become_user.clone();
        words.extend(line.iter().map(OsString::from));
        Command::new(&words[0]).args(&words[1..]).output().is_ok_and(|done| done.status.success())
    };
    match need {
        Need::Namespaces if works(&["unshare", "-rmpf", "--mount-proc", "true"]) => None,
        Need::Namespaces => Some("no user, mount and PID namespaces for this user".to_owned()),
        Need::MemoryGroup if works(&["sh", "-c", MEMORY_GROUP]) => None,
        Need::MemoryGroup => Some("no memory control group that this user can make".to_owned()),
    }
}
