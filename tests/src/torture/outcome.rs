//! What a run came to: figures, and promises that were broken.

use std::fmt;

use super::case::{Accounting, Case};
use super::counted::{Calls, Counted};
use super::stdout::{Made, Stdout};

/// How much more memory a traced program may take than the bare one.
const MORE_RESIDENT_KIB: u64 = 64 << 10;
const MORE_ADDRESSES_KIB: u64 = 3 << 19;

/// Numbers of a run, or of several: they add up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Runs.
    pub runs: u64,
    /// Processes that called.
    pub processes: u64,
    /// Threads that called.
    pub threads: u64,
    /// SIGKILLs, those of a launcher included.
    pub kills: u64,
    /// Jumps out of handlers.
    pub jumps: u64,
    /// Files of the session damaged, or inputs mutated.
    pub attacks: u64,
    /// Calls made: those that had begun.
    pub made: u64,
    /// Calls in the trace.
    pub recorded: u64,
    /// Calls reported as lost.
    pub lost: u64,
    /// Calls neither in the trace nor reported, or reported though they were not made.
    pub unaccounted: u64,
}

impl Figures {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Figures) {
        self.runs = self.runs.saturating_add(other.runs);
        self.processes = self.processes.saturating_add(other.processes);
        self.threads = self.threads.saturating_add(other.threads);
        self.kills = self.kills.saturating_add(other.kills);
        self.jumps = self.jumps.saturating_add(other.jumps);
        self.attacks = self.attacks.saturating_add(other.attacks);
        self.made = self.made.saturating_add(other.made);
        self.recorded = self.recorded.saturating_add(other.recorded);
        self.lost = self.lost.saturating_add(other.lost);
        self.unaccounted = self.unaccounted.saturating_add(other.unaccounted);
    }
}

/// One run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Case, way, user and seed.
    pub title: String,
    /// Numbers.
    pub figures: Figures,
    /// Broken promises.
    pub faults: Vec<String>,
    /// Why it did not run.
    pub skipped: Option<String>,
    /// How long it took.
    pub seconds: f64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = &self.figures;
        write!(
            f,
            "{}: made {} recorded {} lost {} unaccounted {} in {:.1} s",
            self.title, n.made, n.recorded, n.lost, n.unaccounted, self.seconds
        )?;
        if let Some(reason) = &self.skipped {
            write!(f, "; skipped: {reason}")?;
        }
        self.faults.iter().try_for_each(|fault| write!(f, "\n    FAULT {fault}"))
    }
}

/// Calls that are neither recorded nor reported, and those that are both or were never made.
/// A call that was cut short may be recorded by its entry, or not at all.
fn unaccounted(made: Made, seen: Calls) -> (u64, u64) {
    let missing = made.returned.saturating_sub(seen.begun + seen.lost);
    let surplus = (seen.ended + seen.lost).saturating_sub(made.begun);
    (missing, surplus)
}

impl Outcome {
    /// Numbers of what the program says that it did.
    pub fn program(&mut self, out: &Stdout) {
        let made = out.total();
        self.figures.runs = 1;
        self.figures.processes = out.processes;
        self.figures.threads = made.threads;
        self.figures.kills += out.figure("kills");
        self.figures.jumps = out.figure("jumps");
        self.figures.attacks = out.figure("attacks");
        self.figures.made = made.begun;
    }

    /// Compares the trace with what the program says that it did.
    pub fn compare(&mut self, case: &Case, out: &Stdout, seen: &Counted) {
        let (made, total) = (out.total(), seen.total());
        self.figures.recorded = total.begun;
        self.figures.lost = total.lost;
        if case.accounting == Accounting::None {
            return;
        }
        let (missing, surplus) = unaccounted(made, total);
        self.figures.unaccounted = missing + surplus;
        if missing + surplus > 0 {
            self.faults.push(format!(
                "{missing} calls are neither recorded nor reported, {surplus} are too many; losses {}",
                seen.losses
            ));
        }
        if !seen.damage.is_empty() {
            self.faults.push(format!("{} times damage, first: {}", seen.damage.len(), seen.damage[0]));
        }
        if case.accounting == Accounting::Whole && total.lost > 0 {
            self.faults.push(format!("{} calls are lost, and none need be", total.lost));
        }
        if case.accounting == Accounting::Jumps && total.lost > self.figures.jumps {
            self.faults.push(format!("{} calls are lost by {} jumps", total.lost, self.figures.jumps));
        }
        match case.accounting {
            Accounting::Sum(n) => {
                // Shells and others around the program may be there, too.
                let name = case.command.split(' ').next().unwrap_or_default();
                let found = seen.programs.iter().filter(|p| p.ends_with(name)).count() as u64;
                if found != n {
                    self.faults.push(format!("{n} processes became {found}"));
                }
            }
            Accounting::Whole | Accounting::Jumps | Accounting::Counted => self.by_process(out, seen),
            _ => {}
        }
        self.commands(out, seen);
    }

    fn by_process(&mut self, out: &Stdout, seen: &Counted) {
        for (pid, made) in &out.made {
            let mut calls = seen.calls.get(pid).copied().unwrap_or_default();
            let (_, surplus) = unaccounted(*made, calls);
            // Those that no process is named for may be this one's.
            calls.lost += seen.lost_elsewhere;
            let (missing, _) = unaccounted(*made, calls);
            if missing + surplus > 0 {
                self.faults.push(format!("process {pid} made {made:?}, but {calls:?} are in the trace"));
            }
        }
    }

    /// A queue has one identity, and each command has a record or is reported.
    fn commands(&mut self, out: &Stdout, seen: &Counted) {
        let (queues, commands) = (out.figure("queues"), out.figure("commands"));
        if queues == 0 {
            return;
        }
        if seen.queues != queues || seen.nameless_queues > 0 {
            self.faults.push(format!(
                "{queues} queues became {}, {} of them on no device with a name",
                seen.queues, seen.nameless_queues
            ));
        }
        let known = seen.commands + seen.commands_lost;
        if known != commands {
            self.faults.push(format!(
                "{commands} commands, but {} in the trace and {} reported",
                seen.commands, seen.commands_lost
            ));
        }
    }

    /// Compares output, memory and what is left behind.
    pub fn disturbance(&mut self, case: &Case, bare: &Stdout, traced: &Stdout) {
        if bare.text != traced.text {
            self.faults.push(format!("stdout {:?}, bare {:?}", traced.text, bare.text));
        }
        if traced.figure("hung") > 0 {
            self.faults.push(format!("{} processes hung", traced.figure("hung")));
        }
        if case.memory {
            for (name, more) in [("vm_rss_kib", MORE_RESIDENT_KIB), ("vm_size_kib", MORE_ADDRESSES_KIB)] {
                let (with, without) = (traced.figure(name), bare.figure(name));
                if with == 0 || with > without + more {
                    self.faults.push(format!("{name} {with}, bare {without}: more than {more} KiB above"));
                }
            }
        }
        if let Some(most) = case.session_bytes {
            let bytes = traced.figure("session_bytes");
            if bytes > most {
                self.faults.push(format!("the session took {bytes} bytes of memory, {most} are the bound"));
            }
        }
        if let Some(session) = traced.session.as_deref().filter(|s| !case.kills_launcher && exists(s)) {
            self.faults.push(format!("{session} is left over"));
        }
    }
}

/// A session in a mount namespace of its own is gone with that.
fn exists(session: &str) -> bool {
    std::path::Path::new(session).symlink_metadata().is_ok()
}
