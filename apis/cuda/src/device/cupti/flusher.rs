//! A thread that reads what CUPTI gives back, and asks it for what is complete, so
//! that a program that is killed loses little.
//!
//! CUPTI's own period only hands out buffers that are full. So a thread of ours
//! flushes: every period while the program enqueues work, more and more seldom
//! when it does not. It has its own stack and takes no signals. Without it (no
//! memory) the program's own synchronization flushes and reads.
//!
//! What it and the program's threads have between them are a [`Duty`], a [`Bell`] and [`Requests`], of which loom explores the
//! interleavings.

pub mod buffers;

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::held::hold;
use hetrace_interpose::ring::clock::nanoseconds;
use hetrace_interpose::worker::{Bell, Duty, Requests};
use hetrace_interpose::{Spent, note, session, spend, task};

use super::api::{API, FORCED};
use super::{give_up_unreadable, look_at_window, ours, read_filled, settle, sleep, timespec};

/// The period, if the session does not say.
const DEFAULT_MS: u32 = 100;
const SHORTEST_MS: u32 = 5;
const LONGEST_MS: u32 = 10_000;
const STACK: usize = 1 << 20;
/// So many periods pass at most between two flushes of a program that enqueues nothing.
const SELDOM: u32 = 16;
/// How long the end of the program waits for what is in flight, without progress and
/// with it.
const PATIENCE_MS: u32 = 500;
const LONGEST_WAIT_MS: u32 = 5_000;

/// The thread's id; 0 before it has begun.
static THREAD: AtomicU32 = AtomicU32::new(0);
static RUNS: AtomicBool = AtomicBool::new(false);
/// Whether it may do, and does, what must not be torn off.
static DUTY: Duty = Duty::new();
/// What it sleeps on: there is something to read, or to do.
static BELL: Bell = Bell::new();
/// Work was enqueued since the last flush. A hint: one that is missed waits for the next flush.
static WORK: AtomicBool = AtomicBool::new(false);
/// Somebody asked to flush at once; the last time the process ends then.
static FLUSHES: Requests = Requests::new();
/// How long the end of the program waits for that.
const LAST_PATIENCE_NS: u64 = 200_000_000;
/// When [`is_due`] last said so.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The session's period.
pub fn period_ms() -> u32 {
    let asked = session().map_or(0, |s| s.control().collect_every_ms.load(Ordering::Relaxed));
    if asked == 0 { DEFAULT_MS } else { asked.clamp(SHORTEST_MS, LONGEST_MS) }
}

/// The same in nanoseconds.
pub fn period_ns() -> u64 {
    u64::from(period_ms()) * 1_000_000
}

/// There is something to flush. Called with every launch: a word that all
/// threads only read, as long as it is set.
#[inline]
pub fn work() {
    if !WORK.load(Ordering::Relaxed) {
        WORK.store(true, Ordering::Relaxed);
    }
}

/// Whether the thread does the reading and the flushing.
pub fn runs() -> bool {
    RUNS.load(Ordering::Relaxed)
}

/// Whether this is the thread.
pub fn is_here() -> bool {
    THREAD.load(Ordering::Relaxed) == task()
}

/// Whether a period has passed since this last said so.
pub fn is_due() -> bool {
    let now = now();
    let last = LAST.load(Ordering::Relaxed);
    now.wrapping_sub(last) >= period_ns()
        && LAST.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// Something came back.
pub fn wake() {
    BELL.ring();
    wake_all(BELL.word());
}

fn wake_all(word: &AtomicU32) {
    let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word of ours; nobody may be waiting.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, i32::MAX) };
}

/// Sleeps for so long, or until the word is not `value` any more and somebody says so.
fn sleep_on(word: &AtomicU32, value: u32, nanoseconds: u64) {
    let time = timespec(nanoseconds);
    let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: a word of ours and a valid time.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, value, &raw const time) };
}

/// Has the thread flush and read at once, and waits for that, but not for long: whoever
/// calls this may hold a lock that the thread needs. `ends`: no record will be completed
/// later. Nothing here is forbidden in a signal handler.
pub fn flush_now(ends: bool) {
    if is_here() {
        return;
    }
    spend(if ends { Spent::End } else { Spent::Collector }, || await_flush(ends));
}

