//! Additions for sums to which each call adds.

/// One that saturates. No trace of a program comes to the greatest value: a
/// branch that is never taken is cheaper than a choice between two values.
#[inline(always)]
pub(super) fn add_to(sum: &mut u64, n: u64) {
    match sum.checked_add(n) {
        Some(all) => *sum = all,
        None => fill(sum),
    }
}

#[cold]
#[inline(never)]
fn fill(sum: &mut u64) {
    *sum = u64::MAX;
}
