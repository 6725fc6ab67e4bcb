//! Rows of memory that programs asked for.

use serde::{Deserialize, Serialize};

/// Memory of one kind on one device: what programs asked for, which may be less than what
/// the driver took for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryRow {
    /// The device's name, and the beginning of its UUID if it has one; several of a context
    /// are joined by ` + `. `host` for memory of the host; `not known` where no call says it.
    pub device: String,
    /// Its UUID, or nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uuid: String,
    /// The machine.
    pub host: String,
    /// `device`; `host` (pinned, or otherwise made for devices); `managed` (of both under one
    /// address); `image` (images, arrays, textures).
    pub kind: String,
    /// The most that was held at a time, by all processes together. Of several traces, the
    /// largest of theirs.
    pub peak_bytes: u64,
    /// When that was so for the first time, since the first event; none if it was nothing.
    pub peak_ns: Option<u64>,
    /// How often memory was made.
    pub allocations: u64,
    /// How much that was in all.
    pub allocated_bytes: u64,
    /// Allocations whose size the calls do not show; they count with 0 bytes.
    pub unsized_allocations: u64,
    /// Calls that made nothing because of an error; they are in no other number.
    pub failed: u64,
    /// What was not given back when its process or the trace ended.
    pub live_bytes: u64,
    /// Allocations of which that is.
    pub live_allocations: u64,
    /// How many processes made memory here.
    pub process_count: u64,
    /// Those that held most, at most 16.
    pub processes: Vec<MemoryProcessRow>,
}

/// What one process had of a [`MemoryRow`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryProcessRow {
    /// The process.
    pub pid: i64,
    /// The most that it held at a time.
    pub peak_bytes: u64,
    /// When that was so for the first time, since the first event; none if it was nothing.
    pub peak_ns: Option<u64>,
    /// How often it made memory.
    pub allocations: u64,
    /// What it did not give back.
    pub live_bytes: u64,
    /// Allocations of which that is.
    pub live_allocations: u64,
}

/// How well the end of memory is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryReleases {
    /// Calls that released memory or a reference to it.
    pub releases: u64,
    /// Those whose allocation is not in the trace.
    pub unknown: u64,
    /// Allocations whose release was not seen before their address was handed out again.
    pub replaced: u64,
    /// Allocations that were not followed, because there were too many at a time.
    pub passed_over: u64,
}

impl MemoryRow {
    /// Adds what another trace has of the same memory. Nobody knows what was held at the same
    /// time, so the larger mark stays.
    pub fn add(&mut self, other: Self) {
        if other.peak_bytes > self.peak_bytes {
            (self.peak_bytes, self.peak_ns) = (other.peak_bytes, other.peak_ns);
        }
        for (to, n) in [
            (&mut self.allocations, other.allocations),
            (&mut self.allocated_bytes, other.allocated_bytes),
            (&mut self.unsized_allocations, other.unsized_allocations),
            (&mut self.failed, other.failed),
            (&mut self.live_bytes, other.live_bytes),
            (&mut self.live_allocations, other.live_allocations),
            (&mut self.process_count, other.process_count),
        ] {
            *to = to.saturating_add(n);
        }
        self.processes.extend(other.processes);
        self.processes.sort_by(|a, b| b.peak_bytes.cmp(&a.peak_bytes).then(a.pid.cmp(&b.pid)));
        self.processes.truncate(16);
    }

    /// Whether another row is of the same memory.
    pub fn is_like(&self, other: &Self) -> bool {
        let same = (&self.device, &self.uuid, &self.kind) == (&other.device, &other.uuid, &other.kind);
        same && (!self.uuid.is_empty() || self.host == other.host)
    }
}

impl MemoryReleases {
    /// Adds what another trace has.
    pub fn add(&mut self, other: &Self) {
        self.releases = self.releases.saturating_add(other.releases);
        self.unknown = self.unknown.saturating_add(other.unknown);
        self.replaced = self.replaced.saturating_add(other.replaced);
        self.passed_over = self.passed_over.saturating_add(other.passed_over);
    }
}
