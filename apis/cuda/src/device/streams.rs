//! Streams: to which context each belongs, and the keys of queues.
//!
//! Streams are found in [`Table`]s and recorded one at a time ([`Claim`]); loom explores the interleavings of both.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hetrace_interpose::commands::{Claim, Local};
use hetrace_interpose::ring::abi::{QueueRecord, special};
use hetrace_interpose::table::Table;
use hetrace_interpose::thread_id;
use hetrace_interpose::window::session_number;

use super::contexts::{self, Context, EPOCH};
use super::record::{Note, send};
use super::{devices, driver, queue_key};
use crate::generated::prelude::{P, null_mut};

/// Keys of queues that were recorded, and the session in which they were.
static RECORDED: Table<16384> = Table::new();
/// A thread records one: each is recorded once, for a second record is another queue.
static RECORDING: Claim = Claim::new();
/// Number of a stream → its handle; what the program was handed out.
static HANDLES: Table<16384> = Table::new();
/// Thread and context → that its default stream is in [`HANDLES`].
static OWN_REMEMBERED: Table<4096> = Table::new();
/// Number of a stream → its [`Traits`], asked when it was made: a collector reports
/// what a stream did when the program may have destroyed it.
static TRAITS: Table<16384> = Table::new();
/// Keys of streams that ended, so that the tables do not fill up in programs that make
/// them without end. Records of the latest may still come.
static ENDED: [AtomicU64; 4096] = [const { AtomicU64::new(0) }; 4096];
static ENDS: AtomicUsize = AtomicUsize::new(0);
/// Handle → number, where the driver has none.
static OWN: Table<4096> = Table::new();
static NEXT: AtomicU32 = AtomicU32::new(16);
/// Resolution of events' times, as the driver's documentation has it.
const RESOLUTION: u64 = 500;

/// What is known of the stream of a command.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    handle: P,
    /// The context that was current, for a default stream.
    current: P,
    epoch: u32,
    pub generation: u32,
    pub key: u64,
    context: Option<&'static Context>,
}

/// What a stream was made with.
#[derive(Debug, Clone, Copy, Default)]
struct Traits {
    flags: u32,
    priority: i32,
}

impl Traits {
    /// Asks the driver about a stream that lives.
    fn of(stream: P) -> Traits {
        let mut traits = Traits::default();
        // SAFETY: a live stream and room for the answers.
        unsafe {
            driver::cuStreamGetFlags(stream, &mut traits.flags);
            driver::cuStreamGetPriority(stream, &mut traits.priority);
        }
        traits
    }

    fn pack(self) -> u64 {
        u64::from(self.priority.cast_unsigned()) << 32 | u64::from(self.flags)
    }

    fn unpack(word: u64) -> Traits {
        Traits { flags: word as u32, priority: (word >> 32) as i32 }
    }
}

const CACHED: usize = 8;

/// The streams that a thread used last.
#[derive(Debug)]
pub struct Cache {
    entries: [Cell<Stream>; CACHED],
    next: Cell<usize>,
}

// SAFETY: zeros are numbers, null pointers and no context.
unsafe impl Local for Cache {
    fn begin(&self) {
        // The default stream of the thread before is not this one's.
        for entry in &self.entries {
            entry.set(Stream { epoch: 0, handle: null_mut(), ..entry.get() });
        }
    }
}

impl Stream {
    pub fn context(&self) -> Option<&'static Context> {
        self.context
    }
}

/// The stream that is meant: NULL stands for one of the two default ones.
#[inline]
pub fn meant(stream: P, per_thread: bool) -> P {
    match (stream.is_null(), per_thread) {
        (false, _) => stream,
        (true, true) => driver::PER_THREAD,
        (true, false) => driver::LEGACY,
    }
}

/// Whether something may be put into a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Free,
    /// What is put there becomes part of a graph, or breaks a capture.
    Captured,
    /// It is not known: the stream must be left alone.
    Failing,
}

