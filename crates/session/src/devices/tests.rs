//! Records in, files out, read back: calls joined, times put right, numbers given.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use hetrace_ctf::Value;
use hetrace_ctf::read::Trace;
use hetrace_ctf::write::form;
use hetrace_ring::abi::{COMMAND_KINDS, command_flag};

use super::*;
use crate::time::ReferencePoint;

/// Returns a tick is a nanosecond.
fn host() -> HostClock {
    let point = |n: u64| ReferencePoint { tsc: n, monotonic_ns: n, realtime_ns: n, uncertainty_ns: 0 };
    HostClock::new(point(1), point(1_000_000_000))
}

struct Process {
    devices: Devices,
    trace: TraceFolder,
    path: PathBuf,
    host: HostClock,
}

impl Process {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hetrace-devices-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a folder");
        let uuid = [3; 16];
        let class = hetrace_format::class::trace(uuid, form::clock_class([7; 16], 0), Vec::new(), &[]);
        fs::write(path.join("metadata"), hetrace_ctf::tsdl::print(&class)).expect("metadata");
        let shared = Arc::new(Shared::new(vec!["one".into(), "two".into()]));
        let identity = Identity { pid: 7, tid: 9, name: *b"app\0\0\0\0\0\0\0\0\0\0\0\0\0" };
        Process {
            devices: Devices::new(identity, 0, &shared),
            trace: TraceFolder::new(path.clone(), uuid, false),
            path,
            host: host(),
        }
    }

    fn take<T>(&mut self, id: u16, time: u64, record: &T, text: &str) {
        self.take_of(1, id, time, record, text);
    }

    /// Takes a record of the API of that number.
    fn take_of<T>(&mut self, api: usize, id: u16, time: u64, record: &T, text: &str) {
        let size = size_of::<T>();
        // SAFETY: a record of integers without gaps.
        let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast::<u8>(), size) };
        let body = [bytes, text.as_bytes(), b"\0"].concat();
        let special = Special { id, api, tid: 9, time, own_time: time, body: &body };
        self.devices.take(special, &self.host, |tid| tid);
    }

    fn command(&mut self, command: &CommandRecord, name: &str) {
        self.take(special::COMMAND, command.observed.max(1), command, name);
    }

    fn link(&mut self, correlation: u64, entry: u64) {
        self.take(special::LINK, entry, &LinkRecord { correlation }, "");
    }

    fn queue(&mut self, queue: u64, time: u64) {
        let record = QueueRecord { queue, device: 0xd, priority: -1, number: 5, ..QueueRecord::default() };
        self.take(special::QUEUE, time, &record, "GPU");
    }

    fn advance(&mut self, now: u64) {
        self.devices.advance(now, &self.trace, &self.host);
    }

    /// Returns all events by file: time, name and fields.
    fn files(&self) -> BTreeMap<String, Vec<(u64, String, Value)>> {
        let trace = Trace::open(&self.path).expect("a trace");
        let mut files = BTreeMap::new();
        for mut stream in trace.streams() {
            let events: &mut Vec<_> = files.entry(stream.name().to_owned()).or_default();
            while let Some(event) = stream.next_event() {
                let event = event.expect("undamaged");
                let fields = event.fields().expect("fields");
                events.push((event.timestamp().expect("a time"), event.class().name.clone(), fields));
            }
        }
        files
    }

    /// Returns the commands, after all is written.
    fn finish(&mut self) -> Vec<(u64, String, Value)> {
        self.devices.finish(&self.trace, &self.host, std::time::Duration::ZERO);
        self.files().remove("device-7").unwrap_or_default()
    }

    fn names(&self) -> Vec<(u64, String, Value)> {
        self.files().remove("device-7-names").unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Returns a kernel of a collector.
fn collected(correlation: u64, start: u64) -> CommandRecord {
    CommandRecord {
        kind: 1,
        correlation,
        queue: 0x10,
        device: 0xd,
        start,
        end: start + 100,
        flags: command_flag::HOST_CLOCK,
        ..CommandRecord::default()
    }
}

fn number(fields: &Value, name: &str) -> i64 {
    match fields.get(name) {
        Some(Value::Unsigned(n)) => *n as i64,
        Some(Value::Signed(n)) => *n,
        Some(Value::Enum { value, .. }) => *value as i64,
        other => panic!("{name}: {other:?}"),
    }
}

fn list(fields: &Value, name: &str) -> Vec<i64> {
    let Some(Value::Array(items)) = fields.get(name) else { panic!("{name} in {fields:?}") };
    let one = |item: &Value| number(&Value::Struct(vec![("n".to_owned(), item.clone())]), "n");
    items.iter().map(one).collect()
}

const UNKNOWN: i64 = -(1 << 47);

#[test]
fn commands_are_joined_with_calls_reported_before_and_after_them() {
    let mut p = Process::new("join");
    p.queue(0x10, 50);
    p.link(1, 100);
    p.command(&collected(1, 1_000), "k");
    p.command(&collected(2, 2_000), "k");
    p.advance(3_000);
    // Seen a pass later, and recorded after a call inside.
    p.link(2, 150);
    let commands = p.finish();
    let causes: Vec<_> = commands.iter().map(|(t, _, f)| t - number(f, "cause_before") as u64).collect();
    assert_eq!(causes, [100, 150]);
    assert!(commands.iter().all(|(_, _, f)| number(f, "cause_tid") == 9));
    assert_eq!(p.devices.without_call(), 0);
}

#[test]
fn what_is_reported_of_a_process_stays_when_the_rest_is_forgotten() {
    let mut p = Process::new("forget");
    p.queue(0x10, 50);
    p.link(1, 100);
    p.command(&collected(1, 1_000), "k");
    // Of a call that is not known.
    p.command(&collected(2, 2_000), "k");
    p.finish();
    let (reports, lost, without) = (p.devices.reports(), p.devices.lost(), p.devices.without_call());
    assert!(!reports.is_empty() && without == 1);
    let mut ended = crate::drain::Ended::default();
    ended.devices(&p.devices, &p.path);
    let clocks = ended.clocks().expect("what was kept");
    assert_eq!((clocks, ended.lost, ended.without_call), (reports, lost, without));
}

#[test]
fn a_queue_has_the_handle_of_its_api_and_commands_name_it_by_its_key() {
    let mut process = Process::new("handles");
    // The default streams of two contexts, a stream whose handle is not known, and one that only a command names.
    for (queue, context, handle) in [(1 << 32 | 7, 0xc1, 1), (2 << 32 | 7, 0xc2, 1), (1 << 32 | 8, 0xc1, 0)] {
        let record = QueueRecord { queue, context, device: 0xd, number: 7, handle, ..QueueRecord::default() };
        process.take(special::QUEUE, 5, &record, "GPU");
    }
    for (place, queue) in [1 << 32 | 7, 2 << 32 | 7, 1 << 32 | 8, 0x99].into_iter().enumerate() {
        process.link(place as u64 + 1, 10);
        process.command(&CommandRecord { queue, ..collected(place as u64 + 1, 20) }, "");
    }
    let commands = process.finish();
    let on: Vec<i64> = commands.iter().map(|(_, _, fields)| number(fields, "queue")).collect();
    let mut queues = BTreeMap::new();
    for (_, _, fields) in process.names().iter().filter(|(_, name, _)| name == "device:queue") {
        queues.insert(number(fields, "queue"), (number(fields, "handle"), number(fields, "context")));
    }
    let seen: Vec<(i64, i64)> = on.iter().map(|queue| queues[queue]).collect();
    assert_eq!(seen, [(1, 0xc1), (1, 0xc2), (1 << 32 | 8, 0xc1), (0x99, 0)]);
    assert_eq!(queues.len(), 4);
}

#[test]
fn one_call_may_cause_many_commands() {
    let mut p = Process::new("graph");
    p.queue(0x10, 50);
    p.link(1, 100);
    for node in 1..=3 {
        p.command(&CommandRecord { graph: 4, node, ..collected(1, 1_000 * node) }, "k");
    }
    let commands = p.finish();
    assert_eq!(commands.len(), 3);
    for ((time, _, fields), node) in commands.iter().zip(1..) {
        assert_eq!(time - number(fields, "cause_before") as u64, 100);
        assert_eq!((list(fields, "graph"), list(fields, "node")), (vec![4], vec![node]));
    }
}

#[test]
fn a_command_without_its_call_is_written_after_a_while_and_counted() {
    let mut p = Process::new("orphan");
    p.queue(0x10, 50);
    p.command(&collected(8, 1_000), "k");
    for tick in 1..=4 {
        p.advance(10_000_000_000 + tick);
        assert_eq!(p.devices.without_call(), u64::from(tick >= 2), "at tick {tick}");
    }
    let commands = p.finish();
    assert_eq!(commands.len(), 1);
    assert_eq!(number(&commands[0].2, "cause_before"), UNKNOWN);
    assert_eq!(number(&commands[0].2, "cause_tid"), 0);
}

#[test]
fn a_start_a_little_before_its_call_is_moved_and_one_far_before_is_not() {
    let mut p = Process::new("clamp");
    p.queue(0x10, 50);
    p.link(1, 10_000);
    p.link(2, 20_000);
    p.link(3, 90_000);
    p.command(&collected(1, 9_000), "k");
    p.command(&CommandRecord { end: 21_000, ..collected(2, 17_000) }, "k");
    p.command(&collected(3, 80_000), "k");
    let commands = p.finish();
    let times: Vec<_> = commands.iter().map(|(time, _, f)| (*time, number(f, "duration"))).collect();
    assert_eq!(times, [(10_000, 0), (20_000, 1_000), (80_000, 100)]);
    let report = &p.devices.reports()[0];
    assert_eq!((report.corrected, report.largest_correction_ns, report.impossible_order), (2, 3_000, 1));
    assert!(report.host_clock && report.error_ns.is_none());
    // A start before the call is reported as it is.
    assert_eq!(number(&commands[2].2, "cause_before"), -10_000);
}

#[test]
fn a_collectors_buffer_is_waited_for_and_what_is_later_goes_to_another_file() {
    let mut p = Process::new("late");
    p.queue(0x10, 50);
    for id in 1..=3 {
        p.link(id, id * 100);
    }
    p.command(&collected(2, 2_000_000_000), "k");
    p.advance(5_900_000_000);
    assert!(!p.files().contains_key("device-7"), "less than four seconds old");
    p.command(&collected(1, 1_999_999_000), "k");
    p.advance(6_100_000_000);
    let times = |events: &[(u64, String, Value)]| events.iter().map(|e| e.0).collect::<Vec<_>>();
    assert_eq!(times(&p.files()["device-7"]), [1_999_999_000, 2_000_000_000]);
    p.command(&collected(3, 1_500_000_000), "k");
    p.finish();
    assert_eq!(times(&p.files()["device-7-late-1"]), [1_500_000_000]);
}

#[test]
fn what_has_been_delivered_is_written_at_once() {
    let mut p = Process::new("pending");
    p.queue(0x10, 50);
    p.link(1, 100);
    p.link(2, 200);
    p.command(&collected(1, 1_000), "k");
    p.command(&collected(2, 5_000), "k");
    p.take(special::PENDING, 6_000, &PendingRecord { lost: 0, oldest: 3_000 }, "");
    p.advance(7_000);
    assert_eq!(p.files()["device-7"].len(), 1);
    // What another API says of its own commands does not count.
    p.take(special::PENDING, 6_500, &PendingRecord { lost: 0, oldest: 0 }, "");
    let body = [0; size_of::<CommandRecord>()];
    let other = Special { id: special::CLOCK, api: 0, tid: 1, time: 1, own_time: 1, body: &body };
    p.devices.take(other, &p.host, |tid| tid);
    p.advance(8_000);
    assert_eq!(p.files()["device-7"].len(), 1, "the other API may have something older");
}

#[test]
fn a_handle_that_comes_again_is_another_queue() {
    let mut p = Process::new("queues");
    p.queue(0x10, 100);
    p.queue(0x10, 5_000);
    for (id, entry) in [(1, 200), (2, 6_000)] {
        p.link(id, entry);
    }
    // The first one's command is reported after the second was made.
    p.command(&collected(2, 7_000), "k");
    p.command(&collected(1, 6_900), "k");
    // The same handle on another device is a queue that no event defined.
    p.command(&CommandRecord { device: 0xe, ..collected(2, 8_000) }, "k");
    let queues: Vec<_> = p.finish().iter().map(|(_, _, f)| number(f, "queue")).collect();
    assert_eq!(queues, [1, 2, 3]);
    let names = p.names();
    let queue = |event: &&(u64, String, Value)| event.1 == "device:queue";
    let defined: Vec<_> = names
        .iter()
        .filter(queue)
        .map(|(_, _, f)| (number(f, "queue"), number(f, "handle"), number(f, "device")))
        .collect();
    assert_eq!(defined, [(1, 0x10, 1), (2, 0x10, 1), (3, 0x10, 2)]);
    let first = names.iter().find(queue).expect("a queue");
    assert_eq!((number(&first.2, "priority"), number(&first.2, "number")), (-1, 5));
    assert_eq!(first.2.get("api"), Some(&Value::Str("two".to_owned())));
}

/// Another thread's ring was taken first, and says how often a function was launched that is defined in this one: a
/// little earlier.
#[test]
fn what_was_guessed_does_not_outlive_the_definition() {
    let mut p = Process::new("guessed");
    let count = CountRecord { function: 0xf, launches: 3, timed: 1, ..CountRecord::default() };
    p.take(special::COUNT, 500, &count, "");
    let function = FunctionRecord { function: 0xf, registers: 8, ..FunctionRecord::default() };
    p.take(special::FUNCTION, 400, &function, "known");
    p.finish();
    let names = p.names();
    let functions: Vec<_> = names.iter().filter(|(_, event, _)| event == "device:function").collect();
    let last = functions.last().expect("a definition");
    assert_eq!(last.2.get("name"), Some(&Value::Str("known".to_owned())), "{names:?}");
    assert!(functions.iter().all(|(_, _, fields)| number(fields, "function") == 1));
}

/// Records the same keys in two APIs: devices, a queue, a function, and commands of them.
fn record_two_apis(p: &mut Process) {
    const CORRELATION: u64 = 1;
    // Device time runs ahead of the host's by another distance in each API.
    let ahead = [1 << 40, 1 << 41];
    for (api, name) in ["first", "second"].into_iter().enumerate() {
        let (entry, units) = (100 + api as u64, 10 + api as u32);
        let device = DeviceRecord { device: 0xd, compute_units: units, ..DeviceRecord::default() };
        let peer = DeviceRecord { device: 0xe, compute_units: units, ..DeviceRecord::default() };
        let queue = QueueRecord { queue: 0x10, device: 0xd, number: units, ..QueueRecord::default() };
        let function = FunctionRecord { function: 0xf, registers: units, ..FunctionRecord::default() };
        let count = CountRecord { function: 0xf, launches: units.into(), timed: 1, ..CountRecord::default() };
        let property = PropertyRecord { device: 0xd, value: units.into() };
        p.take_of(api, special::DEVICE, 50, &device, name);
        p.take_of(api, special::DEVICE, 50, &peer, "peer");
        p.take_of(api, special::PROPERTY, 50, &property, "units");
        p.take_of(api, special::QUEUE, 50, &queue, "");
        p.take_of(api, special::FUNCTION, 50, &function, name);
        p.take_of(api, special::COUNT, 50, &count, "");
        p.take_of(api, special::LINK, entry, &LinkRecord { correlation: CORRELATION }, "");
        for near in [1_000, 1_000_000] {
            let record = ClockRecord {
                device: 0xd,
                device_time: ahead[api] + near,
                before: near - 10,
                after: near + 10,
            };
            p.take_of(api, special::CLOCK, near, &record, "");
        }
    }
    for (api, ahead) in ahead.into_iter().enumerate() {
        let start = ahead + 500_000 + 1_000 * api as u64;
        let command = CommandRecord {
            kind: 1,
            function: 0xf,
            flags: 0,
            end: start + 100,
            ..collected(CORRELATION, start)
        };
        p.take_of(api, special::COMMAND, 600_000, &command, "");
        // Without an id, a function is the API's own by its name.
        let named = CommandRecord { function: 0, ..command };
        p.take_of(api, special::COMMAND, 600_000, &named, "same name");
        let copy = CommandRecord { kind: 4, peer: 0xe, ..command };
        p.take_of(api, special::COMMAND, 600_000, &copy, "");
    }
}

/// Everything that two APIs of one process name by the same numbers.
#[test]
fn equal_keys_of_two_apis_are_two_things() {
    let mut p = Process::new("apis");
    record_two_apis(&mut p);
    let commands = p.finish();
    let names = p.names();
    let of = |kind: &str| names.iter().filter(|e| e.1 == kind).map(|e| &e.2).collect::<Vec<_>>();
    let text = |fields: &Value, name: &str| match fields.get(name) {
        Some(Value::Str(text)) => text.clone(),
        other => panic!("{name}: {other:?}"),
    };

    let devices = of("device:device");
    let described = |d: &&Value| (number(d, "device"), text(d, "name"), text(d, "api"), number(d, "handle"));
    let expected = [(1, "first", "one", 0xd), (2, "peer", "one", 0xe), (3, "second", "two", 0xd)];
    for (device, (id, name, api, handle)) in devices.iter().map(described).zip(expected) {
        assert_eq!(device, (id, name.to_owned(), api.to_owned(), handle));
    }
    assert_eq!(devices.len(), 4);
    let owned = |kind: &str, owner: &str, value: &str| {
        of(kind).iter().map(|f| (number(f, owner), number(f, value))).collect::<Vec<_>>()
    };
    assert_eq!(owned("device:property", "device", "value"), [(1, 10), (3, 11)]);
    assert_eq!(owned("device:queue", "device", "number"), [(1, 10), (3, 11)]);
    assert_eq!(of("device:queue").iter().map(|q| text(q, "api")).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(owned("device:launches", "function", "launches"), [(1, 10), (2, 11)]);
    let functions: Vec<_> = of("device:function").iter().map(|f| text(f, "name")).collect();
    assert_eq!(functions, ["first", "second", "same name", "same name"]);

    // Each command has its own API's call, clock, queue and function.
    let reported: Vec<_> = commands
        .iter()
        .map(|(time, kind, f)| {
            let function =
                if kind == "device:kernel" { number(f, "function") } else { list(f, "function")[0] };
            (*time, time - number(f, "cause_before") as u64, number(f, "queue"), function)
        })
        .collect();
    assert_eq!(
        reported,
        [
            (500_000, 100, 1, 1),
            (500_000, 100, 1, 3),
            (500_000, 100, 1, 1),
            (501_000, 101, 2, 2),
            (501_000, 101, 2, 4),
            (501_000, 101, 2, 2),
        ]
    );
    let peers: Vec<_> =
        commands.iter().filter(|c| c.1 == "device:copy").flat_map(|c| list(&c.2, "peer")).collect();
    assert_eq!(peers, [2, 4]);
    let reports = p.devices.reports();
    let clocks: Vec<_> = reports.iter().map(|r| (&*r.api, r.handle, &*r.name, r.epochs)).collect();
    assert_eq!(clocks, [("one", 0xd, "first", 1), ("two", 0xd, "second", 1)]);
    assert!(reports.iter().all(|r| r.error_ns.is_some_and(|error| error < 100)), "{reports:?}");
    assert_eq!(p.devices.without_call(), 0);
}

#[test]
fn functions_and_devices_are_defined_once() {
    let mut p = Process::new("functions");
    p.queue(0x10, 50);
    let device = DeviceRecord { device: 0xd, compute_units: 132, uuid: [0xab; 16], ..Default::default() };
    let function = FunctionRecord { function: 0xf, registers: 40, ..FunctionRecord::default() };
    for time in [60, 70] {
        p.take(special::DEVICE, time, &device, "GPU 0");
        p.take(special::PROPERTY, time, &PropertyRecord { device: 0xd, value: 9 }, "warps");
        p.take(special::FUNCTION, time, &function, "_Z1kv");
    }
    p.take(special::FUNCTION, 5_000, &FunctionRecord { registers: 41, ..function }, "_Z1kv");
    for (id, entry) in [(1, 100), (2, 6_000)] {
        p.link(id, entry);
        p.command(&CommandRecord { function: 0xf, ..collected(id, entry + 50) }, "");
        p.command(&collected(id, entry + 60), "by name");
    }
    let functions: Vec<_> = p.finish().iter().map(|(_, _, f)| number(f, "function")).collect();
    let names = p.names();
    let of = |kind: &str| names.iter().filter(|e| e.1 == kind).map(|e| &e.2).collect::<Vec<_>>();
    let [a, b, c] = of("device:function")[..] else { panic!("three functions: {names:?}") };
    let numbered = [a, b, c].map(|f| (number(f, "function"), number(f, "registers")));
    assert_eq!(numbered, [(1, 40), (3, 0), (2, 41)], "in the order of time");
    assert_eq!(functions, [1, 3, 2, 3]);
    // Once by the name beside the queue, then with all that is known.
    let devices = of("device:device");
    assert_eq!(devices.iter().map(|d| number(d, "compute_units")).collect::<Vec<_>>(), [0, 132]);
    assert!(devices.iter().all(|d| number(d, "device") == 1));
    assert_eq!(of("device:property").len(), 1);
}

#[test]
fn what_does_not_fit_is_recorded_as_unknown() {
    let mut p = Process::new("wide");
    p.queue(0x10, 50);
    let far = 1 << 60;
    p.link(1, 100);
    p.link(2, far + 1);
    let kernel = CommandRecord {
        dimensions: 3,
        geometry: [[0; 3], [1 << 47, 1 << 48, 7], [1 << 33, 2, 1]],
        cluster: [2, 1, 1],
        shared: 1 << 31,
        status: -9_999_999,
        weight: 1 << 40,
        ..collected(1, far)
    };
    p.command(&kernel, "k");
    let copy = CommandRecord {
        kind: 4,
        bytes: u64::MAX,
        from: 1,
        to: 200,
        peer: 0xe,
        end: far + (1 << 46),
        ..collected(2, far + 1)
    };
    p.command(&copy, "");
    let commands = p.finish();
    let (_, _, kernel) = &commands[0];
    assert_eq!(number(kernel, "cause_before"), UNKNOWN);
    assert_eq!(list(kernel, "global"), [1 << 47, (1 << 48) - 1, 7]);
    assert_eq!(list(kernel, "local"), [u32::MAX.into(), 2, 1]);
    assert_eq!(list(kernel, "cluster"), [2, 1, 1]);
    assert_eq!(list(kernel, "shared"), [1 << 31]);
    assert_eq!(list(kernel, "status"), [-9_999_999]);
    assert_eq!(list(kernel, "weight"), [1 << 40]);
    let (_, _, copy) = &commands[1];
    assert_eq!(number(copy, "bytes"), (1 << 48) - 1);
    assert_eq!((number(copy, "from"), number(copy, "to")), (1, 0));
    assert_eq!(number(copy, "duration"), (1 << 46) - 1);
    assert_eq!(list(copy, "peer"), [2]);
}

#[test]
fn commands_in_the_devices_time_are_converted() {
    let mut p = Process::new("convert");
    p.queue(0x10, 50);
    let base = 1 << 40;
    for i in 1..50 {
        let command = CommandRecord {
            cause_tid: 9,
            kind: 1,
            cause: i * 1_000,
            returned: i * 1_000 + 50,
            observed: i * 1_000 + 600,
            queue: 0x10,
            device: 0xd,
            queued: base + i * 1_000 + 20,
            submitted: base + i * 1_000 + 100,
            start: base + i * 1_000 + 200,
            end: base + i * 1_000 + 500,
            ..CommandRecord::default()
        };
        p.command(&command, "k");
    }
    p.command(&CommandRecord { times_error: -7, observed: 60_000, kind: 99, ..collected(0, 0) }, "");
    let commands = p.finish();
    assert_eq!(commands.len(), 50);
    for (time, _, fields) in &commands[..49] {
        assert_eq!(number(fields, "duration"), 300);
        assert_eq!(number(fields, "queued_before"), 180);
        assert_eq!(number(fields, "submitted_before"), 100);
        assert_eq!((time - number(fields, "cause_before") as u64) % 1_000, 0);
    }
    let (time, name, fields) = &commands[49];
    assert_eq!((*time, &**name), (60_000, "device:untimed"));
    assert_eq!((number(fields, "kind"), number(fields, "times_error")), (0, -7));
}

/// Returns a kernel between two events: when it entered its queue is unknown.
fn between_events(i: u64, ahead: u64, vouches: bool) -> CommandRecord {
    let cause = i * 10_000;
    CommandRecord {
        cause_tid: 9,
        kind: 1,
        cause,
        returned: if vouches { cause + 500 } else { 0 },
        observed: if vouches { cause + 4_000 } else { 0 },
        queue: 0x10,
        device: 0xd,
        start: ahead + cause + 1_000,
        end: ahead + cause + 3_000,
        ..CommandRecord::default()
    }
}

#[test]
fn starts_and_ends_alone_narrow_a_clock() {
    let base = 1 << 40;
    let error = |vouches: bool, ahead: u64| {
        let mut p = Process::new(&format!("narrow-{vouches}-{ahead}"));
        p.queue(0x10, 50);
        // The clock itself was looked at, at leisure.
        for i in [1, 20, 40] {
            let (before, after) = (i * 10_000, i * 10_000 + 60_000);
            let record = ClockRecord { device: 0xd, device_time: base + before + 30_000, before, after };
            p.take(special::CLOCK, after, &record, "");
        }
        for i in 1..50 {
            p.command(&between_events(i, base + ahead, vouches), "k");
        }
        assert_eq!(p.finish().len(), 49);
        let report = p.devices.reports().remove(0);
        assert_eq!(report.epochs, 1);
        report.error_ns.expect("known")
    };
    assert!(error(true, 0) <= 1_100, "{}", error(true, 0));
    // Another context's clock may be beside the device's, and proves nothing against it.
    assert!(error(false, 25_000) >= 29_000, "{}", error(false, 25_000));
}

#[test]
fn far_from_where_a_clock_was_seen_it_is_less_well_known() {
    let error = |far: u64| {
        let mut p = Process::new(&format!("far-{far}"));
        p.queue(0x10, 50);
        for i in [1u64, 2] {
            let (before, after) = (i * 1_000_000, i * 1_000_000 + 1_000);
            let record = ClockRecord { device: 0xd, device_time: before + 500, before, after };
            p.take(special::CLOCK, after, &record, "");
        }
        p.command(&CommandRecord { device: 0xd, ..between_events(far, 0, false) }, "k");
        p.finish();
        p.devices.reports()[0].error_ns.expect("known")
    };
    assert!(error(150) < 1_000, "{}", error(150));
    // Two looks a millisecond apart, half a microsecond wide: 100 ms later it is 50 µs or more.
    assert!(error(10_000) > 40_000, "{}", error(10_000));
}

#[test]
fn every_kind_is_as_long_as_its_class_says() {
    let mut p = Process::new("kinds");
    p.queue(0x10, 50);
    for kind in 0..COMMAND_KINDS.len() as u8 {
        let at = 1_000 + u64::from(kind);
        let record =
            CommandRecord { kind, cause: 100, cause_tid: 3, graph: 1, status: 1, ..collected(0, at) };
        p.command(&record, "name");
    }
    let commands = p.finish();
    for ((_, name, fields), kind) in commands.iter().zip(COMMAND_KINDS) {
        assert_eq!(*name, format!("device:{kind}"));
        assert_eq!(
            (list(fields, "graph"), list(fields, "node"), list(fields, "weight")),
            (vec![1], vec![0], vec![])
        );
        assert_eq!(list(fields, "status"), [1]);
    }
    assert_eq!(commands.len(), COMMAND_KINDS.len());
}

#[test]
fn addresses_of_calls_are_stacks_of_one_frame_in_their_module() {
    let mut p = Process::new("codes");
    // Before anybody knows what is there.
    p.devices.called_from(0x5010, 100);
    let path = "/gone/app (deleted)";
    let module = ModuleRecord {
        module: 77,
        base: 0x4000,
        start: 0x5000,
        bytes: 0x1000,
        build_id: 0,
        path: path.len() as u32,
    };
    p.take(special::MODULE, 200, &module, path);
    for (code, time) in [(0x5010, 300), (0x5020, 310), (0x5020, 320), (0x9000, 330)] {
        p.devices.called_from(code, time);
    }
    // The same library somewhere else: the same place in it, at another address.
    p.take(special::MODULE, 400, &ModuleRecord { base: 0x14000, start: 0x15000, ..module }, path);
    p.devices.called_from(0x15010, 410);
    p.devices.finish(&p.trace, &p.host, std::time::Duration::from_secs(60));
    let names = p.names();
    let frames = names.iter().filter(|(_, name, _)| name == "native:frame");
    let frames: Vec<_> =
        frames.map(|(_, _, f)| ["module", "address", "around"].map(|n| number(f, n))).collect();
    assert_eq!(frames, [[77, 0x100f, 0], [77, 0x101f, 0]]);
    let codes = names.iter().filter(|(_, name, _)| name == "native:code");
    let codes: Vec<_> = codes.map(|(_, _, f)| (number(f, "code"), number(f, "stack"))).collect();
    assert_eq!(codes.iter().map(|(code, _)| *code).collect::<Vec<_>>(), [0x5010, 0x5020, 0x15010]);
    assert_eq!(codes[0].1, codes[2].1);
    assert_ne!(codes[0].1, codes[1].1);
    assert_eq!(p.devices.take_notes(), ["no functions and lines of /gone/app: its file is gone"]);
}

#[test]
fn mutated_records_do_no_harm() {
    let mut p = Process::new("mutated");
    let mut word = 0x1234_5678_9abc_def1u64;
    let mut random = move || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word
    };
    for round in 0..3_000 {
        let length = (random() % 300) as usize;
        // Small numbers now and then, so that handles meet.
        let sparse = random() % 2 == 0;
        let byte = |n: u64| if sparse && !n.is_multiple_of(8) { 0 } else { n as u8 };
        let body: Vec<u8> = (0..length).map(|_| byte(random() >> 8)).collect();
        let (id, time) = ((random() % 16) as u16, random() >> (random() % 64));
        let special = Special { id, api: round % 3, tid: 1, time, own_time: time, body: &body };
        p.devices.take(special, &p.host, |tid| tid);
        if round % 300 == 0 {
            p.advance(1 << 40);
        }
    }
    p.devices.finish(&p.trace, &p.host, std::time::Duration::ZERO);
    assert!(!p.files().is_empty());
}
