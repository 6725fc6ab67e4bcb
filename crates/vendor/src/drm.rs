//! Findings of `hetrace doctor` about GPUs that the kernel's own drivers (DRM) run: from files only, without loading a
//! library or waking a device.

use std::path::Path;

use rustix::fs::{Access, access};

use crate::doctor::{Finding, Machine};
use crate::pci::VendorId;

/// A vendor whose GPUs are looked for.
pub(crate) struct Wanted {
    /// On the bus.
    pub id: VendorId,
    /// What its driver is called in findings.
    pub what: &'static str,
    /// The kernel's drivers for it, by which at least one has to be bound to each GPU.
    pub drivers: &'static [&'static str],
    /// What tracing and telemetry open beside the render nodes in `/dev/dri`, below `/dev`.
    pub node: Option<&'static str>,
}

impl Wanted {
    /// What is found of the driver; none where the machine has no such GPU.
    pub fn driver(&self, machine: &Machine<'_>) -> Option<Finding> {
        let gpus = self.id.gpus(machine.root);
        if gpus.is_empty() {
            return None;
        }
        let bound = gpus.iter().filter_map(|gpu| driver_of(gpu)).filter(|of| self.drivers.contains(&&**of));
        let mut bound: Vec<String> = bound.collect();
        let count = format!("{} of {} GPUs", bound.len(), gpus.len());
        bound.sort();
        bound.dedup();
        if bound.is_empty() {
            let says = format!("{count} has one: programs cannot use them");
            return Some(
                Finding::fine(self.what, says).with(format!("modprobe {}", self.drivers.join(" or "))),
            );
        }
        let says = format!("{}, {count}", bound.join(", "));
        Some(match self.refused(machine) {
            None => Finding::fine(self.what, says),
            Some(node) => Finding::fine(self.what, format!("{says}; this user may not open {node}"))
                .with("usermod -aG render,video USER, then log in again"),
        })
    }

    /// The first node that this user may not read and write.
    fn refused(&self, machine: &Machine<'_>) -> Option<String> {
        let nodes = std::fs::read_dir(machine.root.join("dev/dri")).into_iter().flatten().flatten();
        let renders = nodes.filter(|node| node.file_name().to_string_lossy().starts_with("renderD"));
        let mut all: Vec<_> = renders.map(|node| node.path()).collect();
        all.sort();
        all.extend(self.node.map(|node| machine.root.join("dev").join(node)));
        let refused = |node: &&std::path::PathBuf| {
            node.exists() && access(node.as_path(), Access::READ_OK | Access::WRITE_OK).is_err()
        };
        all.iter().find(refused).map(|node| {
            let below = node.strip_prefix(machine.root).unwrap_or(node);
            format!("/{}", below.display())
        })
    }
}

/// The name of the kernel's driver that is bound to a device.
fn driver_of(device: &Path) -> Option<String> {
    let link = std::fs::read_link(device.join("driver")).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

/// What is found of a library of telemetry: the first of `names` that the loader finds, or that is a file.
pub(crate) fn library(machine: &Machine<'_>, what: &str, names: &[&str], install: &str) -> Finding {
    let found = names.iter().find_map(|name| match name.strip_prefix('/') {
        None => (machine.library)(name),
        Some(below) => Some(machine.root.join(below)).filter(|path| path.exists()),
    });
    match found {
        Some(path) => Finding::fine(what, format!("{}: `run --sample` reads it", path.display())),
        None => {
            let says = format!("no {}: `run --sample` records no telemetry of these GPUs", names[0]);
            Finding::fine(what, says).with(install)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Puts a GPU of a vendor onto the bus of a machine made of files, bound to a driver or to none.
    pub fn put_gpu(root: &Path, slot: &str, vendor: VendorId, driver: Option<&str>) {
        let folder = root.join("sys/bus/pci/devices").join(slot);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("vendor"), format!("{:#06x}\n", vendor.0)).unwrap();
        fs::write(folder.join("class"), "0x030000\n").unwrap();
        if let Some(driver) = driver {
            symlink(format!("../../../bus/pci/drivers/{driver}"), folder.join("driver")).unwrap();
        }
    }

    #[test]
    fn drivers_are_those_bound_to_gpus() {
        let root = tempfile::tempdir().unwrap();
        let machine =
            Machine { root: root.path(), privileged: false, library: &|_| None, variable: &|_| None };
        let wanted =
            Wanted { id: VendorId(7), what: "driver", drivers: &["old", "new"], node: Some("extra") };
        assert_eq!(wanted.driver(&machine), None, "nothing is said where there is no GPU");

        put_gpu(root.path(), "0000:03:00.0", VendorId(7), Some("vfio-pci"));
        let lacks = wanted.driver(&machine).unwrap();
        assert_eq!(lacks.says, "0 of 1 GPUs has one: programs cannot use them");
        assert_eq!(lacks.fix.as_deref(), Some("modprobe old or new"));

        put_gpu(root.path(), "0000:04:00.0", VendorId(7), Some("new"));
        put_gpu(root.path(), "0000:05:00.0", VendorId(7), Some("new"));
        fs::create_dir_all(root.path().join("dev/dri")).unwrap();
        fs::write(root.path().join("dev/dri/renderD128"), "").unwrap();
        fs::write(root.path().join("dev/extra"), "").unwrap();
        let has = wanted.driver(&machine).unwrap();
        assert_eq!((&*has.says, has.fix), ("new, 2 of 3 GPUs", None));
    }

    #[test]
    fn a_library_is_found_by_name_or_place() {
        let root = tempfile::tempdir().unwrap();
        let nowhere =
            Machine { root: root.path(), privileged: false, library: &|_| None, variable: &|_| None };
        let names = ["libsome.so.2", "/opt/some/libsome.so"];
        let lacks = library(&nowhere, "some", &names, "install some");
        assert!(lacks.says.starts_with("no libsome.so.2: ") && lacks.fix.as_deref() == Some("install some"));
        fs::create_dir_all(root.path().join("opt/some")).unwrap();
        fs::write(root.path().join("opt/some/libsome.so"), "").unwrap();
        assert!(
            library(&nowhere, "some", &names, "")
                .says
                .ends_with("/opt/some/libsome.so: `run --sample` reads it")
        );
        let known = Machine { library: &|name| Some(Path::new("/lib").join(name)), ..nowhere };
        assert_eq!(library(&known, "some", &names, "").says, "/lib/libsome.so.2: `run --sample` reads it");
    }
}
