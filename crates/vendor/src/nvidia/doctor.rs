//! Findings of `hetrace doctor` about NVIDIA's driver and tools: from files only,
//! without loading any of their libraries.

use std::path::{Path, PathBuf};

use crate::doctor::{Finding, Machine};

/// Returns all findings; one where there is no such driver.
pub(super) fn findings(machine: &Machine<'_>) -> Vec<Finding> {
    let libcuda = (machine.library)("libcuda.so.1");
    let driver = driver(machine, libcuda.as_deref());
    if libcuda.is_none() {
        return vec![driver];
    }
    let mut findings = vec![driver];
    findings.extend(toolkit(machine));
    findings.push(collector(machine));
    findings.extend(counters(machine));
    findings.push(telemetry(machine));
    findings.extend(others(machine));
    findings
}

/// Checks the kernel module and the user-space library.
fn driver(machine: &Machine<'_>, libcuda: Option<&Path>) -> Finding {
    let what = "NVIDIA driver";
    let version = machine.read("proc/driver/nvidia/version").and_then(|t| kernel_module(&t));
    match (version, libcuda) {
        (Some(version), Some(path)) => {
            Finding::fine(what, format!("{version}, {} GPUs; {}", gpus(machine.root), path.display()))
        }
        (Some(version), None) => {
            let fix = "install the driver's libraries (Debian: libcuda1; in a container: --gpus all)";
            Finding::failed(what, format!("kernel module {version}, but libcuda.so.1 is missing")).with(fix)
        }
        (None, Some(path)) => {
            let says = format!("{}, but the kernel module is not visible", path.display());
            let fix = "modprobe nvidia; in a container the module may just be hidden, then nothing is wrong";
            Finding::fine(what, says).with(fix)
        }
        (None, None) => Finding::fine(what, "not installed"),
    }
}

/// `NVRM version: … Kernel Module  580.82.07  …` → the number.
fn kernel_module(text: &str) -> Option<String> {
    let line = text.lines().find(|l| l.starts_with("NVRM version"))?;
    let is_version = |w: &&str| w.contains('.') && w.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    line.split_whitespace().find(is_version).map(str::to_owned)
}

fn gpus(root: &Path) -> usize {
    std::fs::read_dir(root.join("proc/driver/nvidia/gpus")).map_or(0, |folder| folder.flatten().count())
}

fn toolkit(machine: &Machine<'_>) -> Option<Finding> {
    let text = machine.read("usr/local/cuda/version.json")?;
    let json: serde_json::Value = serde_json::from_str(&text).ok()?;
    let version = json["cuda"]["version"].as_str()?;
    Some(Finding::fine("CUDA toolkit", format!("{version} in /usr/local/cuda")))
}

/// Looks for CUPTI where the toolkit and packages install it.
fn collector(machine: &Machine<'_>) -> Finding {
    let by_name = ["libcupti.so.13", "libcupti.so.12"].iter().find_map(|n| (machine.library)(n));
    let by_setting = (machine.variable)("HETRACE_CUPTI").map(PathBuf::from);
    let in_toolkit = || {
        let folders = ["usr/local/cuda/extras/CUPTI/lib64", "usr/local/cuda/lib64"];
        let mut all = folders
            .iter()
            .flat_map(|f| std::fs::read_dir(machine.root.join(f)).into_iter().flatten().flatten());
        all.find(|e| e.file_name().to_string_lossy().starts_with("libcupti.so.")).map(|e| e.path())
    };
    match by_setting.or(by_name).or_else(in_toolkit) {
        Some(path) => {
            let says = format!("{} (programs that bring their own use that one)", path.display());
            Finding::fine("CUPTI", says)
        }
        None => Finding::fine(
            "CUPTI",
            "not in the library paths; programs without their own get command times from events",
        )
        .with("pip install nvidia-cuda-cupti-cu12 (or nvidia-cuda-cupti for CUDA 13), or HETRACE_CUPTI=path"),
    }
}

