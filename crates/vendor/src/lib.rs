//! What is known of devices by their vendors, a folder each.
//!
//! ```text
//!             telemetry           occupancy, roofs     doctor
//!  host       /proc, /sys         —                    shared memory, clock, power
//!  nvidia     NVML                multiprocessors      driver, toolkit, CUPTI, NVML
//!  amd        ROCm SMI            —                    driver, ROCm SMI
//!  intel      Level Zero sysman   —                    driver, sysman
//! ```
//! A vendor is a folder, a [`Vendor`] in it, and a line in [`ALL`]; whoever uses this crate
//! goes through that list and knows no vendor by name. What no vendor knows is unknown:
//! there is no guess.
//!
//! Occupancy and roofs are arithmetic on what a trace says. Telemetry and the doctor ask the machine,
//! and stand behind features of the same names, which analyses do without.

mod amd;
#[cfg(feature = "doctor")]
pub mod doctor;
#[cfg(feature = "doctor")]
mod drm;
mod host;
mod intel;
#[cfg(feature = "telemetry")]
mod load;
mod nvidia;
pub mod occupancy;
#[cfg(any(feature = "doctor", feature = "telemetry"))]
mod pci;
pub mod roofs;
#[cfg(feature = "telemetry")]
pub mod telemetry;

/// A vendor of devices, or the host itself. Everything is optional.
pub trait Vendor: Sync {
    /// Its name, which is its folder's.
    fn name(&self) -> &'static str;

    /// Returns the occupancy rules for a device with these properties; none if it is not one
    /// of this vendor's, or if too little is known of it.
    fn occupancy(&self, _properties: &[(String, u64)]) -> Option<Box<dyn occupancy::Rules>> {
        None
    }

    /// Returns what a device can do at most; none if it is not one of this vendor's, or if too little is known of it.
    fn roofs(&self, _about: &roofs::About<'_>) -> Option<roofs::Roofs> {
        None
    }

    /// Opens its sources of telemetry; of one that cannot be opened, what is missing.
    #[cfg(feature = "telemetry")]
    fn sources(&self, _libraries: &telemetry::Libraries) -> Vec<telemetry::Opened> {
        Vec::new()
    }

    /// Returns what a machine has for tracing, and what it lacks.
    #[cfg(feature = "doctor")]
    fn findings(&self, _machine: &doctor::Machine<'_>) -> Vec<doctor::Finding> {
        Vec::new()
    }
}

/// All of them. The host comes first.
pub const ALL: &[&dyn Vendor] = &[&host::Host, &nvidia::Nvidia, &amd::Amd, &intel::Intel];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_folder_of_its_name() {
        let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut folders: Vec<String> = std::fs::read_dir(source)
            .unwrap()
            .map(|entry| entry.unwrap())
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        folders.sort();
        let mut names: Vec<&str> = ALL.iter().map(|vendor| vendor.name()).collect();
        assert_eq!(names[0], "host");
        names.sort_unstable();
        assert_eq!(names, folders);
    }
}
