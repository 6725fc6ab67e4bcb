//! Where telemetry comes from: devices and the host, and the quantities they can be asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// What a device can be asked for, as the trace names it. One query, one kind of event.
pub use hetrace_format::telemetry::Quantity;

/// What a device answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Power drawn.
    Power {
        /// Milliwatts.
        milliwatts: u64,
    },
    /// A counter of energy.
    Energy {
        /// Millijoules since the driver was loaded.
        millijoules: u64,
    },
    /// Frequencies in MHz; 0 if the device does not report one.
    Clocks {
        /// Streaming multiprocessors, or what other vendors call their compute units.
        sm: u32,
        /// Device memory.
        memory: u32,
        /// Graphics.
        graphics: u32,
        /// Video encoder and decoder.
        video: u32,
    },
    /// Percent of the driver's last sample period.
    Utilization {
        /// A kernel ran.
        gpu: u32,
        /// Device memory was read or written.
        memory: u32,
    },
    /// Device memory in bytes.
    Memory {
        /// Allocated.
        used: u64,
        /// Not allocated.
        free: u64,
        /// Kept by driver and firmware.
        reserved: u64,
        /// All of it.
        total: u64,
    },
    /// Temperature of the chip.
    Temperature {
        /// Degrees Celsius.
        celsius: i32,
    },
    /// Performance state.
    PerformanceState {
        /// 0 is the fastest, 15 the slowest; 32 stands for not known.
        state: u32,
    },
    /// Why the clocks are not higher.
    Throttle {
        /// A bit for each reason. Bits are those of NVML, whose names the trace has.
        reasons: u64,
    },
    /// Counters of bytes on all links between devices.
    Nvlink {
        /// Sent since the driver was loaded.
        tx: u64,
        /// Received.
        rx: u64,
    },
    /// Bytes per second on the bus while the query lasted, or since the one before.
    Pcie {
        /// Sent by the device.
        tx: u64,
        /// Received by it.
        rx: u64,
    },
    /// What the host says of itself.
    Host {
        /// What it is of.
        quantity: Quantity,
        /// As [`Quantity::fields`] names them; the rest is 0.
        values: [u64; hetrace_format::telemetry::VALUES],
        /// Of rates: what they are over, nanoseconds up to now.
        interval: u64,
    },
    /// An answer that says something only together with the next one.
    Baseline,
}

/// Why a device did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It never will, so it is asked no more.
    Never(String),
    /// It may another time. Whoever refuses so several times in a row is asked no more.
    NotNow(String),
    /// What was asked for is not there, and may come back: it is always asked again.
    Absent(String),
}

impl Refusal {
    /// Returns the reason, in the source's words.
    pub fn why(&self) -> &str {
        match self {
            Refusal::Never(why) | Refusal::NotNow(why) | Refusal::Absent(why) => why,
        }
    }
}

/// The identity of a device. Texts are empty if the source does not report them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Device {
    /// Its number in the source.
    pub index: u32,
    /// What identifies it in every API of the machine: `GPU-…`.
    pub uuid: String,
    /// The product's name.
    pub name: String,
    /// Where it is on the bus: `domain:bus:device.function`.
    pub pci: String,
    /// What its power readings are: `instant`, `driver` if the driver chooses (an average over 1 s on most devices), or
    /// `interval`, an average since the reading before.
    pub power: String,
    /// The most it may draw, in milliwatts; 0 if not known.
    pub power_limit: u64,
}

/// Files to load in place of the libraries that the loader finds, by the source's name.
pub type Libraries = BTreeMap<String, PathBuf>;

/// A source that was opened, or what is missing for it.
pub type Opened = Result<Arc<dyn Source>, Missing>;

/// Opens the sources of all vendors; the host's, which has the most devices, is the last.
pub fn open(libraries: &Libraries) -> Vec<Opened> {
    let (host, vendors) = crate::ALL.split_at(1);
    vendors.iter().chain(host).flat_map(|vendor| vendor.sources(libraries)).collect()
}

/// What devices that are no host can be asked for.
pub const DEVICE: [Quantity; 10] = {
    use Quantity::{
        Clocks, Energy, Memory, Nvlink, Pcie, PerformanceState, Power, Temperature, Throttle, Utilization,
    };
    [Power, Energy, Clocks, Utilization, Memory, Temperature, PerformanceState, Throttle, Nvlink, Pcie]
};

/// A source of telemetry. It is asked from several threads.
pub trait Source: Send + Sync + fmt::Debug {
    /// Its name: `nvml`.
    fn name(&self) -> &'static str;

    /// Returns the driver's version, or an empty text.
    fn driver(&self) -> &str;

    /// Returns the devices. They stay the same as long as the source lives.
    fn devices(&self) -> &[Device];

    /// Returns what it makes sense to ask a device for.
    fn quantities(&self, _device: usize) -> &[Quantity] {
        &DEVICE
    }

    /// Returns what it cannot say on this machine, and why: a line each.
    fn missing(&self) -> &[String] {
        &[]
    }

    /// The program has begun, as this process; or one more process is found that belongs to it.
    fn follow(&self, _program: u32) {}

    /// Asks a device, by its place in [`devices`](Source::devices). May take its
    /// time: the caller measures it.
    ///
    /// # Errors
    /// When the device does not answer, now or ever.
    fn read(&self, device: usize, quantity: Quantity) -> Result<Reading, Refusal>;
}

/// A source that could not be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name: `nvml`.
    pub name: &'static str,
    /// What is missing and how to fix it; one line.
    pub why: String,
}