/// Checks access to device counters, which need a privilege; tracing does not.
fn counters(machine: &Machine<'_>) -> Option<Finding> {
    let params = machine.read("proc/driver/nvidia/params")?;
    let restricted = params.lines().any(|l| l.replace(' ', "") == "RmProfilingAdminOnly:1");
    if !restricted || machine.privileged {
        return Some(Finding::fine("GPU counters", "available to this user"));
    }
    let says = "restricted to administrators: command times work, device counters do not";
    let fix = "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' \
                > /etc/modprobe.d/nvidia-profiling.conf, then reload the module or reboot";
    Some(Finding::fine("GPU counters", says).with(fix))
}

fn telemetry(machine: &Machine<'_>) -> Finding {
    match (machine.library)("libnvidia-ml.so.1") {
        Some(path) => Finding::fine("NVML", format!("{}: `run --sample` works", path.display())),
        None => Finding::fine("NVML", "no libnvidia-ml.so.1: `run --sample` records no telemetry").with(
            "install the driver's libraries (Debian: libnvidia-ml1; in a container: capability utility)",
        ),
    }
}

/// Finds tools that are injected into every CUDA program.
fn others(machine: &Machine<'_>) -> Vec<Finding> {
    let tools = ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"];
    let set = tools.iter().filter_map(|name| Some((name, machine.set(name)?)));
    set.map(|(name, value)| {
        let says = format!(
            "{name}={value}: another tool is injected into each program; hetrace does not replace it"
        );
        Finding::fine("other tools", says).with(format!("unset {name} if that tool is not wanted"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBCUDA: &str = "/lib/libcuda.so.1";

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let machine =
            Machine { root: root.path(), privileged: false, library: &|_| None, variable: &|_| None };
        let cuda = Path::new(LIBCUDA);
        assert_eq!(driver(&machine, None).says, "not installed");
        assert_eq!(findings(&machine).len(), 1, "one line where there is no driver");
        assert!(driver(&machine, Some(cuda)).fix.is_some());
        put(
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release\n",
        );
        put("proc/driver/nvidia/gpus/0000:19:00.0/information", "");
        assert_eq!(driver(&machine, Some(cuda)).says, "580.82.07, 1 GPUs; /lib/libcuda.so.1");
        assert!(!driver(&machine, None).works, "a module without libraries is of no use");

        assert!(counters(&machine).is_none(), "unknown is not said");
        put("proc/driver/nvidia/params", "EnableMSI: 1\nRmProfilingAdminOnly: 1\n");
        let fix = counters(&machine).unwrap().fix.unwrap();
        assert!(fix.contains("NVreg_RestrictProfilingToAdminUsers=0"), "{fix}");
        assert!(counters(&Machine { privileged: true, ..machine }).unwrap().fix.is_none());
        put("usr/local/cuda/version.json", r#"{"cuda": {"name": "CUDA SDK", "version": "13.0.1"}}"#);
        assert!(toolkit(&machine).unwrap().says.starts_with("13.0.1"));
        assert!(collector(&machine).fix.is_some(), "no CUPTI yet");
        put("usr/local/cuda/lib64/libcupti.so.13", "");
        assert!(collector(&machine).says.contains("libcupti.so."));
    }

    #[test]
    fn everything_of_a_driver_is_said() {
        let root = tempfile::tempdir().unwrap();
        let library = |name: &str| Some(Path::new("/lib").join(name));
        let variable = |name: &str| (name == "CUDA_INJECTION64_PATH").then(|| "/opt/tool.so".into());
        let machine =
            Machine { root: root.path(), privileged: false, library: &library, variable: &variable };
        let findings = findings(&machine);
        let what: Vec<&str> = findings.iter().map(|f| f.what.as_str()).collect();
        assert_eq!(what, ["NVIDIA driver", "CUPTI", "NVML", "other tools"]);
        assert!(findings[3].says.contains("/opt/tool.so"));
    }
}
