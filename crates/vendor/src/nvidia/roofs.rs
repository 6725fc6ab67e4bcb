//! Arithmetic of NVIDIA's multiprocessors.

use crate::roofs::{About, Roofs};

/// Major and minor compute capability, and results of one multiprocessor in a cycle, of 32 and of 64 bits: the CUDA
/// programming guide's table of the throughput of arithmetic instructions
/// (<https://docs.nvidia.com/cuda/cuda-c-programming-guide/>).
const RESULTS: &[[u32; 4]] = &[
    [7, 0, 64, 32],
    [7, 2, 64, 32],
    [7, 5, 64, 2],
    [8, 0, 64, 32],
    [8, 6, 128, 2],
    [8, 7, 128, 2],
    [8, 9, 128, 2],
    [9, 0, 128, 64],
    [10, 0, 128, 64],
    [12, 0, 128, 2],
];
/// Operations of a fused multiply-add.
const OF_FMA: f64 = 2.0;
/// Transfers of the memory's bus in a cycle.
const OF_CYCLE: f64 = 2.0;

/// Returns what a device can do; none if its compute capability is not known here.
pub(super) fn of(about: &About<'_>) -> Option<Roofs> {
    let get = |name: &str| about.properties.iter().find(|(n, _)| n == name).map(|(_, value)| *value);
    let capability = [get("compute_capability_major")?, get("compute_capability_minor")?];
    let of = |known: &&[u32; 4]| capability == [u64::from(known[0]), u64::from(known[1])];
    let [.., single, double] = RESULTS.iter().find(of)?;
    let cycles = f64::from(about.compute_units) * f64::from(about.clock_khz) * 1e3;
    Some(Roofs {
        flops32: cycles * f64::from(*single) * OF_FMA,
        flops64: cycles * f64::from(*double) * OF_FMA,
        bytes: f64::from(about.memory_khz) * 1e3 * OF_CYCLE * f64::from(about.bus_bits) / 8.0,
    })
}
