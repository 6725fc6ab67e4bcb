//! What each thread was doing, for a while back.

use std::collections::VecDeque;

use super::independent::Free;
use super::path::{NodeId, Strand, UNSET};
use super::signals::ListId;
use hetrace_trace::budget::SteppedThread;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::trace::{FunctionId, ThreadId};

/// Outermost calls that are remembered of a thread, if there is room.
const KEPT: usize = 1 << 16;
/// The same of all threads together.
const KEPT_OF_ALL: usize = 1 << 21;
/// Long calls that are remembered of a process.
const LONG: usize = 1 << 10;
/// Of each thread, however many there are.
const LEAST: usize = 1 << 10;

/// An outermost call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub function: FunctionId,
    pub start: u64,
    /// `u64::MAX` while it is open.
    pub end: u64,
    /// Where the critical path was when it began, if that may be asked for.
    pub node: NodeId,
    /// It hands commands to a device.
    pub enqueues: bool,
    /// A command came of it.
    pub produced: bool,
    pub failed: bool,
    /// It waits for a device.
    pub waits: bool,
    pub polls: bool,
    /// The code that made it.
    pub site: u32,
    /// Its end is not in the trace.
    pub lost: bool,
    /// Its command waits for other commands or events.
    pub depends: bool,
    /// The events of the program that its command waits for.
    pub signals: ListId,
    /// Launches before its own that could run beside it.
    pub free: Free,
}

impl Span {
    /// A call of which only this is known.
    pub fn new(function: FunctionId, start: u64, end: u64) -> Self {
        Self {
            function,
            start,
            end,
            node: UNSET,
            enqueues: false,
            produced: false,
            failed: false,
            waits: false,
            polls: false,
            site: 0,
            lost: false,
            depends: false,
            signals: 0,
            free: Free::Unknown,
        }
    }
}

/// A call in which a thread worked for long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Long {
    pub start: u64,
    pub end: u64,
    pub function: FunctionId,
    /// The place of the thread.
    pub place: usize,
}

/// What a thread did at some time.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doing<'s> {
    In(&'s Span),
    /// Outside of all recorded calls.
    Outside,
    /// The same, while calls were added up: it may have been in one.
    AddedUp,
    /// It had not made a call yet: perhaps there was no such thread.
    Absent,
    /// That is too long ago.
    Forgotten,
}

/// A thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub pid: i64,
    pub tid: i64,
    spans: VecDeque<Span>,
    pub open: Option<Span>,
    /// The last wait in the open call: when it ended, and the path to there.
    pub woken: Option<(u64, NodeId)>,
    forgotten_until: u64,
    /// When its calls were added up, in the order of time.
    summed: Vec<(u64, u64)>,
    /// When its first call began; 0 of the thread that the process began with.
    pub born: u64,
    /// When the last event was.
    pub last: u64,
    pub strand: Strand,
}

impl Thread {
    /// The code that made the last call of a function that had begun before a time; 0 if it is not known.
    pub fn site(&self, function: FunctionId, before: u64) -> u32 {
        let ended = self.spans.partition_point(|span| span.start < before);
        let begun = self.open.iter().filter(|open| open.start < before);
        let mut spans = begun.chain(self.spans.range(..ended).rev());
        spans.find(|span| span.function == function).map_or(0, |span| span.site)
    }

    /// An outermost call has ended.
    pub fn push(&mut self, span: Span, most: usize) {
        // Whatever a trace says, a thread does one thing after the other.
        let before = self.spans.back().map_or(0, |s| s.end);
        let (start, end) = (span.start.max(before), span.end.max(before));
        while self.spans.len() >= most {
            if let Some(oldest) = self.spans.pop_front() {
                self.forgotten_until = oldest.end;
            }
        }
        self.spans.push_back(Span { start, end, ..span });
    }

    /// The call that was open at a time, or began or ended just then.
    pub fn call_at(&mut self, time: u64) -> Option<&mut Span> {
        if self.open.is_some_and(|s| s.start <= time) {
            return self.open.as_mut();
        }
        let after = self.spans.partition_point(|s| s.start <= time);
        let span = self.spans.get_mut(after.checked_sub(1)?)?;
        (time <= span.end).then_some(span)
    }

    fn all_from(&self, from: u64) -> impl Iterator<Item = &Span> {
        let first = self.spans.partition_point(|s| s.end <= from);
        self.spans.range(first..).chain(self.open.iter())
    }

