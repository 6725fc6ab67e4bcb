//! How commands on devices are timed, and what is recorded of devices.
//!
//! There are three sources. [`cupti`] is asked first: the collector of the vendor
//! knows every command, those inside graphs, too. Where it can't be had or is not
//! wanted, [`events`] are recorded around each command, or around a few of them
//! ([`hetrace_interpose::commands::sample`]). The choice falls once, after the driver was initialized and before the
//! first context is made.
//!
//! Between threads the choice is one number (`SOURCE`), stored before it is said that there is one (`CHOSEN`): who finds that
//! has nothing else to read of who chose.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hetrace_interpose::ring::abi::option;
use hetrace_interpose::{ErrnoGuard, budget, session, task};

use crate::generated::prelude::P;

mod contexts;
pub mod cupti;
mod devices;
pub mod driver;
mod events;
mod functions;
pub mod graphs;
mod late;
mod memory;
mod pool;
mod quick;
pub mod record;
mod slot;
pub mod streams;

use events::Wanted;
pub use late::look_at_session;
use record::Note;

/// Commands are not timed, or not yet.
const NONE: u32 = 0;
const CUPTI: u32 = 1;
const EVENTS: u32 = 2;
static SOURCE: AtomicU32 = AtomicU32::new(NONE);
/// Ticks for which two events lengthen a command on the device: 3.4 µs on an H200.
const TICKS_BESIDE: u32 = 7000;
/// Process that chose the source; 0 if none has. A forked child is another.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Thread that chooses, or has chosen.
static CHOOSER: AtomicU32 = AtomicU32::new(0);
/// Whether the choice has fallen.
static CHOSEN: AtomicBool = AtomicBool::new(false);

/// Runs a call that enqueues a command, and sees to it that the command's times
/// become known. The arguments are in the order of the generated calls.
///
/// # Safety
/// `queue` and `kernel` are what `call` passes to the driver, or NULL.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn command<R: Copy + From<u32>>(
    time: u64,
    queue: P,
    kind: u8,
    kernel: P,
    memory: [u8; 2],
    sizes: impl FnOnce() -> (usize, usize),
    geometry: impl FnOnce() -> [usize; 6],
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
    per_thread: bool,
) -> R {
    let wanted = Wanted { time, queue, kind, kernel, memory, per_thread };
    // SAFETY: `wanted` has the queue and the kernel that `call` passes, or NULL.
    unsafe { timed(wanted, sizes, geometry, || [0; 2], call, ok) }
}

/// As [`command`], for a copy whose addresses may say more than its name.
///
/// # Safety
/// `queue` is what `call` passes to the driver, or NULL.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn copy<R: Copy + From<u32>>(
    time: u64,
    queue: P,
    kind: u8,
    memory: [u8; 2],
    addresses: impl Fn() -> [u64; 2],
    bytes: impl FnOnce() -> usize,
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
    per_thread: bool,
) -> R {
    let wanted = Wanted { time, queue, kind, kernel: std::ptr::null_mut(), memory, per_thread };
    // SAFETY: `wanted` has the queue that `call` passes, or NULL; the kernel is NULL, so none is looked up.
    unsafe { timed(wanted, || (bytes(), 0), || [0; 6], addresses, call, ok) }
}

/// # Safety
/// Queue and kernel in `wanted` are what `call` passes to the driver, or NULL.
#[inline(always)]
unsafe fn timed<R: Copy + From<u32>>(
    wanted: Wanted,
    sizes: impl FnOnce() -> (usize, usize),
    geometry: impl FnOnce() -> [usize; 6],
    addresses: impl Fn() -> [u64; 2],
    call: impl FnOnce() -> R,
    ok: impl FnOnce(R) -> bool,
) -> R {
    // No time: outside of a capture window.
    match SOURCE.load(Ordering::Relaxed) {
        _ if wanted.time == 0 => {
            if wanted.kind == events::GRAPH {
                events::unseen(&wanted);
            }
            return call();
        }
        NONE if !late::start() => return call(),
        _ => {}
    }
    match SOURCE.load(Ordering::Relaxed) {
        CUPTI => cupti::needed(),
        // SAFETY: `wanted` has the handles that the program passes to this very call: live ones, or NULL.
        EVENTS => unsafe {
            return match events::quickly(&wanted, call, ok) {
                Ok(result) => result,
                Err((call, ok)) => events::around(wanted, sizes, geometry, addresses, call, ok),
            };
        },
        _ => return call(),
    }
    if streams::is_own(wanted.queue, wanted.per_thread) {
        streams::remember_own();
    } else {
        late::met(wanted.queue);
    }
    let expected = cupti::expected::mark(&wanted, || sizes().0);
    slot::set_id(0);
    let result = inside(wanted.time | expected, call);
    if !ok(result) {
        cupti::expected::refused();
    }
    result
}

