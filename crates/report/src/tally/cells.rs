//! What rows are made of, in a form that adds up.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::by::Group;
use super::estimate::Samples;
use super::rows::{EnergyRow, LaunchRow};
use super::times::Times;
use hetrace_trace::system::Shares;

/// Ways of launching that are kept of a kernel.
pub(super) const LAUNCHES: usize = 8;

/// Something that adds up with its like.
pub(super) trait Cell: Clone {
    /// What those that add up have in common.
    type Key: Eq + Hash;

    fn key(&self) -> Self::Key;
    fn add(&mut self, other: &Self);
}

/// Adds cells to those of the same key.
pub(super) fn merge<C: Cell>(to: &mut Vec<C>, from: impl IntoIterator<Item = C>) {
    let mut places: HashMap<C::Key, usize> = to.iter().enumerate().map(|(at, c)| (c.key(), at)).collect();
    for cell in from {
        let next = to.len();
        match *places.entry(cell.key()).or_insert(next) {
            at if at == next => to.push(cell),
            at => to[at].add(&cell),
        }
    }
}

fn sum<const N: usize>(pairs: [(&mut u64, u64); N]) {
    for (to, n) in pairs {
        *to = to.saturating_add(n);
    }
}

/// Calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HostCell {
    pub name: String,
    pub api: String,
    pub group: Group,
    pub folded: u64,
    /// Calls that were added up, and their time, as that in `times`.
    #[serde(default)]
    pub summed: u64,
    #[serde(default)]
    pub summed_ns: u64,
    /// The square of the standard error of that, where only some of them were timed.
    #[serde(default)]
    pub summed_variance: u64,
    /// Time outside of other calls, as recorded.
    pub own: u64,
    /// How much shorter `times` and `summed_ns` are than what was recorded.
    #[serde(default)]
    pub taken: u64,
    /// What of the time as recorded, and of `own`, is the tracer's.
    #[serde(default)]
    pub cost: u64,
    #[serde(default)]
    pub own_cost: u64,
    pub errors: u64,
    /// Time in calls that failed, as recorded, and what of it is the tracer's.
    pub error_ns: u64,
    #[serde(default)]
    pub error_cost: u64,
    /// The same outside of other calls.
    #[serde(default)]
    pub error_own: u64,
    #[serde(default)]
    pub error_own_cost: u64,
    /// Of calls that went well and were recorded each by itself.
    pub times: Times,
    /// What their threads did meanwhile, as recorded; all 0 if that is not in the trace.
    #[serde(default)]
    pub states: Shares,
    /// Of calls that went well, those inside of another call of their layer, and their time, as that in `times`; 0 where
    /// layers are not distinguished.
    #[serde(default)]
    pub again: u64,
    #[serde(default)]
    pub again_ns: u64,
}

impl Cell for HostCell {
    type Key = (String, String, Group);

    fn key(&self) -> Self::Key {
        (self.name.clone(), self.api.clone(), self.group.clone())
    }

    fn add(&mut self, other: &Self) {
        sum([
            (&mut self.folded, other.folded),
            (&mut self.summed, other.summed),
            (&mut self.summed_ns, other.summed_ns),
            (&mut self.summed_variance, other.summed_variance),
            (&mut self.own, other.own),
            (&mut self.taken, other.taken),
            (&mut self.cost, other.cost),
            (&mut self.own_cost, other.own_cost),
            (&mut self.errors, other.errors),
            (&mut self.error_ns, other.error_ns),
            (&mut self.error_cost, other.error_cost),
            (&mut self.error_own, other.error_own),
            (&mut self.error_own_cost, other.error_own_cost),
            (&mut self.again, other.again),
            (&mut self.again_ns, other.again_ns),
        ]);
        self.times.merge(&other.times);
        self.states.add(&other.states);
    }
}

impl HostCell {
    /// The calls of it that went well.
    pub fn without_failed(self) -> Self {
        Self { errors: 0, error_ns: 0, error_cost: 0, error_own: 0, error_own_cost: 0, ..self }
    }
}

