//! Streams: the device of each, and the keys of queues.

use hetrace_interpose::record_with_text;
use hetrace_interpose::ring::abi::{QueueRecord, special};
use hetrace_interpose::table::Table;
use hetrace_interpose::thread_id;
use hetrace_interpose::window::session_key;

use super::{devices, profiler};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// The default stream that waits for others, and that of the thread.
const LEGACY: P = 1 as P;
const PER_THREAD: P = 2 as P;
/// In keys of queues that are no handles.
const DEFAULT: u64 = 1 << 63;
const OF_THREAD: u64 = 1 << 31;
/// Resolution of events' times, in nanoseconds.
const RESOLUTION: u64 = 1000;
const CAPTURE_ACTIVE: u32 = 1;

/// Handle → 1 more than the ordinal of its device.
static DEVICES: Table<16384> = Table::new();
/// Key → the session in which the queue was described.
static DESCRIBED: Table<16384> = Table::new();

/// The stream of a command.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// What events are recorded in.
    pub handle: P,
    pub device: u32,
    pub key: u64,
}

/// What is put into a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Free,
    /// It becomes part of a graph.
    Captured,
    /// Nobody knows; the program's call may fail.
    Unknown,
}

/// Whether what a stream is given runs, or is captured.
pub fn state(stream: P) -> State {
    let mut status = 0;
    // SAFETY: the stream that the program uses, and room for the answer.
    match unsafe { real::hipStreamIsCapturing(stream, &raw mut status) } {
        0 if status == 0 => State::Free,
        0 if status == CAPTURE_ACTIVE => State::Captured,
        _ => State::Unknown,
    }
}

/// The stream that a handle means in a function of which the default stream is one of each thread, or is not.
pub fn meant(handle: P, per_thread: bool) -> P {
    match handle {
        LEGACY => null_mut(),
        handle if handle.is_null() && per_thread => PER_THREAD,
        handle => handle,
    }
}

/// What is known of a stream; `None` if it can't be known.
pub fn find(handle: P) -> Option<Stream> {
    let is_default = handle <= PER_THREAD;
    let device = match DEVICES.get(handle as u64).filter(|_| !is_default) {
        Some(device) => (device - 1) as u32,
        None if is_default => devices::current()?,
        None => ask(handle)?,
    };
    let number = if handle == PER_THREAD { OF_THREAD | u64::from(thread_id()) } else { 1 };
    let key = if is_default { DEFAULT | devices::key(device) << 32 | number } else { handle as u64 };
    Some(Stream { handle, device, key })
}

/// A stream that was made before we looked: since 5.6 it can be asked. Before, it is most likely one of the current
/// device.
#[cold]
fn ask(stream: P) -> Option<u32> {
    let mut device = 0;
    // SAFETY: a live stream, and room for the answer.
    let device = match unsafe { real::hipStreamGetDevice(stream, &raw mut device) } {
        0 => device.unsigned_abs(),
        _ => devices::current()?,
    };
    DEVICES.set(stream as u64, u64::from(device) + 1);
    Some(device)
}

/// The program was given a stream of the current device. Its handle may have been another's.
pub fn made(stream: P) {
    gone(stream);
    if let Some(device) = devices::current() {
        DEVICES.set(stream as u64, u64::from(device) + 1);
    }
}

/// A stream is about to be destroyed.
pub fn gone(stream: P) {
    DEVICES.remove(stream as u64);
    DESCRIBED.remove(stream as u64);
}

impl Stream {
    /// Describes its queue, once in a session.
    pub fn see(&self) {
        if DESCRIBED.get(self.key) == Some(session_key()) {
            return;
        }
        DESCRIBED.set(self.key, session_key());
        let mut priority = 0;
        // SAFETY: a live stream, and room for the answer.
        unsafe { real::hipStreamGetPriority(self.handle, &raw mut priority) };
        let is_own = self.key & DEFAULT != 0;
        let record = QueueRecord {
            queue: self.key,
            device: devices::key(self.device),
            // The collector's are nanoseconds as the device says them.
            resolution: if profiler::is_on() { 1 } else { RESOLUTION },
            priority,
            number: if is_own { self.key as u32 } else { 0 },
            handle: match self.handle {
                _ if !is_own => 0,
                handle if handle.is_null() => LEGACY as u64,
                handle => handle as u64,
            },
            ..QueueRecord::default()
        };
        record_with_text(special::QUEUE, &record, c"");
    }
}