    /// What it did in a time, piece by piece.
    pub fn during(&self, from: u64, to: u64, mut visit: impl FnMut(u64, u64, Doing<'_>)) {
        let mut at = from;
        if at < self.born.min(to) {
            let until = self.born.min(to);
            visit(at, until, Doing::Absent);
            at = until;
        }
        if at < self.forgotten_until.min(to) {
            let until = self.forgotten_until.min(to);
            visit(at, until, Doing::Forgotten);
            at = until;
        }
        for span in self.all_from(at) {
            if span.start >= to {
                break;
            }
            if span.start > at {
                self.outside(at, span.start, &mut visit);
                at = span.start;
            }
            let end = span.end.min(to);
            if end > at {
                visit(at, end, Doing::In(span));
                at = end;
            }
        }
        if at < to {
            self.outside(at, to, &mut visit);
        }
    }

    /// A time outside of recorded calls.
    fn outside(&self, mut at: u64, to: u64, visit: &mut impl FnMut(u64, u64, Doing<'_>)) {
        for &(from, until) in &self.summed {
            let (from, until) = (from.clamp(at, to), until.clamp(at, to));
            if from < until {
                if at < from {
                    visit(at, from, Doing::Outside);
                }
                visit(from, until, Doing::AddedUp);
                at = until;
            }
        }
        if at < to {
            visit(at, to, Doing::Outside);
        }
    }

    /// The call that waited at a time and ended not before it, as far as clocks
    /// agree, nor after `until`.
    pub fn waited(&self, at: u64, slack: u64, until: u64) -> Option<&Span> {
        let least = at.saturating_sub(slack);
        let mut spans = self.all_from(least.saturating_sub(1)).take_while(|s| s.start <= at);
        spans.find(|s| s.waits && s.end >= least && s.end <= until)
    }

    /// Until when calls are forgotten.
    pub fn forgotten_until(&self) -> u64 {
        self.forgotten_until
    }

    /// The last question for a state in a time, if the thread had asked the same before that time, and when it began:
    /// until then it polled, also between its questions.
    pub fn polled(&self, from: u64, to: u64) -> Option<(FunctionId, u64)> {
        let before = self.spans.partition_point(|s| s.start <= from).checked_sub(1)?;
        let before = self.spans.get(before).filter(|s| s.polls)?;
        let asked = self.all_from(from).take_while(|s| s.start < to);
        let mut asked = asked.take_while(|s| s.polls && s.function == before.function);
        let first = asked.next()?;
        let last = asked.last().unwrap_or(first);
        Some((last.function, last.start))
    }

    /// The first call in a time that handed over a command which never came.
    pub fn fruitless(&self, from: u64, to: u64) -> Option<&Span> {
        let mut spans = self.all_from(from).take_while(|s| s.start < to);
        spans.find(|s| s.enqueues && !s.produced && !s.failed && s.start >= from)
    }

    /// Every place that knows a point of the critical path.
    pub fn nodes(&mut self) -> impl Iterator<Item = &mut NodeId> {
        let spans = self.spans.iter_mut().chain(self.open.as_mut()).map(|s| &mut s.node);
        let woken = self.woken.as_mut().map(|(_, node)| node);
        spans.chain(woken).chain([&mut self.strand.tip])
    }
}

/// All threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Threads {
    all: Vec<Thread>,
    by_ids: QuickMap<(i64, i64), usize>,
    by_process: QuickMap<i64, Vec<usize>>,
    /// By process: long calls of work for the host, in the order of their ends.
    long: QuickMap<i64, VecDeque<Long>>,
    /// By the walk's numbers.
    by_number: Vec<Option<usize>>,
    /// By process and thread: when calls were added up.
    summed: QuickMap<(i64, i64), Vec<(u64, u64)>>,
}

impl Threads {
    /// With what is known of threads that recorded less.
    pub fn new(stepped: &[SteppedThread]) -> Self {
        let summed = stepped.iter().map(|thread| ((thread.pid, thread.tid), thread.summed()));
        Self { summed: summed.collect(), ..Self::default() }
    }

    /// The place of a thread that the walk has met, which makes its first call now if it is a new one.
    pub fn place(&mut self, number: ThreadId, (pid, tid): (i64, i64), since: u64, now: u64) -> usize {
        let index = number.index();
        if let Some(&Some(place)) = self.by_number.get(index) {
            return place;
        }
        let place = *self.by_ids.entry((pid, tid)).or_insert(self.all.len());
        if place == self.all.len() {
            self.push((pid, tid), since, now);
            self.by_process.entry(pid).or_default().push(place);
        }
        if self.by_number.len() <= index {
            self.by_number.resize(index + 1, None);
        }
        self.by_number[index] = Some(place);
        place
    }

