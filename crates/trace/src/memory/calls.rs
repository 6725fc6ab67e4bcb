//! From calls to what they did to memory.

use hetrace_ctf::read::Event;
use hetrace_model::Expr;

use super::ledger::{Change, Ledger};
use super::step::{Holder, Owner, Step, What};
use super::table::{Row, Table};
use crate::owners::ApiIndex;
use crate::spans::fast::Border;
use crate::spans::{At, Call, Open};
use crate::trace::{Thread, ThreadId, Trace};
use crate::values::{Place as Where, Room, Values};

/// Steps that are kept until they are put into order.
const KEPT: usize = 1 << 19;
/// Steps of a later slice: of more, one slice is all.
const MOST_JOINED: usize = KEPT * 2;

/// What an open call was passed.
#[derive(Debug)]
struct Passed {
    depth: u32,
    start: u64,
    /// The API that alone has what it names: its own, or that of a call inside.
    api: Option<ApiIndex>,
    /// Memory begins or ends in it.
    changes: bool,
    /// What it makes the current one, if it was passed that.
    current: Option<u64>,
    bytes: Option<u64>,
    /// Parameters that the number of bytes is made of, if that is known at the end only.
    named: Vec<(String, u64)>,
    ended: Vec<u64>,
    context: Option<u64>,
    devices: Vec<u64>,
    /// In a call that does the same: counted there.
    inner: bool,
    /// Such a call was in it.
    layered: bool,
}

/// What a thread made current last, so that saying it again costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Last {
    /// Nothing, of what was seen.
    #[default]
    Nothing,
    /// It came back from something that is not remembered.
    Unknown,
    Set(Owner),
}

/// A thread.
#[derive(Debug, Default)]
struct Followed {
    /// Open calls that concern memory, the outermost first.
    open: Vec<Passed>,
    last: Last,
    /// In a later slice: whether such a call began, and whether one of an earlier slice ended after that.
    entered: bool,
    ended_late: bool,
}

/// What the calls of a trace did to memory.
#[derive(Debug)]
pub struct Memory<'t> {
    table: &'t Table<'t>,
    trace: &'t Trace,
    threads: Vec<Followed>,
    /// Whether calls of earlier slices may be open.
    later: bool,
    /// Memory for values.
    values: Room,
    steps: Vec<Step>,
    /// The least of their times, or less.
    earliest: u64,
    /// The part of the steps that is done with.
    ledger: Option<Box<Ledger<'t>>>,
    /// How many steps may be kept.
    room: usize,
}

impl<'t> Memory<'t> {
    /// For a walk over a trace.
    pub fn new(trace: &'t Trace, table: &'t Table<'t>) -> Self {
        Self {
            table,
            trace,
            threads: Vec::new(),
            later: false,
            values: Room::default(),
            steps: Vec::new(),
            earliest: u64::MAX,
            ledger: None,
            room: KEPT,
        }
    }

    /// For one that asks for changes as they come.
    pub fn watched(trace: &'t Trace, table: &'t Table<'t>) -> Self {
        let ledger = Some(Box::new(Ledger::watched(trace)));
        Self { ledger, ..Self::new(trace, table) }
    }

    /// A call will have no end: nobody knows what it did.
    pub fn unfinished(&mut self, thread: ThreadId, depth: u32) {
        if let Some(thread) = self.threads.get_mut(thread.index()) {
            thread.open.retain(|passed| passed.depth != depth);
        }
    }

    /// Reports what steps before `until` change, in order and with their times: those that no
    /// call that is open can come before.
    pub fn settle(&mut self, until: u64, mut report: impl FnMut(u64, &Ledger<'t>, Change)) {
        if self.earliest >= until {
            return;
        }
        let open = self.threads.iter().filter_map(|thread| thread.open.first()).map(|passed| passed.start);
        let until = open.min().unwrap_or(u64::MAX).min(until);
        // Many may wait for a call that takes long.
        if self.earliest >= until {
            return;
        }
        self.steps.sort_by_key(|step| step.time);
        let certain = self.steps.partition_point(|step| step.time < until);
        let Some(ledger) = &mut self.ledger else { return };
        for step in self.steps.drain(..certain) {
            ledger.step(&step);
            for change in ledger.changes() {
                report(step.time, ledger, change);
            }
        }
        self.earliest = self.steps.first().map_or(u64::MAX, |step| step.time);
    }

    /// Allocations that were not followed, because there were too many at a time.
    pub fn passed_over(&self) -> u64 {
        self.ledger.as_ref().map_or(0, |ledger| ledger.releases().passed_over)
    }

    /// The same with room for so many steps.
    #[cfg(test)]
    pub(super) fn with_room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, call: &Open, event: &Event<'_, '_>) {
        let Some((function, _)) = self.table.of(call.function) else { return };
        let (known, room) = ((call.function, self.table.plans()), std::mem::take(&mut self.values));
        let values = Values::of_entry(function, &[], known, event, room);
        self.entered(call, &values);
        self.values = values.into_room();
    }

