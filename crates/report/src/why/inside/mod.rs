//! Why kernels are slow, from what their warps recorded.
//!
//! ```text
//!  sums of blocks and loops ──► divergence, waiting in loops
//!  launches over time       ──► imbalance, idle multiprocessors, tail
//!  registers and launch     ──► occupancy, and what limits it
//! ```
//! Each cause has the place that it is seen at most and a figure; `docs/why.md` has the rules.

mod causes;
mod render;

use std::collections::BTreeMap;

use super::rows::{InsideCauseRow, InsideRow};
use hetrace_trace::demangle;
use hetrace_trace::inside::{Inside, Kernel};
use hetrace_trace::placed::{Launch, Placed};
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::{Stopped, Watch};
use hetrace_vendor::occupancy::{self, Needs, Occupancy};

/// What is known of a kernel beside its records.
#[derive(Debug, Clone, Default)]
struct Around {
    /// Time on the device.
    ns: u64,
    /// Multiprocessors of its device; 0 if that is not known.
    multiprocessors: u64,
    /// What a launch as it was could keep, with its registers and bytes of shared memory; of the twin if the kernel itself
    /// was never launched, which is said by the last.
    fits: Option<(Occupancy, Needs, bool)>,
}

/// Returns the kernels of a trace that were recorded inside.
///
/// # Errors
/// When the watch says so.
pub(super) fn insides(trace: &Trace, watch: Option<Watch<'_>>) -> Result<Vec<InsideRow>, Stopped> {
    let Some(recording) = trace.inside() else { return Ok(Vec::new()) };
    let placed = Placed::new(trace, watch)?;
    let mut launches: BTreeMap<(i64, u32), Vec<&Launch<'_>>> = BTreeMap::new();
    for launch in &placed.launches {
        launches.entry((launch.pid, launch.kernel.number)).or_default().push(launch);
    }
    let loss = |kernel: &Kernel| recording.losses.get(&kernel.description.name).copied().unwrap_or_default();
    let row = |kernel: &Kernel| {
        let of = launches.get(&(kernel.pid, kernel.description.number));
        let around = around(trace, of.map_or(&[][..], Vec::as_slice));
        InsideRow {
            kernel: demangle::full(&kernel.description.name).into_owned(),
            symbol: kernel.description.name.clone(),
            pid: kernel.pid,
            launches: kernel.launches,
            lost_records: loss(kernel).records,
            lost_launches: loss(kernel).launches,
            overwritten_launches: loss(kernel).overwritten,
            ns: around.ns,
            causes: causes::causes(kernel, &around),
        }
    };
    // The rules are about times, and about lanes that are together.
    let timed = |kernel: &&Kernel| kernel.description.timed;
    let mut rows: Vec<InsideRow> = Inside::of(recording).kernels.iter().filter(timed).map(row).collect();
    rows.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| (&a.symbol, a.pid).cmp(&(&b.symbol, b.pid))));
    Ok(rows)
}

fn around(trace: &Trace, launches: &[&Launch<'_>]) -> Around {
    let times = launches.iter().filter_map(|launch| launch.ran.as_ref()).map(|ran| ran.end - ran.start);
    let ns = times.fold(0, u64::saturating_add);
    let Some((launch, ran)) = launches.iter().find_map(|launch| Some((launch, launch.ran.as_ref()?))) else {
        return Around { ns, ..Around::default() };
    };
    let device = trace.names().device(ran.device);
    let kernels = trace.names().kernels();
    let plain = kernels.iter().find(|kernel| kernel.pid == ran.pid && kernel.name == ran.symbol);
    let function = plain.copied().or_else(|| trace.names().kernel(ran.function));
    let fits = function.filter(|function| function.registers > 0).and_then(|function| {
        let threads = launch.records.threads_in_block.iter().map(|n| u64::from(*n)).product();
        let shared = u64::from(function.shared).saturating_add(ran.shared);
        let needs = Needs { threads, registers: function.registers.into(), shared };
        let rules = occupancy::rules(&device?.properties)?;
        Some((rules.occupancy(&needs)?, needs, plain.is_none()))
    });
    let multiprocessors = device.map_or(0, |device| device.compute_units.into());
    Around { ns, multiprocessors, fits }
}
