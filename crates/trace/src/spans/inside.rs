//! What open calls have inside of them.
//!
//! ```text
//!  call f  ┊─────────────────────────────────────────────┊      inside(f) between its stamps,
//!             g ─┊──────────┊─     h ─┊──────────┊─              whole(g), whole(h) in its time
//! ```
//! Of f's time, `inside(f) + whole(g) + whole(h)` are the tracer's. Of the time that is in neither g
//! nor h it is `inside(f)` and what of g's and h's costs is around their stamps. So the own times of
//! all calls, less what the tracer took of them, and that add up to the time of the outermost.

use super::calls::Fold;
use crate::trace::CallCost;

/// Calls inside of another; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    /// Time in those that are directly inside.
    pub time: u64,
    /// What recording all of them cost, at any depth.
    cost: u64,
    /// The part of `cost` that is not in `time`.
    around: u64,
}

impl Inside {
    /// So many nanoseconds in calls without calls inside, and what recording them cost, in all and
    /// around them.
    pub fn of_leaves(time: u64, cost: u64, around: u64) -> Self {
        Self { time, cost, around }
    }

    /// A call, and what is inside of it.
    #[inline(always)]
    pub fn add_call(&mut self, time: u64, cost: CallCost, inside: &Inside) {
        self.time = self.time.saturating_add(time);
        self.cost = self.cost.saturating_add(inside.cost).saturating_add(cost.whole.into());
        self.around = self.around.saturating_add(cost.around().into());
    }

    /// A call whose time is not known, and what is inside of it.
    pub fn add_given_up(&mut self, cost: CallCost, inside: &Inside) {
        let cost = inside.cost.saturating_add(cost.whole.into());
        self.cost = self.cost.saturating_add(cost);
        self.around = self.around.saturating_add(cost);
    }

    /// A run of equal calls; `cost` is that of each.
    pub fn add_fold(&mut self, fold: &Fold, cost: CallCost) {
        let of_all = |each: u32| fold.count.saturating_mul(each.into());
        self.add(&Self { time: fold.total, cost: of_all(cost.whole), around: of_all(cost.around()) });
    }

    /// The same of other calls.
    pub fn add(&mut self, other: &Inside) {
        self.time = self.time.saturating_add(other.time);
        self.cost = self.cost.saturating_add(other.cost);
        self.around = self.around.saturating_add(other.around);
    }

    /// What of the time of the call around it is the tracer's.
    #[inline(always)]
    pub fn cost_with(&self, cost: CallCost) -> u64 {
        self.cost.saturating_add(cost.inside.into())
    }

    /// And what of its time that is in none of these.
    #[inline(always)]
    pub fn own_cost_with(&self, cost: CallCost) -> u64 {
        self.around.saturating_add(cost.inside.into())
    }
}
