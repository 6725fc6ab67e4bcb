//! What threads did outside of calls, by samples of processors.

use std::collections::HashMap;

use hetrace_trace::hash::QuickMap;
use hetrace_trace::samples::{Where, each, function_of};
use hetrace_trace::stacks::{Kind, StackId};
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::{Stopped, Watch};

use super::causes::Cause;
use super::gaps::Part;

/// Functions of which most of a cause's samples are.
const NAMED: usize = 3;
/// Of all samples of a cause one in so many, at least, for a function to be named.
const WORTH: u64 = 10;

/// A sample outside of calls: when it was, and its function.
type Sample = (u64, u32);

/// Samples by function, of one cause.
pub(super) type Sums = QuickMap<u32, u64>;

/// The samples of a trace that were outside of calls.
#[derive(Debug, Default)]
pub(super) struct Sampled {
    /// By process and thread, in the order of time.
    by_thread: HashMap<(i64, i64), Vec<Sample>>,
    names: Vec<String>,
}

impl Sampled {
    /// Reads them, if there are some.
    pub fn read(trace: &Trace, watch: Option<Watch<'_>>) -> Result<Self, Stopped> {
        let stacks = trace.names().stacks();
        let mut sampled = Self::default();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut known: HashMap<StackId, u32> = HashMap::new();
        each(trace, watch, &mut |_, time, sample, place| {
            if place != Where::Outside {
                return;
            }
            let number = *known.entry(sample.stack).or_insert_with(|| {
                let frames = stacks.frames(sample.stack);
                let frame = frames.iter().find(|frame| frame.kind != Kind::Missing);
                let name =
                    frame.map_or_else(|| "code that is not known".to_owned(), |frame| function_of(frame));
                let next = u32::try_from(sampled.names.len()).unwrap_or(u32::MAX);
                *numbers.entry(name).or_insert_with_key(|name| {
                    sampled.names.push(name.clone());
                    next
                })
            });
            sampled.by_thread.entry((sample.pid, sample.tid)).or_default().push((time, number));
        })?;
        Ok(sampled)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_thread.is_empty()
    }

    /// Adds the samples of a thread in a part of a gap, if that is its own work.
    pub fn add(&self, thread: (i64, i64), part: &Part, sums: &mut QuickMap<Cause, Sums>) {
        if !matches!(part.cause, Cause::Host | Cause::AfterWait(_)) {
            return;
        }
        let Some(all) = self.by_thread.get(&thread) else { return };
        let from = all.partition_point(|(time, _)| *time < part.start);
        for (_, function) in all[from..].iter().take_while(|(time, _)| *time < part.end) {
            *sums.entry(part.cause).or_default().entry(*function).or_insert(0) += 1;
        }
    }

    /// The functions of which most of these samples are, and their parts, from 0 to 1.
    pub fn most(&self, sums: &Sums) -> Vec<(String, f64)> {
        most(sums, |function| self.names.get(function as usize).cloned().unwrap_or_default())
    }
}

/// Of what sums have most, with their parts, from 0 to 1.
pub(super) fn most(sums: &Sums, name: impl Fn(u32) -> String) -> Vec<(String, f64)> {
    let all = sums.values().copied().fold(0, u64::saturating_add).max(1);
    let mut most: Vec<(u32, u64)> = sums.iter().map(|(of, n)| (*of, *n)).collect();
    most.sort_by_key(|(of, n)| (std::cmp::Reverse(*n), *of));
    let worth = most.into_iter().take(NAMED).filter(|(_, n)| n.saturating_mul(WORTH) >= all);
    worth.map(|(of, n)| (name(of), n as f64 / all as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_the_thread_and_the_time_count() {
        let names = ["hot", "warm", "rare"].map(str::to_owned).into();
        let own = vec![(5, 1), (10, 0), (11, 0), (12, 1), (20, 2)];
        let by_thread = HashMap::from([((1, 2), own), ((1, 3), vec![(11, 2)])]);
        let sampled = Sampled { by_thread, names };
        let mut sums = QuickMap::default();
        sampled.add((1, 2), &Part { start: 10, end: 20, cause: Cause::Host }, &mut sums);
        sampled.add((1, 2), &Part { start: 0, end: 90, cause: Cause::Latency }, &mut sums);
        sampled.add((7, 7), &Part { start: 0, end: 90, cause: Cause::Host }, &mut sums);
        assert_eq!(sums.len(), 1);
        let most = sampled.most(&sums[&Cause::Host]);
        assert_eq!(most, [("hot".to_owned(), 2.0 / 3.0), ("warm".to_owned(), 1.0 / 3.0)]);
        assert_eq!(sampled.most(&Sums::default()), []);
    }
}
