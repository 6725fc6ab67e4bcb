//! Commands on devices: their clocks related to the host's, and put in order.
//!
//! Programs report commands late and unsorted, in the device's time. They are
//! kept back until nothing older can come, converted by what is
//! known of the clock by then, and written in the order of their start.

use std::collections::{HashMap, HashSet};

use hetrace_ring::abi::{
    COMMAND_KINDS, ClockRecord, CommandRecord, ObjectRecord, PendingRecord, QueueRecord, special,
};

use crate::manifest::DeviceClockReport;
use crate::output::{Identity, Stream, TraceFolder};
use crate::resequence::Resequencer;
use crate::schema::{DEVICE_STREAM, QUEUE_EVENT, UNTIMED_EVENT, objects};
use crate::time::{DeviceClock, HostClock};

/// Records held back before the oldest is written whatever may come.
const HELD: usize = 50_000;
/// How long a record is held back at most.
const PATIENCE: u64 = 2_000_000_000;

/// A record on its way into a device stream: its number and fields.
type Ready = (u16, Vec<u8>);

/// All devices of one process.
#[derive(Debug)]
pub struct Devices {
    identity: Identity,
    clocks: HashMap<u64, DeviceClock>,
    names: HashMap<u64, String>,
    /// Devices that ran commands.
    used: HashSet<u64>,
    /// Largest error that a clock had when times were converted by it.
    worst: HashMap<u64, u64>,
    /// Commands not converted yet.
    raw: Vec<(CommandRecord, Vec<u8>)>,
    order: Resequencer<Ready>,
    streams: Vec<Stream>,
    /// Contents stored by the program: name and size.
    contents: HashMap<u64, u64>,
    /// Nothing that starts before this can come any more.
    safe: u64,
    lost: u64,
}

impl Devices {
    /// The devices of a process.
    pub fn new(identity: Identity) -> Self {
        Devices {
            identity: Identity { tid: identity.pid, ..identity },
            clocks: HashMap::new(),
            names: HashMap::new(),
            used: HashSet::new(),
            worst: HashMap::new(),
            raw: Vec::new(),
            order: Resequencer::with_capacity_limit(HELD),
            streams: Vec::new(),
            contents: HashMap::new(),
            safe: 0,
            lost: 0,
        }
    }

    /// Takes a record that is not a call. Unknown ones are counted as lost.
    pub fn take(&mut self, id: u16, time: u64, body: &[u8], host: &HostClock) {
        match id {
            special::COMMAND => match split::<CommandRecord>(body) {
                Some((command, name)) => self.command(command, name, host),
                None => self.lost += 1,
            },
            special::CLOCK => {
                if let Some((clock, _)) = split::<ClockRecord>(body) {
                    let (before, after) = (host.to_ns(clock.before), host.to_ns(clock.after));
                    let middle = before + after.saturating_sub(before) / 2;
                    let doubt = after.saturating_sub(before) / 2 + 1;
                    self.clocks.entry(clock.device).or_default().direct(clock.device_time, middle, doubt);
                }
            }
            special::QUEUE => {
                if let Some((queue, name)) = split::<QueueRecord>(body) {
                    self.queue(queue, name, time);
                }
            }
            special::PENDING => {
                if let Some((pending, _)) = split::<PendingRecord>(body) {
                    self.lost += pending.lost;
                    let oldest = if pending.oldest == 0 { time } else { host.to_ns(pending.oldest) };
                    self.safe = self.safe.max(oldest.min(time));
                }
            }
            special::OBJECT => match split::<ObjectRecord>(body) {
                Some((object, parts)) => self.object(object, parts, time, host),
                None => self.lost += 1,
            },
            _ => {}
        }
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
        let mut push = |record: &ObjectRecord, parts: &[&[u8]]| {
            if let Some(body) = objects::fields(record, parts, cause) {
                self.order.push(time, (objects::FIRST + record.what as u16, body));
            }
        };
        push(&record, &parts);
        if let Some(cut) = objects::truncated(&record) {
            push(&cut, &[objects::name(record.what).unwrap_or_default().as_bytes()]);
        }
    }

    /// Contents that the program says it has stored: name and size.
    pub fn contents(&self) -> &HashMap<u64, u64> {
        &self.contents
    }

    fn command(&mut self, command: CommandRecord, name: &[u8], host: &HostClock) {
        self.used.insert(command.device);
        let clock = self.clocks.entry(command.device).or_default();
        if command.times_error == 0 && command.queued != 0 {
            // The command entered its queue during the call that enqueued it,
            // and had ended when it was seen to be complete.
            clock.lower(command.queued, host.to_ns(command.cause));
            clock.upper(command.queued, host.to_ns(command.returned));
            if command.end != 0 {
                clock.upper(command.end, host.to_ns(command.observed));
            }
        }
        self.raw.push((command, text(name).to_vec()));
    }

    fn queue(&mut self, queue: QueueRecord, name: &[u8], time: u64) {
        self.names.insert(queue.device, String::from_utf8_lossy(text(name)).into_owned());
        let resolution = u32::try_from(queue.resolution).unwrap_or(u32::MAX);
        self.clocks.entry(queue.device).or_insert_with(|| DeviceClock::with_resolution(resolution));
        let mut body = Vec::new();
        for word in [queue.queue, queue.context, queue.device, queue.properties] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        put_text(&mut body, text(name));
        self.order.push(time, (QUEUE_EVENT, body));
    }

