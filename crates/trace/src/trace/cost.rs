//! What the tracer itself costs, as the launcher measured it.

use hetrace_format::manifest::{Cost, Timing};
use hetrace_model::Model;

use super::functions::{FunctionId, Functions};

/// What recording one call costs, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCost {
    /// Between its time stamps: in its own time.
    pub inside: u32,
    /// In all; so much longer took whatever is around it.
    pub whole: u32,
    /// Beside that, work between its time stamps to time the command that it enqueues.
    pub timing: u32,
    /// What a call takes at least: that much of its time is its own.
    pub least: u32,
    /// Whether there may be such work.
    pub timed: bool,
}

impl CallCost {
    /// What is not in its own time, but in that of the call around it.
    #[inline(always)]
    pub fn around(self) -> u32 {
        self.whole.saturating_sub(self.inside)
    }

    /// What is in its own time.
    #[inline(always)]
    pub fn own(self) -> u32 {
        self.inside.saturating_add(self.timing)
    }

    /// In all, with the work to time its command.
    pub fn all(self) -> u32 {
        self.whole.saturating_add(self.timing)
    }

    /// The same of a call that enqueued nothing.
    pub fn without_timing(self) -> Self {
        Self { timing: 0, ..self }
    }

    /// The same of a call of which it is known how long that work took, in nanoseconds.
    pub fn with_timing(self, ns: u64) -> Self {
        Self { timing: u32::try_from(ns).unwrap_or(u32::MAX), ..self }
    }

    /// What of this own time of a call is the tracer's, if `cost` was reckoned to be in it: no more
    /// than leaves what a call takes at least.
    #[inline(always)]
    pub fn in_time(self, own: u64, cost: u64) -> u64 {
        cost.min(own.saturating_sub(self.least.into()))
    }

    /// What is needed of it for a call without calls inside.
    fn of_leaf(self) -> LeafCost {
        LeafCost { most: self.own(), least: self.least, around: self.around() }
    }
}

/// What recording a call without calls inside costs, in nanoseconds: of [`CallCost`] what is needed for these,
/// worked out once, as nearly all calls are such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeafCost {
    /// What is in its own time, if that is long enough.
    most: u32,
    /// What such a call takes at least.
    least: u32,
    /// What is in the time of the call around it.
    pub around: u32,
}

impl LeafCost {
    /// What of this time of a call is the tracer's; see [`CallCost::in_time`].
    #[inline(always)]
    pub fn in_time(self, time: u32) -> u32 {
        self.most.min(time.saturating_sub(self.least))
    }
}

/// What recording costs, by function; nothing where it is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Of calls in which nothing else is done.
    call: CallCost,
    /// By function, where commands are timed in calls of some.
    functions: Vec<CallCost>,
    /// By function.
    leaves: Vec<LeafCost>,
    /// What timing and what collecting commands took by function, as the means of all its calls, ns.
    means: Vec<[f64; 2]>,
    fold: CallCost,
    /// Of a call in all where the recorder is not in the nearest caches; that of any if it is not known.
    cold: u32,
    known: bool,
    beside: Beside,
}

/// What the tracer took of the program's time beside its calls, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// In the driver, because commands were timed.
    pub driver: u64,
    /// To time commands of calls that were added up.
    pub summed: u64,
    /// To begin when libraries were loaded.
    pub loading: u64,
    /// For the memory into which processes record.
    pub setup: u64,
    /// To begin with a collector of device times.
    pub collector_start: u64,
    /// The collector's work on threads of the program.
    pub collector: u64,
    /// The same when contexts and processes end.
    pub collector_end: u64,
    /// Its work on a thread of its own, for which the program does not wait.
    pub collector_apart: u64,
    /// Its work in calls, by a calibration: least, about, most.
    pub collector_calls: [u64; 3],
    /// Its work where contexts are made and processes end, likewise.
    pub collector_once: [u64; 3],
    /// Commands of its own on devices; not of the program's time.
    pub own_commands: u64,
    /// Bytes of these.
    pub own_bytes: u64,
    /// Their time on the devices, as far as it is known.
    pub own_device: u64,
}

/// The most that a call can cost, ns. Emulated counters take microseconds; more is a mistake.
const MOST: f64 = 1e6;