    /// A call ends.
    #[inline]
    pub fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) {
        let Some((function, _)) = self.table.of(call.function) else { return };
        let (known, room) = ((call.function, self.table.plans()), std::mem::take(&mut self.values));
        let values = Values::of_exit(function, known, event, room);
        self.left(at.who(), call, &values);
        self.values = values.into_room();
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Followed {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, Followed::default);
        }
        &mut self.threads[thread.index()]
    }

    /// A call begins that was passed these values.
    pub fn entered(&mut self, call: &Open, values: &Values<'_>) {
        let Some((_, row)) = self.table.of(call.function) else { return };
        let passed = Passed::read(row, values, call);
        let thread = self.thread(call.thread);
        thread.entered = true;
        let open = &mut thread.open;
        // What is left there of calls without an end. Depths only rise in it.
        while open.pop_if(|p| p.depth >= call.depth).is_some() {}
        // A call of an API that is layered on another means what it calls of that one. Those outside of one that
        // knows it know it, too.
        for outer in open.iter_mut().rev().take_while(|p| p.api.is_none()) {
            outer.api = passed.api;
        }
        let mut inner = false;
        for outer in open.iter_mut().filter(|p| p.changes == passed.changes) {
            (inner, outer.layered) = (true, true);
        }
        open.push(Passed { inner, ..passed });
    }

    /// A call ends that returned these values.
    pub fn left(&mut self, who: &Thread, call: &Call, out: &Values<'_>) {
        let Some((_, row)) = self.table.of(call.function) else { return };
        let Some(thread) = self.threads.get_mut(call.thread.index()) else { return };
        while thread.open.pop_if(|p| p.depth > call.depth).is_some() {}
        let Some(passed) = thread.open.pop_if(|p| p.depth == call.depth) else { return };
        let step = |time, what| Step { time, pid: who.pid, tid: who.tid, api: passed.api, what };
        let failed = call.error.is_some();
        let context = row.makes_context.filter(|_| !failed).and_then(|place| out.first(place));
        if let Some(context) = context.filter(|context| *context != 0) {
            self.add(step(call.end, What::Context { context, devices: passed.devices.clone().into() }));
        }
        if passed.inner {
            return;
        }
        if !failed && let Some(what) = self.made_current(row, &passed, call.thread, out) {
            self.add(step(call.end, what));
        }
        let holder = match (passed.context, passed.devices.first()) {
            (Some(context), _) => Some(Holder::Context(context)),
            (None, Some(device)) => Some(Holder::Device(*device)),
            (None, None) => None,
        };
        if let Some(what) = allocated(row, &passed, holder, out, failed) {
            let made = match what {
                What::Made { address, .. } if passed.layered => Some(address),
                _ => None,
            };
            self.add(step(call.end, what));
            made.into_iter()
                .for_each(|address| self.add(step(call.end, What::Below { address, held: true })));
        }
        if failed {
            return;
        }
        // It took effect before it returned, and another thread may have got the address since.
        if row.ends.is_some() {
            for address in passed.ended.iter().copied().filter(|address| *address != 0) {
                if passed.layered {
                    self.add(step(call.start, What::Below { address, held: false }));
                }
                self.add(step(call.start, What::Released { address, at_once: row.frees }));
            }
        } else if row.retains.is_some() {
            passed.ended.iter().for_each(|&address| self.add(step(call.end, What::Retained { address })));
        }
        if row.resets {
            self.add(step(call.end, What::Reset { holder }));
        }
    }

    /// What a successful call made current on its thread; none where it was so before.
    fn made_current(
        &mut self,
        row: &Row<'_>,
        passed: &Passed,
        thread: ThreadId,
        out: &Values<'_>,
    ) -> Option<What> {
        let current = row.current?;
        let value = current.at.and_then(|at| passed.current.or_else(|| out.first(at)));
        let now = value.map(|value| match current.context {
            true => Holder::Context(value),
            false => Holder::Device(value),
        });
        let what = match (current.at, current.pushed) {
            (None, _) => What::Popped,
            (Some(_), true) => What::Pushed(now),
            (Some(_), false) => What::Set(now),
        };
        let last = match what {
            What::Set(holder) => Last::Set(Owner { api: passed.api, holder }),
            _ => Last::Unknown,
        };
        let before = std::mem::replace(&mut self.thread(thread).last, last);
        (last == Last::Unknown || before != last).then_some(what)
    }

    pub(super) fn add(&mut self, step: Step) {
        self.earliest = self.earliest.min(step.time);
        self.steps.push(step);
        // In a later slice nobody knows yet what is held.
        if self.steps.len() < self.room || self.later {
            return;
        }
        // Those of calls that are still open may come before some of the later half.
        self.steps.sort_by_key(|step| step.time);
        let early = self.steps.drain(..self.room / 2);
        let ledger = self.ledger.get_or_insert_with(|| Box::new(Ledger::new(self.trace)));
        early.for_each(|step| ledger.step(&step));
    }

    /// What follows is a slice of time that is not the first.
    pub fn begin_later(&mut self) {
        self.later = true;
    }

    /// A call of an earlier slice has ended, if it was one.
    pub fn ended_late(&mut self, thread: ThreadId) {
        let thread = self.thread(thread);
        thread.ended_late |= thread.entered;
    }

    /// The threads that have such a call open.
    pub fn open(&self) -> Vec<bool> {
        self.threads.iter().map(|thread| !thread.open.is_empty()).collect()
    }

    /// Adds a later slice, whose threads go on at these borders and whose calls of earlier slices have
    /// ended here. `open` is of before they did. False if calls of the slice may be in them: it does not
    /// know that, and what is here does not count.
    #[must_use]
    pub fn join(&mut self, later: Self, borders: &[Border], open: &[bool]) -> bool {
        if later.steps.len() > MOST_JOINED {
            return false;
        }
        for (thread, border) in later.threads.into_iter().zip(borders) {
            let here = self.thread(border.here);
            let was_open = open.get(border.here.index()) == Some(&true);
            if was_open && (thread.ended_late || thread.entered && !here.open.is_empty()) {
                return false;
            }
            if thread.last != Last::Nothing {
                here.last = thread.last;
            }
            let deeper =
                |passed: Passed| Passed { depth: passed.depth.saturating_add(border.depth), ..passed };
            here.open.extend(thread.open.into_iter().map(deeper));
        }
        // Only the first part may have one, and then there is none here.
        if let Some(ledger) = later.ledger {
            self.ledger = Some(ledger);
        }
        later.steps.into_iter().for_each(|step| self.add(step));
        true
    }

    /// All that is known when all calls have been seen.
    pub fn finish(mut self) -> Ledger<'t> {
        let mut ledger = match self.ledger.take() {
            Some(ledger) => *ledger,
            None => Ledger::new(self.trace),
        };
        // Steps of one time stay as the calls of their thread came.
        self.steps.sort_by_key(|step| (step.time, step.pid, step.tid));
        self.steps.iter().for_each(|step| ledger.step(step));
        ledger
    }
}

