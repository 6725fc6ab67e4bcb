//! The page that says whether programs record: capture windows.
//!
//! Each library maps a page that begins with a [`Switch`] in front of its functions' flags, so a wrapper reads the mask
//! with one relaxed load. Whoever opens or closes the window stores the mask and logs that as a [`Flip`]. That is the
//! launcher, by its clock, at a signal, or as a command of the user's says: then the switch is that of the control file,
//! which programs can't write. Or it is a program that has come to the launch or range at which a window begins: where the
//! user asked for that ([`trigger`]), the switch is beside the counts ([`Counts`]), which the programs of this one
//! session share.
//!
//! Any number of threads of any processes may open and close a window at once, and the launcher reads the log meanwhile.
//! Who stores the mask of a state that may be another by then looks again, *by a compare-and-swap of the word from what
//! it saw*: operations that read and write a word have one order, so whoever changes it later stores its mask later, too.
//! `tests/loom_window.rs` explores the interleavings.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::flag;
use crate::primitive;

/// What opens and closes the window; the value of [`Window::trigger`].
pub mod trigger {
    /// Nothing in the programs: the launcher does, or the session has no windows.
    pub const LAUNCHER: u32 = 0;
    /// Launches of kernels, counted in [`super::Counts::launches`].
    pub const LAUNCHES: u32 = 1;
    /// Ranges that the programs mark, counted in [`super::Counts::ranges`].
    pub const RANGES: u32 = 2;
    /// The programs themselves, by calls that say so ([`super::Switch::set_open_by_call`]).
    pub const CALLS: u32 = 3;
}

/// How far the window has come; the value of [`Switch::state`].
pub mod state {
    /// It was not open yet.
    pub const BEFORE: u32 = 0;
    /// It is open.
    pub const OPEN: u32 = 1;
    /// It was closed.
    pub const CLOSED: u32 = 2;
}

/// Why the window was opened or closed; the value of [`Flip::reason`].
pub mod reason {
    /// Time has passed since the program's start.
    pub const TIME: u32 = 1;
    /// A launch of a kernel; [`super::Flip::number`] says which, counted from 0.
    pub const LAUNCH: u32 = 2;
    /// A range began or ended; [`super::Flip::number`] says which began last, counted from 0.
    pub const RANGE: u32 = 3;
    /// The launcher got a signal.
    pub const SIGNAL: u32 = 4;
    /// A program asked for it by a call of its own.
    pub const CALL: u32 = 5;
    /// A command of the user's: `hetrace start`, `pause`, `resume`, `stop`.
    pub const COMMAND: u32 = 6;
    /// A limit of the service was reached.
    pub const LIMIT: u32 = 7;
}

/// How many flips the log holds that the launcher has not read yet.
pub const LOG: usize = if cfg!(loom) { 2 } else { 64 };
/// Process ids that a session may be limited to.
pub const PIDS: usize = 64;
/// Bytes of a glob, with its NUL.
pub const GLOB: usize = 240;

/// Whether programs record: what of their functions' flags counts, and how that came to be.
#[repr(C)]
#[derive(Debug)]
pub struct Switch {
    /// What of each flag byte counts now: [`flag::INSIDE`], [`flag::OUTSIDE`], a part of these, or 0.
    pub mask: primitive::AtomicU8,
    /// Not used.
    pub reserved: [u8; 3],
    /// See [`state`].
    pub state: primitive::AtomicU32,
    /// Flips logged so far.
    pub flips: primitive::AtomicU32,
    /// Flips that the launcher has read.
    pub drained: primitive::AtomicU32,
    /// The log. Flip number `n` is in place `n % LOG`.
    pub log: [Flip; LOG],
}

/// The page of the control file that says whether programs record, and which. They read it.
#[repr(C)]
#[derive(Debug)]
pub struct Window {
    /// Whether they record, where the launcher decides.
    pub switch: Switch,
    /// The first launch or range of the window, counted from 0.
    pub first: u64,
    /// The first one behind it.
    pub last: u64,
    /// See [`trigger`].
    pub trigger: u32,
    /// 1 if only processes are recorded that match what follows; see [`flag::COUNTED`].
    pub selects: AtomicU32,
    /// Raised with each session of a control file that outlives sessions; stored before the mask is.
    pub generation: AtomicU32,
    /// Not used.
    pub reserved: u32,
    /// NUL-terminated glob of ranges' names.
    pub glob: [AtomicU8; GLOB],
    /// Process ids, as the processes have them in their own PID namespaces; 0 is an unused place.
    pub pids: [AtomicU32; PIDS],
    /// NUL-terminated glob of processes' names; empty: any.
    pub comm: [AtomicU8; GLOB],
    /// NUL-terminated glob of the path of a process's control group; empty: any.
    pub cgroup: [AtomicU8; GLOB],
}

