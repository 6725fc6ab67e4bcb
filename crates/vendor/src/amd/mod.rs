//! AMD's GPUs.

#[cfg(feature = "telemetry")]
mod rocm_smi;

use crate::Vendor;

/// AMD.
pub(crate) struct Amd;

impl Vendor for Amd {
    fn name(&self) -> &'static str {
        "amd"
    }

    #[cfg(feature = "telemetry")]
    fn sources(&self, libraries: &crate::telemetry::Libraries) -> Vec<crate::telemetry::Opened> {
        rocm_smi::open(libraries, std::path::Path::new("/")).into_iter().collect()
    }
}
