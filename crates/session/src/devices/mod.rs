//! Commands on devices: joined with their calls, their clocks related to the
//! host's, and put in order.
//!
//! Programs report commands late and unsorted, some in the device's time, some
//! without their call. They are kept back until nothing older can come,
//! converted by what is known by then, and written in the order of their start.
//!
//! ```text
//!  ring ──► take ──► raw ──► resolve ──► Resequencer ──► device-PID, -late-N
//!             │               ▲   ▲  call, clock, numbers
//!             ├─ links ───────┘   │
//!             └─ names ───────────┴──────────────────► device-PID-names
//! ```

use std::sync::Arc;
use std::time::Duration;

use hetrace_format::class::DEVICE_STREAM;
use hetrace_format::command::is_command;
use hetrace_ring::abi::{
    ClockRecord, CommandRecord, CountRecord, DeviceRecord, FrameRecord, FunctionRecord, LinkRecord,
    ModuleRecord, ObjectRecord, PendingRecord, PropertyRecord, PyFrameRecord, QueueRecord, special,
};

use crate::apis::Name;
use crate::manifest;
use crate::output::{Identity, Stream, TraceFolder};
use crate::resequence::Resequencer;
use crate::symbols::Symbols;
use crate::time::{DeviceClock, HostClock};
use crate::trigger::Ran;

mod codes;
mod convert;
mod hash;
mod key;
mod links;
mod names;
mod plain;
mod resolve;

use hash::ByNumber;
use key::Key;
use links::{Call, Links};
use names::{Names, Numbers};
use plain::{split, text};
use resolve::{Order, Raw};

/// Records held back before the oldest is written whatever may come.
const HELD: usize = 200_000;
/// How long a record is held back at most.
const PATIENCE: u64 = 2_000_000_000;
/// The same where an API's own collector reports, a buffer at a time.
const COLLECTOR_PATIENCE: u64 = 4_000_000_000;
/// Instance of the stream of definitions: none of late commands comes so far.
const NAMES_INSTANCE: u64 = 0xffff;

/// A record on its way into a device stream: its number and fields.
type Ready = (u16, Vec<u8>);

/// What the devices of all processes share.
#[derive(Debug, Default)]
pub struct Shared {
    numbers: Numbers,
    apis: Vec<Name>,
    symbols: Symbols,
}

impl Shared {
    /// For a session with these APIs.
    pub fn new(apis: Vec<Name>) -> Self {
        Shared { numbers: Numbers::default(), apis, symbols: Symbols::default() }
    }

    fn api(&self, api: usize) -> &str {
        self.apis.get(api).map_or("", |name| &**name)
    }
}

/// A record that is no call.
#[derive(Debug, Clone, Copy)]
pub struct Special<'b> {
    /// One of [`special`].
    pub id: u16,
    /// Number of the API in whose ring it stands.
    pub api: usize,
    /// The ring's thread.
    pub tid: u32,
    /// Its time in nanoseconds, not before that of the record before it.
    pub time: u64,
    /// Its own time in nanoseconds.
    pub own_time: u64,
    /// What follows its head.
    pub body: &'b [u8],
}

/// How far an API has reported.
#[derive(Debug, Clone, Copy, Default)]
struct Reported {
    /// Nothing that starts before this can come any more.
    safe: u64,
    /// A collector of the API reports, not each call.
    collects: bool,
}

/// All devices of one process.
#[derive(Debug)]
pub struct Devices {
    identity: Identity,
    generation: u64,
    shared: Arc<Shared>,
    clocks: ByNumber<Key, DeviceClock>,
    names: Names,
    links: Links,
    /// Devices that ran commands, and whether all came in the host's time.
    used: ByNumber<Key, bool>,
    /// Largest error that a clock had when times were converted by it.
    worst: ByNumber<Key, u64>,
    /// What was wrong with the order of call and command, by device.
    orders: ByNumber<Key, Order>,
    /// Commands not resolved yet.
    raw: Vec<Raw>,
    order: Resequencer<Ready>,
    /// Commands in `order`, where other records are, too.
    ordering: usize,
    streams: Vec<Stream>,
    definitions: Option<Stream>,
    /// Contents stored by the program: name and size.
    contents: ByNumber<u64, u64>,
    reported: ByNumber<usize, Reported>,
    lost: u64,
    without_call: u64,
    /// Commands that ended since they were taken, for triggers; none if nobody asks for them.
    ran: Option<Vec<Ran>>,
}

