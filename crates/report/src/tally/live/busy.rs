//! How long devices were busy.

use std::collections::BTreeMap;

/// Commands that are kept before they are added up.
const KEPT: usize = 1 << 14;

/// The time in which at least one command ran, by device.
#[derive(Debug, Default)]
pub(super) struct Covered {
    /// Begins and ends that are not added up yet, by device.
    fresh: Vec<(u32, u64, u64)>,
    devices: BTreeMap<u32, Device>,
}

/// A device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Device {
    /// Nanoseconds since it was asked last.
    pub busy: u64,
    /// Up to where its time is added up.
    until: u64,
}

impl Covered {
    /// A command ran from one time to another.
    pub fn add(&mut self, device: u32, start: u64, end: u64) {
        self.fresh.push((device, start, end));
        if self.fresh.len() >= KEPT {
            self.settle();
        }
    }

    /// Adds up what came. A command that ends before another one which was added up before counts no more: its time
    /// is that of others, or came too late.
    fn settle(&mut self) {
        self.fresh.sort_unstable();
        for (device, start, end) in self.fresh.drain(..) {
            let device = self.devices.entry(device).or_default();
            device.busy = device.busy.saturating_add(end.saturating_sub(start.max(device.until)));
            device.until = device.until.max(end);
        }
    }

    /// Returns how long each device was busy since this was asked last.
    pub fn take(&mut self) -> Vec<(u32, u64)> {
        self.settle();
        self.devices.iter_mut().map(|(id, device)| (*id, std::mem::take(&mut device.busy))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_several_commands_counts_once() {
        let mut covered = Covered::default();
        for (start, end) in [(50, 60), (10, 30), (20, 40), (25, 28)] {
            covered.add(1, start, end);
        }
        covered.add(2, 0, 5);
        assert_eq!(covered.take(), [(1, 40), (2, 5)]);
        covered.add(1, 55, 65);
        assert_eq!(covered.take(), [(1, 5), (2, 0)]);
    }

    #[test]
    fn many_commands_keep_memory_flat() {
        let mut covered = Covered::default();
        for n in 0..10 * KEPT as u64 {
            covered.add(7, 2 * n, 2 * n + 1);
            assert!(covered.fresh.len() < KEPT);
        }
        assert_eq!(covered.take(), [(7, 10 * KEPT as u64)]);
    }
}
