//! What the work of a device might take at best.

use super::collect::Collector;
use super::device::Device;
use super::ledger::Slice;
use super::sweep::Part;

/// What of the work of a device might be saved in the time that gains are about: less and less stands in its way.
pub(super) fn bounds(from: &Collector<'_>, device: &Device) -> (Slice, Vec<(String, u64)>) {
    let first = device.first.unwrap_or(0).max(from.window.from);
    let steady = from.steps.steady(first, device.last_end.min(from.window.to));
    let (begin, end) = steady.map_or((0, u64::MAX), |steady| (steady.from, steady.to));
    let slice = device.ledger.of(begin, end);
    let (total, busy) = (slice.ns(), slice.totals.busy);
    let idle = total.saturating_sub(busy);
    let parts = slice.totals.parts;
    let longest = parts.into_iter().max().unwrap_or(0);
    let kinds = parts.iter().filter(|ns| **ns > 0).count();
    let mut bounds: Vec<(String, u64)> = Vec::new();
    let mut bound = |what: String, ns: u64| {
        if ns > 0 && ns < total - total / 100 {
            bounds.push((what, ns));
        }
    };
    if kinds > 1 {
        bound("kernels, copies to and copies from the device all overlap".to_owned(), idle + longest);
    }
    bound("the device is never idle".to_owned(), busy);
    if parts[Part::Compute as usize] > 0 && busy - longest.min(busy) > busy / 20 {
        // A pipeline of n steps: the first and last pieces have nobody beside them.
        for pieces in [2, 4, 8] {
            let rest = busy.saturating_sub(longest);
            let what = format!("never idle, and pipelined in {pieces} chunks");
            bound(what, longest + rest / pieces);
        }
        bound("never idle, and all overlap".to_owned(), longest);
    }
    (slice, bounds)
}
