//! Records that are written otherwise than they lie in the ring. What is missing of one is
//! empty or 0: the record is no worse than that.

use hetrace_format::calls::{self, BudgetStep};

use crate::time::HostClock;
use hetrace_ring::abi::ADDED_UP;
use hetrace_ring::writer::FOLD_RECORD_WORDS;

/// Returns a 64-bit word of a record's body.
pub(super) fn word(body: &[u8], index: usize) -> u64 {
    let bytes = body.get(index * 8..index * 8 + 8);
    bytes.and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// A code and its text, whatever the program wrote there.
pub(super) fn put_error_text(packet: &mut Vec<u8>, body: &[u8]) {
    calls::put_error_text(packet, word(body, 0) as i64, body.get(8..).unwrap_or_default());
}

/// How long the tracer worked until `end`, converted from ticks.
pub(super) fn put_own_work(packet: &mut Vec<u8>, (end, ticks): (u64, u64), host: &HostClock) {
    let ns = host.to_ns(end).saturating_sub(host.to_ns(end.saturating_sub(ticks)));
    calls::put_own_work(packet, ns);
}

/// What the thread records from here on.
pub(super) fn put_budget_step(packet: &mut Vec<u8>, body: &[u8]) {
    let [one_in, spent] = [word(body, 0), word(body, 1)];
    let step = BudgetStep {
        one_in: one_in as u32,
        summed: one_in >> 32 != 0,
        counted: one_in >> 32 > 1,
        spent_ppm: spent as u32,
        budget_ppm: (spent >> 32) as u32,
    };
    calls::put_budget_step(packet, &step);
}

/// The Python or native stack of the call that begins next.
pub(super) fn put_stack(packet: &mut Vec<u8>, body: &[u8]) {
    calls::put_stack(packet, word(body, 0), word(body, 1) as u16);
}

/// Name and registers of a call without a description in the model.
pub(super) fn put_unknown(packet: &mut Vec<u8>, body: &[u8]) {
    let arguments: [u64; 6] = std::array::from_fn(|i| word(body, i));
    let name = body.get(size_of_val(&arguments)..).unwrap_or_default();
    calls::put_unknown(packet, name, arguments);
}

/// Count, first, last and total, converted from ticks, whether the calls were added up, and the total's standard error.
pub(super) fn put_fold(packet: &mut Vec<u8>, words: [u64; FOLD_RECORD_WORDS], host: &HostClock) {
    let [count, first, last, total, error] = words;
    let (from, to) = (host.to_ns(first), host.to_ns(last));
    let [inside, error] =
        [total, error].map(|ticks| host.to_ns(first.wrapping_add(ticks)).saturating_sub(from));
    for value in [count & !ADDED_UP, from, to, inside] {
        packet.extend_from_slice(&value.to_le_bytes());
    }
    packet.push(u8::from(count & ADDED_UP != 0));
    packet.extend_from_slice(&error.to_le_bytes());
}
