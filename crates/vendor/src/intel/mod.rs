//! Intel's GPUs.

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
}
