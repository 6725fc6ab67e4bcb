//! Sampling from a scripted source, read back from the trace.

use std::cell::Cell;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::Trace;
use hetrace_ctf::write::form;
use hetrace_vendor::telemetry::{Device, Reading, Refusal};

use super::*;

/// Longer than any machine takes, however busy; shorter than anybody waits for a test that hangs.
const A_LONG_TIME: Duration = Duration::from_secs(600);
/// When [`Virtual`] time begins.
const BEGIN: u64 = 1_000_000_000_000;
/// Until when lanes sweep on a [`Virtual`] clock: only then they see that the program has ended.
const END: u64 = BEGIN + 2_000_000_000;

thread_local! {
    /// Where a thread is in [`Virtual`] time, once it has waited or worked.
    static NOW: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Time that passes when something waits or works, and not otherwise: each thread has its own, so
/// that what a lane does depends neither on the machine nor on other lanes.
#[derive(Debug)]
struct Virtual {
    /// Where the time of new threads begins.
    start: AtomicU64,
}

impl Virtual {
    fn new() -> Arc<Self> {
        NOW.set(Some(BEGIN));
        Arc::new(Virtual { start: AtomicU64::new(BEGIN) })
    }

    /// Lets threads that are made from now on begin where this one is.
    fn hand_on(&self) {
        self.start.store(self.now(), Ordering::Relaxed);
    }

    fn set(&self, time: u64) {
        NOW.set(Some(self.now().max(time)));
    }
}

impl Clock for Virtual {
    fn now(&self) -> u64 {
        NOW.get().unwrap_or_else(|| self.start.load(Ordering::Relaxed))
    }

    fn wait(&self, stop: &Stop, until: Option<u64>) -> bool {
        match until {
            Some(until) if until < END => {
                self.set(until);
                false
            }
            _ => {
                self.set(END);
                Monotonic.wait(stop, None)
            }
        }
    }
}

/// Two devices whose counters go up by one with each query. The second has no
/// energy counter, no links, and a bus query that fails at first.
#[derive(Debug)]
struct Script {
    clock: Arc<Virtual>,
    devices: Vec<Device>,
    counts: Mutex<HashMap<(usize, Quantity), u64>>,
    /// What a bus query takes, in virtual time; others take a microsecond.
    slow: Duration,
    /// Queries of any kind beyond this number hang.
    hang_after: Option<u64>,
    asked: AtomicU64,
}

impl Script {
    fn new(slow: Duration) -> Self {
        let device = |index: u32| Device {
            index,
            uuid: format!("GPU-{index}"),
            name: format!("Device {index}"),
            pci: format!("00000000:0{index}:00.0"),
            power: "instant".to_owned(),
            power_limit: 700_000,
        };
        Script {
            clock: Virtual::new(),
            devices: (0..2).map(device).collect(),
            counts: Mutex::default(),
            slow,
            hang_after: None,
            asked: AtomicU64::new(0),
        }
    }

    /// Lets virtual time pass, as a query does.
    fn pass(&self, time: Duration) {
        self.clock.set(self.clock.now() + u64::try_from(time.as_nanos()).expect("a short time"));
    }
}

impl Source for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn driver(&self) -> &str {
        "1.0"
    }

    fn devices(&self) -> &[Device] {
        &self.devices
    }

    fn read(&self, device: usize, quantity: Quantity) -> Result<Reading, Refusal> {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if self.hang_after.is_some_and(|n| asked >= n) {
            thread::sleep(Duration::from_secs(3600));
        }
        let n = {
            let mut counts = self.counts.lock().expect("not poisoned");
            let count = counts.entry((device, quantity)).or_default();
            *count += 1;
            *count
        };
        self.pass(Duration::from_micros(1));
        match quantity {
            Quantity::Energy | Quantity::Nvlink if device == 1 => Err(Refusal::Never("has none".to_owned())),
            Quantity::Power => Ok(Reading::Power { milliwatts: n }),
            Quantity::Energy => Ok(Reading::Energy { millijoules: 1000 * n }),
            Quantity::Clocks => Ok(Reading::Clocks { sm: n as u32, memory: 1, graphics: 2, video: 0 }),
            Quantity::Utilization => Ok(Reading::Utilization { gpu: 50, memory: 20 }),
            Quantity::Memory => Ok(Reading::Memory { used: n, free: 1, reserved: 1, total: n + 2 }),
            Quantity::Temperature => Ok(Reading::Temperature { celsius: 40 }),
            Quantity::PerformanceState => Ok(Reading::PerformanceState { state: 0 }),
            Quantity::Throttle => Ok(Reading::Throttle { reasons: n / 4 }),
            Quantity::Nvlink => Ok(Reading::Nvlink { tx: 1_000_000 * n, rx: 0 }),
            Quantity::Pcie => {
                self.pass(self.slow);
                match device {
                    1 if n == 2 => Err(Refusal::NotNow("busy".to_owned())),
                    _ => Ok(Reading::Pcie { tx: n, rx: 2 * n }),
                }
            }
            _ => panic!("{quantity} is the host's"),
        }
    }
}

