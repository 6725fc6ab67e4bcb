//! Slices of a trace become the whole.

use std::cmp::Reverse;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::super::calls::Why;
use super::super::stack::Stack;
use super::super::summary::Summary;
use super::digest::MOST_FUNCTIONS;
use super::ends::{StreamEnd, When};
use super::rounds::{self, Found};
use super::slices::Slice;
use super::table::Table;
use super::thread::{ThreadWalk, Track, Undecided};
use super::{Border, CallSink, Ended};
use crate::trace::{Costs, FunctionId, Thread, ThreadId, Threads, Trace};
use crate::values::Plans;

/// Goes over all slices at the same time, and joins what was found.
pub(super) fn joined<'t, B: CallSink + Send>(
    trace: &'t Trace,
    slices: &[Slice],
    noted: &Plans<'t>,
    new: &(impl Fn() -> B + Sync),
) -> Result<(B, Summary), Ended> {
    if trace.functions().all().len() >= MOST_FUNCTIONS {
        return Err(Ended::Unfit);
    }
    let tables = Table::all(trace, noted);
    let mut whole = Whole::new(new(), trace.costs());
    for found in all(trace, (&tables, noted), slices, new)? {
        whole.add(found)?;
    }
    Ok(whole.finish())
}

fn all<'t, B: CallSink + Send>(
    trace: &'t Trace,
    tables: (&[Table<'t>], &Plans<'t>),
    slices: &[Slice],
    new: &(impl Fn() -> B + Sync),
) -> Result<Vec<Found<'t, B>>, Ended> {
    let found: Vec<_> = slices.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    // Each takes the next slice that is left; a failure ends all.
    let work = || {
        while let Some((slice, to)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            slices.get(index).zip(found.get(index))
        } {
            let result = rounds::slice(trace, tables, slice, new());
            if result.is_err() {
                next.store(slices.len(), Ordering::Relaxed);
            }
            if let Ok(mut to) = to.lock() {
                *to = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        let helpers: Vec<_> = slices.iter().skip(1).map(|_| scope.spawn(work)).collect();
        work();
        for helper in helpers {
            if let Err(panic) = helper.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let results = found.into_iter().map(|found| found.into_inner().ok().flatten());
    let mut all = Vec::with_capacity(slices.len());
    let mut unfit = false;
    for result in results {
        match result {
            Some(Ok(found)) => all.push(found),
            // To be stopped counts more than not to be able to go on.
            Some(Err(Ended::Stopped)) => return Err(Ended::Stopped),
            Some(Err(Ended::Unfit)) | None => unfit = true,
        }
    }
    if unfit { Err(Ended::Unfit) } else { Ok(all) }
}

/// The slices so far.
struct Whole<'t, B> {
    sums: B,
    costs: &'t Costs,
    summary: Summary,
    threads: Threads,
    tracks: Vec<Track<'t>>,
    /// By stream: the thread of its last packet.
    owners: Vec<Option<ThreadId>>,
    states: Vec<StreamEnd>,
}

impl<'t, B: CallSink> Whole<'t, B> {
    fn new(sums: B, costs: &'t Costs) -> Self {
        Self {
            sums,
            costs,
            summary: Summary::default(),
            threads: Threads::default(),
            tracks: Vec::new(),
            owners: Vec::new(),
            states: Vec::new(),
        }
    }

    fn add(&mut self, found: Found<'t, B>) -> Result<(), Ended> {
        let Found { sums, summary, threads, tracks, owners, states } = found;
        let here = self.threads.take(&threads);
        self.change_owners(&owners, &here)?;
        self.set_states(states, &here);
        let numbers = &mut self.threads;
        self.sums.merge(sums, threads.all(), &mut |thread: &Thread| numbers.number(thread.pid, thread.tid));
        let mut borders: Vec<Border> = here.iter().map(|here| Border { here: *here, depth: 0 }).collect();
        for (track, border) in tracks.into_iter().zip(&mut borders) {
            border.depth = self.append(track, border.here)?;
        }
        self.sums.joined(&borders)?;
        self.summary.merge(summary);
        Ok(())
    }

    /// Whose streams are by now; a slice may have seen nothing of some.
    fn set_states(&mut self, states: Vec<StreamEnd>, here: &[ThreadId]) {
        self.states.resize(self.states.len().max(states.len()), StreamEnd { of: None, end: When::Unknown });
        for (known, state) in self.states.iter_mut().zip(states) {
            let of = state.of.and_then(|(class, thread)| Some((class, *here.get(thread.index())?)));
            known.of = of.or(known.of);
        }
    }

    /// A stream that is another thread's now: nothing of it may still be open.
    fn change_owners(
        &mut self,
        owners: &[Option<(ThreadId, ThreadId)>],
        here: &[ThreadId],
    ) -> Result<(), Ended> {
        self.owners.resize(self.owners.len().max(owners.len()), None);
        for (stream, (before, now)) in (0u32..).zip(self.owners.iter_mut().zip(owners)) {
            let Some((first, last)) = now else { continue };
            let number = |id: &ThreadId| here.get(id.index()).copied();
            let gone = before.filter(|before| Some(*before) != number(first));
            if gone.is_some_and(|gone| Track::of(&mut self.tracks, gone).stack.has_open(stream)) {
                return Err(Ended::Unfit);
            }
            *before = number(last);
        }
        Ok(())
    }

    /// A thread goes on. Returns how many calls are open that the slice does not know.
    fn append(&mut self, later: Track<'t>, thread: ThreadId) -> Result<u32, Ended> {
        let track = Track::of(&mut self.tracks, thread);
        let mut crossed: Vec<_> = later.crossed.into_iter().map(|(of, time)| (time, of)).collect();
        crossed.sort_unstable_by_key(|(time, _)| Reverse(*time));
        self.sums.thread(thread, self.threads.get(thread));
        let (costs, summary, states, sink) =
            (self.costs, &mut self.summary, &self.states[..], &mut self.sums);
        let mut walk = ThreadWalk { thread, track, from: None, states, costs, summary, sink };
        for (what, at) in later.undecided {
            if is_crossed(&walk.track.stack, &mut crossed, at.time) {
                return Err(Ended::Unfit);
            }
            walk.track.stack.enclose(&at.outside);
            match what {
                Undecided::Exit(function, error) => walk.exit(function, at.time, at.stream, error),
                Undecided::NotedExit(function, error, values) => {
                    walk.noted_exit(function, at.time, at.stream, error, &values);
                }
                Undecided::Fold(fold, repeated) => walk.fold(fold, repeated, at.time, at.stream),
                Undecided::OwnWork(ns) => walk.own_work(ns, at.time, at.stream),
                Undecided::GiveUp(why) => walk.give_up(why, at.time, at.stream),
                Undecided::Begins(first) => walk.begin(at.time, at.stream, first),
            }
        }
        if is_crossed(&track.stack, &mut crossed, u64::MAX) {
            return Err(Ended::Unfit);
        }
        let depth = track.stack.depth();
        track.stack.append(later.stack);
        if track.unfit { Err(Ended::Unfit) } else { Ok(depth) }
    }

    /// Gives up what is still open.
    fn finish(mut self) -> (B, Summary) {
        let time = self.summary.last.unwrap_or(0);
        for (index, track) in (0u32..).zip(&mut self.tracks) {
            let thread = ThreadId(index);
            if !track.stack.is_empty() {
                self.sums.thread(thread, self.threads.get(thread));
            }
            while let Some(call) = track.stack.give_up(thread, time, Why::TraceEnds) {
                self.summary.unfinished += 1;
                self.sums.unfinished(&call);
            }
        }
        self.summary.threads = self.threads.all().to_vec();
        (self.sums, self.summary)
    }
}

/// Whether an exit up to a time ended a call of another stream while one of its own was open here;
/// takes these exits, of which the last stands first.
fn is_crossed(open: &Stack, crossed: &mut Vec<(u64, (FunctionId, u32))>, until: u64) -> bool {
    while let Some((_, (function, stream))) = crossed.pop_if(|(time, _)| *time <= until) {
        if open.has_open_call(function, stream) {
            return true;
        }
    }
    false
}
