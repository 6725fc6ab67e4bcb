//! How well times are known.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::handle;

/// How well a device's clock is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceClock {
    /// Process that used it.
    pub pid: i64,
    /// The API by which it did; empty in older traces.
    pub api: String,
    /// Its handle.
    #[serde(rename = "device", with = "handle")]
    pub handle: u64,
    /// Its name.
    pub name: String,
    /// Largest error of a time, in nanoseconds; none if the clock is not known at all.
    pub error_ns: Option<u64>,
    /// How often the clock began anew; 1 is normal.
    pub epochs: usize,
    /// Times came in the host's time from the API itself: there was nothing to
    /// convert, and so there are neither an error nor epochs.
    pub host_clock: bool,
    /// Commands that began before their call as reported, by little: they were
    /// moved to its beginning.
    pub corrected: u64,
    /// By how much at most, in nanoseconds.
    pub largest_correction_ns: u64,
    /// The same by much: they were left as reported.
    pub impossible_order: u64,
}

impl DeviceClock {
    /// Returns the device's name, or its handle.
    pub fn title(&self) -> Cow<'_, str> {
        if self.name.is_empty() { format!("{:#x}", self.handle).into() } else { (&*self.name).into() }
    }
}

/// The host's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostClock {
    /// Largest error seen of a time, in nanoseconds.
    pub error_ns: u64,
    /// Ticks of the processor's counter per second.
    pub ticks_per_second: f64,
}
