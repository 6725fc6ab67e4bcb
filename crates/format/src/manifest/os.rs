//! Events of the operating system, recorded beside the program's.

use hetrace_ctf::account::Account;
use serde::{Deserialize, Serialize};

/// What was recorded of the operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Os {
    /// Whose events: `tree` or `system`.
    pub scope: String,
    /// By which means: `tracepoints`, `switches` or `statistics`.
    pub way: String,
    /// Why by no better means; none if there is no better one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The command that makes a better one possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Events in the trace.
    pub events: u64,
    /// Bytes of its streams.
    pub bytes: u64,
    /// Events that the kernel dropped because a ring buffer was full. Of these some may have been of no
    /// concern to the program.
    pub dropped: u64,
    /// Events that could not be written.
    pub unwritten: u64,
    /// Events that came too late to be put in order; they have the time of the one before them.
    pub late: u64,
    /// Context switches that the kernel did not deliver: a CPU leaves another thread than the one that it went to
    /// before. Of a tree those of its threads.
    pub unseen_switches: u64,
    /// Bytes of ring buffers that made no sense.
    pub damaged_bytes: u64,
    /// Processor time of the reader, in nanoseconds.
    pub cpu_ns: u64,
    /// Tracepoints that could not be opened, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Probes that the user has named as the beginning and the end of ranges, each with its provider.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<[String; 2]>,
    /// Of a snapshot of a flight recording: all that happened since then is there, on the trace's clock; none if nothing
    /// had been dropped yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
    /// What is in the files of its trace, as [`Written::account`](super::Written::account).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

impl Os {
    /// Adds what another part of the same recording has.
    pub fn add(&mut self, part: &Os) {
        for (all, more) in [
            (&mut self.events, part.events),
            (&mut self.bytes, part.bytes),
            (&mut self.dropped, part.dropped),
            (&mut self.unwritten, part.unwritten),
            (&mut self.late, part.late),
            (&mut self.unseen_switches, part.unseen_switches),
            (&mut self.damaged_bytes, part.damaged_bytes),
            (&mut self.cpu_ns, part.cpu_ns),
        ] {
            *all = all.saturating_add(more);
        }
        self.missing.extend(part.missing.iter().cloned());
        self.missing.sort();
        self.missing.dedup();
    }

    /// Returns whether something is missing that should be there.
    pub fn is_complete(&self) -> bool {
        self.dropped == 0 && self.unwritten == 0 && self.damaged_bytes == 0
    }
}