/// The page in which programs count together, and open and close the window that launches, ranges or calls of theirs
/// decide about. Whoever of them overwrites it moves the window of all programs of this session, and of no other: a
/// count over several processes stands where each of them can write.
#[repr(C)]
#[derive(Debug)]
pub struct Counts {
    /// Whether they record, where programs decide.
    pub switch: Switch,
    /// Launches of kernels so far, in all processes. It stands still once the window was closed.
    pub launches: AtomicU64,
    /// Ranges so far that the glob matches, in all processes.
    pub ranges: AtomicU64,
    /// Those of the window that have not ended.
    pub open_ranges: AtomicU64,
    /// [`COUNTS_SEAL`]: another value shows that the page was overwritten.
    pub seal: AtomicU64,
}

/// The value of [`Counts::seal`].
pub const COUNTS_SEAL: u64 = u64::from_le_bytes(*b"HTRCOUNT");

/// The window was opened or closed.
#[repr(C)]
#[derive(Debug)]
pub struct Flip {
    /// Its number plus 1, stored last.
    pub sequence: primitive::AtomicU32,
    /// 1 if the window was opened, 0 if it was closed.
    pub open: primitive::AtomicU32,
    /// See [`reason`].
    pub reason: primitive::AtomicU32,
    /// Process id of who did it, in its own PID namespace.
    pub pid: primitive::AtomicU32,
    /// Its thread id.
    pub tid: primitive::AtomicU32,
    /// Not used.
    pub reserved: u32,
    /// Counter value.
    pub ticks: primitive::AtomicU64,
    /// The launch or range.
    pub number: primitive::AtomicU64,
}

/// Who opens or closes the window, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// See [`reason`].
    pub reason: u32,
    /// See [`Flip::number`].
    pub number: u64,
    /// See [`Flip::pid`].
    pub pid: u32,
    /// See [`Flip::tid`].
    pub tid: u32,
}

impl Switch {
    /// Returns whether a window is open, as far as the mask says.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.mask.load(Ordering::Relaxed) & flag::INSIDE & !flag::COUNTED != 0
    }

    /// Opens the window of a session that has one. Does nothing if it was open before, also if it is closed by
    /// now: its end may overtake its beginning. `now` is the counter's value.
    pub fn open_once(&self, now: u64, cause: Cause) {
        let begun =
            self.state.compare_exchange(state::BEFORE, state::OPEN, Ordering::AcqRel, Ordering::Relaxed);
        if begun.is_ok() {
            self.mask.store(flag::INSIDE, Ordering::Relaxed);
            self.log(now, true, cause);
            // Its end may have come in between, and have stored its mask before ours. Pairs with the exchange in
            // `close_for_good`: one that comes later stores its mask behind ours.
            let open = state::OPEN;
            if self.state.compare_exchange(open, open, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                self.mask.store(flag::OUTSIDE & !flag::COUNTED, Ordering::Relaxed);
            }
        }
    }

    /// Closes the window for good. Nothing is counted from here on.
    pub fn close_for_good(&self, now: u64, cause: Cause) {
        let before = self.state.swap(state::CLOSED, Ordering::AcqRel);
        self.mask.store(flag::OUTSIDE & !flag::COUNTED, Ordering::Relaxed);
        if before == state::OPEN {
            self.log(now, false, cause);
        }
    }

    /// Opens or closes the window; it may be the other way round again later. Only for one who does so alone.
    pub fn set_open(&self, open: bool, now: u64, cause: Cause) {
        if self.is_open() == open {
            return;
        }
        self.state.store(if open { state::OPEN } else { state::CLOSED }, Ordering::Relaxed);
        // Release: a process that sees this mask finds the selection of its session.
        self.mask.store(if open { flag::INSIDE } else { flag::OUTSIDE }, Ordering::Release);
        self.log(now, open, cause);
    }

    /// Opens or closes the window for a program that asks for it; any number of threads of any processes may do so at
    /// once. Only for [`trigger::CALLS`], where nobody else does: the number of flips decides then, of which each second
    /// one opens, so that the log has the order in which they were.
    pub fn set_open_by_call(&self, open: bool, now: u64, cause: Cause) {
        let is_open = |flips: u32| flips % 2 == 1;
        let flip = self.flips.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |flips| {
            (is_open(flips) != open).then(|| flips.wrapping_add(1))
        });
        let Ok(number) = flip else { return };
        self.log_as(number, now, open, cause);
        // Another one may store its mask behind ours though it came before us: who has stored one looks again.
        let mut flips = number.wrapping_add(1);
        loop {
            let now_open = is_open(flips);
            self.state.store(if now_open { state::OPEN } else { state::CLOSED }, Ordering::Relaxed);
            self.mask.store(if now_open { flag::INSIDE } else { flag::OUTSIDE }, Ordering::Relaxed);
            // Pairs with itself and with the exchange above: one that comes later stores its mask behind ours.
            match self.flips.compare_exchange(flips, flips, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => flips = now,
            }
        }
    }

    fn log(&self, now: u64, open: bool, cause: Cause) {
        self.log_as(self.flips.fetch_add(1, Ordering::Relaxed), now, open, cause);
    }

    fn log_as(&self, number: u32, now: u64, open: bool, cause: Cause) {
        let Some(place) = self.log.get(number as usize % LOG) else { return };
        // From here on it is none, as long as it is half of this one. Pairs with the fence in `flip`.
        place.sequence.store(0, Ordering::Relaxed);
        primitive::fence(Ordering::Release);
        place.open.store(open.into(), Ordering::Relaxed);
        place.reason.store(cause.reason, Ordering::Relaxed);
        place.pid.store(cause.pid, Ordering::Relaxed);
        place.tid.store(cause.tid, Ordering::Relaxed);
        place.ticks.store(now, Ordering::Relaxed);
        place.number.store(cause.number, Ordering::Relaxed);
        // Pairs with the Acquire load in `flip`: what stands above is there.
        place.sequence.store(number.wrapping_add(1), Ordering::Release);
    }

    /// Returns a flip that was logged and not overwritten: counter value, whether it opened the window, and its
    /// cause. (Two threads that write into one place at once, of which one was held up for as many flips as the log has
    /// places, may leave a mixture.)
    pub fn flip(&self, number: u32) -> Option<(u64, bool, Cause)> {
        let place = self.log.get(number as usize % LOG)?;
        // Pairs with the Release store in `log_as`.
        if place.sequence.load(Ordering::Acquire) != number.wrapping_add(1) {
            return None;
        }
        let cause = Cause {
            reason: place.reason.load(Ordering::Relaxed),
            number: place.number.load(Ordering::Relaxed),
            pid: place.pid.load(Ordering::Relaxed),
            tid: place.tid.load(Ordering::Relaxed),
        };
        let (ticks, open) = (place.ticks.load(Ordering::Relaxed), place.open.load(Ordering::Relaxed) != 0);
        // Pairs with the fence in `log_as`: if any of this is a later one's, so is the sequence.
        primitive::fence(Ordering::Acquire);
        (place.sequence.load(Ordering::Relaxed) == number.wrapping_add(1)).then_some((ticks, open, cause))
    }
}

