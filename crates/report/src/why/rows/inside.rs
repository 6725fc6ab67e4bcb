//! Rows of kernels that were recorded inside.

use serde::Serialize;

/// A kernel of a process that was recorded inside.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideRow {
    /// Its name, demangled.
    pub kernel: String,
    /// Its name as the module has it.
    pub symbol: String,
    /// The process.
    pub pid: i64,
    /// Launches that were recorded.
    pub launches: u64,
    /// Records of it that found no room.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_records: u64,
    /// Launches that were to be recorded and ran as they were, as there was no room any more.
    #[serde(skip_serializing_if = "is_zero")]
    pub lost_launches: u64,
    /// Launches whose records were overwritten by later ones.
    #[serde(skip_serializing_if = "is_zero")]
    pub overwritten_launches: u64,
    /// Time on the device of those whose commands are known; recording is in it.
    pub ns: u64,
    /// Why it is slow, what weighs most first.
    pub causes: Vec<InsideCauseRow>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Why a kernel is slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InsideCauseRow {
    /// `divergence`, `imbalance`, `idle-multiprocessors`, `tail`, `waiting`, `occupancy`.
    pub kind: String,
    /// What it is, with its figures.
    pub cause: String,
    /// What part of the kernel's time (of its cycles, of its lanes) it takes, from 0 to 1; none of occupancy, of which that
    /// is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The basic block that it is seen in most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<u64>,
    /// Where that is in the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The launch that it is seen in most: `%gridid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grid: Option<u64>,
    /// The thread block there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_block: Option<[u32; 3]>,
    /// The multiprocessor there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multiprocessor: Option<u32>,
    /// Where it is seen, in words.
    pub evidence: String,
    /// What may be done.
    pub remedy: String,
}