/// Asks whether a stream is being captured.
#[inline]
pub fn state(stream: P) -> State {
    let mut status = 0;
    // SAFETY: the stream that the program is about to use, and room for the answer.
    match unsafe { driver::cuStreamIsCapturing(stream, &mut status) } {
        // A driver without that function has no captures.
        0 | driver::MISSING if status == 0 => State::Free,
        error if error == 0 || driver::CAPTURE_ERRORS.contains(&error) => State::Captured,
        _ => State::Failing,
    }
}

impl Cache {
    /// What is known of a stream; `None` if nothing can be.
    #[inline]
    pub fn find(&self, handle: P) -> Option<Stream> {
        let current = if handle <= driver::PER_THREAD { driver::current() } else { null_mut() };
        let epoch = EPOCH.load(Ordering::Relaxed);
        let known = |s: &Stream| s.handle == handle && s.current == current && s.epoch == epoch;
        if let Some(stream) = self.entries.iter().map(Cell::get).find(known) {
            return Some(stream);
        }
        let stream = ask(handle, current, epoch)?;
        let next = (self.next.get() + 1) % CACHED;
        self.next.set(next);
        self.entries.get(next)?.set(stream);
        Some(stream)
    }
}

#[cold]
fn ask(handle: P, current: P, epoch: u32) -> Option<Stream> {
    let mut owner = current;
    // SAFETY: a stream of the program's and room for the answer.
    if handle > driver::PER_THREAD && unsafe { driver::cuStreamGetCtx(handle, &mut owner) } != 0 {
        owner = driver::current(); // Old drivers: most likely.
    }
    let context = contexts::get(owner)?;
    let _pushed = driver::Pushed::new(owner)?;
    let number = number(handle);
    let key = queue_key(context.number(), number);
    if !is_recorded(key) {
        record(key, context.handle() as u64, context.device(), number, handle as u64, Traits::of(handle));
    }
    Some(Stream { handle, current, epoch, generation: context.generation(), key, context: Some(context) })
}

/// A stream's number: the driver's, or else one of ours.
fn number(stream: P) -> u32 {
    if let Some(number) = driver_number(stream) {
        return number as u32;
    }
    match stream {
        driver::LEGACY => 1,
        driver::PER_THREAD => 1 << 31 | thread_id(),
        _ => OWN.get(stream as u64).unwrap_or_else(|| {
            let new = NEXT.fetch_add(1, Ordering::Relaxed);
            OWN.set(stream as u64, new.into());
            new.into()
        }) as u32,
    }
}

/// Whether a queue was recorded in this session.
#[inline]
fn is_recorded(key: u64) -> bool {
    RECORDED.get(key + 1) == Some(session_number().into())
}

/// Records a queue, once in a session.
#[cold]
fn record(key: u64, context: u64, device: u32, number: u32, handle: u64, traits: Traits) {
    devices::see(device);
    let once = || {
        // No key of a table is 0.
        if is_recorded(key) {
            return;
        }
        let record = QueueRecord {
            queue: key,
            context,
            device: super::device_key(device),
            properties: traits.flags.into(),
            resolution: RESOLUTION,
            priority: traits.priority,
            number,
            handle,
        };
        if !RECORDED.set(key + 1, session_number().into()) {
            // Without a record, the launcher makes do with its number; recorded with each
            // command, it would be another queue each time.
            static SAID: AtomicBool = AtomicBool::new(false);
            if !SAID.swap(true, Ordering::Relaxed) {
                Note::new().text(b"device times: too many streams; some are recorded by number only").leave();
            }
        } else if !send(special::QUEUE, &record, c"") {
            RECORDED.remove(key + 1); // No room: another time.
        }
    };
    // Held for one record. A signal handler that interrupted it does not wait for ever.
    for _ in 0..1000 {
        if RECORDING.holding(once).is_some() {
            return;
        }
        // SAFETY: no preconditions.
        unsafe { libc::sched_yield() };
    }
    once();
}

