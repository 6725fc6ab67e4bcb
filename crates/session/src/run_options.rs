//! What to run and how.

use std::ffi::OsString;
use std::sync::Arc;

use crate::access::Access;
use crate::flight;
use crate::inject::Way;
use crate::inside::Inside;
use crate::options::{Capture, DeviceTimes};
use crate::os;
use crate::place::Place;
use crate::select::Selection;
use crate::sink::Rotate;
use crate::telemetry;
use crate::trigger::Bound;
use crate::window::Asked;

/// What to run and how.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Folder of the trace.
    pub output: Place,
    /// Who may read it.
    pub access: Access,
    /// What is recorded.
    pub selection: Selection,
    /// Where times of commands come from, if [`Selection::devices`].
    pub device_times: DeviceTimes,
    /// Commands on devices in flight at most in each process and API; 0: as many as the library
    /// thinks right.
    pub most_in_flight: u32,
    /// How much of each thread's time recording may take, in percent; none: as much as it takes.
    pub max_overhead: Option<f64>,
    /// When it is recorded, and how the user asked for it; none: always.
    pub window: Option<Asked>,
    /// [`Self::window`] as the options that ask for it.
    pub window_shown: String,
    /// Only what was recorded last is kept, and written when that is asked for.
    pub flight: Option<flight::Asked>,
    /// What asks for that by itself.
    pub triggers: Option<Arc<Bound>>,
    /// The run is divided into several traces.
    pub rotate: Option<Rotate>,
    /// Bytes of streams on disk at most; none: as many as it takes.
    pub max_disk: Option<u64>,
    /// How the API is reached.
    pub way: Way,
    /// A full ring makes the program wait.
    pub block: bool,
    /// Data bytes of a ring; rounded up to a power of two.
    pub ring_bytes: u32,
    /// What is stored besides.
    pub capture: Capture,
    /// What is recorded inside kernels.
    pub inside: Option<Inside>,
    /// Packets are compressed.
    pub compress: bool,
    /// What devices say of themselves is sampled.
    pub sample: Option<telemetry::Options>,
    /// Events of the operating system are recorded: [`crate::Early`] has begun that.
    pub os: Option<os::Options>,
    /// Samples a second of each thread while it has a CPU; none: it is not sampled.
    pub cpu_sample: Option<u32>,
    /// Options as the user gave them, for the manifest.
    pub shown: Vec<String>,
}