impl Passed {
    fn read(row: &Row<'_>, values: &Values<'_>, call: &Open) -> Self {
        let number = |at: u16| values.first(Where::Param(at));
        let all = |at: Option<u16>| at.map_or_else(Vec::new, |at| values.all(Where::Param(at)).to_vec());
        let expr = row.makes.as_ref().and_then(|m| m.bytes);
        let bytes = expr.and_then(|expr| values.eval(expr));
        let late = expr.filter(|_| bytes.is_none()).map_or_else(Vec::new, Expr::names);
        Self {
            depth: call.depth,
            start: call.start,
            api: row.api,
            changes: row.changes(),
            current: row.current.and_then(|c| c.at).and_then(|at| values.first(at)),
            bytes,
            named: late.into_iter().filter_map(|n| Some((n.to_owned(), values.named(n)?))).collect(),
            ended: all(row.ends.or(row.retains)),
            context: row.context.and_then(number).filter(|context| *context != 0),
            devices: all(row.device),
            inner: false,
            layered: false,
        }
    }
}

/// An expression over what a call was passed, and over what it wrote.
fn eval(expr: &Expr, named: &[(String, u64)], out: &Values<'_>) -> Option<u64> {
    expr.value(&|leaf| match leaf {
        Expr::Name(name) => named.iter().find(|(known, _)| known == name).map(|(_, value)| *value),
        Expr::Deref(name) => out.named(name),
        _ => None,
    })
}

/// What a call that makes memory, or a part of some, did; none of other calls.
fn allocated(
    row: &Row<'_>,
    passed: &Passed,
    holder: Option<Holder>,
    out: &Values<'_>,
    failed: bool,
) -> Option<What> {
    let makes = row.makes.as_ref()?;
    let late = || makes.bytes.and_then(|expr| eval(expr, &passed.named, out));
    let bytes = passed.bytes.or_else(late);
    let address = out.first(makes.at).filter(|a| *a != 0 && !failed);
    // Failed, but no failure: none was asked for.
    if !failed && address.is_none() {
        return None;
    }
    match (makes.place, address) {
        (Some(place), Some(address)) => Some(What::Made { address, bytes, place, holder }),
        (Some(place), None) => Some(What::Failed { place, holder }),
        (None, address) => address.map(|address| What::Part { address }),
    }
}
