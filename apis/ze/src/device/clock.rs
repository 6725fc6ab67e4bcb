//! Devices: what they are, and what the ticks of their counters mean.
//!
//! A device has one counter, of which events have some low bits, and `zeDeviceGetGlobalTimestamps` some more. Both
//! begin again at 0 when these bits are used up, within minutes on some devices. How many ticks the counter would have
//! if it had all bits follows from how much time has gone by: it was compared with the host's clock before.
//!
//! What leaves this file are nanoseconds of the device that never go back. Their relation to the host's clock is
//! recorded, again and again, and the launcher makes the line of it.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::commands::links::{Claim, Link};
use hetrace_interpose::commands::places::{Placed, Places};
pub use hetrace_interpose::commands::reference::now;
use hetrace_interpose::pair::Pair;
use hetrace_interpose::record_with_text;
use hetrace_interpose::ring::abi::{ClockRecord, DeviceRecord, special};
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::table::Table;
use hetrace_interpose::window::session_key;

use crate::generated::prelude::P;
use crate::generated::real;

const STYPE_DEVICE_PROPERTIES: u32 = 0x3;
const STYPE_DEVICE_PROPERTIES_1_2: u32 = 0x0002_0006;
/// Bytes of a `ze_device_properties_t`, and where its members lie.
const PROPERTIES: usize = 368;
const CORE_CLOCK_MHZ: usize = 36;
const EUS_PER_SUBSLICE: usize = 64;
const SUBSLICES_PER_SLICE: usize = 68;
const SLICES: usize = 72;
const TIMER_RESOLUTION: usize = 80;
const TIMESTAMP_BITS: usize = 88;
const KERNEL_BITS: usize = 92;
const UUID: usize = 96;
const NAME: usize = 112;

/// Ticks of the host between two comparisons: about a tenth of a second.
const PERIOD: u64 = 1 << 28;
const NANOSECONDS: u64 = 1_000_000_000;

/// A device that runs commands. All zeros before it is asked.
#[repr(C)]
#[derive(Debug)]
pub struct Device {
    next: Link,
    handle: AtomicU64,
    /// A tick lasts `nanoseconds / ticks` nanoseconds.
    nanoseconds: AtomicU64,
    ticks: AtomicU64,
    /// Bits of the counter that both kinds of times have.
    bits: AtomicU32,
    /// Bits that a comparison has.
    compared_bits: AtomicU32,
    /// Who compares.
    claim: Claim,
    /// The counter with all its bits, when it was last compared, and the host's clock then.
    last: Pair,
    /// When that was, in the host's ticks.
    compared: AtomicU64,
    /// In which session it was described last.
    described: AtomicU64,
}

// SAFETY: atomics only, for which zeros are valid.
unsafe impl Placed for Device {
    fn next(&self) -> &Link {
        &self.next
    }
}

static DEVICES: Places<Device, 1> = Places::new();
/// Handle → number of its place.
static BY_HANDLE: Table<512> = Table::new();
/// Handle → 1 more than the number that the API gives it.
static ORDINALS: Table<512> = Table::new();

/// Why the ticks of a command can't be made times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapped;

/// The API has listed its devices.
pub fn listed(handle: P, ordinal: u32) {
    if ORDINALS.get(handle as u64).is_none() {
        ORDINALS.set(handle as u64, u64::from(ordinal) + 1);
    }
}

/// What is known of a device, which is described now if it was not before. `None` if there are too many.
pub fn of(handle: P) -> Option<&'static Device> {
    let device = match BY_HANDLE.get(handle as u64) {
        Some(number) => DEVICES.get(number as u32)?,
        None => meet(handle)?,
    };
    if device.described.load(Ordering::Relaxed) != session_key() {
        device.describe();
    }
    Some(device)
}

/// The program ends: each device is compared once more, so that its line on the host's clock has two ends.
pub fn compare_all() {
    for (_, device) in DEVICES.all().filter(|(_, device)| device.described.load(Ordering::Relaxed) != 0) {
        device.claim.holding(|| device.compare_now());
    }
}

#[cold]
fn meet(handle: P) -> Option<&'static Device> {
    let (number, device) = DEVICES.take()?;
    device.handle.store(handle as u64, Ordering::Relaxed);
    let (nanoseconds, ticks) = resolution(handle);
    device.nanoseconds.store(nanoseconds, Ordering::Relaxed);
    device.ticks.store(ticks, Ordering::Relaxed);
    let (_, properties) = properties(handle, STYPE_DEVICE_PROPERTIES);
    let valid = |at| match word(&properties, at) {
        0 => 64,
        bits => bits.min(64),
    };
    device.compared_bits.store(valid(TIMESTAMP_BITS), Ordering::Relaxed);
    device.bits.store(valid(KERNEL_BITS).min(valid(TIMESTAMP_BITS)), Ordering::Relaxed);
    // Two threads may have met it: one place is not used then.
    BY_HANDLE.set(handle as u64, number.into()).then_some(device)
}

