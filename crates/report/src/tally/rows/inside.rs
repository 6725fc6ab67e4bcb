//! Rows of what went on inside of kernels.

use serde::Serialize;

/// A kernel of a process whose launches were recorded inside.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideRow {
    /// Its name, demangled.
    pub kernel: String,
    /// Its name as the module has it.
    pub symbol: String,
    /// The process.
    pub pid: i64,
    /// Where records were made: `branches`, `edges`, `blocks`.
    pub mode: String,
    /// Launches that were recorded.
    pub launches: u64,
    /// Launches of this kernel that ran as they were; nothing if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches_as_they_were: Option<u64>,
    /// Time on the device of a launch that was recorded, by that of one that ran as it was, both in the mean; nothing if there
    /// are not both.
    pub slowdown: Option<f64>,
    /// Whether its records have times. Where there is no clock, cycles are 0, and each work-item is a warp by itself.
    pub timed: bool,
    /// Thread blocks that recorded.
    pub thread_blocks: u64,
    /// Warps that recorded.
    pub warps: u64,
    /// Lanes that began.
    pub begun: u64,
    /// Of these, lanes whose end was recorded: the others were in it when the records end.
    pub ended: u64,
    /// Lanes that ran together, on the average of all instructions, of the lanes of a warp: 1 without divergence.
    pub active: Option<f64>,
    /// Streaming multiprocessors that ran it.
    pub multiprocessors: u64,
    /// The time of warps of the busiest of them, by that of all in the mean.
    pub imbalance: Option<f64>,
    /// Part of the launches' time in which fewer than half of the most warps were resident, at their end.
    pub tail: Option<f64>,
    /// Warps that were resident, in the mean over the launches' time.
    pub resident_warps: Option<f64>,
    /// What a launch as it was takes; nothing if none is known.
    pub plain: Option<InsideTakes>,
    /// What one that recorded takes.
    pub recorded: Option<InsideTakes>,
    /// Operations of all lanes on floating-point numbers, 16, 32 and 64 bits together.
    pub flops: u64,
    /// Of these, on numbers of 16 bits.
    pub flops16: u64,
    /// Of 32 bits.
    pub flops32: u64,
    /// Of 64 bits.
    pub flops64: u64,
    /// Operations of all lanes on integers.
    pub integer: u64,
    /// Bytes that all lanes loaded from global memory.
    pub loaded: u64,
    /// Bytes that all lanes stored to global memory.
    pub stored: u64,
    /// Both together.
    pub bytes: u64,
    /// The kernel below the device's roofs; nothing if its time or the device is not known, or thread blocks were sampled.
    pub roofline: Option<InsideRoofline>,
    /// Its basic blocks that were run, by the time in them.
    pub blocks: Vec<InsideBlockRow>,
    /// Its loops, by header.
    pub loops: Vec<InsideLoopRow>,
    /// Functions that it calls, demangled: what runs in them is not recorded.
    pub calls: Vec<String>,
    /// Records that made no sense.
    pub faults: u64,
}

/// What a launch of a kernel takes of a multiprocessor.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideTakes {
    /// Registers of a thread.
    pub registers: u64,
    /// Theoretical occupancy, percent; nothing if the device is not known well enough.
    pub occupancy: Option<f64>,
    /// What keeps more warps out: `threads`, `blocks`, `registers`, `shared memory`.
    pub limited_by: Option<String>,
}

/// What a kernel does in a second, of what the device can do. Operations and bytes are those of the text's instructions, times
/// the lanes that ran them: what caches had is in the bytes, and units for matrices are not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideRoofline {
    /// The mean time that it is from, ns: of launches as they were if there are such, else of those that recorded.
    pub launch_ns: f64,
    /// Operations on floating-point numbers in a second.
    pub flops_per_s: f64,
    /// Bytes in a second.
    pub bytes_per_s: f64,
    /// Operations a byte; nothing if no byte is moved.
    pub intensity: Option<f64>,
    /// The device's roof for such operations: of 64 bits if most are, else of 32 bits; 0 if it is not known.
    pub roof_flops_per_s: f64,
    /// Its roof for bytes of its memory; 0 if it is not known.
    pub roof_bytes_per_s: f64,
    /// Which roof is lower at this intensity: `memory` or `compute`; nothing if one is not known.
    pub below: Option<String>,
    /// Part of that roof that it comes to.
    pub of_roof: Option<f64>,
}

/// A basic block.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideBlockRow {
    /// Its number; 0 is where the kernel begins.
    pub block: u64,
    /// Where it begins in the source: `FILE:LINE`.
    pub source: Option<String>,
    /// How often a group of lanes ran it together.
    pub visits: u64,
    /// Whether there is a record for each visit; else groups that met are taken to have gone on together.
    pub exact: bool,
    /// How often a lane ran it.
    pub lanes: u64,
    /// Cycles that warps were in it, in all.
    pub cycles: u64,
    /// Its part of the kernel's cycles.
    pub share: f64,
    /// Instructions of its text.
    pub instructions: u32,
}

/// A loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideLoopRow {
    /// The block through which lanes come in.
    pub header: u64,
    /// Where that begins in the source.
    pub source: Option<String>,
    /// How often a lane came in.
    pub entered: u64,
    /// How often a lane went back to the header, for each time that one came in.
    pub trips: f64,
    /// How often lanes left that had gone back 0, 1, 2 to 3, 4 to 7, … times; empty where that is not known.
    pub distribution: Vec<u64>,
}

/// A kernel that was wanted, and ran as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RefusedRow {
    /// Its name, or the module's if it is all of it.
    pub kernel: String,
    /// Why.
    pub reason: String,
}

/// What of a kernel was not recorded, as there was no room any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct InsideLostRow {
    /// Its name, demangled.
    pub kernel: String,
    /// Its name as the module has it.
    pub symbol: String,
    /// Records that found no room.
    pub records: u64,
    /// Records that are there and left out: others of their warp, before them, had found no room.
    pub left_out: u64,
    /// Launches that were to be recorded and ran as they were.
    pub launches_as_they_were: u64,
    /// Launches whose records were overwritten by later ones.
    pub launches_overwritten: u64,
    /// Launches that were to record and left no record; nothing if the commands of devices are not known.
    pub launches_without_records: Option<u64>,
}

/// Insides of a trace's kernels.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideRows {
    /// By the time in them.
    #[serde(rename = "inside")]
    pub kernels: Vec<InsideRow>,
    /// What was not recorded.
    #[serde(rename = "inside_refused")]
    pub refused: Vec<RefusedRow>,
    /// Records that found no room.
    #[serde(rename = "inside_lost_records")]
    pub lost: u64,
    /// By kernel, that with most of them first. Of records that are in none of these it is not known whose they are.
    #[serde(rename = "inside_lost")]
    pub losses: Vec<InsideLostRow>,
    /// What could not be read, in words.
    #[serde(rename = "inside_problems")]
    pub problems: Vec<String>,
}

impl InsideRows {
    /// Adds what another trace has.
    pub fn extend(&mut self, other: InsideRows) {
        self.kernels.extend(other.kernels);
        self.refused.extend(other.refused);
        self.refused.sort_by(|a, b| (&a.kernel, &a.reason).cmp(&(&b.kernel, &b.reason)));
        self.refused.dedup();
        self.lost = self.lost.saturating_add(other.lost);
        self.losses.extend(other.losses);
        self.problems.extend(other.problems);
    }
}