    fn push(&mut self, (pid, tid): (i64, i64), since: u64, now: u64) {
        self.all.push(Thread {
            pid,
            tid,
            spans: VecDeque::new(),
            open: None,
            woken: None,
            forgotten_until: 0,
            summed: self.summed.remove(&(pid, tid)).unwrap_or_default(),
            born: if pid == tid { 0 } else { now },
            last: since,
            strand: Strand::new(),
        });
    }

    /// The place of a thread that may never make a call, but has a part in what others do.
    pub fn other(&mut self, (pid, tid): (i64, i64), since: u64, now: u64) -> usize {
        let place = *self.by_ids.entry((pid, tid)).or_insert(self.all.len());
        if place == self.all.len() {
            self.push((pid, tid), since, now);
        }
        place
    }

    pub fn find(&self, pid: i64, tid: i64) -> Option<usize> {
        self.by_ids.get(&(pid, tid)).copied()
    }

    /// A call of a thread has ended that took long and that others may have waited for.
    pub fn remember(&mut self, pid: i64, long: Long) {
        let all = self.long.entry(pid).or_default();
        if all.len() >= LONG {
            all.pop_front();
        }
        all.push_back(long);
    }

    /// Such calls of a process that ended within a time.
    pub fn long(&self, pid: i64, from: u64, to: u64) -> impl Iterator<Item = &Long> {
        let all = self.long.get(&pid).into_iter();
        all.flat_map(move |all| {
            let first = all.partition_point(|long| long.end <= from);
            all.range(first..).take_while(move |long| long.end <= to)
        })
    }

    /// The thread that most likely began the one at a place: the process's first, else the only other one before it.
    pub fn creator(&self, place: usize) -> Option<usize> {
        let new = self.all.get(place)?;
        let all = self.by_process.get(&new.pid)?.iter().copied().filter(|other| *other != place);
        let mut older = all.filter(|other| self.all.get(*other).is_some_and(|t| t.born <= new.born));
        let first = self.find(new.pid, new.pid).filter(|first| *first != place);
        first.or_else(|| older.next().filter(|_| older.next().is_none()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, place: usize) -> Option<&Thread> {
        self.all.get(place)
    }

    pub fn get_mut(&mut self, place: usize) -> Option<&mut Thread> {
        self.all.get_mut(place)
    }

    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.all.iter_mut()
    }

    /// How many calls a thread may remember.
    pub fn room(&self) -> usize {
        (KEPT_OF_ALL / self.all.len().max(1)).clamp(LEAST, KEPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, end: u64) -> Span {
        Span::new(FunctionId(0), start, end)
    }

    fn said(thread: &Thread, from: u64, to: u64) -> Vec<(u64, u64, char)> {
        let mut said = Vec::new();
        thread.during(from, to, |a, b, doing| {
            let letter = match doing {
                Doing::In(_) => 'c',
                Doing::Outside => 'o',
                Doing::AddedUp => 'a',
                Doing::Forgotten => 'f',
                Doing::Absent => 'n',
            };
            said.push((a, b, letter));
        });
        said
    }

    #[test]
    fn a_time_is_cut_into_what_was_done() {
        let mut threads = Threads::default();
        let place = threads.place(ThreadId(0), (1, 1), 0, 0);
        let thread = threads.get_mut(place).unwrap();
        for (start, end) in [(10, 20), (20, 25), (40, 50)] {
            thread.push(span(start, end), 2);
        }
        // The first was forgotten.
        let expected = [(0, 20, 'f'), (20, 25, 'c'), (25, 40, 'o'), (40, 45, 'c')];
        assert_eq!(said(thread, 0, 45), expected);
        thread.open = Some(span(60, u64::MAX));
        assert_eq!(said(thread, 45, 70), [(45, 50, 'c'), (50, 60, 'o'), (60, 70, 'c')]);
        assert_eq!(thread.call_at(45).unwrap().start, 40);
        assert!(thread.call_at(55).is_none());
        assert_eq!(thread.call_at(99).unwrap().start, 60);
        thread.open = None;
        thread.summed = vec![(22, 45), (48, 55)];
        let expected = [(25, 40, 'a'), (40, 50, 'c'), (50, 55, 'a'), (55, 60, 'o')];
        assert_eq!(said(thread, 25, 60), expected);
    }
}