    /// Writes what can be written, at the host's time `now`.
    pub fn advance(&mut self, now: u64, folder: &TraceFolder, host: &HostClock) {
        self.convert(host);
        let error = self.clocks.values().filter(|c| c.is_known()).map(DeviceClock::error_ns).max();
        let safe = self.safe.saturating_sub(error.unwrap_or(0)).max(now.saturating_sub(PATIENCE));
        let (streams, identity) = (&mut self.streams, self.identity);
        self.order.advance(safe, &mut |run, key, ready| write(streams, folder, identity, run, key, &ready));
        self.streams.iter_mut().for_each(Stream::flush);
    }

    /// Writes everything.
    pub fn finish(&mut self, folder: &TraceFolder, host: &HostClock) {
        self.convert(host);
        let (streams, identity) = (&mut self.streams, self.identity);
        self.order.finish(&mut |run, key, ready| write(streams, folder, identity, run, key, &ready));
        self.streams.iter_mut().for_each(Stream::flush);
    }

    fn convert(&mut self, host: &HostClock) {
        for (command, name) in std::mem::take(&mut self.raw) {
            let (key, ready) = self.ready(&command, &name, host);
            self.order.push(key, ready);
        }
        for (device, clock) in self.clocks.iter().filter(|(_, c)| c.is_known()) {
            let worst = self.worst.entry(*device).or_default();
            *worst = clock.error_ns().max(*worst);
        }
    }

    fn ready(&self, command: &CommandRecord, name: &[u8], host: &HostClock) -> (u64, Ready) {
        let kind = (command.kind as usize).min(COMMAND_KINDS.len() - 1);
        let mut body = Vec::with_capacity(128);
        let cause = host.to_ns(command.cause);
        let common = |body: &mut Vec<u8>| {
            put_text(body, name);
            body.extend_from_slice(&command.queue.to_le_bytes());
            body.extend_from_slice(&command.device.to_le_bytes());
            body.extend_from_slice(&command.cause_tid.to_le_bytes());
            body.extend_from_slice(&cause.to_le_bytes());
            body.extend_from_slice(&command.bytes.to_le_bytes());
            body.extend_from_slice(&command.status.to_le_bytes());
        };
        let clock = self.clocks.get(&command.device);
        // A command that failed before it ran has no end, whatever it has else.
        let timed = command.times_error == 0 && command.end != 0;
        let (Some(clock), true) = (clock, timed) else {
            put_text(&mut body, COMMAND_KINDS[kind].as_bytes());
            common(&mut body);
            body.extend_from_slice(&command.times_error.to_le_bytes());
            return (host.to_ns(command.observed), (UNTIMED_EVENT, body));
        };
        common(&mut body);
        // A driver that does not fill in a time gives 0: it counts as the next.
        let end = clock.to_host(command.end);
        let start = if command.start == 0 { end } else { clock.to_host(command.start) };
        let submitted = if command.submitted == 0 { start } else { clock.to_host(command.submitted) };
        let queued = if command.queued == 0 { submitted } else { clock.to_host(command.queued) };
        for time in [queued, submitted, end] {
            body.extend_from_slice(&time.to_le_bytes());
        }
        if COMMAND_KINDS[kind] == "kernel" {
            for row in &command.geometry {
                let dimensions = usize::from(command.dimensions).min(3);
                // No offset and no local size are as good as none given.
                let shown = if row.iter().all(|n| *n == 0) { 0 } else { dimensions };
                body.push(shown as u8);
                for size in row.iter().take(shown) {
                    body.extend_from_slice(&size.to_le_bytes());
                }
            }
        }
        (start, (kind as u16, body))
    }

    /// Commands without a record.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The files written.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// How well each device's clock is known.
    pub fn reports(&self) -> Vec<DeviceClockReport> {
        let report = |(device, clock): (&u64, &DeviceClock)| DeviceClockReport {
            pid: self.identity.pid,
            device: format!("{device:#x}"),
            name: self.names.get(device).cloned().unwrap_or_default(),
            error_ns: self.worst.get(device).copied(),
            epochs: clock.epochs(),
        };
        // A device that ran nothing has a clock that nobody asked for.
        self.clocks.iter().filter(|(device, _)| self.used.contains(device)).map(report).collect()
    }
}

fn write(
    streams: &mut Vec<Stream>,
    folder: &TraceFolder,
    identity: Identity,
    run: usize,
    key: u64,
    ready: &Ready,
) {
    while streams.len() <= run {
        let number = streams.len();
        let suffix = if number == 0 { String::new() } else { format!("-late-{number}") };
        let name = format!("device-{}{suffix}", identity.pid);
        let mut stream =
            Stream::new(folder, name, DEVICE_STREAM, u64::from(identity.pid) << 16 | number as u64);
        stream.identify(identity);
        streams.push(stream);
    }
    let (id, body) = ready;
    streams[run].record(*id, key).extend_from_slice(body);
}

fn put_text(body: &mut Vec<u8>, text: &[u8]) {
    body.extend_from_slice(text);
    body.push(0);
}

/// Text up to its NUL.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

/// A plain struct and what stands behind it. `None` if the bytes are too few.
fn split<T: Plain>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    // SAFETY: enough bytes, of a type that is valid for all bit patterns.
    Some((unsafe { head.as_ptr().cast::<T>().read_unaligned() }, rest))
}

/// Marker of structs of integers only.
///
/// # Safety
/// Every bit pattern is a valid value.
unsafe trait Plain: Copy {}

// SAFETY: integers only.
unsafe impl Plain for CommandRecord {}
// SAFETY: integers only.
unsafe impl Plain for ClockRecord {}
// SAFETY: integers only.
unsafe impl Plain for QueueRecord {}
// SAFETY: integers only.
unsafe impl Plain for ObjectRecord {}
// SAFETY: integers only.
unsafe impl Plain for PendingRecord {}
