//! Findings of `hetrace doctor` about AMD's GPUs; none where there are none.

use std::path::PathBuf;

use super::known;
use crate::doctor::{Finding, Machine};
use crate::drm::{self, Wanted};

const GPUS: Wanted = Wanted { id: known::ID, what: "AMD driver", drivers: &["amdgpu"], node: Some("kfd") };

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Finding> {
    let Some(driver) = GPUS.driver(machine) else { return Vec::new() };
    vec![driver, drm::library(machine, "ROCm SMI", &known::ROCM_SMI, known::INSTALL), collector(machine)]
}

/// Looks for rocprofiler-sdk where it is looked for in a program with HIP.
fn collector(machine: &Machine<'_>) -> Finding {
    const NAMES: [&str; 2] = ["librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"];
    let by_setting = (machine.variable)("HETRACE_ROCPROFILER").map(PathBuf::from);
    let by_name = || NAMES.iter().find_map(|name| (machine.library)(name));
    let by_default = || {
        let mut all = NAMES.iter().map(|name| machine.root.join("opt/rocm/lib").join(name));
        all.find(|path| path.exists())
    };
    match by_setting.or_else(by_name).or_else(by_default) {
        Some(path) => Finding::fine("rocprofiler-sdk", path.display().to_string()),
        None => Finding::fine(
            "rocprofiler-sdk",
            "not in the library paths; HIP's commands get their times from events",
        )
        .with("install rocprofiler-sdk (ROCm 6.2 or newer), or HETRACE_ROCPROFILER=path"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drm::tests::put_gpu;

    #[test]
    fn nothing_without_a_gpu_and_three_lines_with_one() {
        let root = tempfile::tempdir().unwrap();
        let machine =
            Machine { root: root.path(), privileged: false, library: &|_| None, variable: &|_| None };
        assert!(findings(&machine).is_empty());
        put_gpu(root.path(), "0000:c1:00.0", known::ID, Some("amdgpu"));
        let found = findings(&machine);
        assert_eq!(found[0].says, "amdgpu, 1 of 1 GPUs");
        assert!(found[1].says.starts_with("no librocm_smi64.so.7: "), "{}", found[1].says);
        assert!(found[2].says.starts_with("not in the library paths"), "{}", found[2].says);
        let set = |name: &str| (name == "HETRACE_ROCPROFILER").then(|| "/a/file".into());
        assert_eq!(collector(&Machine { variable: &set, ..machine }).says, "/a/file");
        let folder = root.path().join("opt/rocm/lib");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("librocprofiler-sdk.so.1"), "").unwrap();
        assert!(collector(&machine).says.ends_with("/opt/rocm/lib/librocprofiler-sdk.so.1"));
        assert!(found.iter().all(|finding| finding.works), "tracing works without telemetry");
    }
}
