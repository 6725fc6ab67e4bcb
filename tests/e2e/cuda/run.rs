//! Running programs on the fake driver under trace, and comparing what the trace says
//! with what the driver says that its devices did.

#![allow(dead_code, reason = "not every test program looks at all of it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use hetrace_ctf::read::Trace;
use hetrace_ctf::{Scalar, Value};
pub use hetrace_tests::seen::Command;
use hetrace_tests::{Done, Seen, fake, hetrace};
use tempfile::TempDir;

/// A run of a program of `tests/programs/cuda` under trace.
pub struct Run {
    pub done: Done,
    pub scratch: TempDir,
}

/// Runs `work.c` with device times from this source.
pub fn work(source: &str, mode: &str) -> Run {
    run(source, &["work", mode], &[])
}

/// The same for any program.
pub fn run(source: &str, command: &[&str], environment: &[(&str, &str)]) -> Run {
    // Room for a busy test machine.
    run_with(&["--buffer", "8192"], source, command, environment)
}

/// The same with options of hetrace's.
pub fn run_with(options: &[&str], source: &str, command: &[&str], environment: &[(&str, &str)]) -> Run {
    let program = fake::program(command[0]);
    let program = program.to_str().expect("a path in UTF-8");
    run_command(options, source, &[&[program], &command[1..]].concat(), environment)
}

/// The same for a program of any folder.
pub fn run_command(options: &[&str], source: &str, command: &[&str], environment: &[(&str, &str)]) -> Run {
    let scratch = TempDir::new().expect("a scratch folder");
    let at = |name: &str| scratch.path().join(name);
    let mut line = Process::new(hetrace());
    line.args(["run", "-q", "--device-times", source]).args(options).arg("-o").arg(at("trace"));
    line.arg("--").args(command);
    line.env("LD_LIBRARY_PATH", fake::driver()).env("FAKE_CUDA_DEVICES", "2");
    line.env("FAKE_CUDA_COUNTS", at("counts")).env("FAKE_CUDA_LOG", at("log"));
    line.env("HETRACE_CUPTI", fake::driver().join("libcupti.so.13")).envs(environment.iter().copied());
    let done = hetrace_tests::bed::run(&mut line);
    Run { done, scratch }
}

/// What a trace says of a command beside its times.
#[derive(Debug, Clone)]
pub struct Detail {
    pub kind: String,
    pub start: u64,
    /// The driver's number of the stream.
    pub queue: u64,
    pub from: String,
    pub to: String,
    pub node: [u64; 2],
}

/// What the device did, as the driver says.
#[derive(Debug, Clone)]
pub struct Op {
    pub kind: String,
    pub name: String,
    pub device: u64,
    pub context: u64,
    pub stream: u64,
    pub start: u64,
    pub end: u64,
    pub blocks: u64,
    pub threads: u64,
    pub bytes: u64,
    /// Kinds of memory, as the driver's tool counts them.
    pub memory: [u64; 2],
    /// Number of the graph, and of the node in it.
    pub node: [u64; 2],
}

impl Run {
    /// What the trace says.
    pub fn seen(&self) -> Seen {
        let seen = Seen::read(&self.scratch.path().join("trace"));
        assert_eq!(self.done.status, 0, "{}", self.done.err);
        assert!(seen.damage.is_empty(), "{:?}", seen.damage);
        seen
    }

    /// The manifest.
    pub fn manifest(&self) -> serde_json::Value {
        hetrace_tests::counts::manifest(&self.scratch.path().join("trace"))
    }

    /// Commands that were counted as lost.
    pub fn lost(&self) -> u64 {
        self.manifest()["losses"]["device_commands"].as_u64().expect("a count")
    }

    /// How far times of devices may be off, in nanoseconds: what is stated, and
    /// the rounding of events' distances.
    pub fn doubt(&self) -> u64 {
        let clocks = self.manifest()["device_clocks"].as_array().expect("clocks").clone();
        clocks.iter().map(|c| c["error_ns"].as_u64().expect("a clock that is known")).max().unwrap_or(0) + 200
    }

