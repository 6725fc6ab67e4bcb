//! When triggers fire.

use hetrace_format::telemetry::{HOST, Quantity, Sample, VALUES};
use hetrace_model::layout::entry_id;

use super::super::CallRecord;
use super::*;
use crate::manifest::{Exit, Fired, QuantityReport, Telemetry, TelemetryDevice};
use crate::output::Identity;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

fn record(watch: &mut Watch, id: u16, time: u64, body: &[u8]) {
    let who = Identity { pid: 7, tid: 8, name: *b"worker\0\0\0\0\0\0\0\0\0\0" };
    assert!(!watch.is_about(0, id), "another API");
    if watch.is_about(1, id) {
        watch.call(CallRecord { api: 1, id, time, image: 3, who: &who, body });
    }
    watch.saw(time);
}

fn call(watch: &mut Watch, function: usize, (begin, end): (u64, u64), entry: &[u8], exit: &[u8]) {
    record(watch, entry_id(function), begin, entry);
    record(watch, entry_id(function) + 1, end, exit);
}

fn finish(watch: &mut Watch, begin: u64, end: u64, result: i32) {
    call(watch, FINISH, (begin, end), &[], &result.to_le_bytes());
}

fn read(watch: &mut Watch, time: u64, label: &str, size: u64) {
    let mut entry = label.as_bytes().to_vec();
    entry.push(0);
    entry.extend(size.to_le_bytes());
    entry.extend([0; 16]);
    call(watch, READ, (time, time + 1), &entry, &0i32.to_le_bytes());
}

/// Takes what fired.
fn fired(watch: &mut Watch) -> Vec<Fired> {
    watch.take(0)
}

fn count(watch: &Watch) -> u64 {
    watch.accounts()[0].fired
}

#[test]
fn a_long_call_fires() {
    let mut watch = watch("toyFinish.duration > 2ms");
    finish(&mut watch, S, S + 2 * MS, 0);
    assert!(!watch.is_pending());
    finish(&mut watch, 2 * S, 2 * S + 3 * MS, 0);
    read(&mut watch, 2 * S + 4 * MS, "x", 5);
    let all = fired(&mut watch);
    assert_eq!(all.len(), 1);
    let Fired { trigger, time_ns, pid, tid, thread, api, function, value, again } = &all[0];
    assert_eq!(trigger, "toyFinish.duration > 2ms");
    assert_eq!((*time_ns, *pid, *tid), (2 * S + 3 * MS, Some(7), Some(8)));
    assert_eq!((thread.as_str(), api.as_str(), function.as_str()), ("worker", "toy", "toyFinish"));
    assert_eq!((value.as_str(), *again), ("toyFinish.duration = 3 ms", 0));
}

#[test]
fn results_are_codes_wherever_they_are() {
    let mut watch = watch("result != 0");
    finish(&mut watch, 1, 2, 0);
    // What it makes is no code.
    let mut made = 0x55u64.to_le_bytes().to_vec();
    made.extend([0; 4]);
    call(&mut watch, MAKE, (3, 4), &[], &made);
    assert_eq!(count(&watch), 0);
    made[8..12].copy_from_slice(&(-1i32).to_le_bytes());
    call(&mut watch, MAKE, (5, 6), &[], &made);
    assert_eq!(count(&watch), 1);
    finish(&mut watch, 7, 8, 2);
    assert_eq!(count(&watch), 2);
    assert_eq!(fired(&mut watch)[0].value, "result = BAD (-1)");
    let mut named = super::watch("toy*.result == BAD");
    finish(&mut named, 1, 2, 2);
    assert_eq!(count(&named), 0);
    finish(&mut named, 1, 2, -1);
    assert_eq!(count(&named), 1);
}

#[test]
fn states_are_no_failures() {
    let mut watch = watch("failed");
    finish(&mut watch, 1, 2, 2);
    assert_eq!(count(&watch), 0);
    finish(&mut watch, 1, 2, -1);
    assert_eq!(fired(&mut watch)[0].value, "failed = BAD (-1)");
}

#[test]
fn arguments_are_numbers_and_texts() {
    let mut sizes = watch("toyRead.size > 1MiB");
    read(&mut sizes, 1, "a", 1 << 20);
    assert_eq!(count(&sizes), 0);
    read(&mut sizes, 3, "some text", (1 << 20) + 1);
    assert_eq!(fired(&mut sizes)[0].value, "toyRead.size = 1048577");
    let mut labels = watch("arg.label == \"ma*\" && !(size < 10)");
    read(&mut labels, 1, "main", 9);
    read(&mut labels, 1, "side", 11);
    assert_eq!(count(&labels), 0);
    read(&mut labels, 1, "main", 10);
    assert_eq!(count(&labels), 1);
    let mut bare = watch("name == toy* && size == 0x10");
    read(&mut bare, 1, "", 16);
    finish(&mut bare, 2, 3, 0);
    assert_eq!(count(&bare), 1);
}

