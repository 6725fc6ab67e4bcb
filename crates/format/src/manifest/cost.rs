//! What recording costs, as the launcher measured it.

use serde::{Deserialize, Serialize};

/// Nanoseconds of the machine, each a mean over many in a row.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// All that a recorded call takes longer than one that is not.
    pub call_ns: f64,
    /// The part of it between the call's time stamps: in its own time.
    pub inside_ns: f64,
    /// The same of a poll that is folded into the one before.
    pub fold_ns: f64,
    /// And between its time stamps.
    pub fold_inside_ns: f64,
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
    /// Calls.
    pub calls: u64,
    /// In all of them together, in nanoseconds.
    pub ns: u64,
    /// What was done in a few of them for many: collecting commands that had finished. It is not in `ns`.
    pub collecting_ns: u64,
}

impl Cost {
    /// Takes what another measurement found where that is less: processors now and then are slower
    /// for a while, and too much taken off is worse than too little. [`Self::timing`] stays.
    pub fn at_most(&mut self, other: &Self) {
        let Self { call_ns, inside_ns, fold_ns, fold_inside_ns, timing: _ } = other;
        for (ns, other) in [
            (&mut self.call_ns, call_ns),
            (&mut self.inside_ns, inside_ns),
            (&mut self.fold_ns, fold_ns),
            (&mut self.fold_inside_ns, fold_inside_ns),
        ] {
            *ns = ns.min(*other);
        }
    }

    /// Adds what timing commands took in another recording: sums over calls are what they are.
    pub fn add_timing(&mut self, timing: &Timing) {
        let Timing { api, calls, ns, collecting_ns } = timing;
        match self.timing.iter_mut().find(|known| known.api == *api) {
            None => self.timing.push(timing.clone()),
            Some(known) => {
                known.calls = known.calls.saturating_add(*calls);
                known.ns = known.ns.saturating_add(*ns);
                known.collecting_ns = known.collecting_ns.saturating_add(*collecting_ns);
            }
        }
    }
}