impl Devices {
    /// Returns the devices of a process, before which `generation` others had its id.
    pub fn new(identity: Identity, generation: u64, shared: &Arc<Shared>) -> Self {
        Devices {
            identity: Identity { tid: identity.pid, ..identity },
            generation,
            shared: Arc::clone(shared),
            clocks: ByNumber::default(),
            names: Names::default(),
            links: Links::default(),
            used: ByNumber::default(),
            worst: ByNumber::default(),
            orders: ByNumber::default(),
            raw: Vec::new(),
            order: Resequencer::with_capacity_limit(HELD),
            ordering: 0,
            streams: Vec::new(),
            definitions: None,
            contents: ByNumber::default(),
            reported: ByNumber::default(),
            lost: 0,
            without_call: 0,
            ran: None,
        }
    }

    /// Keeps commands that end for triggers.
    pub fn watched(self, is_watched: bool) -> Self {
        Devices { ran: is_watched.then(Vec::new), ..self }
    }

    /// Returns the commands that ended since this was asked last.
    pub fn take_ran(&mut self) -> Vec<Ran> {
        self.ran.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Takes a record. Those that are cut short are counted as lost. `outer` is what the
    /// launcher calls a thread that the process has this id for.
    pub fn take(&mut self, record: Special<'_>, host: &HostClock, outer: impl FnMut(u32) -> u32) {
        if self.take_whole(record, host, outer).is_none() {
            self.lost = self.lost.saturating_add(1);
        }
    }

    fn take_whole(
        &mut self,
        record: Special<'_>,
        host: &HostClock,
        mut outer: impl FnMut(u32) -> u32,
    ) -> Option<()> {
        let Special { id, api, tid, time, own_time, body } = record;
        let shared = &*self.shared;
        let key = |value| Key { api, value };
        let reported = self.reported.entry(api).or_default();
        match id {
            special::COMMAND => {
                let (mut command, name) = split::<CommandRecord>(body)?;
                command.cause_tid = outer(command.cause_tid);
                reported.collects |= command.correlation != 0;
                self.command(Raw::new(command, text(name), api, time), host);
            }
            special::LINK => {
                reported.collects = true;
                let (link, _) = split::<LinkRecord>(body)?;
                self.links.insert(key(link.correlation), Call { tid, entry: own_time });
            }
            special::CLOCK => {
                let (clock, _) = split::<ClockRecord>(body)?;
                let (before, after) = (host.to_ns(clock.before), host.to_ns(clock.after));
                let middle = before.saturating_add(after.saturating_sub(before) / 2);
                let doubt = after.saturating_sub(before) / 2 + 1;
                self.clocks.entry(key(clock.device)).or_default().direct(clock.device_time, middle, doubt);
            }
            special::QUEUE => {
                let (queue, name) = split::<QueueRecord>(body)?;
                let resolution = u32::try_from(queue.resolution).unwrap_or(u32::MAX);
                let clock = || DeviceClock::with_resolution(resolution);
                self.clocks.entry(key(queue.device)).or_insert_with(clock);
                self.names.define_queue(shared, api, &queue, text(name), time);
            }
            special::PENDING => {
                let (pending, _) = split::<PendingRecord>(body)?;
                self.lost = self.lost.saturating_add(pending.lost);
                let oldest = if pending.oldest == 0 { time } else { host.to_ns(pending.oldest) };
                reported.safe = reported.safe.max(oldest.min(time));
            }
            special::OBJECT => {
                let (object, parts) = split::<ObjectRecord>(body)?;
                self.object(object, parts, time, host);
            }
            _ => return self.definition(&record),
        }
        Some(())
    }

    /// What numbers, handles and ids stand for.
    fn definition(&mut self, record: &Special<'_>) -> Option<()> {
        let &Special { id, api, time, body, .. } = record;
        let shared = &*self.shared;
        let key = |value| Key { api, value };
        match id {
            special::DEVICE => {
                let (device, name) = split::<DeviceRecord>(body)?;
                self.names.define_device(shared, api, &device, text(name), time);
            }
            special::PROPERTY => {
                let (property, name) = split::<PropertyRecord>(body)?;
                self.names.define_property(shared, key(property.device), text(name), property.value, time);
            }
            special::FUNCTION => {
                let (function, name) = split::<FunctionRecord>(body)?;
                self.names.define_function(shared, api, &function, text(name), time);
            }
            special::PY_FRAME => {
                let (frame, texts) = split::<PyFrameRecord>(body)?;
                self.names.define_py_frame(&frame, texts, time);
            }
            special::MODULE => {
                let (module, texts) = split::<ModuleRecord>(body)?;
                self.names.define_module(shared, &module, texts, time);
            }
            special::FRAME => {
                let (frame, _) = split::<FrameRecord>(body)?;
                self.names.define_frame(shared, &frame, time);
            }
            special::COUNT => {
                let (count, _) = split::<CountRecord>(body)?;
                self.names.define_launches(shared, api, &count, time);
            }
            _ => {}
        }
        Some(())
    }

    /// A call says that it returns to an address of the program's code.
    pub fn called_from(&mut self, code: u64, time: u64) {
        self.names.called_from(&self.shared, code, time);
    }

    /// What is to be said of names that could not be found out, once.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.names.take_notes()
    }

