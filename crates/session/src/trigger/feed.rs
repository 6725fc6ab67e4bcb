//! Samples on their way from the threads that take them to the launcher's loop.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use hetrace_format::telemetry::{Quantity, Sample};

/// Samples that wait at most: the loop looks forty times a second.
const MOST: usize = 1 << 14;

/// A sample of a device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Taken {
    /// The device's number in the trace.
    pub device: u32,
    /// What it is of.
    pub quantity: Quantity,
    /// Time and values.
    pub sample: Sample,
}

/// What was sampled of quantities that triggers name.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    wanted: BTreeSet<Quantity>,
    samples: Mutex<VecDeque<Taken>>,
}

impl Feed {
    /// That of these quantities.
    pub fn new(wanted: BTreeSet<Quantity>) -> Self {
        Feed { wanted, samples: Mutex::default() }
    }

    /// A device was asked.
    pub fn put(&self, device: u32, quantity: Quantity, sample: Sample) {
        if !self.wanted.contains(&quantity) {
            return;
        }
        let mut samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        if samples.len() >= MOST {
            samples.pop_front();
        }
        samples.push_back(Taken { device, quantity, sample });
    }

    /// Takes what came since the last time.
    pub fn take(&self) -> VecDeque<Taken> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
