//! Programs that share a device (CLUST, section 4.7.2): `why` says which one waited for which. The fake driver's devices
//! do one thing at a time, for all processes that share them, as a GPU without MPS does.

#[path = "cuda/run.rs"]
mod fake_run;

use std::process::Command;

use fake_run::run_command;
use hetrace_tests::bed::{program, run};
use hetrace_tests::{Platform, fake, hetrace};
use serde_json::Value;

/// A second of kernels in the first process, enqueued before the second process wants `device`. Returns what `why` says.
fn two_programs(device: &str) -> Value {
    let devices = tempfile::NamedTempFile::new().expect("a file");
    devices.as_file().set_len(64).expect("room for eight devices");
    let environment = [("FAKE_CUDA_SHARED", devices.path().to_str().expect("a path in UTF-8"))];
    let work = fake::program("work");
    let work = work.display();
    let line = format!("{work} shared first | {work} shared second {device}");
    let recorded = run_command(&["--buffer", "8192"], "auto", &["sh", "-c", &line], &environment);
    assert_eq!(recorded.done.status, 0, "{}", recorded.done.err);
    assert_eq!(recorded.ops().len(), 105, "kernels");
    let mut why = Command::new(hetrace());
    let done = run(why.args(["why", "--json"]).arg(recorded.scratch.path().join("trace")));
    assert_eq!(done.status, 0, "{}", done.err);
    serde_json::from_str(&done.out).expect("JSON")
}

/// What is said of sharing: who waited, for whom, how many commands, for how long.
fn shared(report: &Value) -> Vec<(String, String, u64, u64)> {
    let devices = report["devices"].as_array().expect("devices").iter();
    let rows = devices.flat_map(|device| device["shared"].as_array().cloned().unwrap_or_default());
    let text = |row: &Value, what: &str| row[what].as_str().expect("text").to_owned();
    let number = |row: &Value, what: &str| row[what].as_u64().expect("a number");
    rows.map(|r| (text(&r, "process"), text(&r, "other"), number(&r, "commands"), number(&r, "ns"))).collect()
}

#[test]
fn a_program_that_waits_for_another_ones_kernels_is_named() {
    let report = two_programs("0");
    let rows = shared(&report);
    let [(process, other, commands, ns)] = rows.as_slice() else { panic!("{rows:?}: {report:#}") };
    assert_ne!(process, other);
    assert!(process.contains("work") && other.contains("work"), "{process} {other}");
    assert_eq!(*commands, 1, "the others came when the device was free");
    // Most of the second that the first one's kernels take; how much, a busy machine decides.
    assert!((1_000_000..1_001_000_000).contains(ns), "{ns}");
    let verdict = report["verdict"]["text"].as_str().expect("a verdict");
    assert!(verdict.contains("off the device"), "{verdict}");
}

#[test]
fn programs_on_devices_of_their_own_do_not_wait_for_each_other() {
    let report = two_programs("1");
    assert_eq!(shared(&report), [], "{report:#}");
}

/// Of OpenCL it is asked for; other ways to know that two processes have the same device there are not.
#[test]
fn a_device_of_opencl_is_the_same_one_in_all_processes_by_its_uuid() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let trace = scratch.path().join("trace");
    let devices = |layer: &str| {
        let _ = std::fs::remove_dir_all(&trace);
        let work = format!("{0} launch:3 && {0} launch:3", program("windows").display());
        let mut line = Command::new(hetrace());
        line.args(["run", "-q", "-o"]).arg(&trace).args(["--", "sh", "-c", &work]);
        line.envs(Platform::Pocl.environment(scratch.path())).env("OPENCL_LAYERS", layer);
        let done = run(&mut line);
        assert_eq!(done.status, 0, "{}", done.err);
        let why = run(Command::new(hetrace()).args(["why", "--json"]).arg(&trace));
        let report: Value = serde_json::from_str(&why.out).expect("JSON");
        let devices = report["devices"].as_array().expect("devices").iter();
        devices.map(|device| device["uuid"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(devices(""), ["", ""]);
    let layer = program("identity.so");
    assert_eq!(devices(layer.to_str().expect("a path")), ["00010203-0405-0607-0809-0a0b0c0d0e0f"]);
}