impl Costs {
    /// What a manifest has.
    ///
    /// # Errors
    /// What is wrong with it, in words; then nothing is known.
    pub(super) fn read(
        recorded: Option<&Cost>,
        functions: &Functions,
        models: &[Model],
    ) -> Result<Self, String> {
        let Some(recorded) = recorded else { return Ok(Self::default()) };
        let least = recorded.least_ns;
        let least = if (0.0..=MOST).contains(&least) { least.round() as u32 } else { 0 };
        let wrong = |what: &str| {
            Err(format!("what recording costs is not known: {what}; times are as they were recorded"))
        };
        let pair = |inside: f64, whole: f64| {
            let sane = (0.0..=MOST).contains(&whole) && (0.0..=whole).contains(&inside);
            // Whole nanoseconds, as times are.
            let (inside, whole) = (inside.round() as u32, whole.round() as u32);
            sane.then_some(CallCost { inside, whole, timing: 0, least, timed: false })
        };
        let (call, fold) = match (
            pair(recorded.inside_ns, recorded.call_ns),
            pair(recorded.fold_inside_ns, recorded.fold_ns),
        ) {
            (Some(call), Some(fold)) => (call, fold),
            (None, _) => {
                return wrong(&format!(
                    "{} ns a call, {} ns inside, cannot be",
                    recorded.call_ns, recorded.inside_ns
                ));
            }
            (_, None) => {
                let (whole, inside) = (recorded.fold_ns, recorded.fold_inside_ns);
                return wrong(&format!("{whole} ns a poll, {inside} ns inside, cannot be"));
            }
        };
        // A call that took nothing was not measured: then nothing is taken off any time.
        if call.whole == 0 {
            return Ok(Self::default());
        }
        let cold = if (0.0..=MOST).contains(&recorded.cold_ns) { recorded.cold_ns.round() as u32 } else { 0 };
        let mut costs = Self { call, fold, cold: cold.max(call.whole), known: true, ..Self::default() };
        for timing in &recorded.timing {
            costs.beside.add(timing);
            let mean = |ns: u64, calls: u64| ns as f64 / calls.max(1) as f64;
            let all = timing.calls.saturating_add(timing.apart_calls);
            let each = mean(timing.ns, timing.calls);
            let means =
                [timing.ns.saturating_add(timing.apart_ns), timing.collecting_ns].map(|ns| mean(ns, all));
            if let Some(wrong_one) = [each, means[0]].into_iter().find(|ns| *ns > MOST) {
                return wrong(&format!("{wrong_one} ns to time each command of {} cannot be", timing.api));
            }
            costs.add(&timing.api, each.round() as u32, means, (functions, models));
        }
        let all = (0u32..).zip(functions.all()).map(|(id, _)| costs.of(FunctionId(id)).of_leaf());
        costs.leaves = all.collect();
        Ok(costs)
    }

    /// Adds what timing commands takes to all functions of an API that enqueue some.
    fn add(&mut self, api: &str, each: u32, means: [f64; 2], (functions, models): (&Functions, &[Model])) {
        self.functions.resize(functions.all().len(), self.call);
        self.means.resize(functions.all().len(), [0.0; 2]);
        let costs = self.functions.iter_mut().zip(&mut self.means);
        for ((cost, of_all), function) in costs.zip(functions.all()) {
            let described = || models.get(function.api)?.functions.get(function.index?);
            let is_of_api = functions.apis().get(function.api).is_some_and(|known| known == api);
            if is_of_api && described().is_some_and(|described| described.has_command()) {
                cost.timing = cost.timing.saturating_add(each);
                cost.timed = true;
                *of_all = [of_all[0] + means[0], of_all[1] + means[1]];
            }
        }
    }

    /// Whether it was measured.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// Of a call in which nothing else is done, in all, ns; none if it is not known.
    pub fn of_any(&self) -> Option<u32> {
        self.known.then_some(self.call.whole)
    }

    /// Of a call in all, where other work has pushed the recorder out of the nearest caches, ns.
    pub fn of_cold(&self) -> u32 {
        self.cold
    }

    /// Of a call.
    #[inline(always)]
    pub fn of(&self, function: FunctionId) -> CallCost {
        self.functions.get(function.index()).copied().unwrap_or(self.call)
    }

    /// Of calls without calls inside, by function; empty where nothing is known.
    pub fn of_leaves(&self) -> &[LeafCost] {
        &self.leaves
    }

    /// What timing the commands of a function took and what collecting them did, as the means of all its calls, ns.
    pub fn means(&self, function: FunctionId) -> [f64; 2] {
        self.means.get(function.index()).copied().unwrap_or_default()
    }

