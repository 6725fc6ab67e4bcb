//! `--sample`, with an NVML of our own: two devices whose values are known; and the host, whose values are held
//! against what the kernel says to the program itself.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use hetrace_tests::bed::{Done, run};
use hetrace_tests::sampled::{Event, babeltrace, manifest, of};
use hetrace_tests::{hetrace, programs};
use serde_json::Value;

/// Runs a command line with telemetry from the fake NVML.
fn sample(folder: &Path, options: &[&str], line: &[&str]) -> Done {
    let mut command = Command::new(hetrace());
    command.arg("run").args(options).arg("-o").arg(folder).arg("--").args(line);
    run(command.env("LD_LIBRARY_PATH", programs().join("nvml")))
}

/// A program that ends when so many bytes of samples are written: as late as the machine makes it.
fn until_sampled(folder: &Path, bytes: u64) -> String {
    let stream = folder.join("telemetry-1");
    let size = format!("cat '{}'* 2>/dev/null | wc -c", stream.display());
    format!("until [ $({size}) -gt {bytes} ]; do sleep 0.05; done")
}

#[test]
fn samples_are_in_the_trace_with_the_right_values() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let done = sample(&folder, &["--sample", "10ms"], &["sleep", "0.4"]);
    assert_eq!(done.status, 0, "{}", done.err);
    let events = babeltrace(&folder);
    assert!(events.windows(2).all(|w| w[0].time <= w[1].time));

    for (device, letter, bus, power) in [(0, 'A', "1B", "instant"), (1, 'B', "1C", "driver")] {
        let [who] = of(&events, "telemetry:device", device)[..] else { panic!("one device event each") };
        assert_eq!(who.fields["uuid"], format!("GPU-00000000-0000-0000-0000-00000000000{device}"));
        assert_eq!(who.fields["name"], format!("Fake GPU {letter}"));
        assert_eq!(who.fields["pci"], format!("00000000:{bus}:00.0"));
        assert_eq!(who.fields["driver"], "580.95.05");
        assert_eq!(who.fields["power"], power);
        assert!(of(&events, "telemetry:power", device).len() >= 2);
    }
    // Each query counts one up; the first of all has found out that it works.
    let expect = |event: &str, device, field: &str, value: &dyn Fn(u64) -> u64| {
        let seen: Vec<u64> = of(&events, event, device).iter().map(|e| e.number(field)).collect();
        let expected: Vec<u64> = (1..=seen.len() as u64).map(value).collect();
        assert_eq!(seen, expected, "{event} {field}");
    };
    expect("telemetry:power", 0, "milliwatts", &|n| 100_001 + n);
    expect("telemetry:power", 1, "milliwatts", &|n| 50_000 + n);
    expect("telemetry:energy", 0, "millijoules", &|n| 1000 * n);
    expect("telemetry:clocks", 0, "sm", &|n| 2000 + n);
    expect("telemetry:clocks", 1, "video", &|_| 0);
    expect("telemetry:memory", 0, "used", &|n| n << 20);
    // Its first query failed.
    expect("telemetry:memory", 1, "used", &|n| (n + 1) << 20);
    expect("telemetry:utilization", 1, "gpu", &|_| 91);
    expect("telemetry:temperature", 1, "celsius", &|_| 41);
    assert!(of(&events, "telemetry:energy", 1).is_empty());
    assert!(of(&events, "telemetry:nvlink", 1).is_empty());
}

#[test]
fn traffic_is_in_bytes_per_second() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    sample(&folder, &["--sample", "10ms", "--compress"], &["sleep", "0.4"]);
    for entry in std::fs::read_dir(&folder).expect("a trace") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|e| e == "zst") {
            assert_eq!(run(Command::new("zstd").args(["-q", "-d", "--rm"]).arg(&path)).status, 0);
        }
    }
    let events = babeltrace(&folder);
    let links = of(&events, "telemetry:nvlink", 0);
    assert!(!links.is_empty());
    for event in links {
        // 1 MiB between two queries, however far apart they are, rounded down to whole bytes per second.
        let rate = |mib: u64| (mib << 20) * 1_000_000_000 / event.number("interval");
        assert_eq!((event.number("tx"), event.number("rx")), (rate(1), rate(2)), "{event:?}");
    }
    let (slow, quick) = (of(&events, "telemetry:pcie", 0), of(&events, "telemetry:pcie", 1));
    for event in slow.iter().chain(&quick) {
        assert_eq!((event.number("tx"), event.number("rx")), (2_000_000, 3_000_000));
    }
    // The fake driver sleeps 20 ms for each direction; how much more a query takes is the machine's doing.
    assert!(!slow.is_empty() && slow.iter().all(|e| e.number("took") >= 40_000_000), "{slow:?}");
    // A query is at the middle of the time that it took, and the next begins after its end.
    let half = |event: &Event| event.number("took") / 2;
    assert!(slow.windows(2).all(|w| w[1].time - w[0].time >= half(w[0]) + half(w[1])), "{slow:?}");
    // How long slow queries rest, and that the other device does not wait for them, is in the unit tests of
    // sampling, whose time is not real.
    assert!(!quick.is_empty());
}