    fn object(&mut self, record: ObjectRecord, mut rest: &[u8], time: u64, host: &HostClock) {
        let mut parts = [&[][..]; hetrace_ring::abi::OBJECT_PARTS];
        for (part, length) in parts.iter_mut().zip(record.parts) {
            // What is cut short by a damaged record is empty.
            (*part, rest) = rest.split_at_checked(length.into()).unwrap_or_default();
        }
        if record.hash != 0 {
            self.contents.insert(record.hash, record.stored);
        }
        let cause = if record.cause == 0 { 0 } else { host.to_ns(record.cause) };
        if let Some(object) = convert::object(&record, parts, cause) {
            self.order.push(time, object.encode());
            if let Some(cut) = object.truncated() {
                self.order.push(time, cut.encode());
            }
        }
    }

    /// Contents that the program says it has stored: name and size.
    pub fn contents(&self) -> &ByNumber<u64, u64> {
        &self.contents
    }

    /// Writes what can be written, at the host's time `now`.
    pub fn advance(&mut self, now: u64, folder: &TraceFolder, host: &HostClock) {
        self.convert(false, host);
        self.define(folder);
        let watermark = self.watermark(now, host);
        let (streams, identity) = (&mut self.streams, (self.identity, self.generation));
        let ordering = &mut self.ordering;
        let mut out = |run, key, ready: Ready| {
            *ordering -= usize::from(is_command(ready.0));
            write(streams, folder, identity, run, key, &ready);
        };
        self.order.advance(watermark, &mut out);
        self.streams.iter_mut().for_each(Stream::flush);
    }

    /// Writes all that is resolved, at once: for a snapshot. What comes later and is older goes into a stream of its own.
    pub fn press(&mut self, folder: &TraceFolder, host: &HostClock) {
        self.write_all(false, folder, host);
    }

    /// Writes everything.
    ///
    /// `patience` is how long it waits for names of functions.
    pub fn finish(&mut self, folder: &TraceFolder, host: &HostClock, patience: Duration) {
        self.names.take_symbols(patience);
        self.write_all(true, folder, host);
    }

    /// Whether names of functions are being looked for.
    pub fn is_naming(&self) -> bool {
        self.names.is_naming()
    }

    fn write_all(&mut self, all: bool, folder: &TraceFolder, host: &HostClock) {
        self.convert(all, host);
        self.define(folder);
        let (streams, identity) = (&mut self.streams, (self.identity, self.generation));
        self.order.finish(&mut |run, key, ready| write(streams, folder, identity, run, key, &ready));
        self.ordering = 0;
        self.streams.iter_mut().for_each(Stream::flush);
    }