    /// Files that the program has left.
    pub fn files(&self, name: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.scratch.path()).expect("the scratch folder");
        let paths = entries.map(|e| e.expect("an entry").path());
        let fits = |p: &Path| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(name));
        paths.filter(|p| fits(p)).collect()
    }

    /// What the devices did.
    pub fn ops(&self) -> Vec<Op> {
        let mut all = Vec::new();
        for path in self.files("log.") {
            for line in std::fs::read_to_string(path).expect("a log").lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let number = |i: usize| words[i].parse::<i64>().expect("a number") as u64;
                all.push(Op {
                    kind: words[0].to_owned(),
                    name: words[1].to_owned(),
                    device: number(2),
                    context: number(3),
                    stream: number(4),
                    start: number(5),
                    end: number(6),
                    blocks: number(7),
                    threads: number(8),
                    bytes: number(9),
                    memory: [number(10), number(11)],
                    node: [number(12), number(13)],
                });
            }
        }
        all
    }

    /// Memories and nodes of all commands with times.
    pub fn details(&self) -> Vec<Detail> {
        let trace = Trace::open(&self.scratch.path().join("trace")).expect("a trace");
        let (mut all, mut queues) = (Vec::new(), BTreeMap::new());
        for mut stream in trace.streams() {
            while let Some(event) = stream.next_event() {
                let event = event.expect("an event");
                let name = event.class().name.clone();
                let Some(kind) = name.strip_prefix("device:") else { continue };
                let number = |name: &str| event.get(name).and_then(Scalar::as_u64).unwrap_or(0);
                if kind == "queue" {
                    queues.insert(number("queue"), number("number"));
                }
                let fields = event.fields().expect("fields");
                if fields.get("duration").is_none() {
                    continue;
                }
                let label = |name: &str| match fields.get(name) {
                    Some(Value::Enum { label: Some(label), .. }) => label.clone(),
                    _ => String::new(),
                };
                let one = |name: &str| match fields.get(name) {
                    Some(Value::Array(items)) => match items.first() {
                        Some(Value::Unsigned(n)) => *n,
                        _ => 0,
                    },
                    _ => 0,
                };
                all.push(Detail {
                    kind: kind.to_owned(),
                    start: event.timestamp().unwrap_or(0),
                    queue: number("queue"),
                    from: label("from"),
                    to: label("to"),
                    node: [one("graph"), one("node")],
                });
            }
        }
        all.iter_mut().for_each(|detail| detail.queue = queues[&detail.queue]);
        all
    }

    /// The tracer must touch nothing that has ended.
    pub fn check_no_misuse(&self) {
        for path in self.files("counts.") {
            let text = std::fs::read_to_string(path).expect("counts");
            for line in text.lines().filter(|l| l.starts_with("misuse")) {
                assert!(line.ends_with(" 0"), "{line}");
            }
        }
    }
}

/// No command may be before its call, nor before itself; each call is there.
pub fn check_order(seen: &Seen, doubt: u64) {
    for c in seen.commands.iter().filter(|c| c.kind != "untimed") {
        assert!(c.start <= c.end, "{c:?}");
        assert!(c.cause <= c.start + doubt, "ran before its call: {c:?}, known to {doubt}");
        let entries = &seen.entries[&(c.pid, c.cause_tid)];
        if let Err(at) = entries.binary_search_by_key(&c.cause, |(time, _)| *time) {
            let near = &entries[at.saturating_sub(2)..(at + 2).min(entries.len())];
            panic!("no call at the time of the cause: {c:?}; calls of its thread before and after: {near:?}");
        }
    }
}

/// Every operation of the devices has its command, at its time. The driver numbers streams of all contexts together.
pub fn check_all_reported(ops: &[Op], seen: &Seen, doubt: u64) {
    let mut recorded: BTreeMap<(u64, &str, &str), Vec<&Command>> = BTreeMap::new();
    for c in &seen.commands {
        recorded.entry((c.queue_number, c.kind.as_str(), c.name.as_str())).or_default().push(c);
    }
    let mut done: BTreeMap<(u64, &str, &str), Vec<&Op>> = BTreeMap::new();
    for op in ops {
        let name = if op.name == "-" { "" } else { &op.name };
        done.entry((op.stream, &op.kind, name)).or_default().push(op);
    }
    assert_eq!(recorded.keys().collect::<Vec<_>>(), done.keys().collect::<Vec<_>>());
    let mut late = Vec::new();
    for (key, ops) in done {
        let commands = &recorded[&key];
        assert_eq!(ops.len(), commands.len(), "{key:?}");
        for (op, c) in ops.iter().zip(commands) {
            assert_eq!((op.bytes, op.device + 1), (c.bytes, c.device), "{key:?}");
            if op.kind == "kernel" {
                assert_eq!(op.blocks * op.threads, c.global.iter().product::<u64>(), "{key:?}");
            }
            // The events stand around it: it lies inside, and in an idle stream the
            // first event is early by as long as the call takes.
            assert!(c.start <= op.start + doubt, "{key:?}: starts {} late", c.start - op.start);
            assert!(op.end <= c.end + doubt, "{key:?}: ends {} early", op.end - c.end);
        }
        // In an idle stream the second event is late, too, but never by another command.
        for (c, next) in commands.iter().zip(commands.iter().skip(1)) {
            assert!(c.end <= next.start + doubt, "{key:?}: two at a time");
        }
        // What waits for a command is late by as long as it takes to wake up.
        if !matches!(key.1, "read" | "write") {
            late.extend(ops.iter().zip(commands).map(|(o, c)| c.end.saturating_sub(o.end)));
        }
    }
    // One may be late by a time slice of a busy machine, but not most.
    late.sort_unstable();
    let usually = late.get(late.len() / 2).copied().unwrap_or(0);
    assert!(usually < doubt + 100_000, "usually {usually} late");
}

/// How many commands there are of each kind.
pub fn kinds(seen: &Seen) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for c in &seen.commands {
        *counts.entry(c.kind.as_str()).or_default() += 1;
    }
    counts
}
