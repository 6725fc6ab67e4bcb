//! What doctor and telemetry both know of Intel's GPUs and their library.

use crate::pci::VendorId;

/// On the PCI bus.
pub(super) const ID: VendorId = VendorId(0x8086);
/// Names of Level Zero's loader, which has sysman's functions.
pub(super) const LOADER: [&str; 2] = ["libze_loader.so.1", "libze_loader.so"];
/// How it is installed.
pub(super) const INSTALL: &str =
    "install Level Zero's loader 1.10 or later and Intel's driver (packages level-zero, libze-intel-gpu1)";
