//! Of which traces a trace was made, and how.

use serde::{Deserialize, Serialize};

use super::{Exit, Job};

/// The part that was kept of a trace. A condition that is none or empty did not hold anything back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// The trace's name; none if it has none.
    pub of: Option<String>,
    /// From this time on, on the trace's clock.
    pub from_ns: Option<i64>,
    /// Up to this time.
    pub to_ns: Option<i64>,
    /// Of these processes.
    pub pids: Vec<i64>,
    /// Of these threads.
    pub tids: Vec<i64>,
    /// Of these APIs.
    pub apis: Vec<String>,
}

/// A trace that became part of a merged one. What its manifest did not say is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// Its name.
    pub of: String,
    /// Its machine.
    pub host: Option<String>,
    /// Its command.
    pub command: Option<Vec<String>>,
    /// How the program ended.
    pub exit: Option<Exit>,
    /// The rank of its launcher.
    pub job: Option<Job>,
    /// When it began, nanoseconds since 1970.
    pub start_realtime_ns: Option<u64>,
    /// Added to all its times.
    pub shift_ns: u64,
    /// How far the clocks of both machines may have been apart; none if nobody knows.
    pub clock_error_ns: Option<u64>,
    /// Its processes: the id here, and its own.
    pub pids: Vec<(u32, u32)>,
    /// Its threads that have another id here: that, and its own.
    pub tids: Vec<(u32, u32)>,
}

/// A boot of a machine whose clock's times are in a merged trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Boot {
    /// The kernel's identity of the boot.
    pub boot: String,
    /// Added to its times.
    pub shift_ns: i64,
}