    /// Nothing before this will come any more, or it has been waited for long
    /// enough. What one API says of its commands says nothing of another's.
    fn watermark(&self, now: u64, host: &HostClock) -> u64 {
        let error = self.clocks.values().filter(|c| c.is_known()).map(DeviceClock::error_ns).max();
        let of = |api: &Reported| {
            let patience = if api.collects { COLLECTOR_PATIENCE } else { PATIENCE };
            api.safe.saturating_sub(error.unwrap_or(0)).max(now.saturating_sub(patience))
        };
        let apis = self.reported.values().map(of).min().unwrap_or(now.saturating_sub(PATIENCE));
        // These have come, and will be ready in a moment.
        let waiting = self.raw.iter().map(|raw| self.time_of(raw, host)).min();
        waiting.map_or(apis, |waiting| apis.min(waiting))
    }

    /// Writes definitions: at once, so that they are there before what refers
    /// to them. One that comes late gets the time of the one before it.
    fn define(&mut self, folder: &TraceFolder) {
        self.names.take_symbols(Duration::ZERO);
        let fresh = self.names.take_fresh();
        if fresh.is_empty() {
            return;
        }
        let identity = self.identity;
        let stream = self.definitions.get_or_insert_with(|| {
            let name = format!("device-{}-names", identity.pid);
            let instance = instance(identity, self.generation, NAMES_INSTANCE);
            let mut stream = Stream::new(folder, name, DEVICE_STREAM, instance);
            stream.identify(identity);
            stream
        });
        for (time, id, body) in fresh {
            let time = time.max(stream.last());
            stream.record(id, time).extend_from_slice(&body);
        }
        stream.flush();
    }

    /// Commands that were taken and are not written.
    pub fn waiting(&self) -> usize {
        self.raw.len() + self.ordering
    }

    /// Commands without a record.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Commands whose call is not known, though they say that there is one.
    pub fn without_call(&self) -> u64 {
        self.without_call
    }

    /// Returns the files written.
    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().chain(&self.definitions)
    }

    /// Returns how well each device's times are known. A device that ran nothing has a
    /// clock that nobody asked for.
    pub fn reports(&self) -> Vec<manifest::DeviceClock> {
        let mut used: Vec<_> = self.used.iter().map(|(device, host)| (*device, *host)).collect();
        used.sort_unstable();
        let report = |(device, host_clock): (Key, bool)| {
            let order = self.orders.get(&device).copied().unwrap_or_default();
            manifest::DeviceClock {
                pid: self.identity.pid.into(),
                api: self.shared.api(device.api).to_owned(),
                handle: device.value,
                name: self.names.device_name(device),
                error_ns: self.worst.get(&device).copied(),
                epochs: if host_clock { 0 } else { self.clocks.get(&device).map_or(0, DeviceClock::epochs) },
                host_clock,
                corrected: order.corrected,
                largest_correction_ns: order.largest_ns,
                impossible_order: order.impossible,
            }
        };
        used.into_iter().map(report).collect()
    }
}

/// Number of a stream, which no other of its class has.
fn instance(identity: Identity, generation: u64, number: u64) -> u64 {
    generation << 48 | u64::from(identity.pid) << 16 | number
}

fn write(
    streams: &mut Vec<Stream>,
    folder: &TraceFolder,
    (identity, generation): (Identity, u64),
    run: usize,
    key: u64,
    ready: &Ready,
) {
    while streams.len() <= run {
        let number = streams.len();
        let suffix = if number == 0 { String::new() } else { format!("-late-{number}") };
        let name = format!("device-{}{suffix}", identity.pid);
        let mut stream =
            Stream::new(folder, name, DEVICE_STREAM, instance(identity, generation, number as u64));
        stream.identify(identity);
        streams.push(stream);
    }
    let (id, body) = ready;
    streams[run].record(*id, key).extend_from_slice(body);
}

#[cfg(test)]
mod tests;
