//! What is made ready while tracepoints are opened.

use super::Sources;
use crate::perf::bpf::{Loaded, Reading};
use crate::{Options, dump};

/// What a second thread does while the first opens tracepoints.
#[derive(Debug, Default)]
pub struct Beside {
    /// Programs in the kernel; none if these are not possible here.
    pub loaded: Option<Loaded>,
    /// Disks, for the state dump.
    pub disks: Vec<(u32, String)>,
}

impl Beside {
    /// Loads and looks up what is recorded with.
    pub fn prepare(options: &Options) -> Self {
        Self { loaded: Sources::load(options, Reading::Fields), disks: dump::disks() }
    }
}