/// A queue by its numbers, as a collector reports it. The stream may have ended: the
/// driver is not asked.
pub fn see(context: u32, stream: u32, device: u32) {
    let key = queue_key(context, stream);
    if !is_recorded(key) {
        let place = u64::from(stream) + 1;
        let handle = HANDLES.get(place).unwrap_or(0);
        let traits = TRAITS.get(place).map_or(Traits::default(), Traits::unpack);
        record(key, contexts::handle(context), device, stream, handle, traits);
    }
}

/// The driver's number of a stream, if it has one.
fn driver_number(stream: P) -> Option<u64> {
    let mut id = 0u64;
    // SAFETY: a live stream and room for the answer.
    (unsafe { driver::cuStreamGetId(stream, &mut id) } == 0).then_some(id & 0xffff_ffff)
}

/// The default stream of a context that was made: a collector reports it by its number only.
pub fn remember_legacy(context: P) {
    if let Some(_pushed) = driver::Pushed::new(context) {
        remember(driver::LEGACY);
    }
}

/// Whether the default stream of the thread is meant.
#[inline(always)]
pub fn is_own(stream: P, per_thread: bool) -> bool {
    stream == driver::PER_THREAD || (per_thread && stream.is_null())
}

/// Remembers the default stream that this thread has in the current context, once.
#[cold]
#[inline(never)]
pub fn remember_own() {
    let _errno = hetrace_interpose::ErrnoGuard::new();
    // Numbers of threads have 22 bits at most, and the last four of an address in the heap are 0.
    let key = (driver::current() as u64) << 18 ^ u64::from(thread_id());
    if OWN_REMEMBERED.get(key).is_none() {
        remember(driver::PER_THREAD);
        OWN_REMEMBERED.set(key, 1);
    }
}

/// Whether the stream was remembered.
pub fn is_known(stream: P) -> bool {
    driver_number(stream).is_none_or(|number| HANDLES.get(number + 1) == Some(stream as u64))
}

/// The program was given a stream: its number will be met again.
pub fn remember(stream: P) {
    if let Some(number) = driver_number(stream) {
        HANDLES.set(number + 1, stream as u64);
        TRAITS.set(number + 1, Traits::of(stream).pack());
    }
}

/// A stream is about to end, and its handle may become another's.
pub fn forget(stream: P) {
    if stream > driver::PER_THREAD
        && let Some(number) = driver_number(stream)
    {
        let mut context = null_mut();
        // SAFETY: a live stream and room for the answer.
        let error = unsafe { driver::cuStreamGetCtx(stream, &mut context) };
        let context = if error == 0 { contexts::driver_number(context).unwrap_or(0) } else { 0 };
        let place = ENDED.get(ENDS.fetch_add(1, Ordering::Relaxed) % ENDED.len());
        let oldest = place.map_or(0, |p| p.swap(queue_key(context, number as u32), Ordering::Relaxed));
        if oldest != 0 {
            RECORDED.remove(oldest + 1);
            HANDLES.remove((oldest & 0xffff_ffff) + 1);
            TRAITS.remove((oldest & 0xffff_ffff) + 1);
        }
    }
    OWN.remove(stream as u64);
    EPOCH.fetch_add(1, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traits_come_back_as_they_were() {
        for (flags, priority) in [(0, 0), (1, -5), (u32::MAX, i32::MIN), (3, i32::MAX)] {
            let back = Traits::unpack(Traits { flags, priority }.pack());
            assert_eq!((back.flags, back.priority), (flags, priority));
        }
    }

    #[test]
    fn no_stream_is_one_of_the_default_ones() {
        let stream = 0x7f00_1000 as P;
        assert_eq!((meant(stream, false), meant(stream, true)), (stream, stream));
        assert_eq!(meant(null_mut(), false), driver::LEGACY);
        assert_eq!(meant(null_mut(), true), driver::PER_THREAD);
    }
}
