//! The host itself: its memory and its clock, and what it says of itself while a program runs.

#[cfg(feature = "doctor")]
mod doctor;
#[cfg(feature = "telemetry")]
mod files;
#[cfg(feature = "telemetry")]
mod processes;
#[cfg(feature = "telemetry")]
mod rates;
#[cfg(feature = "telemetry")]
mod snapshot;
#[cfg(feature = "telemetry")]
mod source;

use crate::Vendor;

/// The machine that programs run on.
pub(crate) struct Host;

impl Vendor for Host {
    fn name(&self) -> &'static str {
        "host"
    }

    #[cfg(feature = "telemetry")]
    fn sources(&self, _libraries: &crate::telemetry::Libraries) -> Vec<crate::telemetry::Opened> {
        vec![Ok(std::sync::Arc::new(source::Host::open(std::path::Path::new("/"))))]
    }

    #[cfg(feature = "doctor")]
    fn findings(&self, machine: &crate::doctor::Machine<'_>) -> Vec<crate::doctor::Finding> {
        doctor::findings(machine)
    }
}
