//! The host itself: its memory and its clock.

#[cfg(feature = "doctor")]
mod doctor;

use crate::Vendor;

/// The machine that programs run on.
pub(crate) struct Host;

impl Vendor for Host {
    fn name(&self) -> &'static str {
        "host"
    }

    #[cfg(feature = "doctor")]
    fn findings(&self, machine: &crate::doctor::Machine<'_>) -> Vec<crate::doctor::Finding> {
        doctor::findings(machine)
    }
}