impl Window {
    /// Returns whether a launch or range belongs to the window.
    #[inline]
    pub fn has(&self, number: u64) -> bool {
        (self.first..self.last).contains(&number)
    }

    /// Returns the switch that programs look at.
    pub fn switch<'p>(&'p self, counts: &'p Counts) -> &'p Switch {
        if self.trigger == trigger::LAUNCHER { &self.switch } else { &counts.switch }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A switch as the launcher makes it for [`trigger::CALLS`].
    fn page() -> Box<Switch> {
        // SAFETY: all of it is numbers and atomics, for which zeros are valid.
        let mut page: Box<Switch> = unsafe { Box::new(std::mem::zeroed()) };
        *page.mask.get_mut() = flag::OUTSIDE;
        page
    }

    fn by(pid: u32) -> Cause {
        Cause { reason: reason::CALL, number: 0, pid, tid: pid }
    }

    #[test]
    fn what_is_so_already_is_no_flip() {
        let page = page();
        page.set_open_by_call(false, 1, by(1));
        assert_eq!((page.is_open(), page.flips.load(Ordering::Relaxed)), (false, 0));
        page.set_open_by_call(true, 2, by(1));
        page.set_open_by_call(true, 3, by(2));
        assert_eq!((page.is_open(), page.flips.load(Ordering::Relaxed)), (true, 1));
        assert_eq!(page.flip(0), Some((2, true, by(1))));
        page.set_open_by_call(false, 4, by(2));
        assert_eq!((page.is_open(), page.flip(1)), (false, Some((4, false, by(2)))));
    }

    #[test]
    fn threads_that_ask_at_once_leave_the_mask_as_the_last_one_said() {
        let page = page();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let page = &page;
                scope.spawn(move || {
                    for turn in 0..5_000 {
                        page.set_open_by_call((thread + turn) % 2 == 0, turn, by(thread as u32));
                    }
                });
            }
        });
        let flips = page.flips.load(Ordering::Relaxed);
        assert!(flips > 0);
        assert_eq!(page.is_open(), flips % 2 == 1);
        // The log has openings and closings in turn.
        for number in flips.saturating_sub(LOG as u32)..flips {
            // A thread that was held up may have written over a later one, which is then none.
            if let Some((_, open, _)) = page.flip(number) {
                assert_eq!(open, number % 2 == 0);
            }
        }
    }
}
