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
    /// What asked for it: `asked` (a command or a call of the program), `signal`, `trigger`, `crash`, `failure` or `end`.
    pub reason: String,
    /// Triggers that became true since the snapshot before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fired: Vec<Fired>,
}

/// A trigger that became true.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fired {
    /// The expression.
    pub trigger: String,
    /// When, on the trace's clock.
    pub time_ns: u64,
    /// The process whose call it was, if it was a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u64>,
    /// Its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u64>,
    /// That thread's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub thread: String,
    /// The API of the call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api: String,
    /// The call's function.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// What was compared, with its values.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// How often more it became true up to the snapshot.
    #[serde(skip_serializing_if = "is_zero")]
    pub again: u64,
}

impl std::fmt::Display for Fired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Fired { trigger, pid, tid, thread, function, value, again, .. } = self;
        write!(f, "trigger `{trigger}`: {value}")?;
        if !function.is_empty() {
            write!(f, " in {function}")?;
        }
        if let (Some(pid), Some(tid)) = (pid, tid) {
            write!(f, ", process {pid}, thread {tid}")?;
            if !thread.is_empty() {
                write!(f, " ({thread})")?;
            }
        }
        match again {
            0 => Ok(()),
            1 => f.write_str("; once more until the snapshot"),
            more => write!(f, "; {more} times more until the snapshot"),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
