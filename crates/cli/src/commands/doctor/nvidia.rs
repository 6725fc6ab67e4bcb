//! What `hetrace doctor` finds of NVIDIA's driver and tools. Files only: no
//! library of theirs is loaded for it.

use std::path::{Path, PathBuf};

use super::Finding;

/// Everything worth saying; one line where there is no such driver.
pub fn findings() -> Vec<Finding> {
    let root = Path::new("/");
    let libcuda = hetrace_session::find_library("libcuda.so.1");
    let driver = driver(root, libcuda.as_deref());
    if libcuda.is_none() {
        return vec![driver];
    }
    let mut findings = vec![driver];
    findings.extend(toolkit(root));
    findings.push(collector(root));
    findings.extend(counters(root, is_root()));
    findings.push(telemetry());
    findings.extend(others(|name| std::env::var(name).ok()));
    findings
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn read(root: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(root.join(path)).ok()
}

/// The kernel's part and the programs' part, which must fit each other.
fn driver(root: &Path, libcuda: Option<&Path>) -> Finding {
    let version = read(root, "proc/driver/nvidia/version").and_then(|t| kernel_module(&t));
    match (version, libcuda) {
        (Some(version), Some(path)) => {
            Finding::fine("NVIDIA driver", format!("{version}, {} GPUs; {}", gpus(root), path.display()))
        }
        (Some(version), None) => {
            let says = format!("kernel module {version}, but no libcuda.so.1 for programs");
            let mend = "install the driver's libraries (Debian: libcuda1; in a container: --gpus all)";
            Finding { works: false, ..Finding::fine("NVIDIA driver", says) }.with(mend)
        }
        (None, Some(path)) => {
            let says = format!("{}, but no kernel module is seen", path.display());
            let mend = "modprobe nvidia; in a container the module may only be hidden, then all is well";
            Finding::fine("NVIDIA driver", says).with(mend)
        }
        (None, None) => Finding::fine("NVIDIA driver", "none here"),
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

fn toolkit(root: &Path) -> Option<Finding> {
    let text = read(root, "usr/local/cuda/version.json")?;
    let json: serde_json::Value = serde_json::from_str(&text).ok()?;
    let version = json["cuda"]["version"].as_str()?;
    Some(Finding::fine("CUDA toolkit", format!("{version} in /usr/local/cuda")))
}

/// Where the toolkit and packages put CUPTI.
fn collector(root: &Path) -> Finding {
    let by_name = ["libcupti.so.13", "libcupti.so.12"].iter().find_map(|n| hetrace_session::find_library(n));
    let by_setting = std::env::var_os("HETRACE_CUPTI").map(PathBuf::from);
    let in_toolkit = || {
        let folders = ["usr/local/cuda/extras/CUPTI/lib64", "usr/local/cuda/lib64"];
        let mut all =
            folders.iter().flat_map(|f| std::fs::read_dir(root.join(f)).into_iter().flatten().flatten());
        all.find(|e| e.file_name().to_string_lossy().starts_with("libcupti.so.")).map(|e| e.path())
    };
    match by_setting.or(by_name).or_else(in_toolkit) {
        Some(path) => {
            let says = format!("{} (programs that bring one of their own use that)", path.display());
            Finding::fine("CUPTI", says)
        }
        None => Finding::fine(
            "CUPTI",
            "not on this machine's paths; where a program brings none either, events time its commands",
        )
        .with("pip install nvidia-cuda-cupti-cu12 (or nvidia-cuda-cupti for CUDA 13), or HETRACE_CUPTI=path"),
    }
}

/// Tracing needs no privilege, counters inside the device do.
fn counters(root: &Path, privileged: bool) -> Option<Finding> {
    let params = read(root, "proc/driver/nvidia/params")?;
    let restricted = params.lines().any(|l| l.replace(' ', "") == "RmProfilingAdminOnly:1");
    if !restricted || privileged {
        return Some(Finding::fine("GPU counters", "everything is allowed"));
    }
    let says = "for administrators only: times of commands work, counters of the device do not";
    let mend = "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' \
                > /etc/modprobe.d/nvidia-profiling.conf, then reload the module or reboot";
    Some(Finding::fine("GPU counters", says).with(mend))
}

fn telemetry() -> Finding {
    match hetrace_session::find_library("libnvidia-ml.so.1") {
        Some(path) => Finding::fine("NVML", format!("{}: run --sample works", path.display())),
        None => Finding::fine("NVML", "no libnvidia-ml.so.1: run --sample has nothing to read").with(
            "install the driver's libraries (Debian: libnvidia-ml1; in a container: capability utility)",
        ),
    }
}

/// Tools that have put themselves into every CUDA program.
fn others(variable: impl Fn(&str) -> Option<String>) -> Vec<Finding> {
    let tools = ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"];
    let set = tools.iter().filter_map(|name| Some((name, variable(name).filter(|v| !v.is_empty())?)));
    set.map(|(name, value)| {
        let says = format!("{name}={value}: another tool is in each program; it is left alone");
        Finding::fine("other tools", says).with(format!("unset {name} if it was left behind"))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let cuda = Path::new("/lib/libcuda.so.1");
        assert_eq!(driver(root.path(), None).says, "none here");
        assert!(driver(root.path(), Some(cuda)).mend.is_some());
        put(
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release\n",
        );
        put("proc/driver/nvidia/gpus/0000:19:00.0/information", "");
        assert_eq!(driver(root.path(), Some(cuda)).says, "580.82.07, 1 GPUs; /lib/libcuda.so.1");
        assert!(!driver(root.path(), None).works, "a module without libraries is of no use");

        assert!(counters(root.path(), false).is_none(), "unknown is not said");
        put("proc/driver/nvidia/params", "EnableMSI: 1\nRmProfilingAdminOnly: 1\n");
        assert!(
            counters(root.path(), false)
                .unwrap()
                .mend
                .unwrap()
                .contains("NVreg_RestrictProfilingToAdminUsers=0")
        );
        assert!(counters(root.path(), true).unwrap().mend.is_none());
        put("usr/local/cuda/version.json", r#"{"cuda": {"name": "CUDA SDK", "version": "13.0.1"}}"#);
        assert!(toolkit(root.path()).unwrap().says.starts_with("13.0.1"));
        put("usr/local/cuda/lib64/libcupti.so.13", "");
        assert!(collector(root.path()).says.contains("libcupti.so."));
    }

    #[test]
    fn other_tools_are_named() {
        let set = |name: &str| (name == "CUDA_INJECTION64_PATH").then(|| "/opt/tool.so".to_owned());
        let found = others(set);
        assert_eq!(found.len(), 1);
        assert!(found[0].says.contains("/opt/tool.so"));
    }
}