/// Commands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct DeviceCell {
    pub kind: String,
    /// The kernel; empty for the kind.
    pub symbol: String,
    pub api: String,
    pub group: Group,
    /// Launches, those included that only others stand for.
    pub calls: u64,
    pub untimed: u64,
    /// Launches that `total` is of.
    pub timed: u64,
    pub total: u64,
    pub bytes: u64,
    pub errors: u64,
    pub in_graph: u64,
    /// Of `calls`, nodes of graphs without a time of their own; they are in `untimed`, too.
    #[serde(default)]
    pub of_graphs: u64,
    /// Nanoseconds that `total` may be off since times of nodes are, all in the same way.
    #[serde(default)]
    pub off: u64,
    pub samples: Samples,
    /// Each with how many launches it stands for.
    pub times: Times,
    /// Those with the most calls first.
    pub launches: Vec<LaunchRow>,
}

impl Cell for DeviceCell {
    type Key = (String, String, String, Group);

    fn key(&self) -> Self::Key {
        (self.kind.clone(), self.symbol.clone(), self.api.clone(), self.group.clone())
    }

    fn add(&mut self, other: &Self) {
        sum([
            (&mut self.calls, other.calls),
            (&mut self.untimed, other.untimed),
            (&mut self.timed, other.timed),
            (&mut self.total, other.total),
            (&mut self.bytes, other.bytes),
            (&mut self.errors, other.errors),
            (&mut self.in_graph, other.in_graph),
            (&mut self.of_graphs, other.of_graphs),
            (&mut self.off, other.off),
        ]);
        self.samples.add(&other.samples);
        self.times.merge(&other.times);
        let mut shapes = self.launches.iter().chain(&other.launches).map(|l| l.shapes).max().unwrap_or(0);
        for launch in &other.launches {
            match self.launches.iter_mut().find(|l| l.is_like(launch)) {
                Some(known) => known.calls = known.calls.saturating_add(launch.calls),
                None => self.launches.push(launch.clone()),
            }
        }
        shapes = shapes.max(self.launches.len() as u64);
        self.launches.iter_mut().for_each(|l| l.shapes = shapes);
        self.sort_launches();
    }
}

impl DeviceCell {
    /// Those with the most calls first; between equal ones, always the same.
    pub fn sort_launches(&mut self) {
        let place = |l: &LaunchRow| {
            let sizes = (l.items.clone(), l.block.clone(), l.cluster.clone());
            (l.calls, sizes, l.shared_dynamic, l.registers, l.shared_static, l.local)
        };
        self.launches.sort_by_key(|l| std::cmp::Reverse(place(l)));
        self.launches.truncate(LAUNCHES);
    }

    /// Takes the numbers that were counted for those that samples stand for.
    pub fn correct(&mut self, off: &Correction) {
        let before = u128::from(self.calls.max(1));
        off.apply(&mut self.samples, [&mut self.calls, &mut self.timed, &mut self.untimed, &mut self.total]);
        self.bytes = self.bytes.saturating_add_signed(off.bytes);
        // Parts of the same calls.
        let after = u128::from(self.calls);
        let part = |calls: u64| u64::try_from(u128::from(calls) * after / before).unwrap_or(u64::MAX);
        self.in_graph = part(self.in_graph);
        self.launches.iter_mut().for_each(|row| row.calls = part(row.calls));
    }
}

/// By how much what samples stand for is off what was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Correction {
    /// There were so many more launches, or fewer.
    pub launches: i64,
    /// Of these, launches that no sample stands for.
    pub unseen: u64,
    /// They moved so many more bytes, or fewer.
    pub bytes: i64,
}

impl Correction {
    /// Changes the sums of a cell: launches, those with times, those without, and the time of all.
    fn apply(&self, samples: &mut Samples, sums: [&mut u64; 4]) {
        let [calls, timed, untimed, total] = sums;
        *calls = calls.saturating_add_signed(self.launches);
        samples.unseen = samples.unseen.saturating_add(self.unseen);
        if *timed == 0 {
            *untimed = untimed.saturating_add_signed(self.launches);
            return;
        }
        let now = timed.saturating_add_signed(self.launches).max(1);
        let by = samples.stretch(self.launches);
        *total = match by {
            Some(by) => total.saturating_add_signed(by),
            // They are taken to be as those that were timed.
            None => (*total as f64 / *timed as f64 * now as f64) as u64,
        };
        *timed = now;
    }
}

