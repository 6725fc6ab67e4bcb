//! `hetrace/manifest.json`: what the launcher noted beside the trace.

use std::collections::BTreeMap;

use hetrace_ctf::account::Account;
use serde::{Deserialize, Deserializer};

use super::Job;

/// The manifest. Every member may be missing.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// Version of this form; 0 when there is no manifest.
    pub schema: u32,
    /// Version of hetrace.
    pub version: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// What the launcher's environment said of its rank in a job: variables and their values.
    pub job: BTreeMap<String, u64>,
    /// The options that `hetrace run` was given.
    pub options: Vec<String>,
    /// When recording began, on the trace's clock.
    pub start_ns: Option<u64>,
    /// When it ended.
    pub end_ns: Option<u64>,
    /// How the program ended; none if the launcher did not see it.
    pub exit: Option<Exit>,
    /// The folder of the session that records it, as long as it is not finished.
    pub session: Option<std::path::PathBuf>,
    /// Processes that recorded.
    pub processes: Vec<Process>,
    /// What was lost.
    pub losses: Losses,
    /// How well device times are known.
    pub device_clocks: Vec<DeviceClock>,
    /// How well the host's times are known.
    pub host_clock: HostClock,
    /// What recording a call costs; read by [`Costs`](super::Costs).
    pub cost: serde_json::Value,
    /// Remarks of the tracer.
    pub notes: Vec<String>,
    /// What was written.
    pub written: Written,
}

/// What was written into the trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Written {
    /// What each file holds; none if whoever wrote them did not live to say it, or was an older hetrace.
    pub account: Option<Account>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

/// A process that recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its id.
    pub pid: i64,
    /// Its parent's id.
    pub parent: Option<i64>,
    /// Its command line.
    #[serde(deserialize_with = "line")]
    pub command: String,
    /// What its environment said of its rank in a job; none if nobody could read it.
    pub job: Option<BTreeMap<String, u64>>,
    /// The machine's name, if the trace was merged from several.
    #[serde(deserialize_with = "line")]
    pub host: String,
}

/// What was lost on the way into the trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Records that found no room in a ring.
    pub records: u64,
    /// Calls of which nothing was recorded.
    pub calls: u64,
    /// Calls of threads that got no ring.
    pub calls_without_ring: u64,
    /// Commands on devices whose times are missing.
    pub device_commands: u64,
    /// Commands that were under way when the program ended.
    pub commands_under_way: u64,
    /// Commands whose call is not known.
    pub commands_without_call: u64,
    /// Bytes that could not be written to disk.
    pub unwritten_bytes: u64,
    /// Bytes of rings that made no sense.
    pub damaged_bytes: u64,
    /// By thread.
    pub threads: Vec<LostThread>,
}

/// What one thread lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LostThread {
    /// Its process.
    pub pid: i64,
    /// Its id.
    pub tid: i64,
    /// Its name.
    pub name: String,
    /// The API whose ring was full.
    pub api: String,
    /// Records that found no room.
    pub records: u64,
    /// Calls of which nothing was recorded.
    pub calls: u64,
}

/// How well the times of a device are known.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct DeviceClock {
    /// The process that used it.
    pub pid: i64,
    /// Its handle.
    #[serde(deserialize_with = "line")]
    pub device: String,
    /// Its name.
    pub name: String,
    /// Largest error of a time, in nanoseconds.
    pub error_ns: Option<f64>,
    /// Times came in the host's time from the API itself.
    pub host_clock: bool,
    /// Commands that began a little before their call as told, and were moved.
    pub corrected: u64,
    /// By how much at most, in nanoseconds.
    pub largest_correction_ns: u64,
    /// The same by so much that they were left as told.
    pub impossible_order: u64,
}

impl DeviceClock {
    /// The device's name, or its handle.
    pub fn title(&self) -> &str {
        if self.name.is_empty() { &self.device } else { &self.name }
    }
}

/// How well the host's times are known.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct HostClock {
    /// Largest error seen of a time, in nanoseconds.
    pub error_ns: f64,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// When it is no JSON or its members have other types than these.
    pub fn parse(json: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(json)
    }

    /// The ranks of the processes in their job.
    pub fn job(&self) -> Job {
        Job::new(self)
    }

    /// Whether the launcher lived to write it.
    pub fn is_present(&self) -> bool {
        // The first one, written while the program runs, says of no end.
        self.schema != 0 && self.exit.is_some()
    }
}

/// A text, a list of texts, or a number: as one line.
fn line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Line {
        Text(String),
        Words(Vec<String>),
        Handle(u64),
        Nothing(()),
    }
    Ok(match Line::deserialize(deserializer)? {
        Line::Text(text) => text,
        Line::Words(words) => words.join(" "),
        Line::Handle(handle) => format!("{handle:#x}"),
        Line::Nothing(()) => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_may_be_missing() {
        assert_eq!(Manifest::parse(b"{}").unwrap(), Manifest::default());
    }

    #[test]
    fn members_are_read() {
        let text = br#"{"schema":1,"command":["./app","-n"],"exit":{"signal":9},
            "processes":[{"pid":7,"parent":1,"command":["./app","-n"],"job":{"PMI_RANK":2}}],
            "losses":{"records":3,"threads":[{"pid":7,"tid":8,"name":"w","api":"toy","records":3}]},
            "device_clocks":[{"pid":7,"device":4096,"error_ns":120,"epochs":2}], "later":true}"#;
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.exit, Some(Exit::Signal(9)));
        assert_eq!(manifest.processes[0].command, "./app -n");
        assert_eq!(manifest.job().rank_of(7).map(|r| r.rank), Some(2));
        assert_eq!(manifest.losses.threads[0].tid, 8);
        assert_eq!(manifest.device_clocks[0].device, "0x1000");
        assert_eq!(manifest.device_clocks[0].title(), "0x1000");
        assert!(manifest.is_present());
    }
}