#[test]
fn a_rate_fires_when_it_rises_above() {
    let mut watch = watch("toyFinish.rate > 10/s");
    let mut time = 100 * S;
    let mut several = |watch: &mut Watch, calls: u64, apart: u64| {
        for _ in 0..calls {
            time += apart;
            finish(watch, time, time + 1, 0);
        }
        time
    };
    several(&mut watch, 50, 110 * MS);
    assert_eq!(count(&watch), 0);
    let last = several(&mut watch, 1000, 2 * MS);
    assert_eq!(count(&watch), 1);
    watch.tick(last + 2 * S);
    several(&mut watch, 1, 3 * S);
    assert_eq!(count(&watch), 1);
    several(&mut watch, 30, MS);
    assert_eq!(count(&watch), 2);
    assert_eq!(fired(&mut watch)[0].value, "toyFinish.rate = 11/s");
}

#[test]
fn runs_of_polls_count_in_a_rate() {
    let mut watch = watch("toyFinish.rate > 10/s");
    let mut body = (50u64 | 1 << 63).to_le_bytes().to_vec();
    body.extend([0; 24]);
    record(&mut watch, entry_id(FINISH) + 2, S, &body);
    assert_eq!(count(&watch), 1);
}

#[test]
fn a_call_that_hangs_fires_once() {
    let mut watch = watch("toyFinish.open > 10s");
    // Before the oldest thread of all that has this number: it is ours.
    let me = std::process::id();
    let who = Identity { pid: me, tid: me, name: *b"main\0\0\0\0\0\0\0\0\0\0\0\0" };
    let enter = |watch: &mut Watch, function: usize, time: u64| {
        let id = entry_id(function);
        if watch.is_about(1, id) {
            watch.call(CallRecord { api: 1, id, time, image: 3, who: &who, body: &[] });
        }
    };
    enter(&mut watch, READ, S);
    enter(&mut watch, FINISH, 2 * S);
    for seconds in 3..30 {
        watch.tick(seconds * S);
    }
    let all = fired(&mut watch);
    assert_eq!((all.len(), all[0].again, all[0].time_ns), (1, 0, 13 * S));
    assert_eq!((all[0].function.as_str(), all[0].value.as_str()), ("toyFinish", "toyFinish.open = 11 s"));
    assert_eq!(all[0].pid, Some(me.into()));
    // The process is gone, and another one hangs.
    watch.is_gone(3);
    watch.tick(40 * S);
    enter(&mut watch, FINISH, 41 * S);
    watch.tick(60 * S);
    assert_eq!(count(&watch), 2);
}

/// That its memory is gone may be seen before its end is.
#[test]
fn calls_that_the_program_ended_in_are_open_at_its_end() {
    for (ends, pid_of_end, expected) in [(true, 0, 1), (true, 1, 0), (false, 0, 0)] {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id();
        let mut watch = watch("crash && toyFinish.open > 0ns");
        let who = Identity { pid, tid: pid, name: *b"main\0\0\0\0\0\0\0\0\0\0\0\0" };
        let record = CallRecord { api: 1, id: entry_id(FINISH), time: S, image: 3, who: &who, body: &[] };
        watch.call(record);
        if ends {
            child.kill().unwrap();
            // As the launcher does, which has not asked for its status yet.
            while !std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
                std::thread::yield_now();
            }
        }
        // Or the process goes on as another program.
        watch.is_gone(3);
        watch.tick(2 * S);
        watch.end(Exit::Signal(9), pid + pid_of_end, 3 * S);
        assert_eq!(count(&watch), expected, "{ends} {pid_of_end}");
        let _ = child.kill();
        child.wait().unwrap();
    }
}

#[test]
fn a_thread_that_is_gone_does_not_hang() {
    let mut watch = watch("toyFinish.open > 10s");
    let who = Identity { pid: std::process::id(), tid: u32::MAX - 1, name: [0; 16] };
    let (id, body) = (entry_id(FINISH), &[]);
    watch.call(CallRecord { api: 1, id, time: S, image: 3, who: &who, body });
    watch.tick(60 * S);
    assert_eq!(count(&watch), 0);
}

#[test]
fn silence_fires_after_the_first_event() {
    let mut all = watch("idle > 10s");
    all.tick(100 * S);
    assert_eq!(count(&all), 0);
    read(&mut all, 101 * S, "", 0);
    all.tick(111 * S);
    assert_eq!(count(&all), 0);
    all.tick(112 * S);
    all.tick(113 * S);
    assert_eq!(count(&all), 1);
    // The program went on, and is silent again.
    read(&mut all, 120 * S, "", 0);
    all.tick(121 * S);
    all.tick(140 * S);
    assert_eq!(count(&all), 2);
    let mut one = watch("toyFinish.idle > 10s");
    finish(&mut one, S, S, 0);
    read(&mut one, 20 * S, "", 0);
    one.tick(20 * S);
    assert_eq!(count(&one), 1);
}