/// Bytes that were moved or set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TrafficCell {
    pub kind: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub group: Group,
    pub calls: u64,
    pub bytes: u64,
    /// Commands that failed, which are in `calls`, and what they were to move, which is not in `bytes`.
    #[serde(default)]
    pub errors: u64,
    #[serde(default)]
    pub failed_bytes: u64,
    /// Bytes of commands with times.
    pub timed_bytes: u64,
    /// As in [`DeviceCell`]; files of older forms have 0, and then all is in `times`.
    #[serde(default)]
    pub untimed: u64,
    #[serde(default)]
    pub timed: u64,
    #[serde(default)]
    pub total: u64,
    /// As in [`DeviceCell`].
    #[serde(default)]
    pub of_graphs: u64,
    #[serde(default)]
    pub off: u64,
    #[serde(default)]
    pub samples: Samples,
    pub times: Times,
}

impl TrafficCell {
    /// Takes the numbers that were counted for those that samples stand for.
    pub fn correct(&mut self, off: &Correction) {
        off.apply(&mut self.samples, [&mut self.calls, &mut self.timed, &mut self.untimed, &mut self.total]);
        self.bytes = self.bytes.saturating_add_signed(off.bytes);
    }
}

impl Cell for TrafficCell {
    type Key = (String, Option<String>, Option<String>, Group);

    fn key(&self) -> Self::Key {
        (self.kind.clone(), self.from.clone(), self.to.clone(), self.group.clone())
    }

    fn add(&mut self, other: &Self) {
        sum([
            (&mut self.calls, other.calls),
            (&mut self.bytes, other.bytes),
            (&mut self.errors, other.errors),
            (&mut self.failed_bytes, other.failed_bytes),
            (&mut self.timed_bytes, other.timed_bytes),
            (&mut self.untimed, other.untimed),
            (&mut self.timed, other.timed),
            (&mut self.total, other.total),
            (&mut self.of_graphs, other.of_graphs),
            (&mut self.off, other.off),
        ]);
        self.samples.add(&other.samples);
        self.times.merge(&other.times);
    }
}

/// Ranges of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RangeCell {
    pub domain: String,
    pub name: String,
    pub category: String,
    pub style: String,
    pub commands: u64,
    pub device_ns: u64,
    pub energy: Option<EnergyRow>,
    pub times: Times,
}

impl Cell for RangeCell {
    type Key = (String, String, String, String);

    fn key(&self) -> Self::Key {
        (self.domain.clone(), self.name.clone(), self.category.clone(), self.style.clone())
    }

    fn add(&mut self, other: &Self) {
        sum([(&mut self.commands, other.commands), (&mut self.device_ns, other.device_ns)]);
        self.times.merge(&other.times);
        // What only a part of them took says nothing of all.
        self.energy = self.energy.take().zip(other.energy.as_ref()).map(|(a, b)| a.and(b));
    }
}

/// What kernels of a name took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EnergyCell {
    pub symbol: String,
    /// None if a part of them is not known.
    pub energy: Option<EnergyRow>,
}

impl EnergyRow {
    /// Of two that have nothing to do with each other, both.
    fn and(self, other: &Self) -> Self {
        Self {
            millijoules: self.millijoules + other.millijoules,
            error_mj: self.error_mj.hypot(other.error_mj),
            readings: self.readings.saturating_add(other.readings),
        }
    }
}

impl Cell for EnergyCell {
    type Key = String;

    fn key(&self) -> String {
        self.symbol.clone()
    }

    fn add(&mut self, other: &Self) {
        self.energy = self.energy.take().zip(other.energy.as_ref()).map(|(a, b)| a.and(b));
    }
}

impl LaunchRow {
    /// Whether it is the same way of launching.
    fn is_like(&self, other: &Self) -> bool {
        let one = Self { calls: 0, shapes: 0, ..self.clone() };
        one == Self { calls: 0, shapes: 0, ..other.clone() }
    }
}
