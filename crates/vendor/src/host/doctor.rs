//! Whether the host has what every trace needs: shared memory and a clock; and what `--sample` can say of it.

use crate::doctor::{Finding, Machine};

/// Memory and clock, and what can be sampled.
pub(super) fn findings(machine: &Machine<'_>) -> Vec<Finding> {
    let findings = vec![memory(machine), clock(machine)];
    #[cfg(feature = "telemetry")]
    let findings = [findings, vec![sampled(machine)]].concat();
    findings
}

fn memory(machine: &Machine<'_>) -> Finding {
    let probe = machine.root.join("dev/shm").join(format!("hetrace-probe-{}", std::process::id()));
    let made = std::fs::create_dir(&probe);
    let _ = std::fs::remove_dir(&probe);
    match made {
        Ok(()) => Finding::fine("shared memory", "/dev/shm is writable"),
        Err(e) => Finding::failed("shared memory", format!("/dev/shm: {e}"))
            .with("mount -t tmpfs tmpfs /dev/shm (in a container: --shm-size)"),
    }
}

fn clock(machine: &Machine<'_>) -> Finding {
    let info = machine.read("proc/cpuinfo").unwrap_or_default();
    let steady = !cfg!(target_arch = "x86_64") || info.contains("constant_tsc");
    let source = machine.read("sys/devices/system/clocksource/clocksource0/current_clocksource");
    let counter = match steady {
        true => "runs at a constant rate",
        false => "may change its rate: times may be off, by at most the clock error that the trace reports",
    };
    let source = source.unwrap_or_default();
    Finding::fine("clock", format!("time stamp counter {counter}; the kernel uses {}", source.trim()))
}

/// What `--sample` says of the host. Less than all is no failure.
#[cfg(feature = "telemetry")]
fn sampled(machine: &Machine<'_>) -> Finding {
    use crate::telemetry::Source;
    let host = super::source::Host::open(machine.root);
    let parts = host.devices().iter().filter(|device| !device.name.starts_with("CPU "));
    let mut parts: Vec<String> = parts.map(|device| device.name.clone()).collect();
    let processors = host.devices().len() - parts.len();
    parts.insert(1, format!("{processors} CPU{}", if processors == 1 { "" } else { "s" }));
    let missing = host.missing();
    let without = if missing.is_empty() { String::new() } else { format!("; {}", missing.join("; ")) };
    let finding = Finding::fine("--sample, the host", format!("{}{without}", parts.join(", ")));
    match host.is_refused() {
        true => finding.with(super::source::ALLOW),
        false => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_read_from_its_files() {
        let root = tempfile::tempdir().unwrap();
        let machine =
            Machine { root: root.path(), privileged: false, library: &|_| None, variable: &|_| None };
        let missing = memory(&machine);
        assert!(!missing.works && missing.fix.unwrap().contains("tmpfs"), "{}", missing.says);
        std::fs::create_dir_all(root.path().join("dev/shm")).unwrap();
        assert!(memory(&machine).works);
        assert_eq!(std::fs::read_dir(root.path().join("dev/shm")).unwrap().count(), 0, "nothing is left");
        let folder = root.path().join("sys/devices/system/clocksource/clocksource0");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("current_clocksource"), "tsc\n").unwrap();
        std::fs::create_dir(root.path().join("proc")).unwrap();
        #[cfg(feature = "telemetry")]
        {
            let sampled = sampled(&machine);
            assert!(sampled.works && sampled.fix.is_none());
            assert!(
                sampled.says.starts_with("host, 0 CPUs; no use of processors: proc/stat: "),
                "{}",
                sampled.says
            );
        }
        std::fs::write(root.path().join("proc/cpuinfo"), "flags : constant_tsc\n").unwrap();
        assert_eq!(clock(&machine).says, "time stamp counter runs at a constant rate; the kernel uses tsc");
    }
}
