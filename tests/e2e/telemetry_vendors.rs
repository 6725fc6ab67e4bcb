//! `--sample` of AMD's and Intel's GPUs, with a ROCm SMI and a sysman of our own: how their values come into the trace.

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::bed::{Done, run};
use hetrace_tests::sampled::{Event, babeltrace, manifest, of};
use hetrace_tests::{hetrace, programs};

/// Runs a program with telemetry, without NVIDIA's.
fn sample(folder: &Path, given: (&str, &Path), variables: &[(&str, &str)], line: &[&str]) -> Done {
    let mut command = Command::new(hetrace());
    command.args(["run", "--sample", "10ms", "--nvml", "/nowhere/libnvidia-ml.so.1", given.0]).arg(given.1);
    command.envs(variables.iter().copied()).arg("-o").arg(folder).arg("--").args(line);
    run(&mut command)
}

fn rocm_smi() -> PathBuf {
    programs().join("librocm_smi64.so")
}

fn sysman() -> PathBuf {
    programs().join("sysman/libze_loader.so.1")
}

/// All values of a field, in order.
fn values(events: &[Event], name: &str, device: u64, field: &str) -> Vec<u64> {
    of(events, name, device).iter().map(|event| event.number(field)).collect()
}

/// The same value in all events of a kind, of which there are some.
fn always(events: &[Event], name: &str, device: u64, field: &str) -> u64 {
    let all = values(events, name, device, field);
    assert!(!all.is_empty() && all.iter().all(|value| *value == all[0]), "{name} {field}: {all:?}");
    all[0]
}

/// Values that count one up with each query, from the second on, as the first of all finds out that it works.
fn counts(events: &[Event], name: &str, device: u64, field: &str, value: impl Fn(u64) -> u64) {
    let seen = values(events, name, device, field);
    let expected: Vec<u64> = (1..=seen.len() as u64).map(value).collect();
    assert!(!seen.is_empty() && seen == expected, "{name} {field}: {seen:?} and not {expected:?}");
}

#[test]
fn rocm_smi_is_read_in_its_units() {
    for version in ["5", "6", "7"] {
        let scratch = tempfile::tempdir().expect("scratch");
        let folder = scratch.path().join("t");
        let variables = [("FAKE_ROCM_SMI_VERSION", version)];
        let done = sample(&folder, ("--rocm-smi", &rocm_smi()), &variables, &["sleep", "0.3"]);
        assert_eq!(done.status, 0, "{}", done.err);
        let events = babeltrace(&folder);
        for device in 0..2 {
            let [who] = of(&events, "telemetry:device", device)[..] else { panic!("one event each") };
            let letter = ["A", "B"][device as usize];
            assert_eq!(who.fields["name"], format!("Fake Instinct {letter}"));
            assert_eq!(who.fields["uuid"], format!("GPU-abcdef000000000{device}"));
            assert_eq!(who.fields["pci"], "00000001:c1:03.0");
            assert_eq!((&*who.fields["source"], &*who.fields["driver"]), ("rocm-smi", "6.8.5"));
            assert_eq!(who.number("power_limit"), 560_000);
            assert_eq!(always(&events, "telemetry:utilization", device, "gpu"), 90 + device);
        }
        counts(&events, "telemetry:power", 0, "milliwatts", |n| 100_000 + n);
        counts(&events, "telemetry:power", 1, "milliwatts", |n| 50_000 + n);
        counts(&events, "telemetry:energy", 0, "millijoules", |n| 1000 * n);
        counts(&events, "telemetry:clocks", 0, "sm", |n| 2000 + n);
        counts(&events, "telemetry:memory", 0, "used", |n| n << 20);
        // Its first query failed.
        counts(&events, "telemetry:memory", 1, "used", |n| (n + 1) << 20);
        assert_eq!(always(&events, "telemetry:clocks", 1, "memory"), 1600);
        assert_eq!(always(&events, "telemetry:memory", 1, "total"), 65 << 30);
        assert_eq!(always(&events, "telemetry:utilization", 0, "memory"), 40);
        assert_eq!(always(&events, "telemetry:temperature", 0, "celsius"), 71);
        assert_eq!(always(&events, "telemetry:temperature", 1, "celsius"), 40);
        assert!(of(&events, "telemetry:energy", 1).is_empty(), "it has no such counter");

        let telemetry = &manifest(&folder)["telemetry"];
        let sources = telemetry["sources"].as_array().expect("sources");
        let source = sources.iter().find(|s| s["name"] == "rocm-smi").expect("the source");
        assert!(source["missing"][0].as_str().is_some_and(|says| says.contains("GPU 1")), "{source}");
        let energy = &telemetry["devices"][1]["quantities"];
        let energy =
            energy.as_array().expect("a list").iter().find(|q| q["quantity"] == "energy").expect("it");
        assert!(energy["unavailable"].as_str().is_some_and(|w| w.starts_with("RSMI_STATUS_NOT_SUPPORTED")));
    }
}

