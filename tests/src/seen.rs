//! What a trace says, read by our own reader, without any analysis.

use std::collections::BTreeMap;
use std::path::Path;

use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, Trace};
use hetrace_ctf::{Scalar, Value};

/// A distance in time that is not known.
const UNKNOWN: i64 = -(1 << 47);

/// A command on a device.
#[derive(Debug, Clone, Default)]
pub struct Command {
    /// `kernel`, `read` and so on; `untimed`.
    pub kind: String,
    /// Kernel's name.
    pub name: String,
    /// Process.
    pub pid: u32,
    /// Thread that enqueued it.
    pub cause_tid: u32,
    /// When that call began.
    pub cause: u64,
    /// Entered the queue.
    pub queued: u64,
    /// Was given to the device.
    pub submitted: u64,
    /// Started.
    pub start: u64,
    /// Ended.
    pub end: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// 0 or an error.
    pub status: i64,
    /// The queue's handle.
    pub queue: u64,
    /// The handle of the queue's context.
    pub context: u64,
    /// The API's own number of the queue.
    pub queue_number: u64,
    /// The device's handle.
    pub device: u64,
    /// The device's name.
    pub device_name: String,
    /// Global size.
    pub global: Vec<u64>,
}

/// Counts of a trace.
#[derive(Debug, Default)]
pub struct Seen {
    /// Calls that began, folds included, by process and function.
    pub calls: BTreeMap<u32, BTreeMap<String, u64>>,
    /// Calls that ended, folds included, by function.
    pub ended: BTreeMap<String, u64>,
    /// Times of entries by process and thread.
    pub entries: BTreeMap<(u32, u32), Vec<(u64, String)>>,
    /// Commands in the order of the streams.
    pub commands: Vec<Command>,
    /// All events.
    pub events: u64,
    /// Threads by process.
    pub threads: BTreeMap<u32, Vec<u32>>,
    /// How often a function was launched, of these how often timed, and bytes, by name and by number in the trace.
    pub launches: BTreeMap<(String, u64), [u64; 3]>,
    /// Where threads went to another step of a budget: one command in so many, and whether calls are added up.
    pub steps: Vec<(u64, bool)>,
    /// Events that are not in time order in their stream.
    pub disorder: u64,
    /// Events discarded, as the packets say.
    pub discarded: u64,
    /// Damage found.
    pub damage: Vec<String>,
    /// Names of devices by handle.
    pub devices: BTreeMap<u64, String>,
    /// Handle and name of each device by its number in the trace.
    numbered: BTreeMap<u64, (u64, String)>,
    /// Of each queue by its number in the trace: its handle, its context's, the API's number of it, and its device's
    /// number in the trace.
    queues: BTreeMap<u64, [u64; 4]>,
    /// Names of functions by number.
    functions: BTreeMap<u64, String>,
}

impl Seen {
    /// Reads a trace.
    pub fn read(folder: &Path) -> Seen {
        let trace = Trace::open(folder).expect("a trace that opens");
        let mut seen = Seen::default();
        for mut stream in trace.streams() {
            let mut last = 0;
            while let Some(event) = stream.next_event() {
                let event = match event {
                    Ok(event) => event,
                    Err(error) => {
                        seen.damage.push(error.to_string());
                        continue;
                    }
                };
                let number = |name: &str| event.get(name).and_then(Scalar::as_u64).unwrap_or(0);
                let context = |name: &str| {
                    event.get_in(Scope::PacketContext, name).and_then(Scalar::as_u64).unwrap_or(0) as u32
                };
                let time = event.timestamp().unwrap_or(0);
                seen.disorder += u64::from(time < last);
                last = time;
                seen.events += 1;
                let (pid, tid) = (context("vpid"), context("vtid"));
                let threads = seen.threads.entry(pid).or_default();
                if !threads.contains(&tid) {
                    threads.push(tid);
                }
                let name = event.class().name.as_str();
                if let Some(kind) = name.strip_prefix("device:") {
                    seen.device(kind, &event, time, pid);
                } else if name.ends_with(":budget_step") {
                    seen.steps.push((number("one_in"), number("summed") != 0));
                } else if let Some((_, function)) = name.split_once(':') {
                    seen.call(pid, tid, time, function, number("count"));
                }
            }
            seen.discarded += stream.losses().events;
        }
        // A thread that went on in another ring is in two streams, of which either may be read first.
        for entries in seen.entries.values_mut() {
            entries.sort_by_key(|(time, _)| *time);
        }
        seen.resolve();
        seen
    }

