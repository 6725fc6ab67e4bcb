//! The contexts that a thread executes in turn: tasks that an API's runtime schedules on it.
//!
//! A runtime reports each switch by what is left and what is entered, and not which of them begins there. A thread
//! that leaves a task unfinished for another comes back to it when that one is over, or has been put aside, so those
//! that it has entered and not left are a stack. Where it began, at the bottom, is no task of these.
//!
//! Nothing is handed over here: a thread's stack is its own, as the memory in which it stands ([`crate::Extra`]) is, and
//! runtimes report switches from their own code, never from a signal handler. It is of atomics because another thread
//! may have that memory later.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Contexts that one thread may be inside of. Switches to deeper ones are not distinguished.
const LEVELS: usize = 1023;

/// What a switch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switched {
    /// The thread leaves what it had entered.
    pub leaves: bool,
    /// It enters what it was not inside of.
    pub enters: bool,
}

#[repr(C)]
#[derive(Debug)]
struct Level {
    context: AtomicU64,
    /// What the thread was in before.
    below: AtomicU64,
}

/// The contexts of a thread, the outermost first. Zeros are none.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Contexts {
    /// May be more than there is room for.
    depth: AtomicU32,
    levels: [Level; LEVELS],
}

impl Contexts {
    pub(crate) fn clear(&self) {
        self.depth.store(0, Ordering::Relaxed);
    }

    fn push(&self, context: u64, below: u64) {
        let depth = self.depth.load(Ordering::Relaxed);
        self.depth.store(depth.wrapping_add(1), Ordering::Relaxed);
        if let Some(level) = self.levels.get(depth as usize) {
            level.context.store(context, Ordering::Relaxed);
            level.below.store(below, Ordering::Relaxed);
        }
    }

    /// The innermost context, and what is below it.
    fn top(&self) -> Option<(u64, u64)> {
        let below = self.depth.load(Ordering::Relaxed).checked_sub(1)?;
        let level = self.levels.get(below as usize)?;
        Some((level.context.load(Ordering::Relaxed), level.below.load(Ordering::Relaxed)))
    }

    pub(crate) fn switch(&self, from: u64, to: u64, is_over: bool) -> Switched {
        let depth = self.depth.load(Ordering::Relaxed);
        if depth as usize > LEVELS || (depth as usize == LEVELS && !is_over) {
            // Deeper than is known: only how deep is kept.
            self.depth.store(if is_over { depth - 1 } else { depth.saturating_add(1) }, Ordering::Relaxed);
            return Switched { leaves: false, enters: false };
        }
        let (leaves, below) = match self.top() {
            Some((context, below)) if context == from => (is_over || below == to, below),
            // Its beginning was not seen, or it is where the thread began.
            _ => (false, 0),
        };
        if leaves {
            self.depth.store(depth - 1, Ordering::Relaxed);
        }
        let enters = if leaves { to != below } else { !is_over };
        if enters {
            self.push(to, if leaves { below } else { from });
        }
        Switched { leaves, enters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTTOM: u64 = 1;

    fn none() -> Box<Contexts> {
        let level = || Level { context: AtomicU64::new(0), below: AtomicU64::new(0) };
        Box::new(Contexts { depth: AtomicU32::new(0), levels: std::array::from_fn(|_| level()) })
    }

    fn is(leaves: bool, enters: bool) -> Switched {
        Switched { leaves, enters }
    }

    #[test]
    fn tasks_inside_of_each_other() {
        let contexts = none();
        assert_eq!(contexts.switch(BOTTOM, 7, false), is(false, true));
        assert_eq!(contexts.switch(7, 8, false), is(false, true));
        assert_eq!(contexts.switch(8, 7, true), is(true, false));
        assert_eq!(contexts.switch(7, BOTTOM, true), is(true, false));
        assert_eq!(contexts.depth.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn one_after_another() {
        let contexts = none();
        assert_eq!(contexts.switch(BOTTOM, 7, false), is(false, true));
        assert_eq!(contexts.switch(7, 8, true), is(true, true));
        assert_eq!(contexts.switch(8, BOTTOM, true), is(true, false));
    }

    #[test]
    fn one_that_is_put_aside_is_left_and_entered_again() {
        let contexts = none();
        assert_eq!(contexts.switch(BOTTOM, 7, false), is(false, true));
        assert_eq!(contexts.switch(7, BOTTOM, false), is(true, false));
        assert_eq!(contexts.switch(BOTTOM, 7, false), is(false, true));
        assert_eq!(contexts.switch(7, BOTTOM, true), is(true, false));
    }

    #[test]
    fn the_end_of_one_whose_begin_was_not_seen_is_neither() {
        let contexts = none();
        assert_eq!(contexts.switch(7, BOTTOM, true), is(false, false));
        assert_eq!(contexts.switch(BOTTOM, 8, false), is(false, true));
    }

    #[test]
    fn beyond_the_deepest_only_the_depth_is_kept() {
        let contexts = none();
        let last = LEVELS as u64 + BOTTOM;
        for task in BOTTOM..last {
            assert_eq!(contexts.switch(task, task + 1, false), is(false, true), "{task}");
        }
        assert_eq!(contexts.switch(last, last + 1, false), is(false, false));
        assert_eq!(contexts.switch(last + 1, last, true), is(false, false));
        assert_eq!(contexts.switch(last, last - 1, true), is(true, false));
    }
}
