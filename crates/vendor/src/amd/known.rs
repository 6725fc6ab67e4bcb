//! What doctor and telemetry both know of AMD's GPUs and their library.

use crate::pci::VendorId;

/// On the PCI bus.
pub(super) const ID: VendorId = VendorId(0x1002);
/// Names of ROCm SMI, by the versions of ROCm, and where ROCm is installed when it is in no search path.
pub(super) const ROCM_SMI: [&str; 6] = [
    "librocm_smi64.so.7",
    "librocm_smi64.so.6",
    "librocm_smi64.so.5",
    "librocm_smi64.so.1",
    "librocm_smi64.so",
    "/opt/rocm/lib/librocm_smi64.so",
];
/// How it is installed.
pub(super) const INSTALL: &str = "install ROCm's package rocm-smi-lib (Debian: librocm-smi64-1)";
