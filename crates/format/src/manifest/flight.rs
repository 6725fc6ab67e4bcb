//! What a snapshot of a flight recording has.

use serde::{Deserialize, Serialize};

/// A snapshot of a flight recording: what was recorded last, and what it needs of the time before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Flight {
    /// How far back it was to reach, in nanoseconds.
    pub window_ns: u64,
    /// How many bytes of memory there were for it.
    pub memory: u64,
    /// All that ended since then is there, on the trace's clock; none if nothing had been dropped yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
    /// It reaches back less far than was asked for, as the memory was full.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub short: bool,
    /// Records from before, such as definitions, that there was no memory for.
    #[serde(skip_serializing_if = "is_zero")]
    pub unkept: u64,
    /// What asked for it: `asked` (a command or a call of the program), `signal`, `crash`, `failure` or `end`.
    pub reason: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