/// Runs a call that is no command itself, and makes the driver enqueue some.
#[inline(always)]
pub fn inside<R>(time: u64, call: impl FnOnce() -> R) -> R {
    if SOURCE.load(Ordering::Relaxed) != CUPTI || time == 0 {
        return call();
    }
    let outer = slot::get();
    slot::set(time);
    let result = call();
    slot::set(outer);
    result
}

/// Runs a call that enqueues a command of the tracer's own: the collector's record of it is left out.
pub fn own<R>(call: impl FnOnce() -> R) -> R {
    let outer = slot::get();
    slot::set(cupti::expected::OWN);
    let result = call();
    slot::set(outer);
    result
}

/// The program has waited for a device: collect what is finished.
pub fn synchronized() {
    match SOURCE.load(Ordering::Relaxed) {
        CUPTI => cupti::flush(false),
        EVENTS => events::synchronized(),
        _ => {}
    }
}

/// Counter value of the entry record of the driver's function that this thread
/// is inside, if that enqueues a command, and 0 if not; and what is expected of it.
#[inline]
pub fn entry() -> (u64, u64) {
    use cupti::expected::TIME;
    let word = slot::get();
    (word & TIME, word & !TIME)
}

/// Chooses the source, once: the driver is initialized, and has no context yet.
pub fn start() {
    if !session().is_some_and(|s| s.option(option::DEVICE)) {
        return;
    }
    if CHOSEN.load(Ordering::Acquire) {
        return;
    }
    let _errno = ErrnoGuard::new();
    let me = task();
    if let Err(other) = CHOOSER.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        // Work in a context that is made before the choice would be missing. The
        // chooser itself may come by again, through the collector it loads.
        for _ in 0..if other == me { 0 } else { 2000 } {
            // A child that was forked meanwhile would wait for a thread that it does not have.
            let owner = OWNER.load(Ordering::Relaxed);
            if CHOSEN.load(Ordering::Acquire) || (owner != 0 && owner != hetrace_interpose::pid()) {
                break;
            }
            // SAFETY: no preconditions.
            unsafe { libc::usleep(1000) };
        }
        return;
    }
    OWNER.store(hetrace_interpose::pid(), Ordering::Relaxed);
    SOURCE.store(choose(), Ordering::Release);
    CHOSEN.store(true, Ordering::Release);
    // Registered after the driver was loaded, so it runs before its end.
    // SAFETY: a function that lives as long as this library.
    unsafe { libc::atexit(at_exit) };
}

fn choose() -> u32 {
    let Some(session) = session() else { return NONE };
    let mut version = 0;
    // SAFETY: room for the answer.
    unsafe { driver::cuDriverGetVersion(&mut version) };
    let every = budget::sampled_every();
    if every > 1 {
        let note = Note::new().text(b"device times: events around one launch in ");
        note.number(every.into()).text(b" of each kernel, as requested").leave();
        return EVENTS;
    }
    if session.option(option::SAMPLED) || session.option(option::EVENTS) {
        Note::new().text(b"device times: events, as requested").leave();
        return EVENTS;
    }
    if budget::is_limited() {
        budget::set_beside(TICKS_BESIDE);
        Note::new().text(b"device times: events, as there is a limit to what recording may take").leave();
        return EVENTS;
    }
    // SAFETY: the driver is initialized, and this happens once.
    match unsafe { cupti::start(version) } {
        Ok(()) => {
            record::loaded(b"libcupti", Note::new().text(b"device times: CUPTI")).leave();
            CUPTI
        }
        Err(why) => {
            let mut reason = [0u8; 160];
            let length = why.text(&mut reason);
            let reason = reason.get(..length).unwrap_or_default();
            Note::new().text(b"device times: events, because ").text(reason).leave();
            EVENTS
        }
    }
}

/// The collector is no longer ours: another tool has taken it. Events from here on.
pub fn collector_gone(why: &[u8]) {
    let was = SOURCE.compare_exchange(CUPTI, EVENTS, Ordering::AcqRel, Ordering::Relaxed);
    if was.is_ok() {
        Note::new().text(b"device times: events from here on, because ").text(why).leave();
    }
}