    /// A definition or a command, with numbers for now: definitions are in
    /// files of their own, which may come later.
    fn device(&mut self, kind: &str, event: &Event<'_, '_>, time: u64, pid: u32) {
        let number = |name: &str| event.get(name).and_then(Scalar::as_u64).unwrap_or(0);
        let signed = |name: &str| event.get(name).and_then(Scalar::as_i64).unwrap_or(0);
        let text = |name: &str| event.get(name).and_then(Scalar::as_str).unwrap_or_default().to_owned();
        match kind {
            "device" => {
                self.devices.insert(number("handle"), text("name"));
                self.numbered.insert(number("device"), (number("handle"), text("name")));
            }
            "queue" => {
                let about = ["handle", "context", "number", "device"].map(number);
                self.queues.insert(number("queue"), about);
            }
            "function" => {
                self.functions.insert(number("function"), text("name"));
            }
            "property" => {}
            "launches" => {
                let last = ["launches", "timed", "bytes"].map(number);
                self.launches.insert((String::new(), number("function")), last);
            }
            _ => {
                let fields = event.fields().expect("fields");
                let list = |name: &str| match fields.get(name) {
                    Some(Value::Array(items)) => items.clone(),
                    _ => Vec::new(),
                };
                let unsigned = |value: &Value| match value {
                    Value::Unsigned(n) => Some(*n),
                    _ => None,
                };
                let status = match list("status").first() {
                    Some(Value::Signed(status)) => *status,
                    _ => 0,
                };
                let function = list("function").first().and_then(unsigned).unwrap_or(number("function"));
                let before = |name: &str| time.saturating_add_signed(-signed(name));
                let unknown = signed("cause_before") == UNKNOWN;
                self.commands.push(Command {
                    kind: kind.to_owned(),
                    name: function.to_string(),
                    pid,
                    cause_tid: number("cause_tid") as u32,
                    cause: if unknown { 0 } else { before("cause_before") },
                    queued: before("queued_before"),
                    submitted: before("submitted_before"),
                    start: time,
                    end: time.saturating_add_signed(signed("duration")),
                    bytes: number("bytes"),
                    status,
                    queue: number("queue"),
                    context: 0,
                    queue_number: 0,
                    device: 0,
                    device_name: String::new(),
                    global: list("global").iter().filter_map(unsigned).collect(),
                });
            }
        }
    }

    /// Names and handles for the numbers of commands.
    fn resolve(&mut self) {
        let named = |(key, counts): ((String, u64), [u64; 3])| {
            let name = self.functions.get(&key.1).cloned().unwrap_or_default();
            ((name, key.1), counts)
        };
        self.launches = std::mem::take(&mut self.launches).into_iter().map(named).collect();
        for command in &mut self.commands {
            let number = command.name.parse().unwrap_or(0);
            command.name = self.functions.get(&number).cloned().unwrap_or_default();
            let about = self.queues.get(&command.queue).copied().expect("a queue that is defined");
            let [queue, context, own, device] = about;
            (command.queue, command.context, command.queue_number) = (queue, context, own);
            let device = self.numbered.get(&device).cloned().expect("a device that is defined");
            (command.device, command.device_name) = device;
        }
    }

    fn call(&mut self, pid: u32, tid: u32, time: u64, event: &str, count: u64) {
        let add = |map: &mut BTreeMap<String, u64>, name: &str, n: u64| {
            *map.entry(name.to_owned()).or_default() += n;
        };
        let calls = self.calls.entry(pid).or_default();
        if let Some(name) = event.strip_suffix("_entry") {
            add(calls, name, 1);
            self.entries.entry((pid, tid)).or_default().push((time, name.to_owned()));
        } else if let Some(name) = event.strip_suffix("_exit") {
            add(&mut self.ended, name, 1);
        } else if let Some(name) = event.strip_suffix("_fold") {
            add(calls, name, count);
            add(&mut self.ended, name, count);
        }
    }

    /// Calls by function, all processes together.
    pub fn total(&self) -> BTreeMap<String, u64> {
        let mut total = BTreeMap::new();
        for calls in self.calls.values() {
            for (name, count) in calls {
                *total.entry(name.clone()).or_default() += count;
            }
        }
        total
    }
}
