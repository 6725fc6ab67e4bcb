//! How a wait ended: by another thread, by a timer or by a signal; and who held the lock that it was for.
//!
//! A timer that ends a sleep is an interrupt that few traces have: the event of the wake-up then names whoever had the
//! CPU. What the system call returns says better how the wait ended. A lock is given up in `futex` or with the end of
//! its holder; whoever wakes a thread in another way (a signal) did not hold it, and the thread waits again.

use std::collections::HashSet;

use crate::system::{Block, BlockId, Life, State, System, Waker};

/// In what whoever woke a thread was then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Via {
    /// Not known: its system calls are not recorded.
    #[default]
    Unknown,
    /// Something that gives up locks.
    Release,
    /// A system call that sends signals.
    Signal,
    /// Something else.
    Other,
}

/// System calls that give up locks: by themselves, or since the thread or its memory ends.
const RELEASES: [&str; 7] =
    ["futex", "futex_wake", "futex_requeue", "exit", "exit_group", "execve", "io_uring_enter"];
/// System calls that send signals.
const SIGNALS: [&str; 6] =
    ["kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"];
/// System calls that return 0 when their time is over.
const TIMED: [&str; 9] = [
    "nanosleep",
    "clock_nanosleep",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];
/// Those that return `-EAGAIN` then.
const TRIED: [&str; 2] = ["rt_sigtimedwait", "semtimedop"];

const EAGAIN: i64 = -11;
const ETIMEDOUT: i64 = -110;
/// `EINTR`, `ERESTARTSYS`, `ERESTARTNOINTR`, `ERESTARTNOHAND` and `ERESTART_RESTARTBLOCK`: what is returned to the
/// kernel itself when a signal interrupts a call.
const INTERRUPTED: [i64; 5] = [-4, -512, -513, -514, -516];

impl Via {
    /// What a thread does that is in this system call, if in one, all of which are recorded.
    pub fn of(call: Option<&str>, exits: bool) -> Self {
        match call {
            _ if exits => Self::Release,
            Some(call) if RELEASES.contains(&call) => Self::Release,
            Some(call) if SIGNALS.contains(&call) => Self::Signal,
            _ => Self::Other,
        }
    }

    /// Who of a lock's waiters and holders this waker is: the holder, or nobody who is known.
    pub fn holder(self, waker: Waker) -> Waker {
        match self {
            Self::Release | Self::Unknown => waker,
            Self::Signal | Self::Other => Waker::Unknown,
        }
    }
}

/// What ended a wait by the result of its system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// What was waited for.
    Woken,
    Timer,
    Signal,
}

impl Ending {
    pub fn of(call: &str, result: i64) -> Self {
        match result {
            ETIMEDOUT => Self::Timer,
            0 if TIMED.contains(&call) => Self::Timer,
            EAGAIN if TRIED.contains(&call) => Self::Timer,
            result if INTERRUPTED.contains(&result) => Self::Signal,
            _ => Self::Woken,
        }
    }
}

/// Waits that ended without that what was waited for was there.
#[derive(Debug, Default)]
pub(super) struct Endings {
    /// Waits for locks that a signal interrupted.
    interrupted: HashSet<BlockId>,
}

impl Endings {
    /// A wait ended so; `by` is what to name instead of a thread. Whoever sent the signal stays named.
    pub fn correct(&mut self, place: BlockId, block: &mut Block, (ending, via): (Ending, Via), by: u32) {
        if ending == Ending::Woken {
            return;
        }
        block.holder = Waker::Unknown;
        let is_known = matches!(block.waker, Waker::Interrupt(_)) || via == Via::Signal;
        if ending == Ending::Timer || !is_known {
            block.waker = Waker::Interrupt(by);
        }
        if ending == Ending::Signal && block.is_lock {
            self.interrupted.insert(place);
        }
    }

    /// Of a wait for a lock that was interrupted and went on, the holder is whoever ended the last part.
    pub fn holders(&self, system: &mut System) {
        if self.interrupted.is_empty() {
            return;
        }
        for life in &system.lives {
            self.of_life(life, &mut system.blocks);
        }
    }

    fn of_life(&self, life: &Life, blocks: &mut [Block]) {
        // The next wait in a system call.
        let mut next: Option<(u64, Waker)> = None;
        for stretch in life.stretches.iter().rev() {
            let State::Blocked(place) = stretch.state else { continue };
            let Some(block) = blocks.get_mut(place as usize).filter(|block| block.call.is_some()) else {
                continue;
            };
            if self.interrupted.contains(&place)
                && let Some((_, holder)) = next.filter(|(address, _)| block.address == Some(*address))
            {
                block.holder = holder;
            }
            next = block.address.filter(|_| block.is_lock).map(|address| (address, block.holder));
        }
    }
}