    /// What was done beside the calls, in all processes.
    pub fn beside(&self) -> Beside {
        self.beside
    }

    /// Of each call of a run that is one record.
    pub fn of_folded(&self) -> CallCost {
        self.fold
    }
}

impl Beside {
    fn add(&mut self, timing: &Timing) {
        for (to, n) in [
            (&mut self.driver, timing.driver_ns),
            (&mut self.summed, timing.summed_ns),
            (&mut self.loading, timing.loading_ns),
            (&mut self.setup, timing.setup_ns),
            (&mut self.collector_start, timing.collector_start_ns),
            (&mut self.collector, timing.collector_ns),
            (&mut self.collector_end, timing.collector_end_ns),
            (&mut self.collector_apart, timing.collector_apart_ns),
            (&mut self.own_commands, timing.own_commands),
            (&mut self.own_bytes, timing.own_bytes),
            (&mut self.own_device, timing.own_device_ns),
        ] {
            *to = to.saturating_add(n);
        }
        let calibrated = self.collector_calls.iter_mut().zip(timing.collector_calls_ns);
        for (to, n) in calibrated.chain(self.collector_once.iter_mut().zip(timing.collector_once_ns)) {
            *to = to.saturating_add(n);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(recorded: &Cost) -> Result<Costs, String> {
        Costs::read(Some(recorded), &Functions::default(), &[])
    }

    #[test]
    fn what_makes_sense_is_taken() {
        let recorded =
            Cost { call_ns: 29.6, inside_ns: 11.4, fold_ns: 17.0, least_ns: 1.2, ..Cost::default() };
        let costs = read(&recorded).unwrap();
        assert!(costs.is_known());
        assert_eq!(
            costs.of(FunctionId(0)),
            CallCost { inside: 11, whole: 30, timing: 0, least: 1, timed: false }
        );
        assert_eq!(costs.of(FunctionId(0)).around(), 19);
        assert_eq!(costs.of_cold(), 30, "as of any");
        let cold = |cold_ns| read(&Cost { cold_ns, ..recorded.clone() }).unwrap().of_cold();
        assert_eq!([210.4, 5.0, f64::NAN, -1.0, 1e9].map(cold), [210, 30, 30, 30, 30]);
        assert_eq!(costs.of_folded(), CallCost { inside: 0, whole: 17, timing: 0, least: 1, timed: false });
        assert_eq!(Costs::read(None, &Functions::default(), &[]), Ok(Costs::default()));
    }

    #[test]
    fn a_call_keeps_what_it_takes_at_least() {
        let cost = CallCost { inside: 8, whole: 20, timing: 30, least: 2, timed: true };
        let of_leaves = [100, 40, 39, 3, 2, 1, 0].map(|time| cost.of_leaf().in_time(time));
        assert_eq!(of_leaves, [38, 38, 37, 1, 0, 0, 0]);
        assert_eq!((cost.around(), cost.of_leaf().around, cost.all()), (12, 12, 50));
        assert_eq!((cost.without_timing().own(), cost.with_timing(u64::MAX).own()), (8, u32::MAX));
        assert_eq!(cost.in_time(5, 1_000), 3);
    }

    #[test]
    fn where_calls_were_not_measured_nothing_is_taken_off() {
        let timing = Timing { api: "toy".to_owned(), calls: 100, ns: 56_169, ..Timing::default() };
        let recorded = Cost { fold_ns: 246.0, least_ns: 3.0, timing: vec![timing], ..Cost::default() };
        assert_eq!(read(&recorded), Ok(Costs::default()));
    }

    #[test]
    fn what_makes_none_is_not() {
        let call = |call_ns, inside_ns| Cost { call_ns, inside_ns, ..Cost::default() };
        let timing = |ns, collecting_ns| Cost {
            timing: vec![Timing { api: "toy".to_owned(), calls: 1, ns, collecting_ns, ..Timing::default() }],
            ..call(10.0, 0.0)
        };
        for recorded in [
            call(-1.0, 0.0),
            call(1e7, 1.0),
            call(10.0, 11.0),
            call(10.0, -0.1),
            call(f64::NAN, 0.0),
            Cost { fold_ns: 1e300, ..call(10.0, 0.0) },
            timing(1_000_000_000, 0),
        ] {
            let recorded = read(&recorded);
            assert!(recorded.as_ref().is_err_and(|e| e.contains("as they were recorded")), "{recorded:?}");
        }
    }
}
