//! Intel's GPUs.

#[cfg(feature = "doctor")]
mod doctor;
#[cfg(any(feature = "doctor", feature = "telemetry"))]
mod known;
#[cfg(feature = "telemetry")]
mod sysman;

use crate::Vendor;

/// Intel.
pub(crate) struct Intel;

impl Vendor for Intel {
    fn name(&self) -> &'static str {
        "intel"
    }

    #[cfg(feature = "telemetry")]
    fn sources(&self, libraries: &crate::telemetry::Libraries) -> Vec<crate::telemetry::Opened> {
        sysman::open(libraries, std::path::Path::new("/")).into_iter().collect()
    }

    #[cfg(feature = "doctor")]
    fn findings(&self, machine: &crate::doctor::Machine<'_>) -> Vec<crate::doctor::Finding> {
        doctor::findings(machine)
    }
}
