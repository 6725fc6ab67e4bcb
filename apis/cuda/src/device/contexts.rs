//! The contexts of the program, and the end of them.
//!
//! A record is never freed and is used again for a later context; a generation number
//! distinguishes them. Code that touches events of a context enters it first
//! ([`Context::enter`]), and code that ends the context waits for those few calls: all of that is
//! [`Life`], of which loom explores the interleavings.

pub mod clock;

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use hetrace_interpose::life::{Life, Use};
use hetrace_interpose::table::Table;

use super::pool::Pool;
use super::record::Note;
use super::{devices, driver};
use crate::generated::prelude::{P, null_mut};
use clock::Clock;

/// Contexts that live at the same time; commands of more are not timed.
const MOST: usize = 64;
static CONTEXTS: [Context; MOST] = [const { Context::new() }; MOST];
static MADE: AtomicUsize = AtomicUsize::new(0);
/// Goes up when a context or a stream ends: what was remembered may be wrong.
pub static EPOCH: AtomicU32 = AtomicU32::new(1);
/// The number that the driver or we gave a context → its handle.
static HANDLES: Table<1024> = Table::new();

/// A context.
#[derive(Debug)]
pub struct Context {
    handle: AtomicPtr<std::ffi::c_void>,
    life: Life,
    device: AtomicU32,
    number: AtomicU32,
    pub pool: Pool,
    pub clock: Clock,
}

impl Context {
    const fn new() -> Context {
        Context {
            handle: AtomicPtr::new(null_mut()),
            life: Life::new(),
            device: AtomicU32::new(0),
            number: AtomicU32::new(0),
            pool: Pool::new(),
            clock: Clock::new(),
        }
    }

    pub fn handle(&self) -> P {
        self.handle.load(Ordering::Relaxed)
    }

    /// Ordinal of its device.
    pub fn device(&self) -> u32 {
        self.device.load(Ordering::Relaxed)
    }

    pub fn number(&self) -> u32 {
        self.number.load(Ordering::Relaxed)
    }

    pub fn generation(&self) -> u32 {
        self.life.generation()
    }

    /// Whether it can be asked anything.
    #[inline]
    pub fn lives(&self) -> bool {
        self.life.lives()
    }

    /// Permission to touch its events; `None` if it ended, or another took its place.
    #[inline]
    pub fn enter(&self, generation: u32) -> Option<Use<'_>> {
        self.life.enter(generation)
    }

    /// Everything fails that is asked of it: leave it alone from now on.
    pub fn broke(&self, error: i32, is_news: bool) {
        if self.life.give_up() && is_news {
            let note = Note::new().text(
                b"device times: a context is not timed any more, because its work failed with CUDA error ",
            );
            note.number(error.unsigned_abs().into()).leave();
        }
    }

    /// Returns its generation, if it is this one and has not ended.
    fn known_as(&self, handle: P) -> Option<u32> {
        // In this order: the handle is of this generation, or of one that is another by the time that it counts.
        self.life.known().filter(|_| self.handle() == handle)
    }
}

fn made() -> impl Iterator<Item = &'static Context> {
    CONTEXTS.iter().take(MADE.load(Ordering::Acquire))
}

/// The contexts that live.
pub fn living() -> impl Iterator<Item = &'static Context> {
    made().filter(|c| c.lives())
}

/// What is known of a context; made if need be.
pub fn get(handle: P) -> Option<&'static Context> {
    if handle.is_null() {
        return None;
    }
    made().find(|c| c.known_as(handle).is_some()).or_else(|| make(handle))
}

#[cold]
fn make(handle: P) -> Option<&'static Context> {
    let _pushed = driver::Pushed::new(handle)?;
    let mut device = 0;
    // SAFETY: room for the answer, and the context is current.
    if unsafe { driver::cuCtxGetDevice(&mut device) } != 0 {
        return None;
    }
    let Some((place, context)) = CONTEXTS.iter().enumerate().find(|(_, c)| c.life.make()) else {
        static SAID: AtomicU32 = AtomicU32::new(0);
        if SAID.swap(1, Ordering::Relaxed) == 0 {
            Note::new().text(b"device times: too many contexts at once; some are not timed").leave();
        }
        return None;
    };
    context.handle.store(handle, Ordering::Relaxed);
    context.device.store(device.unsigned_abs(), Ordering::Relaxed);
    context.number.store(number(handle, place), Ordering::Relaxed);
    context.clock.forget();
    context.pool.forget();
    MADE.fetch_max(place + 1, Ordering::AcqRel);
    // Two threads may have made one each: the first in the list is used, and
    // the other stays idle until the context ends.
    context.life.begin();
    devices::see(context.device());
    let _relaxed = driver::Relaxed::new();
    // SAFETY: it lives, for the program is using it, and is current.
    unsafe { context.clock.renew(context) };
    Some(context)
}

/// A context's number: the driver's, or else one of ours.
fn number(handle: P, place: usize) -> u32 {
    if let Some(number) = driver_number(handle) {
        return number;
    }
    let generation = CONTEXTS.get(place).map_or(0, Context::generation);
    (place as u32 + 1) | (generation & 0xff_ffff) << 8
}

/// The driver's number of a context, if it has one.
pub fn driver_number(handle: P) -> Option<u32> {
    if handle.is_null() {
        return None; // The driver would take the current one.
    }
    let mut id = 0u64;
    // SAFETY: a live context and room for the answer.
    (unsafe { driver::cuCtxGetId(handle, &mut id) } == 0).then_some(id as u32)
}

/// A context was made, or handed out: its number will be met again. If one with this
/// handle was given up, that one has ended through a door that we do not see, or is
/// worth another look. Returns whether its number is new.
pub fn remember(handle: P) -> bool {
    if made().any(|c| c.life.is_broken() && c.handle() == handle) {
        end(handle);
    }
    let Some(number) = driver_number(handle) else { return false };
    let is_new = HANDLES.get(number.into()) != Some(handle as u64);
    is_new && HANDLES.set(number.into(), handle as u64)
}

/// The handle of a context by its number; 0 if it is not known.
pub fn handle(number: u32) -> u64 {
    HANDLES.get(number.into()).unwrap_or(0)
}

/// The context is about to end: from now on nobody touches what is in it.
/// What is complete must have been collected before.
pub fn end(handle: P) {
    for context in made() {
        let Some(generation) = context.known_as(handle) else { continue };
        // Others may be inside a question about an event: a few microseconds.
        let wait = |round: u32| {
            if round > 100 {
                // SAFETY: no preconditions.
                unsafe { libc::sched_yield() };
            }
            round < 10_000
        };
        if context.life.end(generation, wait).is_none() {
            continue; // Another thread has ended it.
        }
        context.pool.forget();
        context.clock.forget();
        context.handle.store(null_mut(), Ordering::Relaxed);
        context.life.free();
    }
    EPOCH.fetch_add(1, Ordering::SeqCst);
}

/// All contexts of a device are about to end, or only its primary one.
pub fn end_primary(device: i32, primary: P) {
    if primary.is_null() {
        let of_device = |c: &&Context| i64::from(c.device()) == i64::from(device) && c.lives();
        made().filter(of_device).map(Context::handle).for_each(end);
    } else {
        end(primary);
    }
}
