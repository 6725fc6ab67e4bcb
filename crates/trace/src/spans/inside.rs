//! What open calls have inside of them.
//!
//! ```text
//!  call f  ┊─────────────────────────────────────────────┊      own(f) between its stamps,
//!             g ─┊──────────┊─     h ─┊──────────┊─              around(g), around(h) beside theirs
//! ```
//! Of the time of f that is in neither g nor h, `own(f) + around(g) + around(h)` are the tracer's, but no
//! more than it has beyond what a call takes at least. With what was found of g and of h by the same rule,
//! that is the tracer's part of the whole of f. So
//!
//! * each call has no less than nothing left, and what is left of f is what is left of its own time and of g and h;
//! * sums over any choice of calls are sums over these calls: they fit each other, however calls are grouped.

use super::calls::Fold;
use crate::trace::CallCost;

/// Calls inside of another; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    /// Time in those that are directly inside.
    pub time: u64,
    /// What of that is the tracer's, with all that is inside of these.
    cost: u64,
    /// What recording them took beside their own time.
    around: u64,
}

/// What is known of a call when it has ended; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    /// In all.
    pub duration: u64,
    /// In none of the calls inside.
    pub own: u64,
    /// What of the duration is the tracer's.
    pub cost: u64,
    /// What of `own` is.
    pub own_cost: u64,
}

impl Inside {
    /// So many nanoseconds in calls without calls inside, what of them is the tracer's, and what
    /// recording them took beside.
    pub fn of_leaves(time: u64, cost: u64, around: u64) -> Self {
        Self { time, cost, around }
    }

    /// The times of a call that has this inside and took so long.
    #[inline(always)]
    pub fn times(&self, duration: u64, cost: CallCost) -> Times {
        let own = duration.saturating_sub(self.time);
        let own_cost = cost.in_time(own, self.around.saturating_add(cost.own().into()));
        // Where calls overlap, as clocks of processors differ, those inside may have more time than there is.
        let all = self.cost.saturating_add(own_cost).min(duration);
        Times { duration, own, cost: all, own_cost }
    }

    /// A call.
    #[inline(always)]
    pub fn add_call(&mut self, times: Times, cost: CallCost) {
        self.time = self.time.saturating_add(times.duration);
        self.cost = self.cost.saturating_add(times.cost);
        self.around = self.around.saturating_add(cost.around().into());
    }

    /// A call whose time is not known, and what is inside of it: that is in the own time of the call around it.
    pub fn add_given_up(&mut self, cost: CallCost, inside: &Inside) {
        let all = inside.cost.saturating_add(inside.around).saturating_add(cost.all().into());
        self.around = self.around.saturating_add(all);
    }

    /// A run of equal calls; `cost` is that of each. Returns what of their time is the tracer's.
    pub fn add_fold(&mut self, fold: &Fold, cost: CallCost) -> u64 {
        let taken = Self::of_fold(fold, cost);
        let around = fold.count.saturating_mul(cost.around().into());
        self.add(&Self { time: fold.total, cost: taken, around });
        taken
    }

    /// What of the time of a run of equal calls is the tracer's.
    pub fn of_fold(fold: &Fold, cost: CallCost) -> u64 {
        let least = fold.count.saturating_mul(cost.least.into());
        fold.count.saturating_mul(cost.own().into()).min(fold.total.saturating_sub(least))
    }

    /// The same of other calls.
    pub fn add(&mut self, other: &Inside) {
        self.time = self.time.saturating_add(other.time);
        self.cost = self.cost.saturating_add(other.cost);
        self.around = self.around.saturating_add(other.around);
    }
}