#[test]
fn states_are_recorded_when_they_change_and_reasons_have_names() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    // Each sweep has some 400 bytes; the reasons change with the third and the sixth query.
    sample(&folder, &["--sample=10ms"], &["sh", "-c", &until_sampled(&folder, 40_000)]);
    let events = babeltrace(&folder);
    for device in 0..2 {
        let reasons = of(&events, "telemetry:throttle", device);
        let seen: Vec<(&str, &str)> =
            reasons.iter().map(|e| (&*e.fields["reasons"], &*e.fields["names"])).collect();
        let expected = [
            (r#"( "GPU_IDLE" : container = 0x1 )"#, "GPU_IDLE"),
            (r#"( "SW_POWER_CAP" : container = 0x4 )"#, "SW_POWER_CAP"),
            ("( <unknown> : container = 0x8024 )", "SW_POWER_CAP|SW_THERMAL_SLOWDOWN|0x8000"),
        ];
        assert_eq!(seen, expected);
        let states = of(&events, "telemetry:performance_state", device);
        assert_eq!(states.iter().map(|e| e.number("state")).collect::<Vec<_>>(), [8 * device]);
    }
}

#[test]
fn the_program_is_covered_from_before_its_start_to_after_its_end() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let line = "date +%s%N; sleep 0.2; date +%s%N";
    // One sweep before the start, one at once, and one after the end: no period is over.
    let done = sample(&folder, &["-q", "--sample", "60s"], &["sh", "-c", line]);
    let times: Vec<u64> = done.out.lines().map(|l| l.parse().expect("a time")).collect();
    let events = babeltrace(&folder);
    let energy = of(&events, "telemetry:energy", 0);
    assert_eq!(energy.iter().map(|e| e.number("millijoules")).collect::<Vec<_>>(), [1000, 2000, 3000]);
    assert!(energy[0].time < times[0] && times[1] < energy[2].time, "{times:?} in {energy:?}");
}

#[test]
fn the_manifest_names_what_is_not_to_be_had_and_what_sampling_cost() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let done = sample(&folder, &["--sample", "20ms"], &["sleep", "0.3"]);
    assert!(done.err.contains("records of 2 devices and the host"), "{}", done.err);
    let telemetry = &manifest(&folder)["telemetry"];
    assert_eq!(telemetry["period_ns"], 20_000_000);
    assert_eq!(telemetry["sources"][0]["name"], "nvml");
    assert_eq!(telemetry["sources"][0]["driver"], "580.95.05");
    let missing = |device: usize| -> Vec<&str> {
        let all = telemetry["devices"][device]["quantities"].as_array().expect("quantities");
        assert_eq!(all.len(), 10);
        let missing = all.iter().filter(|q| q["unavailable"].is_string());
        missing.filter_map(|q| q["quantity"].as_str()).collect()
    };
    assert!(missing(0).is_empty());
    assert_eq!(missing(1), ["energy", "nvlink"]);
    let bus = &telemetry["devices"][0]["quantities"][9];
    assert_eq!(bus["quantity"], "pcie");
    assert!(bus["every"].as_u64() >= Some(8) && bus["query_mean_ns"].as_u64() >= Some(40_000_000), "{bus}");
    let sampler = &telemetry["sampler"];
    for cost in ["opening_ns", "cpu_ns", "sweeps", "longest_sweep_ns"] {
        assert!(sampler[cost].as_u64() > Some(0), "{sampler}");
    }
    assert!(sampler["missed_periods"].is_u64());
    assert_eq!(telemetry["records"], babeltrace(&folder).len() as u64);
}