fn await_flush(ends: bool) {
    let mine = FLUSHES.ask(ends);
    wake();
    let until = now() + LAST_PATIENCE_NS;
    loop {
        let done = FLUSHES.done();
        let left = until.saturating_sub(now());
        if Requests::has(done, mine) || left == 0 {
            return;
        }
        sleep_on(FLUSHES.done_word(), done, left);
    }
}

/// Does what [`flush_now`] asks for.
fn serve() {
    let Some((asked, ends)) = FLUSHES.pending() else { return };
    // SAFETY: no callback of CUPTI calls this.
    unsafe {
        API.flush_all(0);
        if ends {
            API.flush_all(FORCED);
        }
    }
    read_filled();
    if ends {
        settle();
    }
    FLUSHES.finish(asked);
    wake_all(FLUSHES.done_word());
}

fn wait(nanoseconds: u64) {
    if !BELL.take() {
        sleep_on(BELL.word(), 0, nanoseconds); // Not at all if it is not 0 any more.
        BELL.take();
    }
}

fn now() -> u64 {
    nanoseconds(libc::CLOCK_MONOTONIC)
}

/// Starts the thread.
pub fn start() {
    let runs = spawn().is_some();
    RUNS.store(runs, Ordering::Relaxed);
    if !runs {
        note(b"no thread for device times: a killed program loses those since it last synchronized");
    }
}

/// The thread begins nothing from now on. Returns whether it is at nothing any
/// more; what it has not read is left to the caller.
pub fn stop() -> bool {
    DUTY.stop();
    RUNS.store(false, Ordering::Relaxed);
    if is_here() {
        return true; // It gives up itself.
    }
    let (mut seen, mut since) = (buffers::read_so_far(), 0);
    for _ in 0..LONGEST_WAIT_MS {
        if DUTY.is_idle() {
            return true;
        }
        sleep(1_000_000);
        let now = buffers::read_so_far();
        since = if now == seen { since + 1 } else { 0 };
        seen = now;
        if since >= PATIENCE_MS {
            break;
        }
    }
    note(b"the program ended before all device times were read: some are missing");
    false
}

fn spawn() -> Option<()> {
    // SAFETY: a fresh range at an address of the kernel's choice.
    let stack = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
            -1,
            0,
        )
    };
    if stack == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: attributes that are filled in before they are used, and a stack of our own.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_attr_init(&mut attributes) != 0 {
            libc::munmap(stack, STACK);
            return None;
        }
        libc::pthread_attr_setstack(&mut attributes, stack, STACK);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        // The thread inherits that signals are blocked: they are the program's.
        let held = hold();
        let mut thread: libc::pthread_t = std::mem::zeroed();
        let error = libc::pthread_create(&mut thread, &attributes, run, std::ptr::null_mut());
        drop(held);
        libc::pthread_attr_destroy(&mut attributes);
        if error != 0 {
            libc::munmap(stack, STACK);
        }
        (error == 0).then_some(())
    }
}

extern "C" fn run(_: *mut c_void) -> *mut c_void {
    // SAFETY: a name of less than 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"hetrace-cupti".as_ptr()) };
    THREAD.store(task(), Ordering::Relaxed);
    let (mut passed, mut pause) = (0, 1);
    let mut next = now() + period_ns();
    loop {
        wait(next.saturating_sub(now()));
        if !DUTY.begin() {
            break;
        }
        if !ours() {
            DUTY.end();
            break;
        }
        spend(Spent::Apart, || {
            serve();
            buffers::read_filled();
            if now() >= next {
                next = now() + period_ns();
                look_at_window();
                if WORK.swap(false, Ordering::Relaxed) {
                    (passed, pause) = (0, 1);
                } else {
                    passed += 1;
                }
                if passed == 0 || passed >= pause {
                    // What was enqueued long ago may still be running.
                    (passed, pause) = (0, (pause * 2).min(SELDOM));
                    // SAFETY: no callback of CUPTI calls this.
                    unsafe { API.flush_all(0) };
                    buffers::read_filled();
                }
            }
        });
        DUTY.end();
        give_up_unreadable();
    }
    std::ptr::null_mut()
}
