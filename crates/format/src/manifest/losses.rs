//! What was lost on the way into the trace.

use serde::{Deserialize, Serialize};

/// What was lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Records, of calls or else, that found no room in a ring.
    pub records: u64,
    /// Calls whose entry or exit is missing.
    pub calls: u64,
    /// Calls of threads that could get no ring.
    pub calls_without_ring: u64,
    /// Commands on devices whose times are missing.
    pub device_commands: u64,
    /// Commands that were in flight when a process ended, or whose times were not
    /// delivered by then; of a collector's, calls whose commands are missing. Older manifests call it
    /// `commands_under_way`.
    #[serde(alias = "commands_under_way")]
    pub commands_in_flight: u64,
    /// Commands on devices whose call is not known; they are there themselves.
    pub commands_without_call: u64,
    /// Bytes that could not be written to disk.
    pub unwritten_bytes: u64,
    /// Bytes of rings that made no sense.
    pub damaged_bytes: u64,
    /// Processes whose shared memory could not be read, at least: what they recorded is missing, wholly or in part, and
    /// how much that is nobody knows.
    pub processes: u64,
    /// By thread.
    pub threads: Vec<ThreadLosses>,
}

/// What one thread lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadLosses {
    /// Process.
    pub pid: i64,
    /// Thread.
    pub tid: i64,
    /// The thread's name.
    pub name: String,
    /// The API whose ring was full.
    pub api: String,
    /// Records.
    pub records: u64,
    /// Calls.
    pub calls: u64,
}

impl Losses {
    /// Returns what was lost since `before`, of which these are what became.
    pub fn since(&self, before: &Self) -> Self {
        let less = |now: u64, then: u64| now.saturating_sub(then);
        Self {
            records: less(self.records, before.records),
            calls: less(self.calls, before.calls),
            calls_without_ring: less(self.calls_without_ring, before.calls_without_ring),
            device_commands: less(self.device_commands, before.device_commands),
            commands_in_flight: less(self.commands_in_flight, before.commands_in_flight),
            commands_without_call: less(self.commands_without_call, before.commands_without_call),
            unwritten_bytes: less(self.unwritten_bytes, before.unwritten_bytes),
            damaged_bytes: less(self.damaged_bytes, before.damaged_bytes),
            processes: less(self.processes, before.processes),
            // A thread is added when it ends.
            threads: self.threads.get(before.threads.len()..).unwrap_or_default().to_vec(),
        }
    }

    /// Adds what another trace lost.
    pub fn add(&mut self, other: Self) {
        let Self {
            records,
            calls,
            calls_without_ring,
            device_commands,
            commands_in_flight,
            commands_without_call,
            unwritten_bytes,
            damaged_bytes,
            processes,
            threads,
        } = other;
        for (all, more) in [
            (&mut self.records, records),
            (&mut self.calls, calls),
            (&mut self.calls_without_ring, calls_without_ring),
            (&mut self.device_commands, device_commands),
            (&mut self.commands_in_flight, commands_in_flight),
            (&mut self.commands_without_call, commands_without_call),
            (&mut self.unwritten_bytes, unwritten_bytes),
            (&mut self.damaged_bytes, damaged_bytes),
            (&mut self.processes, processes),
        ] {
            *all = all.saturating_add(more);
        }
        self.threads.extend(threads);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_names_are_read() {
        let losses: Losses =
            serde_json::from_str(r#"{"commands_under_way":7}"#).expect("an older manifest's");
        assert_eq!(losses, Losses { commands_in_flight: 7, ..Losses::default() });
        let written = serde_json::to_string(&losses).expect("JSON");
        assert!(written.contains(r#""commands_in_flight":7"#) && !written.contains("under_way"), "{written}");
    }
}