#[test]
fn sysmans_counters_become_rates() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let done = sample(&folder, ("--sysman", &sysman()), &[], &["sleep", "0.4"]);
    assert_eq!(done.status, 0, "{}", done.err);
    let events = babeltrace(&folder);
    let [who] = of(&events, "telemetry:device", 0)[..] else { panic!("one device event") };
    assert_eq!((&*who.fields["name"], &*who.fields["driver"]), ("Fake Max", "1.6.32567"));
    assert_eq!(who.fields["uuid"], "GPU-86000000-0000-0000-0000-00000000007f");
    assert_eq!((&*who.fields["pci"], &*who.fields["power"]), ("00000002:9a:10.1", "interval"));
    assert_eq!(who.number("power_limit"), 600_000);
    // Energy is asked for twice a sweep, by itself and for power, in either order.
    assert!(values(&events, "telemetry:energy", 0, "millijoules").iter().all(|e| e % 2500 == 0));
    assert_eq!(always(&events, "telemetry:power", 0, "milliwatts"), 250_000);
    assert_eq!(always(&events, "telemetry:utilization", 0, "gpu"), 75);
    let memory = values(&events, "telemetry:utilization", 0, "memory");
    assert!(memory.iter().all(|percent| *percent == 40), "both modules of memory: {memory:?}");
    for (field, mhz) in [("sm", 1600), ("memory", 0), ("graphics", 0), ("video", 900)] {
        assert_eq!(always(&events, "telemetry:clocks", 0, field), mhz, "{field}");
    }
    for (field, gib) in [("used", 8), ("free", 120), ("total", 128)] {
        assert_eq!(always(&events, "telemetry:memory", 0, field), gib << 30, "{field}");
    }
    assert_eq!(always(&events, "telemetry:temperature", 0, "celsius"), 67);
    assert_eq!(always(&events, "telemetry:pcie", 0, "tx"), 500_000_000);
    assert_eq!(always(&events, "telemetry:pcie", 0, "rx"), 250_000_000);
    for event in of(&events, "telemetry:nvlink", 0) {
        // Two ports, 2 MiB out and 1 MiB in between two queries.
        let rate = |mib: u64| (mib << 20) * 1_000_000_000 / event.number("interval");
        assert_eq!((event.number("tx"), event.number("rx")), (rate(4), rate(2)), "{event:?}");
    }
    let reasons = of(&events, "telemetry:throttle", 0);
    let names: Vec<&str> = reasons.iter().map(|event| &*event.fields["names"]).collect();
    assert_eq!(names.last(), Some(&"HW_THERMAL_SLOWDOWN"), "{names:?}");
}

#[test]
fn what_a_device_lacks_is_said_and_the_rest_is_there() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let done = sample(&folder, ("--sysman", &sysman()), &[("FAKE_SYSMAN_BARE", "1")], &["sleep", "0.2"]);
    assert_eq!(done.status, 0, "{}", done.err);
    let events = babeltrace(&folder);
    assert_eq!(always(&events, "telemetry:power", 0, "milliwatts"), 250_000);
    assert_eq!(always(&events, "telemetry:clocks", 0, "video"), 0);
    assert!(
        of(&events, "telemetry:temperature", 0).is_empty() && of(&events, "telemetry:nvlink", 0).is_empty()
    );
    let telemetry = &manifest(&folder)["telemetry"];
    let sources = telemetry["sources"].as_array().expect("sources");
    let source = sources.iter().find(|s| s["name"] == "sysman").expect("the source");
    assert!(source["missing"][0].as_str().is_some_and(|says| says.contains("0 % of use stands for it")));
    let lacks = telemetry["devices"][0]["quantities"].as_array().expect("a list");
    let lacks = lacks.iter().filter(|q| q["unavailable"] == "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE");
    let lacks: Vec<_> = lacks.filter_map(|q| q["quantity"].as_str()).collect();
    assert_eq!(lacks, ["temperature", "nvlink"]);
}