/// How many nanoseconds so many ticks last. Since 1.2 the answer has ticks a second where the question has that
/// version, and before that, and in the older question, nanoseconds. A driver that does not look at which question it
/// is answers both alike.
fn resolution(handle: P) -> (u64, u64) {
    let (error, newer) = properties(handle, STYPE_DEVICE_PROPERTIES_1_2);
    let (_, older) = properties(handle, STYPE_DEVICE_PROPERTIES);
    let (per_second, each) = (long(&newer, TIMER_RESOLUTION), long(&older, TIMER_RESOLUTION));
    match (error, per_second) {
        (0, 1..) if per_second != each => (NANOSECONDS, per_second),
        _ => (each.max(1), 1),
    }
}

fn properties(handle: P, tag: u32) -> (u32, [u8; PROPERTIES]) {
    // As 8-byte words, so that it lies as the driver expects it.
    let mut words = [0u64; PROPERTIES / 8];
    if let Some(first) = words.first_mut() {
        *first = tag.into();
    }
    // SAFETY: a live device's handle, and a structure of this type that leads to no further one.
    let error = unsafe { real::zeDeviceGetProperties(handle, words.as_mut_ptr().cast()) };
    let mut bytes = [0; PROPERTIES];
    for (to, from) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&from.to_ne_bytes());
    }
    (error, bytes)
}