/// Whether this process chose the source itself. A forked child did not: the
/// driver is dead to it, and it times nothing.
fn is_owner(pid: u32) -> bool {
    if OWNER.load(Ordering::Relaxed) == pid {
        return true;
    }
    SOURCE.store(NONE, Ordering::Relaxed);
    false
}

/// Takes what is complete when the program ends; nothing is waited for.
extern "C" fn at_exit() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if is_owner(hetrace_interpose::pid()) && !ONCE.swap(true, Ordering::Relaxed) {
        look_before_end();
        graphs::say_left();
        SOURCE.store(NONE, Ordering::Relaxed);
    }
}

/// Something is about to end that commands in flight depend on.
pub fn look_before_end() {
    match SOURCE.load(Ordering::Relaxed) {
        CUPTI => cupti::flush(true),
        EVENTS => events::last_look(),
        _ => {}
    }
}

/// Whether commands are timed by events.
#[inline]
fn times_by_events() -> bool {
    SOURCE.load(Ordering::Relaxed) == EVENTS
}

/// Whether anything here is to be done in hooks.
#[inline]
pub fn is_on() -> bool {
    SOURCE.load(Ordering::Relaxed) != NONE
}

/// A context was made or handed out. Its device is recorded now: a program that only has memory there runs
/// nothing that would show it.
pub fn context_made(context: P, device: i32) {
    if !is_on() {
        return;
    }
    if contexts::remember(context) && SOURCE.load(Ordering::Relaxed) == CUPTI {
        streams::remember_legacy(context);
    }
    if let Ok(ordinal) = u32::try_from(device) {
        devices::see(ordinal);
    }
}

/// A context is about to end.
pub fn context_ends(context: P) {
    if is_on() && !context.is_null() {
        look_before_end();
        graphs::context_ends(context);
        contexts::end(context);
    }
}

/// The primary context of a device is about to end.
pub fn primary_ends(device: i32, primary: P) {
    if is_on() {
        look_before_end();
        graphs::context_ends(primary);
        contexts::end_primary(device, primary);
    }
}

/// The primary context of a device has ended, without a warning.
pub fn primary_ended(device: i32, primary: P) {
    if is_on() {
        contexts::end_primary(device, primary);
    }
}

/// The program was given a stream.
pub fn stream_made(stream: P) {
    if is_on() {
        streams::remember(stream);
    }
}

/// A stream is about to end.
pub fn stream_ends(stream: P) {
    if is_on() && !stream.is_null() {
        synchronized();
        streams::forget(stream);
    }
}

/// The program was given a handle to launch by.
///
/// # Safety
/// `name` is NULL or a text.
pub unsafe fn function_made(handle: P, name: *const c_char, is_kernel: bool) {
    if is_on() {
        // SAFETY: `name` is NULL or a text, which is all that `remember` wants.
        unsafe { functions::remember(handle, name, is_kernel) };
    }
}

/// The program was given the function of a kernel.
pub fn function_of_kernel(function: P, kernel: P) {
    if is_on() {
        functions::remember_of_kernel(function, kernel);
    }
}

/// Code was unloaded.
pub fn code_unloaded() {
    if is_on() {
        functions::unloaded();
    }
    crate::kernel_args::forget();
}

/// The key of a device, by its ordinal. It is never 0, which means none.
pub fn device_key(device: u32) -> u64 {
    u64::from(device) + 1
}

/// The key of a queue: numbers as `cuCtxGetId` and `cuStreamGetId` give them.
pub fn queue_key(context: u32, stream: u32) -> u64 {
    u64::from(context) << 32 | u64::from(stream)
}

/// Sends a QUEUE record, once per key.
pub fn see_queue(context: u32, stream: u32, device: u32) {
    streams::see(context, stream, device);
}

/// Sends what is known of a device, once.
pub fn see_device(device: u32) {
    devices::see(device);
}

/// The id of a function by its name and needs; its record is sent once. 0 when
/// there are too many.
///
/// # Safety
/// `name` is NULL or a text.
pub unsafe fn function(name: *const c_char, registers: u32, static_shared: u32, local: u32) -> u64 {
    let needs = functions::Needs { registers, shared: static_shared, local, ..Default::default() };
    // SAFETY: `name` is NULL or a text; it is copied before this returns.
    functions::intern(unsafe { record::text(name) }, needs).map_or(0, |f| f.id)
}
