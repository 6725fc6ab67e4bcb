//! NVIDIA's GPUs.

#[cfg(feature = "doctor")]
mod doctor;
#[cfg(feature = "telemetry")]
mod nvml;

use crate::Vendor;

/// NVIDIA.
pub(crate) struct Nvidia;

impl Vendor for Nvidia {
    fn name(&self) -> &'static str {
        "nvidia"
    }

    #[cfg(feature = "telemetry")]
    fn sources(&self, libraries: &crate::telemetry::Libraries) -> Vec<crate::telemetry::Opened> {
        vec![nvml::open(libraries)]
    }

    #[cfg(feature = "doctor")]
    fn findings(&self, machine: &crate::doctor::Machine<'_>) -> Vec<crate::doctor::Finding> {
        doctor::findings(machine)
    }
}
