//! Device activity through CUPTI, in the traced process.
//!
//! CUPTI times every kernel, copy and fill, in graphs, too, where events would
//! need one more command before and after each. It is asked for as little as
//! possible: records of activities, a callback for the driver functions that
//! enqueue them, and nothing else.
//!
//! ```text
//!  program thread                          CUPTI                    launcher
//!  cuLaunchKernel: entry record ─────────────────────────────────►  call
//!    └► real function ─► callback: LINK(correlation) ─────────────► call of an id
//!                        activity ─► buffer (ours)
//!  our thread: flush ──────────────────►  │ full, or flushed and complete
//!              read  ◄────────────────────┘
//!    └► COMMAND(correlation) ──────────────────────────────────────► command of a call
//! ```
//!
//! [`library`] finds a libcupti and [`find`] knows where; [`api`] has its functions;
//! [`launches`] takes the callbacks, [`buffers`] the buffers, [`layout`] reads what is
//! in them and [`deliver`] records it; [`flusher`] sees to it that it comes in time,
//! [`ends`] that it comes before the program ends without a word; [`expected`] knows what
//! has not come;
//! [`taken`] notices another tool, which then gets CUPTI for itself.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::commands::Claim;
use hetrace_interpose::published::Published;
use hetrace_interpose::ring::abi::option;
use hetrace_interpose::ring::clock::nanoseconds;
use hetrace_interpose::{
    ErrnoGuard, Spent, collector_takes, collector_takes_once, in_window, note, pid, session, spend, task,
    with_guard,
};

use api::{API, BUFFERS_AHEAD, CounterConfig, FORCED, MISSING, TAKEN, ZEROED_BUFFERS};
use flusher::buffers;
use layout::{Lengths, counter, kind};

mod api;
mod chosen;
mod deliver;
mod ends;
pub mod expected;
mod find;
mod flusher;
mod launches;
mod layout;
mod library;
mod own;
mod taken;
mod why;

#[allow(unused_imports, reason = "for the hook on dlsym")]
pub use taken::exported;
pub use why::Unavailable;

/// What [`STATE`] says.
mod state {
    pub const NEVER: u32 = 0;
    pub const STARTING: u32 = 1;
    pub const ACTIVE: u32 = 2;
    pub const OVER: u32 = 3;
}

static STATE: AtomicU32 = AtomicU32::new(state::NEVER);
/// Process that started: neither CUPTI nor CUDA lives on in a forked child.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// Thread that is starting.
static STARTER: AtomicU32 = AtomicU32::new(0);
/// Why it is over, as [`Unavailable::pack`] has it.
static WHY: AtomicU64 = AtomicU64::new(0);
static SUBSCRIBER: Published<c_void> = Published::new();

/// Kinds of activities without which CUPTI is of no use, and others.
const NEEDED: [u32; 1] = [kind::CONCURRENT_KERNEL];
const WANTED: [(u32, &[u8]); 3] = [
    (kind::MEMCPY, b"copies are not timed: CUPTI does not deliver their records"),
    (kind::MEMCPY2, b"copies between devices are not timed: CUPTI does not deliver their records"),
    (kind::MEMSET, b"fills are not timed: CUPTI does not deliver their records"),
];

/// Whether this process is the one that started.
fn ours() -> bool {
    OWNER.load(Ordering::Relaxed) == pid()
}

fn timespec(nanoseconds: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
        tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
    }
}