/// One event: its name, its time, and its fields as text.
type Seen = (String, u64, HashMap<String, String>);

/// Samples from [`BEGIN`] to [`END`]. Returns what is reported and what is in the trace, by stream.
fn sampled(script: Script, period: Duration) -> (Finished, Vec<Vec<Seen>>) {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let folder = scratch.path();
    let mut class = form::trace_class([7; 16], form::clock_class([0; 16], 0));
    class.streams.push(hetrace_format::telemetry::stream());
    fs::write(folder.join("metadata"), hetrace_ctf::tsdl::print(&class)).expect("metadata");
    let trace = TraceFolder::new(folder.to_owned(), [7; 16], false);
    let clock = Arc::clone(&script.clock);
    let mut telemetry = Telemetry::with(clock.clone(), period, vec![Ok(Arc::new(script))], &trace);
    assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1, "nothing is written before the start");
    clock.hand_on();
    telemetry.start([1]);
    let finished = telemetry.finish_within(A_LONG_TIME);
    (finished, read(folder))
}

fn read(folder: &std::path::Path) -> Vec<Vec<Seen>> {
    let trace = Trace::open(folder).expect("a trace that opens");
    let mut streams = Vec::new();
    for mut stream in trace.streams() {
        let mut events: Vec<Seen> = Vec::new();
        while let Some(event) = stream.next_event() {
            let event = event.expect("no damage");
            let text = |name: &str| match event.get(name) {
                Some(Scalar::Str(text)) => text.to_owned(),
                Some(value) => value.as_u64().map_or_else(String::new, |v| v.to_string()),
                None => String::new(),
            };
            let fields =
                event.class().fields.fields.iter().map(|f| (f.name.clone(), text(&f.name))).collect();
            let pid = event.get_in(Scope::PacketContext, "vpid").and_then(|v| v.as_i64());
            assert_eq!(pid, Some(i64::from(std::process::id())));
            events.push((event.class().name.clone(), event.timestamp().unwrap_or(0), fields));
        }
        assert!(events.windows(2).all(|w| w[0].1 <= w[1].1), "in order");
        streams.push(events);
    }
    streams
}

