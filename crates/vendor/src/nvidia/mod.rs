//! NVIDIA's GPUs.

#[cfg(feature = "doctor")]
mod doctor;
#[cfg(feature = "telemetry")]
mod nvml;
mod occupancy;
mod roofs;

use crate::Vendor;
use crate::occupancy::Rules;
use crate::roofs::{About, Roofs};

/// NVIDIA.
pub(crate) struct Nvidia;

impl Vendor for Nvidia {
    fn name(&self) -> &'static str {
        "nvidia"
    }

    fn occupancy(&self, properties: &[(String, u64)]) -> Option<Box<dyn Rules>> {
        Some(Box::new(occupancy::Limits::of(properties)?))
    }

    fn roofs(&self, about: &About<'_>) -> Option<Roofs> {
        roofs::of(about)
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