#[test]
fn libraries_that_do_not_start_are_one_line_with_what_to_do() {
    let cases: [(&str, &Path, (&str, &str), &str); 3] = [
        ("--rocm-smi", &rocm_smi(), ("FAKE_ROCM_SMI_FAIL", "8"), "RSMI_STATUS_INIT_ERROR, status 8"),
        ("--sysman", &sysman(), ("FAKE_SYSMAN_FAIL", "0x70010000"), "INSUFFICIENT_PERMISSIONS"),
        // The driver is not installed, or nothing is asked for it.
        ("--sysman", &sysman(), ("FAKE_SYSMAN_FAIL", "0x78000001"), "is Intel's driver installed"),
    ];
    let scratch = tempfile::tempdir().expect("scratch");
    for (at, (option, library, variable, says)) in cases.into_iter().enumerate() {
        let folder = scratch.path().join(at.to_string());
        let done = sample(&folder, (option, library), &[variable], &["sh", "-c", "exit 3"]);
        assert_eq!(done.status, 3, "{}", done.err);
        let lines: Vec<&str> = done.err.lines().filter(|line| line.contains("does not start")).collect();
        let [line] = lines[..] else { panic!("one line: {}", done.err) };
        assert!(line.contains("no GPU telemetry") && line.contains(says), "{line}");
    }
}

#[test]
fn real_libraries_without_a_device_say_so() {
    // ROCm SMI of Debian, and its loader of Level Zero, which is too old to have sysman without the variable of its own.
    let libraries = [
        ("--rocm-smi", "/usr/lib/librocm_smi64.so.1", ["finds no GPU", "does not start"]),
        (
            "--sysman",
            "/usr/lib/x86_64-linux-gnu/libze_loader.so.1",
            ["too old (no zesInit)", "does not start"],
        ),
    ];
    let scratch = tempfile::tempdir().expect("scratch");
    for (option, library, says) in libraries {
        if !Path::new(library).exists() {
            eprintln!("SKIPPED: no {library} here (scripts/install-deps.sh)");
            continue;
        }
        let folder = scratch.path().join(option);
        let done = sample(&folder, (option, Path::new(library)), &[], &["true"]);
        assert_eq!(done.status, 0, "{}", done.err);
        let has = |line: &str| says.iter().any(|says| line.contains(says));
        let lines: Vec<&str> =
            done.err.lines().filter(|l| l.contains("no GPU telemetry") && has(l)).collect();
        assert_eq!(lines.len(), 1, "{}", done.err);
    }
}

#[test]
fn vendors_that_the_machine_has_not_are_not_named() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let mut command = Command::new(hetrace());
    command.args(["run", "--sample", "10ms", "--nvml", "/nowhere/libnvidia-ml.so.1", "-o"]).arg(&folder);
    let done = run(command.args(["--", "true"]));
    let gpus = ["0x1002", "0x8086"].map(|vendor| {
        let devices = std::fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten();
        let text = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        devices.map(|device| device.path()).any(|device| {
            let class = text(device.join("class"));
            let is_gpu = class.starts_with("0x03") || class.starts_with("0x12");
            is_gpu && text(device.join("vendor")).trim() == vendor
        })
    });
    let telemetry = &manifest(&folder)["telemetry"];
    let sources = telemetry["sources"].as_array().expect("sources").iter();
    let names: Vec<&str> = sources.filter_map(|source| source["name"].as_str()).collect();
    assert_eq!([names.contains(&"rocm-smi"), names.contains(&"sysman")], gpus, "{names:?} {}", done.err);
}
