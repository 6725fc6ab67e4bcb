//! AMD's GPUs.

#[cfg(feature = "doctor")]
mod doctor;
#[cfg(any(feature = "doctor", feature = "telemetry"))]
mod known;
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

    #[cfg(feature = "doctor")]
    fn findings(&self, machine: &crate::doctor::Machine<'_>) -> Vec<crate::doctor::Finding> {
        doctor::findings(machine)
    }
}
