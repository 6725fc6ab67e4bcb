//! Which vendors' GPUs a machine has, from what the kernel shows of its bus: no driver is woken for it.

use std::fs;
use std::path::{Path, PathBuf};

/// A vendor's number on the PCI bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VendorId(pub u16);

impl VendorId {
    /// Whether a display controller or processing accelerator of this vendor is on the bus. `root` is the root of the
    /// file system. False if the bus is not shown, as in some containers.
    #[cfg(feature = "telemetry")]
    pub fn has_gpu(self, root: &Path) -> bool {
        !self.gpus(root).is_empty()
    }

    /// The folders of this vendor's display controllers and processing accelerators, in the order of the bus. `root` is
    /// the root of the file system. None if the bus is not shown.
    pub fn gpus(self, root: &Path) -> Vec<PathBuf> {
        let Ok(devices) = fs::read_dir(root.join("sys/bus/pci/devices")) else { return Vec::new() };
        let is_one = |device: &PathBuf| {
            let number = |file: &str| {
                let text = fs::read_to_string(device.join(file)).ok()?;
                u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
            };
            let vendor = number("vendor");
            vendor == Some(self.0.into()) && number("class").is_some_and(|class| is_gpu(class >> 16))
        };
        let mut gpus: Vec<PathBuf> = devices.flatten().map(|entry| entry.path()).filter(is_one).collect();
        gpus.sort();
        gpus
    }
}

/// Base classes of PCI: 0x03 are display controllers, 0x12 processing accelerators.
fn is_gpu(base_class: u32) -> bool {
    matches!(base_class, 0x03 | 0x12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_found_by_vendor_and_class() {
        let root = tempfile::tempdir().unwrap();
        let put = |slot: &str, vendor: &str, class: &str| {
            let folder = root.path().join("sys/bus/pci/devices").join(slot);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("vendor"), vendor).unwrap();
            fs::write(folder.join("class"), class).unwrap();
        };
        let has = |id| !VendorId(id).gpus(root.path()).is_empty();
        assert!(!has(0x1002), "no bus at all");
        put("0000:00:1f.0", "0x8086\n", "0x060100\n");
        put("0000:00:1f.1", "damaged", "0x030000\n");
        assert!(!has(0x8086), "a bridge is no GPU");
        put("0000:03:00.0", "0x1002\n", "0x120000\n");
        put("0000:00:02.0", "0x8086\n", "0x030000\n");
        assert!(has(0x1002) && has(0x8086) && !has(0x10de));
        put("0000:01:00.0", "0x1002\n", "0x030000\n");
        let gpus = VendorId(0x1002).gpus(root.path());
        let slots: Vec<_> = gpus.iter().map(|gpu| gpu.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(slots, ["0000:01:00.0", "0000:03:00.0"]);
    }
}