#[test]
fn without_the_library_the_program_runs_and_one_line_says_what_is_missing() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let mut command = Command::new(hetrace());
    command.args(["run", "-q", "--sample", "--nvml", "/nowhere/libnvidia-ml.so.1", "-o"]).arg(&folder);
    let done = run(command.args(["--", "sh", "-c", "echo ran; exit 3"]));
    assert_eq!((done.status, &*done.out), (3, "ran\n"));
    let lines: Vec<&str> = done.err.lines().filter(|l| l.contains("no GPU telemetry")).collect();
    let [line] = lines[..] else { panic!("one line: {}", done.err) };
    for part in ["/nowhere/libnvidia-ml.so.1", "install it with NVIDIA's driver"] {
        assert!(line.contains(part), "{line}");
    }
    let telemetry = &manifest(&folder)["telemetry"];
    assert!(telemetry["sources"][0]["error"].is_string(), "{telemetry}");
    // The host is sampled all the same.
    let events = babeltrace(&folder);
    let devices: Vec<&Event> = events.iter().filter(|e| e.name == "telemetry:device").collect();
    assert!(!devices.is_empty() && devices.iter().all(|d| d.fields["source"] == "host"), "{devices:?}");
    assert!(events.iter().all(|e| e.name != "telemetry:power"));
}

#[test]
fn a_driver_that_is_not_loaded_is_distinguished_from_a_missing_one() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (status, part) in
        [("9", "not loaded"), ("18", "different versions"), ("4", "/dev/nvidia"), ("999", "nvidia-smi")]
    {
        let folder = scratch.path().join(status);
        let mut command = Command::new(hetrace());
        command.env("FAKE_NVML_FAIL", status).env("HETRACE_SAMPLE", "10ms");
        command.env("HETRACE_NVML", programs().join("nvml/libnvidia-ml.so.1"));
        let done = run(command.arg("run").arg("-o").arg(&folder).args(["--", "true"]));
        assert_eq!(done.status, 0);
        assert!(done.err.contains("no GPU telemetry") && done.err.contains(part), "{}", done.err);
    }
}

#[test]
fn a_program_that_cannot_start_leaves_nothing() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    assert_eq!(sample(&folder, &["--sample", "1ms"], &["/does/not/exist"]).status, 127);
    assert!(!folder.exists());
}

#[test]
fn a_killed_launcher_loses_little() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    let mut command = Command::new(hetrace());
    command.args(["run", "-q", "--sample", "5ms", "-o"]).arg(&folder).args(["--", "sh", "-c"]);
    // It goes on when the launcher is killed, and ends when the folder is gone.
    command.arg(format!("while [ -d '{}' ]; do sleep 0.05; done", scratch.path().display()));
    command.env("LD_LIBRARY_PATH", programs().join("nvml")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut launcher = command.spawn().expect("hetrace");
    // What the first sweep has, and a packet of those that follow.
    let size = || std::fs::metadata(folder.join("telemetry-1")).map_or(0, |m| m.len());
    let mut first = 0;
    for _ in 0..60_000 {
        std::thread::sleep(Duration::from_millis(10));
        first = if first == 0 { size() } else { first };
        if first > 0 && size() > first {
            break;
        }
    }
    launcher.kill().expect("killed");
    launcher.wait().expect("buried");
    let events = babeltrace(&folder);
    assert!(of(&events, "telemetry:energy", 0).len() > 2);
    assert_eq!(manifest(&folder)["telemetry"]["devices"][1]["name"], "Fake GPU B");
}

/// What a run with `--sample` says of the host, as rows of the tally's JSON.
fn host_rows(folder: &Path, line: &[&str]) -> Vec<Value> {
    let mut command = Command::new(hetrace());
    command.args(["run", "-q", "--sample", "10ms", "--nvml", "/nowhere/libnvidia-ml.so.1", "-o"]);
    let done = run(command.arg(folder).arg("--").args(line));
    assert_eq!(done.status, 0, "{}", done.err);
    let done = run(Command::new(hetrace()).args(["tally", "--json"]).arg(folder));
    let tally: Value = serde_json::from_str(&done.out).expect("JSON");
    tally["host_telemetry"].as_array().expect("rows").clone()
}

fn host_row<'r>(rows: &'r [Value], device: &str, quantity: &str, value: &str) -> &'r Value {
    let wanted =
        |row: &&Value| row["device"] == device && row["quantity"] == quantity && row["value"] == value;
    rows.iter().find(wanted).unwrap_or_else(|| panic!("no {device} {quantity} {value} in {rows:?}"))
}

