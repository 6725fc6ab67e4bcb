//! The row of capture windows.

use serde::{Deserialize, Serialize};

/// What a trace covers, if not all of the run: all else is recorded in these windows only. Of several traces, all those
/// that had some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaptureRow {
    /// The options that asked for them.
    pub asked: String,
    /// How many there are.
    pub windows: u64,
    /// How long they were open together, in nanoseconds.
    pub open_ns: u64,
    /// How long the programs lived, in nanoseconds.
    pub lifetime_ns: u64,
}

impl CaptureRow {
    /// Adds that of other traces.
    pub(in crate::tally) fn add(&mut self, other: &Self) {
        if self.asked != other.asked {
            self.asked = format!("{}; elsewhere {}", self.asked, other.asked);
        }
        self.windows = self.windows.saturating_add(other.windows);
        self.open_ns = self.open_ns.saturating_add(other.open_ns);
        self.lifetime_ns = self.lifetime_ns.saturating_add(other.lifetime_ns);
    }
}