#[test]
fn samples_fire_when_they_pass_a_limit() {
    let mut watch = watch("host.memory.used > 1GiB");
    let quantity = QuantityReport { quantity: "host_memory".to_owned(), ..QuantityReport::default() };
    let device = |device, source: &str| TelemetryDevice {
        device,
        source: source.to_owned(),
        name: "host".to_owned(),
        quantities: vec![quantity.clone()],
        ..TelemetryDevice::default()
    };
    let report = Telemetry { devices: vec![device(4, HOST), device(5, "nvml")], ..Telemetry::default() };
    watch.devices(Some(&report)).expect("a device");
    let feed = watch.feed();
    let put = |device, time, used: i64| {
        let mut values = [0; VALUES];
        values[0] = used;
        feed.put(device, Quantity::HostMemory, Sample { time, values, took: 0 });
        feed.put(device, Quantity::Power, Sample { time, values, took: 0 });
    };
    put(4, S, 1 << 30);
    put(5, S, 2 << 30);
    watch.tick(S);
    assert_eq!(count(&watch), 0);
    // Between two looks of the launcher.
    put(4, 2 * S, 3 << 29);
    put(4, 3 * S, 1);
    watch.tick(4 * S);
    assert_eq!(count(&watch), 1);
    put(4, 5 * S, 2 << 30);
    watch.tick(6 * S);
    watch.tick(7 * S);
    assert_eq!(count(&watch), 2);
    let all = fired(&mut watch);
    assert_eq!((all[0].time_ns, all[0].value.as_str()), (2 * S, "host.memory.used = 1.50 GiB (host)"));
    assert_eq!((all[0].pid, all[0].again), (None, 1));
}

#[test]
fn the_end_is_a_moment_too() {
    for (text, exit, expected) in [
        ("crash", Exit::Signal(11), 1),
        ("crash", Exit::Code(1), 0),
        ("exit == 0", Exit::Code(0), 1),
        ("exit != 0", Exit::Signal(9), 0),
        ("!crash && exit > 2", Exit::Code(3), 1),
        ("crash && toyFinish.open > 1s", Exit::Signal(9), 0),
    ] {
        let mut watch = watch(text);
        watch.tick(S);
        assert_eq!(count(&watch), 0, "{text}");
        watch.end(exit, std::process::id(), 2 * S);
        assert_eq!(count(&watch), expected, "{text}");
    }
}

#[test]
fn calls_and_states_go_together() {
    let mut watch = watch("toyFinish.duration > 1ms && toyRead.rate > 2/s || idle > 5s");
    finish(&mut watch, S, 2 * S, 0);
    assert_eq!(count(&watch), 0);
    (0..3).for_each(|n| read(&mut watch, 3 * S + n, "", 0));
    assert_eq!(count(&watch), 0);
    finish(&mut watch, 3 * S, 3 * S + 2 * MS, 0);
    assert_eq!(count(&watch), 1);
    watch.tick(9 * S);
    watch.tick(10 * S);
    assert_eq!(count(&watch), 2);
}

#[test]
fn thousands_of_firings_are_a_few_snapshots() {
    let mut watch = watch_with("toyFinish.duration >= 0ns", 3);
    let mut snapshots = Vec::new();
    for tick in 0..4000 {
        let now = tick * 25 * MS;
        (0..10).for_each(|_| finish(&mut watch, now, now + 1, 0));
        if watch.is_due(now) {
            snapshots.push((now, watch.take(now)));
        }
    }
    // At once, then when three quarters of the window have passed.
    let times: Vec<u64> = snapshots.iter().map(|(now, _)| *now).collect();
    assert_eq!(times, [0, 6 * S, 12 * S]);
    assert_eq!(snapshots[0].1[0].again, 9);
    assert_eq!(snapshots[1].1[0].again, 2399);
    let account = &watch.accounts()[0];
    assert_eq!((account.fired, account.snapshots, account.limited), (40_000, 3, true));
}

#[test]
fn nothing_is_done_for_functions_that_no_trigger_is_about() {
    let about = |text: &str| {
        let watch = watch(text);
        [FINISH, READ, MAKE].map(|function| watch.is_about(1, entry_id(function)))
    };
    assert_eq!(about("toyFinish.duration > 1ms"), [true, false, false]);
    assert_eq!(about("name == toyFinish && duration > 1ms"), [true, false, false]);
    assert_eq!(about("name != toyFinish && duration > 1ms"), [false, true, true]);
    assert_eq!(about("size > 5"), [false, true, false]);
    assert_eq!(about("idle > 5s || gpu.power > 5W || crash"), [false, false, false]);
    assert_eq!(about("toyFinish.open > 5s"), [true, false, false]);
    assert_eq!(about("toyRead.size > 5 || toyMake.failed"), [false, true, true]);
}

proptest::proptest! {
    #[test]
    fn noise_in_records_fires_or_not(
        records in proptest::collection::vec((0u16..16, proptest::prelude::any::<u32>(), proptest::prelude::any::<Vec<u8>>()), 0..60),
    ) {
        let text = "toyRead.label != \"x\" && size > 3 || result != 0 || toy*.open > 1us || rate > 5/s || duration > 1us";
        let mut watch = watch(text);
        for (id, time, body) in records {
            record(&mut watch, 32 + id, time.into(), &body);
            watch.tick(time.into());
        }
    }
}
