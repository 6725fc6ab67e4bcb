//! What recording costs, as the launcher measured it.

use serde::{Deserialize, Serialize};

/// Nanoseconds of the machine, each a mean over many in a row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// All that a recorded call takes longer than one that is not.
    pub call_ns: f64,
    /// The same where other work has pushed the recorder out of the nearest caches; 0 if it was not measured.
    #[serde(skip_serializing_if = "is_nothing")]
    pub cold_ns: f64,
    /// The part of it between the call's time stamps: in its own time.
    pub inside_ns: f64,
    /// The same of a poll that is folded into the one before.
    pub fold_ns: f64,
    /// And between its time stamps.
    pub fold_inside_ns: f64,
    /// What a call takes that does nothing and is not recorded: no call takes less.
    pub least_ns: f64,
    /// Work to time commands, where that is done inside of calls. It was measured there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timing: Vec<Timing>,
}

/// What timing commands took inside of an API's calls that enqueue them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// The API.
    pub api: String,
    /// Calls in which nothing disturbed it.
    pub calls: u64,
    /// In all of them together, in nanoseconds. The mean stands for each.
    pub ns: u64,
    /// Calls in which it took longer. An event before each one's exit says how long.
    #[serde(skip_serializing_if = "is_zero")]
    pub apart_calls: u64,
    /// In all of these together, in nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub apart_ns: u64,
    /// Collecting commands that had finished, in some of the calls that enqueue and after calls that wait for a
    /// device, in nanoseconds. It is neither in `ns` nor in `apart_ns`.
    pub collecting_ns: u64,
    /// What calls took longer in the driver because their commands were timed, as it was learned from calls whose
    /// commands were not (`--max-overhead`), in nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub driver_ns: u64,
    /// As `ns` and `apart_ns` together, of calls that were added up (`--max-overhead`).
    #[serde(skip_serializing_if = "is_zero")]
    pub summed_ns: u64,
    /// The library's begin when it was loaded, in nanoseconds: not what the dynamic loader took before.
    #[serde(skip_serializing_if = "is_zero")]
    pub loading_ns: u64,
    /// Making the memory into which processes record, while their threads waited, in nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub setup_ns: u64,
    /// Beginning with a collector of device times, while processes waited, in nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_start_ns: u64,
    /// Its work on the program's threads later: buffers, flushing. What it does in each call that
    /// enqueues is not in it: that can't be seen from outside.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_ns: u64,
    /// Its work on the program's threads when contexts and processes end, in nanoseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_end_ns: u64,
    /// Its work on a thread of its own, for which the program does not wait.
    #[serde(skip_serializing_if = "is_zero")]
    pub collector_apart_ns: u64,
    /// Its work in calls that enqueue, in nanoseconds: least, about and most, by what it takes for each on machines where
    /// that was measured. It was not measured here.
    #[serde(skip_serializing_if = "are_zero")]
    pub collector_calls_ns: [u64; 3],
    /// Its work in other calls, where contexts are made, and at the end of processes; likewise.
    #[serde(skip_serializing_if = "are_zero")]
    pub collector_once_ns: [u64; 3],
    /// Commands that the library itself gave to devices: fills and copies of the memory that kernels record into. They are
    /// not among the program's commands.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_commands: u64,
    /// Bytes that these filled and copied.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_bytes: u64,
    /// Their time on the devices, in nanoseconds, as far as it is known.
    #[serde(skip_serializing_if = "is_zero")]
    pub own_device_ns: u64,
}

fn are_zero(ns: &[u64; 3]) -> bool {
    *ns == [0; 3]
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_nothing(ns: &f64) -> bool {
    *ns == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks this way")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Cost {
    /// Takes what another measurement found where that is less: processors now and then are slower
    /// for a while, and too much taken off is worse than too little. [`Self::timing`] stays.
    pub fn at_most(&mut self, other: &Self) {
        let Self { call_ns, cold_ns, inside_ns, fold_ns, fold_inside_ns, least_ns, timing: _ } = other;
        for (ns, other) in [
            (&mut self.call_ns, call_ns),
            (&mut self.cold_ns, cold_ns),
            (&mut self.inside_ns, inside_ns),
            (&mut self.fold_ns, fold_ns),
            (&mut self.fold_inside_ns, fold_inside_ns),
            (&mut self.least_ns, least_ns),
        ] {
            *ns = ns.min(*other);
        }
    }

    /// Adds what timing commands took in another recording: sums over calls are what they are.
    pub fn add_timing(&mut self, timing: &Timing) {
        let Some(known) = self.timing.iter_mut().find(|known| known.api == timing.api) else {
            self.timing.push(timing.clone());
            return;
        };
        for (to, n) in known.sums_mut().into_iter().zip(timing.clone().sums_mut()) {
            *to = to.saturating_add(*n);
        }
    }
}

impl Timing {
    /// All that adds up.
    fn sums_mut(&mut self) -> [&mut u64; 22] {
        let Self {
            api: _,
            calls,
            ns,
            apart_calls,
            apart_ns,
            collecting_ns,
            driver_ns,
            summed_ns,
            loading_ns,
            setup_ns,
            collector_start_ns,
            collector_ns,
            collector_end_ns,
            collector_apart_ns,
            collector_calls_ns: [calls_least, calls_about, calls_most],
            collector_once_ns: [once_least, once_about, once_most],
            own_commands,
            own_bytes,
            own_device_ns,
        } = self;
        [
            calls,
            ns,
            apart_calls,
            apart_ns,
            collecting_ns,
            driver_ns,
            summed_ns,
            loading_ns,
            setup_ns,
            collector_start_ns,
            collector_ns,
            collector_end_ns,
            collector_apart_ns,
            calls_least,
            calls_about,
            calls_most,
            once_least,
            once_about,
            once_most,
            own_commands,
            own_bytes,
            own_device_ns,
        ]
    }
}