fn sleep(nanoseconds: u64) {
    let time = timespec(nanoseconds);
    // SAFETY: a valid time.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}

/// Starts collecting, once per process, before the first context is made. Later
/// calls return what the first did. `driver_version` is what
/// `cuDriverGetVersion` says.
///
/// # Safety
/// The driver is initialized, and the caller holds no lock of it.
pub unsafe fn start(driver_version: i32) -> Result<(), Unavailable> {
    let _errno = ErrnoGuard::new();
    // Another thread that makes its first context meanwhile waits for us: its
    // work would be missing else.
    for _ in 0..2000 {
        match STATE.compare_exchange(state::NEVER, state::STARTING, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return spend(Spent::Start, || first(driver_version)),
            // It has begun this very moment.
            Err(_) if OWNER.load(Ordering::Relaxed) == 0 => sleep(1_000_000),
            Err(_) if !ours() => return Err(Unavailable::Forked),
            Err(state::ACTIVE) => return Ok(()),
            // CUPTI itself may come by here.
            Err(state::STARTING) if STARTER.load(Ordering::Relaxed) == task() => break,
            Err(state::STARTING) => sleep(1_000_000),
            Err(_) => return Err(Unavailable::unpack(WHY.load(Ordering::Acquire))),
        }
    }
    Err(Unavailable::Starting)
}

/// What CUPTI does in each call that enqueues, ns: least, about and most of what was seen on H100s and H200s with drivers of
/// CUDA 13 (docs/measurements/2026-11-20-h200-cuda.md and 2026-11-23-budget.md).
const CALL_NS: [u16; 3] = [600, 1000, 1500];

/// What CUPTI does once in a process beside our calls to it, ns, likewise: as the first context is made, with the first command,
/// and when the process ends. By H100s with CUDA 13 (docs/measurements/2026-11-26-statement-gpu.md).
const ONCE_NS: [u64; 3] = [4_000_000, 9_000_000, 18_000_000];

fn first(driver_version: i32) -> Result<(), Unavailable> {
    OWNER.store(pid(), Ordering::Relaxed);
    STARTER.store(task(), Ordering::Relaxed);
    let mut result = Err(Unavailable::NoDriver);
    with_guard(|| result = search(driver_version));
    STARTER.store(0, Ordering::Relaxed);
    match result {
        Ok(()) => {
            STATE.store(state::ACTIVE, Ordering::Release);
            collector_takes(CALL_NS);
            collector_takes_once(ONCE_NS);
            flusher::start();
            expected::start();
            // Registered after the driver and CUPTI were loaded, so it runs before
            // their end.
            // SAFETY: a function that lives as long as this library.
            unsafe { libc::atexit(at_exit) };
        }
        Err(why) => {
            WHY.store(why.pack(), Ordering::Release);
            STATE.store(state::OVER, Ordering::Release);
        }
    }
    result
}

/// Tries one library after the other.
fn search(driver_version: i32) -> Result<(), Unavailable> {
    // CUPTI 13.2 calls itself until the stack is full where it finds no driver.
    if !library::has_driver() {
        return Err(Unavailable::NoDriver);
    }
    let mut result = Err(Unavailable::NotFound);
    library::each(driver_version, || {
        result = subscribe();
        // One that is newer than the driver refuses by itself, and an older one
        // may serve. If CUPTI is another tool's, it is so in all of them.
        result.is_ok() || matches!(result, Err(Unavailable::Refused { error: TAKEN, .. }))
    });
    result
}

fn subscribe() -> Result<(), Unavailable> {
    let mut version = 0;
    // SAFETY: room for the answer.
    refused("cuptiGetVersion", unsafe { API.version(&mut version) })?;
    let lengths = Lengths::of(version).ok_or(Unavailable::TooOld { version })?;
    deliver::set_version(version);
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: room for the answer, and a callback that takes what CUPTI says.
    let error = unsafe { API.subscribe(&mut subscriber, launches::launching, std::ptr::null_mut()) };
    refused("cuptiSubscribe", error)?;
    SUBSCRIBER.set(subscriber);
    // SAFETY: just subscribed.
    let result = unsafe { enable(subscriber) };
    if result.is_err() {
        disable();
    } else if lengths.newer {
        note(b"this CUPTI is newer than hetrace; its records are used only where they are plausible");
    }
    result
}

fn refused(call: &'static str, error: i32) -> Result<(), Unavailable> {
    if error == 0 { Ok(()) } else { Err(Unavailable::Refused { call, error }) }
}

/// # Safety
/// The subscriber is CUPTI's.
unsafe fn enable(subscriber: *mut c_void) -> Result<(), Unavailable> {
    // SAFETY: each gets what it expects, in the order that CUPTI wants: its clock
    // and its buffers are there before the first activity.
    unsafe {
        deliver::set_shifted(API.register_clock(monotonic) != 0);
        // Else CUPTI clears each buffer itself, in the middle of a launch.
        let (mut zeroed, mut size) = (1u8, 1usize);
        API.set_attribute(ZEROED_BUFFERS, &mut size, (&raw mut zeroed).cast());
        // Three buffers on the device, made with each context, take it 9 ms longer; the first command makes one in 2.
        let (mut ahead, mut size) = (0usize, size_of::<usize>());
        API.set_attribute(BUFFERS_AHEAD, &mut size, (&raw mut ahead).cast());
        refused("cuptiActivityRegisterCallbacks", API.register(buffers::requested, buffers::completed))?;
        if !session().is_some_and(|s| s.option(option::NO_MIGRATIONS)) {
            enable_counters();
        }
        for kind in NEEDED {
            refused("cuptiActivityEnable", API.enable(kind))?;
        }
        for (kind, missing) in WANTED {
            if API.enable(kind) != 0 {
                note(missing);
            }
        }
        COLLECTS.store(true, Ordering::Relaxed);
        chosen::start();
        launches::enable(subscriber);
        // Full buffers come by themselves then; for the others there is the flusher.
        API.flush_period(flusher::period_ms());
    }
    Ok(())
}

/// Migrations of managed memory. Not every device, driver and session reports them.
///
/// # Safety
/// Between subscribing and the first activity.
unsafe fn enable_counters() {
    const SINGLE_DEVICE: u32 = 1;
    let all = [counter::TO_DEVICE, counter::TO_HOST, counter::BETWEEN_DEVICES];
    // CUPTI configures all or none: the last is not there without a second device.
    for count in [3, 2] {
        let mut configs = all.map(|kind| CounterConfig { scope: SINGLE_DEVICE, kind, device: 0, enable: 1 });
        // SAFETY: as many as said.
        let error = unsafe { API.counters(configs.as_mut_ptr(), count) };
        // SAFETY: they are configured.
        if error == 0 && unsafe { API.enable(kind::UNIFIED_MEMORY_COUNTER) } == 0 {
            return;
        }
        if error == MISSING {
            break;
        }
    }
    note(b"migrations of managed memory are not recorded: CUPTI does not deliver their records here");
}

/// The clock that CUPTI relates the devices' to: the trace's.
extern "C" fn monotonic() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// The clock that CUPTI uses if nobody sets one.
extern "C" fn realtime() -> u64 {
    nanoseconds(libc::CLOCK_REALTIME)
}

/// Whether CUPTI makes records of commands. Outside of a capture window it need not.
static COLLECTS: AtomicBool = AtomicBool::new(false);

/// A command is about to be enqueued that is to be timed.
#[inline(always)]
pub fn needed() {
    if !COLLECTS.load(Ordering::Relaxed) {
        collect(true);
    }
}

/// Ends CUPTI's records when the capture window has been closed for a while: what was enqueued before has ended by then,
/// but for what takes longer. Called once in a period of the flusher, not in a callback of CUPTI.
pub fn look_at_window() {
    const PERIODS: u32 = 10;
    static CLOSED: AtomicU32 = AtomicU32::new(0);
    if in_window() || !COLLECTS.load(Ordering::Relaxed) {
        CLOSED.store(0, Ordering::Relaxed);
    } else if CLOSED.fetch_add(1, Ordering::Relaxed) >= PERIODS {
        collect(false);
    }
}

/// Begins or ends CUPTI's records of commands.
#[cold]
fn collect(begin: bool) {
    static BUSY: Claim = Claim::new();
    if !active() || !ours() {
        return;
    }
    let _errno = ErrnoGuard::new();
    let change = || {
        if COLLECTS.load(Ordering::Relaxed) == begin || (!begin && in_window()) {
            return;
        }
        with_guard(|| {
            for kind in NEEDED.into_iter().chain(WANTED.map(|w| w.0)) {
                // SAFETY: CUPTI is subscribed to, and no callback of it calls this.
                unsafe { if begin { API.enable(kind) } else { API.disable(kind) } };
            }
        });
        COLLECTS.store(begin, Ordering::Release);
    };
    // Who needs them waits for who ends them, a short time; not for a thread that a signal handler interrupted.
    for _ in 0..1000 {
        if BUSY.holding(change).is_some() || !begin {
            return;
        }
        sleep(10_000);
    }
    change();
}

/// Whether CUPTI collects, so that nothing else must time commands.
pub fn active() -> bool {
    STATE.load(Ordering::Relaxed) == state::ACTIVE
}

/// The program synchronizes: what is complete may be recorded. `force`: it is so
/// before this returns, because a context ends or the program does. Never waits
/// for work on a device.
pub fn flush(force: bool) {
    if !active() {
        return;
    }
    let _errno = ErrnoGuard::new();
    if !force && flusher::runs() {
        flusher::work();
    } else if ours() && (force || flusher::is_due()) {
        spend(if force { Spent::End } else { Spent::Collector }, || {
            // Not under the guard: what comes back now must be recorded.
            // SAFETY: no callback of CUPTI calls this.
            unsafe { API.flush_all(0) };
            read_filled();
        });
        give_up_unreadable();
    }
}

/// Reads what has come back, and waits a little for who is reading already.
fn read_filled() {
    for _ in 0..100 {
        if buffers::read_filled() {
            return;
        }
        sleep(1_000_000);
    }
}

fn give_up_unreadable() {
    if deliver::unreadable() {
        give_up(b"its records do not have the layout of their version");
    }
}

/// Ends collecting, and leaves CUPTI as if it had not been used: another tool
/// takes it, or its records cannot be decoded.
pub fn give_up(why: &[u8]) {
    let _errno = ErrnoGuard::new();
    if !ours() {
        return;
    }
    let left = STATE.compare_exchange(state::ACTIVE, state::OVER, Ordering::AcqRel, Ordering::Acquire);
    if left.is_err() {
        return;
    }
    WHY.store(Unavailable::GivenUp.pack(), Ordering::Release);
    spend(if flusher::is_here() { Spent::Apart } else { Spent::Collector }, || {
        flusher::stop();
        // SAFETY: no callback of CUPTI calls this.
        unsafe { API.flush_all(0) };
        disable();
        read_filled();
        settle();
    });
    if buffers::outstanding() > 0 {
        note(b"CUPTI did not return all buffers when collection ended: some device times are missing");
    }
    crate::device::collector_gone(why);
}

/// Undoes [`enable`]. Every buffer comes back: the next tool would be given ours,
/// and free what it did not allocate.
fn disable() {
    // SAFETY: what was enabled, or never was.
    unsafe {
        for kind in NEEDED.into_iter().chain(WANTED.map(|w| w.0)).chain([kind::UNIFIED_MEMORY_COUNTER]) {
            API.disable(kind);
        }
        API.flush_all(FORCED);
        API.flush_period(0);
        API.register_clock(realtime);
        API.unsubscribe(SUBSCRIBER.take());
    }
}

/// What is complete when the program ends is recorded, and what is not is known
/// to have been begun. Forcing does not wait for devices, either; it gives up
/// records that are incomplete, which is why it is done here only.
extern "C" fn at_exit() {
    let wanted = session().is_some_and(|s| s.option(option::DEVICE));
    if !active() || !ours() || !wanted {
        return;
    }
    let _errno = ErrnoGuard::new();
    spend(Spent::End, || {
        if flusher::stop() {
            // SAFETY: no callback of CUPTI calls this.
            unsafe {
                API.flush_all(0);
                API.flush_all(FORCED);
            }
            read_filled();
            settle();
        }
    });
}

/// A forced flush was read: nothing more comes of what was enqueued before.
fn settle() {
    if buffers::outstanding() == 0 {
        expected::settle();
    }
}