fn bytes<const N: usize>(from: &[u8; PROPERTIES], at: usize) -> [u8; N] {
    from.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

fn word(from: &[u8; PROPERTIES], at: usize) -> u32 {
    u32::from_ne_bytes(bytes(from, at))
}

fn long(from: &[u8; PROPERTIES], at: usize) -> u64 {
    u64::from_ne_bytes(bytes(from, at))
}

impl Device {
    /// Its handle, by which the trace names it.
    pub fn key(&self) -> u64 {
        self.handle.load(Ordering::Relaxed)
    }

    /// Nanoseconds of a tick, at least 1: what its times are exact to.
    pub fn resolution(&self) -> u64 {
        self.nanoseconds(1).max(1)
    }

    #[cold]
    fn describe(&self) {
        self.described.store(session_key(), Ordering::Relaxed);
        let (_, properties) = properties(self.key() as P, STYPE_DEVICE_PROPERTIES);
        let units = [EUS_PER_SUBSLICE, SUBSLICES_PER_SLICE, SLICES].map(|at| word(&properties, at));
        let record = DeviceRecord {
            device: self.key(),
            ordinal: ORDINALS.get(self.key()).map_or(0, |number| (number - 1) as u32),
            compute_units: units.into_iter().fold(1, u32::saturating_mul),
            clock_khz: word(&properties, CORE_CLOCK_MHZ).saturating_mul(1000),
            uuid: bytes(&properties, UUID),
            ..DeviceRecord::default()
        };
        let name = CStr::from_bytes_until_nul(properties.get(NAME..).unwrap_or_default());
        record_with_text(special::DEVICE, &record, name.unwrap_or_default());
        self.compared.store(0, Ordering::Relaxed);
        self.compare();
    }

    /// Compares its clock with the host's, if that is long ago.
    pub fn compare(&self) {
        let last = self.compared.load(Ordering::Relaxed);
        if last == 0 || ticks().wrapping_sub(last) > PERIOD {
            self.claim.holding(|| self.compare_now());
        }
    }

    #[cold]
    fn compare_now(&self) {
        let (mut host, mut counter) = (0, 0);
        let before = ticks();
        // SAFETY: a live device's handle, and room for both answers.
        let error =
            unsafe { real::zeDeviceGetGlobalTimestamps(self.key() as P, &raw mut host, &raw mut counter) };
        let after = ticks();
        if error != 0 {
            // Not before a period has gone by; then by when commands are seen to have ended.
            self.compared.store(after, Ordering::Relaxed);
            return;
        }
        let counter = self.relate(counter, self.compared_bits.load(Ordering::Relaxed), after);
        let record =
            ClockRecord { device: self.key(), device_time: self.nanoseconds(counter), before, after };
        record_with_text(special::CLOCK, &record, c"");
    }

    /// The counter has this value now. Returns it with all its bits. Only who has the claim may do this.
    fn relate(&self, counter: u64, bits: u32, at: u64) -> u64 {
        let host = now();
        let whole = match self.expected(host) {
            // What began before it was compared for the first time must not be before 0.
            None => masked(counter, bits) | if bits < 63 { 1 << bits } else { 0 },
            // The nearest to what was expected.
            Some(expected) => latest(counter, expected.wrapping_add(half(bits)), bits),
        };
        self.last.set(whole, host);
        self.compared.store(at, Ordering::Relaxed);
        whole
    }

    /// What the counter should be when the host's clock is this, by the last comparison.
    fn expected(&self, host: u64) -> Option<u64> {
        let (counter, then) = self.last.get()?;
        Some(counter.wrapping_add(self.ticks(host.wrapping_sub(then))))
    }

    /// Returns the start and the end of a command as nanoseconds of the device, by the ticks that its event has. It was
    /// enqueued when the host's clock was `enqueued`, and has ended by now: there is one time for it only if the
    /// counter did not begin anew since.
    pub fn times(&self, [start, end]: [u64; 2], enqueued: u64) -> Result<[u64; 2], Wrapped> {
        let (host, bits) = (now(), self.bits.load(Ordering::Relaxed));
        if !self.last.is_set() {
            self.claim.holding(|| self.relate(end, bits, ticks()));
        }
        let margin = half(bits) / 4;
        if bits < 64 && self.ticks(host.wrapping_sub(enqueued)) >= (1 << bits) - margin {
            return Err(Wrapped);
        }
        let Some(expected) = self.expected(host) else { return Err(Wrapped) };
        let whole = latest(end, expected.wrapping_add(margin), bits);
        let lasted = masked(end.wrapping_sub(start), bits);
        Ok([whole.wrapping_sub(lasted), whole].map(|time| self.nanoseconds(time)))
    }

    fn nanoseconds(&self, ticks: u64) -> u64 {
        scaled(ticks, self.nanoseconds.load(Ordering::Relaxed), self.ticks.load(Ordering::Relaxed))
    }

    fn ticks(&self, nanoseconds: u64) -> u64 {
        scaled(nanoseconds, self.ticks.load(Ordering::Relaxed), self.nanoseconds.load(Ordering::Relaxed))
    }
}

fn scaled(value: u64, by: u64, of: u64) -> u64 {
    let product = u128::from(value) * u128::from(by);
    u64::try_from(product.checked_div(of.into()).unwrap_or(0)).unwrap_or(u64::MAX)
}

/// Half of the values that so many bits have.
fn half(bits: u32) -> u64 {
    1 << (bits.clamp(1, 64) - 1)
}

fn masked(value: u64, bits: u32) -> u64 {
    if bits < 64 { value & ((1 << bits) - 1) } else { value }
}

/// The latest value up to `limit` that ends in these bits of `value`.
fn latest(value: u64, limit: u64, bits: u32) -> u64 {
    if bits >= 64 {
        return value;
    }
    limit.wrapping_sub(masked(limit.wrapping_sub(value), bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_value_with_these_bits_is_not_behind_the_limit() {
        assert_eq!(latest(0x34, 0x1250, 8), 0x1234);
        assert_eq!(latest(0x34, 0x1234, 8), 0x1234);
        assert_eq!(latest(0x34, 0x1233, 8), 0x1134, "the counter has begun anew since");
        assert_eq!(latest(0xff34, 0x1250, 8), 0x1234, "higher bits of the value mean nothing");
        assert_eq!(latest(77, 5, 64), 77);
    }

    #[test]
    fn numbers_are_scaled_without_overflow() {
        assert_eq!(scaled(u64::MAX, 1000, 1000), u64::MAX);
        assert_eq!((scaled(3, 1000, 19), scaled(u64::MAX, 2, 1), scaled(7, 7, 0)), (157, u64::MAX, 0));
        assert_eq!([half(1), half(8), half(64), half(0)], [1, 128, 1 << 63, 1]);
        assert_eq!([masked(0x1ff, 8), masked(u64::MAX, 64)], [0xff, u64::MAX]);
    }

    fn device(bits: u32) -> Device {
        // SAFETY: atomics only, for which zeros are valid.
        let device: Device = unsafe { std::mem::zeroed() };
        device.nanoseconds.store(1, Ordering::Relaxed);
        device.ticks.store(1, Ordering::Relaxed);
        device.bits.store(bits, Ordering::Relaxed);
        device
    }

    #[test]
    fn a_counter_that_begins_anew_goes_on() {
        let device = device(40);
        let span = 1 << 40;
        let first = device.relate(span - 5, 40, 1);
        assert_eq!(first, span | (span - 5));
        // A moment later it has begun anew.
        let next = device.relate(3, 40, 2);
        assert_eq!(next, first + 8);
        let times = device.times([(span - 4), 2], now());
        assert_eq!(times, Ok([first + 1, first + 7]), "a command over the new begin");
        assert_eq!(device.times([1, 2], now().wrapping_sub(2 * span)), Err(Wrapped), "perhaps twice");
    }
}