#[test]
fn a_busy_program_shows_its_processor_time_and_its_memory() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    // A second of processor time and 200 MB, in a child of the program, however long that takes.
    let spin = "import time; b = bytearray(b'x') * 200_000_000\nwhile time.process_time() < 1: pass";
    let script = format!("python3 -c \"$(printf \"{spin}\")\"; true");
    let rows = host_rows(&folder, &["sh", "-c", &script]);
    let resident = host_row(&rows, "host", "resident", "bytes")["max"].as_f64().expect("a number");
    assert!((200e6..2e9).contains(&resident), "{resident}");
    let memory =
        |value: &str| host_row(&rows, "host", "host_memory", value)["mean"].as_f64().expect("a number");
    assert!(memory("used") > 0.0 && memory("used") + memory("available") < memory("total") * 1.001);
    // Thousandths of a processor by nanoseconds: at least the second that the program took, as ticks show it.
    let events = babeltrace(&folder);
    let all = of(&events, "telemetry:cpu", 0);
    let spent: u64 = all.iter().map(|e| (e.number("user") + e.number("system")) * e.number("interval")).sum();
    assert!(spent as f64 / 1e12 > 0.7, "{spent}");
    let online = std::thread::available_parallelism().expect("processors").get() as u64;
    let listed = std::fs::read_to_string("/proc/stat").expect("processors");
    let online = online.max(listed.lines().filter(|l| l.starts_with("cpu")).count() as u64 - 1);
    for event in all {
        let sum: u64 = ["user", "system", "iowait", "steal"].iter().map(|f| event.number(f)).sum();
        assert!(sum <= 1000 * online, "more than there is: {event:?}");
    }
}

/// Bytes written to each disk since the machine's start.
fn written(diskstats: &str) -> HashMap<String, u64> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        Some(((*words.get(2)?).to_owned(), words.get(9)?.parse::<u64>().ok()? * 512))
    };
    diskstats.lines().filter_map(row).collect()
}

#[test]
fn what_a_program_writes_to_a_disk_is_seen() {
    let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("scratch");
    let at = |name: &str| scratch.path().join(name);
    let now = || written(&std::fs::read_to_string("/proc/diskstats").unwrap_or_default());
    let before = now();
    let script = format!(
        "cat /proc/diskstats > '{0}/a'; dd if=/dev/zero of='{0}/file' bs=1M count=32 conv=fsync 2>&1; \
         cat /proc/diskstats > '{0}/b'",
        scratch.path().display()
    );
    let rows = host_rows(&at("t"), &["sh", "-c", &script]);
    let after = now();
    let inside = |name: &str| written(&std::fs::read_to_string(at(name)).expect("a file"));
    let (begin, end) = (inside("a"), inside("b"));
    let disks: Vec<&Value> =
        rows.iter().filter(|row| row["quantity"] == "disk" && row["value"] == "written").collect();
    for row in &disks {
        let name = row["device"].as_str().and_then(|name| name.strip_prefix("disk ")).expect("a disk");
        let total = row["total"].as_f64().expect("bytes");
        // Rates are whole bytes per second.
        let (least, most) = (end[name] - begin[name], after[name] - before[name]);
        assert!(
            total >= least as f64 - 1000.0 && total <= most as f64 + 1000.0,
            "{name}: {least} {total} {most}"
        );
    }
    // A machine may have none (a container's files may be in memory), but then none is listed.
    let listed = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = listed.filter_map(|e| e.file_name().into_string().ok());
    let real =
        names.filter(|n| before.contains_key(n) && !["loop", "ram", "zram"].iter().any(|k| n.starts_with(k)));
    assert_eq!(disks.len(), real.count());
}

#[test]
fn what_the_machine_lacks_is_named_once_and_is_no_error() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("t");
    host_rows(&folder, &["sleep", "0.1"]);
    let telemetry = &manifest(&folder)["telemetry"];
    let source = telemetry["sources"].as_array().expect("sources").iter().find(|s| s["name"] == "host");
    let source = source.expect("the host");
    assert!(source["error"].is_null(), "{source}");
    let missing = source["missing"].as_array().map(Vec::as_slice).unwrap_or_default();
    let about =
        |what: &str| missing.iter().filter(|m| m.as_str().is_some_and(|m| m.starts_with(what))).count();
    let has = |path: &str| std::path::Path::new(path).exists();
    let frequency = has("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq");
    assert_eq!(about("no frequency"), usize::from(!frequency), "{missing:?}");
    assert_eq!(about("no use of processors"), 0, "{missing:?}");
    let doctor = run(Command::new(hetrace()).arg("doctor"));
    for line in missing {
        assert!(doctor.out.contains(line.as_str().expect("a text")), "{line}: {}", doctor.out);
    }
    // The timeline and the other exports have it, too.
    let file = scratch.path().join("x.json");
    let done =
        run(Command::new(hetrace()).args(["export", "-f", "chrome"]).arg(&folder).arg("-o").arg(&file));
    assert_eq!(done.status, 0, "{}", done.err);
    assert!(std::fs::read_to_string(&file).expect("a file").contains("host: host_memory [B]"));
}