/// Waits for an event of another thread.
fn until(there: impl Fn() -> bool) {
    let begin = Instant::now();
    while !there() {
        assert!(begin.elapsed() < A_LONG_TIME, "it did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the values of a field in the events of a device.
fn values(streams: &[Vec<Seen>], event: &str, device: u32, field: &str) -> Vec<u64> {
    let of =
        streams.iter().flatten().filter(|(name, _, f)| name == event && f["device"] == device.to_string());
    of.map(|(_, _, f)| f[field].parse().unwrap_or(u64::MAX)).collect()
}

#[test]
fn each_sample_is_in_the_trace_in_order() {
    let (finished, streams) = sampled(Script::new(Duration::ZERO), Duration::from_millis(5));
    for device in 0..2 {
        let power = values(&streams, "telemetry:power", device, "milliwatts");
        // 400 in two seconds, one before them and one after them.
        let expected: Vec<u64> = (1..=402).collect();
        assert_eq!(power, expected);
        // What does not change is written once.
        assert_eq!(values(&streams, "telemetry:performance_state", device, "state"), [0]);
        let reasons = values(&streams, "telemetry:throttle", device, "reasons");
        assert_eq!(reasons, (0..=402 / 4).collect::<Vec<u64>>());
    }
    let energy = values(&streams, "telemetry:energy", 0, "millijoules");
    let expected: Vec<u64> = (1..=402).map(|n| 1000 * n).collect();
    assert_eq!(energy, expected);
    assert!(values(&streams, "telemetry:energy", 1, "millijoules").is_empty());
    // A counter becomes a rate from its second reading on.
    let links = values(&streams, "telemetry:nvlink", 0, "tx");
    let intervals = values(&streams, "telemetry:nvlink", 0, "interval");
    assert_eq!(links.len(), energy.len() - 1);
    for (rate, interval) in links.iter().zip(intervals) {
        assert_eq!(*rate, 1_000_000 * 1_000_000_000 / interval);
    }
    let report = finished.report;
    assert_eq!(report.records, streams.iter().map(Vec::len).sum::<usize>() as u64);
    assert!(report.bytes > 0 && finished.unwritten == 0 && finished.notes.is_empty(), "{:?}", finished.notes);
    assert_eq!((report.sampler.sweeps, report.sampler.missed_periods), (402, 0));
    assert!(report.sampler.cpu_ns > 0, "{:?}", report.sampler);
}

#[test]
fn devices_come_first_with_what_they_can_be_asked_for() {
    let (finished, streams) = sampled(Script::new(Duration::ZERO), Duration::from_millis(5));
    let first: Vec<&Seen> = streams[0].iter().take(2).collect();
    for (number, (name, _, fields)) in first.iter().enumerate() {
        assert_eq!(name, "telemetry:device");
        assert_eq!(fields["device"], number.to_string());
        assert_eq!(fields["uuid"], format!("GPU-{number}"));
        assert_eq!(fields["power"], "instant");
        assert_eq!(fields["power_limit"], "700000");
    }
    let all = "power energy clocks utilization memory temperature performance_state throttle nvlink pcie";
    assert_eq!(first[0].2["available"], all);
    assert_eq!(first[1].2["available"], all.replace("energy ", "").replace("nvlink ", ""));
    // What it does not support is queried once, and noted.
    let second = &finished.report.devices[1];
    for quantity in ["energy", "nvlink"] {
        let of = second.quantities.iter().find(|q| q.quantity == quantity).expect("a quantity");
        assert_eq!((of.samples, of.failed, of.unavailable.as_deref()), (0, 1, Some("has none")));
    }
    assert!(second.quantities.iter().filter(|q| q.unavailable.is_some()).count() == 2);
}

#[test]
fn slow_queries_have_a_thread_of_their_own_and_rest() {
    let slow = Duration::from_millis(30);
    let (finished, streams) = sampled(Script::new(slow), Duration::from_millis(20));
    assert_eq!(streams.len(), 2);
    // The first sweep's are in the first stream, before the program started.
    assert_eq!(values(&streams[..1], "telemetry:pcie", 0, "tx"), [1]);
    assert!(values(&streams[1..], "telemetry:power", 0, "milliwatts").is_empty());
    let power = values(&streams, "telemetry:power", 0, "milliwatts");
    // The quick ones go on: 97 in two seconds less the 60 ms of the first sweep, that one, and the last.
    assert_eq!(power.len(), 99);
    let took = values(&streams, "telemetry:pcie", 0, "took");
    assert!(took.iter().all(|t| *t == 30_001_000), "{took:?}");
    let bus = |device: usize| {
        let quantities = &finished.report.devices[device].quantities;
        quantities.iter().find(|q| q.quantity == "pcie").expect("a quantity").clone()
    };
    // Two queries of 30 ms and a little share a quarter of the time: each is made once in 13 periods
    // of 20 ms.
    assert_eq!(bus(0).every, 13);
    assert_eq!(bus(0).query_max_ns, 30_001_000);
    assert_eq!(values(&streams, "telemetry:pcie", 0, "tx").len() as u64, bus(0).samples);
    assert!((7..=9).contains(&bus(0).samples), "{:?}", bus(0));
    // A query that fails once is made again.
    assert_eq!((bus(1).failed, bus(1).unavailable.as_deref()), (1, None));
    assert!((6..=9).contains(&bus(1).samples), "{:?}", bus(1));
}

#[test]
fn the_last_sample_is_after_the_end() {
    // One sweep before the start and one at once; the next would be after the end.
    let (finished, streams) = sampled(Script::new(Duration::ZERO), Duration::from_secs(3));
    assert_eq!(values(&streams, "telemetry:energy", 0, "millijoules"), [1000, 2000, 3000]);
    assert_eq!((finished.report.sampler.sweeps, finished.report.sampler.missed_periods), (3, 0));
}

#[test]
fn a_driver_that_hangs_does_not_keep_the_run_from_ending() {
    let script = Script { hang_after: Some(30), ..Script::new(Duration::ZERO) };
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let trace = TraceFolder::new(scratch.path().to_owned(), [7; 16], false);
    let script = Arc::new(script);
    let mut telemetry =
        Telemetry::with(Arc::new(Monotonic), Duration::from_millis(1), vec![Ok(script.clone())], &trace);
    telemetry.start([1]);
    until(|| script.asked.load(Ordering::Relaxed) > 30);
    let finished = telemetry.finish_within(Duration::from_millis(50));
    assert!(finished.notes.iter().any(|n| n.contains("did not return")), "{:?}", finished.notes);
    assert_eq!(finished.report.devices.len(), 2, "what was known before is reported");
}

#[test]
fn a_missing_source_is_named_and_nothing_else_happens() {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let trace = TraceFolder::new(scratch.path().to_owned(), [7; 16], false);
    let missing = Missing { name: "toy", why: "no GPU telemetry".to_owned() };
    let mut telemetry =
        Telemetry::with(Arc::new(Monotonic), Duration::from_millis(1), vec![Err(missing)], &trace);
    telemetry.start([1]);
    let mut manifest = Manifest::default();
    telemetry.finish().complete(&mut manifest);
    assert_eq!(manifest.notes, ["no GPU telemetry"]);
    let report = manifest.telemetry.expect("a report");
    assert_eq!(report.sources[0].error.as_deref(), Some("no GPU telemetry"));
    assert_eq!((report.devices.len(), report.records), (0, 0));
    assert_eq!(fs::read_dir(scratch.path()).expect("a folder").count(), 0);
}
