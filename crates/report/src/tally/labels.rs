//! What processes, threads and devices are called in rows.

use std::collections::HashMap;

use hetrace_ctf::class::EnvValue;

use super::by::{By, Group, NONE};
use hetrace_trace::titles::{default_queue_mark, device_label, device_number};
use hetrace_trace::trace::{Device, Names, Queue, Thread, Trace};

/// Names for the parts of a [`Group`].
#[derive(Debug)]
pub(super) struct Labels<'t> {
    trace: &'t Trace,
    /// What calls are grouped by.
    pub calls: Vec<By>,
    /// What commands are grouped by.
    pub commands: Vec<By>,
    /// What traffic is grouped by.
    pub traffic: Vec<By>,
    pub host: String,
    /// Machines of processes, if there are several.
    hosts: HashMap<i64, String>,
    processes: HashMap<i64, String>,
    ranks: HashMap<i64, u64>,
    /// Whether the launcher of a job set them: then communicators number something else.
    launched: bool,
    /// Whether the parts of one thread's time are distinguished.
    pub by_range: bool,
    /// Whether calls of a function by different ways are.
    pub by_layer: bool,
    /// Whether calls from different lines of code are.
    pub by_line: bool,
    pub by_thread: bool,
}

/// Who did something, where.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Who<'a> {
    pub pid: i64,
    pub tid: i64,
    pub thread: &'a str,
    pub range: Option<&'a str>,
    pub device: Option<&'a Device>,
    pub queue: Option<&'a Queue>,
    pub error: Option<&'a str>,
    pub layer: Option<&'a str>,
    pub line: Option<&'a str>,
}

impl<'t> Labels<'t> {
    pub fn new(trace: &'t Trace, by: &[By], extended: bool) -> Self {
        let or = |chosen: Vec<By>, otherwise: &[By]| match chosen.is_empty() {
            true => otherwise.to_vec(),
            false => chosen,
        };
        let of_calls = by.iter().copied().filter(|by| by.is_of_calls()).collect();
        let mut calls = or(of_calls, &[By::Api, By::Name]);
        // A function is not known without its API.
        if calls.contains(&By::Name) && !calls.contains(&By::Api) {
            calls.push(By::Api);
        }
        let traffic = or(by.to_vec(), &[By::Name]);
        let mut commands = traffic.clone();
        if extended {
            commands.extend([By::Device, By::Queue]);
        }
        let processes = trace.manifest().processes.iter().map(|p| (p.pid, p.program().to_owned()));
        let job = trace.job();
        let hosts = hosts(trace);
        let by_thread = |by: &By| match by {
            By::Process | By::Thread | By::Rank => true,
            By::Host => !hosts.is_empty(),
            _ => false,
        };
        Self {
            calls,
            commands,
            traffic,
            host: host(trace),
            processes: processes.collect(),
            launched: job.ranks().next().is_some(),
            ranks: job.ranks().map(|(pid, rank)| (pid, rank.rank)).collect(),
            by_range: by.contains(&By::Range),
            by_layer: by.contains(&By::Layer),
            by_line: by.contains(&By::Line),
            by_thread: by.iter().any(by_thread),
            hosts,
            trace,
        }
    }

    /// A process is a rank in a communicator: where no launcher set ranks, that of the first
    /// communicator that it is in counts.
    pub fn rank(&mut self, pid: i64, rank: u64) {
        if !self.launched {
            self.ranks.entry(pid).or_insert(rank);
        }
    }

    /// The rank that a process is, as rows have it.
    pub fn rank_of(&self, pid: i64) -> Option<String> {
        self.ranks.get(&pid).map(ToString::to_string)
    }

    /// Of which part a row is.
    pub fn group(&self, by: &[By], who: &Who<'_>) -> Group {
        let mut group = Group::default();
        for by in by {
            group.set(*by, self.label(*by, who));
        }
        group
    }

    fn label(&self, by: By, who: &Who<'_>) -> String {
        let and = |id: String, name: &str| if name.is_empty() { id } else { format!("{id} {name}") };
        match by {
            By::Api | By::Name => String::new(),
            By::Host => self.hosts.get(&who.pid).unwrap_or(&self.host).clone(),
            By::Process => {
                let label = and(who.pid.to_string(), self.processes.get(&who.pid).map_or("", String::as_str));
                match self.hosts.get(&who.pid) {
                    Some(host) => format!("{label} on {host}"),
                    None => label,
                }
            }
            By::Thread if who.tid == 0 => format!("{}:{NONE}", who.pid),
            By::Thread => and(format!("{}:{}", who.pid, who.tid), who.thread),
            By::Rank => self.ranks.get(&who.pid).map_or_else(|| NONE.to_owned(), ToString::to_string),
            By::Device => self.device(who.device),
            By::Queue => {
                let mark = who.queue.map_or_else(String::new, |q| default_queue_mark(self.trace, q));
                let handle = who.queue.map_or_else(|| "-".to_owned(), |q| format!("{:#x}", q.handle));
                format!("{}:{handle}{mark}", who.pid)
            }
            By::Range => who.range.unwrap_or(NONE).to_owned(),
            By::Error => who.error.unwrap_or(NONE).to_owned(),
            By::Layer => who.layer.unwrap_or(NONE).to_owned(),
            By::Line => who.line.unwrap_or(NONE).to_owned(),
        }
    }

    /// A device's name, with its number where others of the process have the name as well.
    pub fn device(&self, device: Option<&Device>) -> String {
        let Some(device) = device else { return NONE.to_owned() };
        let label = device_label(device);
        match device_number(self.trace, device) {
            Some(number) => format!("{label} (device {number})"),
            None => label,
        }
    }

    pub fn names(&self) -> &'t Names {
        self.trace.names()
    }

    /// Names of threads by their ids.
    pub fn threads(threads: &[Thread]) -> HashMap<(i64, i64), &str> {
        threads.iter().map(|t| ((t.pid, t.tid), t.name.as_str())).collect()
    }
}

/// The machines of processes, as a manifest of merged traces has them; none if there is one only.
fn hosts(trace: &Trace) -> HashMap<i64, String> {
    let processes = trace.manifest().processes.iter().filter(|p| !p.host.is_empty());
    let hosts: HashMap<i64, String> = processes.map(|p| (p.pid, p.host.clone())).collect();
    let mut names = hosts.values();
    let first = names.next();
    if names.any(|name| Some(name) != first) { hosts } else { HashMap::new() }
}

/// The machine's name, as the trace has it; of merged traces several, with commas between them.
fn host(trace: &Trace) -> String {
    match trace.ctf().class().env("hostname") {
        Some(EnvValue::Str(name)) if !name.is_empty() => name.clone(),
        _ => NONE.to_owned(),
    }
}
