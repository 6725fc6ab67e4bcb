//! What the operating system did to a program's threads: recorded by the kernel, read here, written as a
//! trace of the form that LTTng's kernel tracer writes.
//!
//! ```text
//!  tracepoints ──► ring per CPU ──► Order ──► Tree ──► Event ──► Trace: kernel/metadata, kernel/channel0_N
//!  (perf/)          (perf/ring)    by time   whose?    fields
//! ```
//! [`Opening::begin`] opens what the privileges allow, in a thread of its own, for a program that the calling
//! thread starts after [`Opening::ready`];
//! [`Recorder::start`] begins to read when its process id is known, in a thread of its own; and
//! [`Recorder::finish`] takes what is left when it has ended. [`Attached`] records processes that run already.
//!
//! What binds it:
//! - Nothing is added to the traced program. No kernel module, and no file or setting of the system is
//!   changed.
//! - Layouts of records come from the kernel at run time ([`layout`]); nothing in a record is believed
//!   beyond its bytes.
//! - What the kernel drops is counted, in the streams (`events_discarded`) and in the [`Report`].
//! - Memory: a ring buffer of a fixed size per CPU, and what comes within [`order::PATIENCE`].
//! - This crate knows nothing of rings of programs, of APIs and of reports.

pub mod attached;
pub mod border;
pub mod catalog;
mod clock;
mod decoder;
pub mod dump;
mod emptier;
pub mod event;
mod files;
pub mod form;
mod hash;
mod intake;
pub mod keep;
pub mod layout;
pub mod order;
pub mod own;
pub mod perf;
mod proc;
mod recorder;
mod running;
pub mod sampler;
mod sources;
pub mod statistics;
pub mod stream;
pub mod syscall;
pub mod tracefs;
pub mod tree;
pub mod user;
mod way;
mod worker;
mod writer;

use std::sync::Arc;

use hetrace_ctf::account::Account;
use hetrace_ctf::class::ClockClass;

pub use attached::Attached;
pub use border::{Border, Borders, Passed};
pub use files::MakeFile;
pub use keep::Keep;
pub use recorder::{Opening, Recorder};
pub use stream::{Room, Target};
pub use user::UserProbe;
pub use way::{Probe, Way, probe};

/// Whose events are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// Those that concern the program and its descendants.
    #[default]
    Tree,
    /// All.
    System,
}

impl Scope {
    /// Returns its name, as options and manifests have it.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Tree => "tree",
            Scope::System => "system",
        }
    }
}

/// Decides by its name whether a system call is recorded.
pub type Wanted = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What is recorded.
#[derive(Clone)]
pub struct Options {
    /// Whose events.
    pub scope: Scope,
    /// Which system calls; none: no tracepoints of these are opened.
    pub syscalls: Option<Wanted>,
    /// Bytes of the ring buffer of each CPU.
    pub ring_bytes: usize,
    /// Probes in the code of programs.
    pub probes: Vec<UserProbe>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { scope, syscalls, ring_bytes, probes } = self;
        let mut debug = f.debug_struct("Options");
        debug.field("scope", scope).field("syscalls", &syscalls.is_some());
        debug.field("ring_bytes", ring_bytes).field("probes", probes).finish()
    }
}

/// Where the trace goes, and what it says of itself.
pub struct Place {
    /// Where packets go.
    pub to: Target,
    /// Where its parts begin, if it is divided.
    pub borders: Option<Arc<Borders>>,
    /// Identity of the trace.
    pub uuid: [u8; 16],
    /// CLOCK_MONOTONIC of this boot.
    pub clock: ClockClass,
    /// The machine's name.
    pub host: String,
    /// What records; `hetrace 0.1.0`.
    pub recorder: String,
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").field("folder", &self.to.folder).finish_non_exhaustive()
    }
}

/// What was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Events in the trace.
    pub events: u64,
    /// Bytes of its streams.
    pub bytes: u64,
    /// Events that the kernel dropped because a ring buffer was full. Under [`Scope::Tree`] some of them
    /// may have been of other programs.
    pub dropped: u64,
    /// Events that could not be written, and why.
    pub unwritten: u64,
    /// See [`Report::unwritten`].
    pub error: Option<String>,
    /// Events that came too late to be put in order; they have the time of the one before them.
    pub late: u64,
    /// Context switches that the kernel did not deliver: a CPU leaves another thread than the one that it went to
    /// before. Of a tree those of its threads.
    pub unseen: u64,
    /// Bytes of ring buffers that made no sense.
    pub damaged: u64,
    /// Processor time of the reader, in nanoseconds.
    pub cpu_ns: u64,
    /// Tracepoints that could not be opened, and why.
    pub missing: Vec<String>,
    /// What is in the files; none if that is not known, and of what is kept in memory.
    pub account: Option<Account>,
}

impl Report {
    /// Adds that of a later part.
    pub fn add(&mut self, later: &Report) {
        let Report {
            events,
            bytes,
            dropped,
            unwritten,
            error,
            late,
            unseen,
            damaged,
            cpu_ns,
            missing,
            account: _,
        } = later;
        self.events += events;
        self.bytes += bytes;
        self.dropped += dropped;
        self.unwritten += unwritten;
        self.error = self.error.take().or_else(|| error.clone());
        self.late += late;
        self.unseen += unseen;
        self.damaged += damaged;
        self.cpu_ns += cpu_ns;
        self.missing.extend(missing.iter().cloned());
        self.missing.sort();
        self.missing.dedup();
        self.account = None;
    }

    /// Returns what is counted since the recording began, as it is since an earlier report.
    fn since(self, before: &Report) -> Self {
        Report {
            late: self.late.saturating_sub(before.late),
            unseen: self.unseen.saturating_sub(before.unseen),
            damaged: self.damaged.saturating_sub(before.damaged),
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            ..self
        }
    }
}
