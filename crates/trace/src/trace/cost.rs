//! What the tracer itself costs, as the launcher measured it.

use hetrace_format::manifest::Cost;
use hetrace_model::Model;

use super::functions::{FunctionId, Functions};

/// What recording one call costs, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCost {
    /// Between its time stamps: in its own time.
    pub inside: u32,
    /// In all; so much longer took whatever is around it.
    pub whole: u32,
}

impl CallCost {
    /// What is not in its own time, but in that of the call around it.
    pub fn around(self) -> u32 {
        self.whole.saturating_sub(self.inside)
    }
}

/// What recording costs, by function; nothing where it is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Costs {
    /// Of calls in which nothing else is done.
    call: CallCost,
    /// By function, where something is in some: then all that it costs.
    functions: Vec<CallCost>,
    /// What else is done now and then in some of a function's calls, as the mean of all, ns.
    bursts: Vec<f64>,
    fold: CallCost,
    known: bool,
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
        let wrong = |what: &str| {
            Err(format!("what recording costs is not known: {what}; times are as they were recorded"))
        };
        let pair = |inside: f64, whole: f64| {
            let sane = (0.0..=MOST).contains(&whole) && (0.0..=whole).contains(&inside);
            // Whole nanoseconds, as times are.
            sane.then_some(CallCost { inside: inside.round() as u32, whole: whole.round() as u32 })
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
        let known = call.whole > 0;
        let mut costs = Self { call, functions: Vec::new(), bursts: Vec::new(), fold, known };
        for timing in &recorded.timing {
            let calls = timing.calls.max(1) as f64;
            let (each, burst) = (timing.ns as f64 / calls, timing.collecting_ns as f64 / calls);
            let (Some(each), Some(_)) = (pair(each, each), pair(burst, burst)) else {
                let api = &timing.api;
                return wrong(&format!("{each} and {burst} ns for each command of {api} cannot be"));
            };
            costs.add(&timing.api, each, burst, (functions, models));
        }
        Ok(costs)
    }

    /// Adds what timing commands takes to all functions of an API that enqueue some.
    fn add(&mut self, api: &str, each: CallCost, burst: f64, (functions, models): (&Functions, &[Model])) {
        self.functions.resize(functions.all().len(), self.call);
        self.bursts.resize(functions.all().len(), 0.0);
        let costs = self.functions.iter_mut().zip(&mut self.bursts);
        for ((cost, bursts), function) in costs.zip(functions.all()) {
            let described = || models.get(function.api)?.functions.get(function.index?);
            let is_of_api = functions.apis().get(function.api).is_some_and(|known| known == api);
            if is_of_api && described().is_some_and(|described| described.command.is_some()) {
                cost.inside = cost.inside.saturating_add(each.inside);
                cost.whole = cost.whole.saturating_add(each.whole);
                *bursts += burst;
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

    /// Of a call.
    #[inline(always)]
    pub fn of(&self, function: FunctionId) -> CallCost {
        self.functions.get(function.index()).copied().unwrap_or(self.call)
    }

    /// Of calls of these functions together: in all, and around them.
    #[inline]
    pub fn of_all(&self, functions: impl ExactSizeIterator<Item = FunctionId>) -> (u64, u64) {
        if self.functions.is_empty() {
            let calls = functions.len() as u64;
            return (calls * u64::from(self.call.whole), calls * u64::from(self.call.around()));
        }
        functions.map(|function| self.of(function)).fold((0, 0), |(cost, around), each| {
            (cost + u64::from(each.whole), around + u64::from(each.around()))
        })
    }

    /// What of that is the work to time a command.
    pub fn of_timing(&self, function: FunctionId) -> u32 {
        self.of(function).whole.saturating_sub(self.call.whole)
    }

    /// What is done besides now and then in some calls of a function, ns: the mean of all its calls.
    /// Only of many calls together does it say anything.
    pub fn burst(&self, function: FunctionId) -> f64 {
        self.bursts.get(function.index()).copied().unwrap_or(0.0)
    }

    /// Of each call of a run that is one record.
    pub fn of_folded(&self) -> CallCost {
        self.fold
    }
}

#[cfg(test)]
mod tests {
    use hetrace_format::manifest::Timing;

    use super::*;

    fn read(recorded: &Cost) -> Result<Costs, String> {
        Costs::read(Some(recorded), &Functions::default(), &[])
    }

    #[test]
    fn what_makes_sense_is_taken() {
        let recorded = Cost { call_ns: 29.6, inside_ns: 11.4, fold_ns: 17.0, ..Cost::default() };
        let costs = read(&recorded).unwrap();
        assert!(costs.is_known());
        assert_eq!(costs.of(FunctionId(0)), CallCost { inside: 11, whole: 30 });
        assert_eq!(costs.of(FunctionId(0)).around(), 19);
        assert_eq!(costs.of_folded(), CallCost { inside: 0, whole: 17 });
        assert_eq!(Costs::read(None, &Functions::default(), &[]), Ok(Costs::default()));
    }

    #[test]
    fn what_makes_none_is_not() {
        let call = |call_ns, inside_ns| Cost { call_ns, inside_ns, ..Cost::default() };
        let timing = |ns, collecting_ns| Cost {
            timing: vec![Timing { api: "toy".to_owned(), calls: 1, ns, collecting_ns }],
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
            timing(0, u64::MAX),
        ] {
            let recorded = read(&recorded);
            assert!(recorded.as_ref().is_err_and(|e| e.contains("as they were recorded")), "{recorded:?}");
        }
    }
}
