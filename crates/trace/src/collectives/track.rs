//! Calls of collectives to rows, and their commands to them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;

use super::describe::{Content, Kind, Operation, kinds};
use super::rows::{Communicator, Row, times_ranks};
use super::seen::Seen;
use crate::history::History;
use crate::owners::{ApiIndex, Owners};
use crate::spans::{At, Call, Open};
use crate::trace::{FunctionId, ThreadId, Trace};

/// Parts and open calls that are kept; the oldest are forgotten.
pub(super) const KEPT: usize = 1 << 20;

/// What shares commands: a collective, or those of a group with one communicator.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub communicator: u32,
    pub row: u32,
    pub calls: u64,
    pub bytes: u64,
    pub queues: Vec<u64>,
    /// The number of the last call in it.
    pub last: u64,
    /// When that returned, ns; 0 before.
    pub returned: u64,
    pub timed: bool,
    /// It became a kernel.
    pub kernel: bool,
    /// Commands that are no kernels, and their time in ns: counted until one comes.
    pub others: (u64, u64),
}

/// A call of which no command has ended.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub number: u64,
    /// Which of its rank's calls in the communicator it is, from 1.
    pub nth: u64,
    pub tid: i64,
    pub row: u32,
    pub count: u64,
    pub since: u64,
    /// When the call returned, ns; 0 before.
    pub returned: u64,
}

/// A thread inside an API with collectives.
#[derive(Clone, Copy, Debug)]
struct Inside {
    depth: u32,
    /// Its parts: the first's number and how many.
    parts: (u64, u32),
    enqueued: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    inside: Option<Inside>,
    /// Parts that wait for the end of a group.
    pub waiting: Vec<u64>,
}

/// What the entry of a function that makes a communicator had.
#[derive(Clone, Copy, Debug, Default)]
struct Passed {
    id: u64,
    size: Option<u64>,
    rank: Option<u64>,
    parent: Option<u64>,
    /// Ranks with equal ones get a communicator of their own.
    color: Option<i64>,
}

/// A communicator and what is open in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub about: Communicator,
    children: u64,
    /// Collectives that were called.
    calls: u64,
    pub pending: VecDeque<Pending>,
    /// The last one that ended.
    pub ended: Option<Pending>,
    pub any_command: bool,
}

/// What has a row.
type Key = (Arc<str>, Option<u64>, String, String);

/// A row and what is made of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub row: Row,
    /// Bytes of timed calls.
    pub timed_bytes: u64,
    /// Numbers of the functions that its commands ran.
    pub functions: Vec<u32>,
}

/// The parameter that says which ranks stay together when a communicator is split.
const COLOR: &str = "color";

/// Follows the collectives of a walk.
#[derive(Debug)]
pub struct Collectives {
    kinds: Vec<Kind>,
    pub(super) communicators: Vec<Known>,
    owners: Owners,
    /// By process, API and handle.
    by_handle: HashMap<(i64, Option<ApiIndex>, u64), u32>,
    pub(super) threads: HashMap<ThreadId, Thread>,
    /// The first has the number `forgotten`.
    pub(super) parts: VecDeque<Part>,
    forgotten: u64,
    pub(super) rows: Vec<Counted>,
    by_key: HashMap<Key, u32>,
    pub(super) history: History<(u64, u32)>,
    /// Seen before the calls that caused them.
    pub(super) early: Vec<Seen>,
    passed: HashMap<ThreadId, Passed>,
    calls: u64,
}

impl Collectives {
    /// With nothing seen yet.
    pub fn new(trace: &Trace) -> Self {
        Self {
            kinds: kinds(trace),
            communicators: Vec::new(),
            owners: Owners::new(trace),
            by_handle: HashMap::new(),
            threads: HashMap::new(),
            parts: VecDeque::new(),
            forgotten: 0,
            rows: Vec::new(),
            by_key: HashMap::new(),
            history: History::default(),
            early: Vec::new(),
            passed: HashMap::new(),
            calls: 0,
        }
    }

    /// Whether any API of the trace has collectives.
    pub fn is_active(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Whether calls of a function have to do with them.
    pub fn needs(&self, function: FunctionId) -> bool {
        let kind = self.kinds.get(function.index());
        kind.is_some_and(|kind| !matches!(kind, Kind::Nothing | Kind::Other))
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) {
        match self.kinds.get(call.function.index()) {
            None | Some(Kind::Nothing | Kind::Enqueues | Kind::Waits | Kind::Other) => {}
            Some(_) => self.entered(at, call, event),
        }
    }

    #[cold]
    fn entered(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) {
        let thread = self.threads.entry(call.thread).or_default();
        if thread.inside.is_some_and(|i| i.depth < call.depth) {
            return;
        }
        let parts = match self.kinds.get(call.function.index()) {
            Some(Kind::Operation(operation)) => {
                let operation = operation.clone();
                (self.operation(at, call, &operation, event), 1)
            }
            Some(Kind::Flush) => self.group(call.thread),
            Some(Kind::Makes(about)) => {
                let number = |name: &Option<String>| event.get(name.as_ref()?).and_then(Scalar::bits);
                let id = about.id.as_ref().map_or(0, |name| Content::of(event, name).hash);
                let [size, rank, parent] = [&about.size, &about.rank, &about.parent].map(number);
                let color = event.get(COLOR).and_then(Scalar::bits).map(|bits| bits as i64);
                self.passed.insert(call.thread, Passed { id, size, rank, parent, color });
                return;
            }
            _ => return,
        };
        let who = at.who();
        self.history.change(who.pid, who.tid, call.start, parts);
        let inside = Inside { depth: call.depth, parts, enqueued: 0 };
        self.threads.entry(call.thread).or_default().inside = Some(inside);
    }

    /// A collective is called: the number of its part.
    fn operation(&mut self, at: At<'_>, call: &Open, op: &Operation, event: &Event<'_, '_>) -> u64 {
        let number = |name: &str| event.get(name).and_then(Scalar::bits).unwrap_or(0);
        let who = at.who();
        let communicator = self.communicator(who.pid, call.function, number(&op.about.communicator));
        let known = &self.communicators[communicator as usize].about;
        let (label, size) = (Arc::from(known.communicator.as_str()), known.size);
        let about = &op.about;
        let count = if about.count.is_empty() { 1 } else { number(&about.count) };
        let code = number(&about.element) as i64;
        let element = event.get(&about.element).and_then(hetrace_ctf::Scalar::as_str);
        let moves_nothing = about.element.is_empty().then_some("");
        let element = element.or(about.of.as_deref()).or(moves_nothing);
        let element = element.map_or_else(|| code.to_string(), str::to_owned);
        let ranks = if times_ranks(&op.about.operation) { size.unwrap_or(1) } else { 1 };
        let bytes = count.saturating_mul(op.sizes.get(&code).copied().unwrap_or(0).into());
        let row = self.row((label, size, op.about.operation.clone(), element));
        self.calls += 1;
        let last = self.calls;
        let known = &mut self.communicators[communicator as usize];
        known.calls += 1;
        if known.pending.len() >= KEPT {
            known.pending.pop_front();
        }
        known.pending.push_back(Pending {
            number: last,
            nth: known.calls,
            tid: who.tid,
            row,
            count,
            since: call.start,
            returned: 0,
        });
        let queues = op.queues.iter().map(|name| number(name)).collect();
        self.part(Part {
            communicator,
            row,
            calls: 1,
            bytes: bytes.saturating_mul(ranks),
            queues,
            last,
            returned: 0,
            timed: false,
            kernel: false,
            others: (0, 0),
        })
    }

    /// What waits for the group's end: its parts, by communicator.
    fn group(&mut self, thread: ThreadId) -> (u64, u32) {
        let waiting = self.threads.get(&thread).map_or_else(Vec::new, |t| t.waiting.clone());
        let mut groups: Vec<Vec<Part>> = Vec::new();
        for part in waiting.iter().filter_map(|number| self.part_of(*number).cloned()) {
            match groups.iter_mut().find(|g| g[0].communicator == part.communicator) {
                Some(group) => group.push(part),
                None => groups.push(vec![part]),
            }
        }
        let first = self.forgotten + self.parts.len() as u64;
        let count = groups.len();
        for group in groups {
            let joined = |of: fn(&Row) -> &str| {
                let mut all: Vec<&str> = group.iter().map(|p| of(&self.rows[p.row as usize].row)).collect();
                all.sort_unstable();
                all.dedup();
                all.join("+")
            };
            let (operation, element) = (joined(|r| &r.operation), joined(|r| &r.element));
            let head = &self.rows[group[0].row as usize].row;
            let (label, size) = (Arc::from(head.communicator.as_str()), head.size);
            let row = self.row((label, size, operation, element));
            let mut whole = Part { row, queues: Vec::new(), calls: 0, bytes: 0, ..group[0].clone() };
            for part in &group {
                whole.calls += part.calls;
                whole.bytes = whole.bytes.saturating_add(part.bytes);
                whole.last = whole.last.max(part.last);
                whole.queues.extend(part.queues.iter().filter(|q| !group[0].queues.contains(q)));
            }
            whole.queues.extend(&group[0].queues);
            self.part(whole);
        }
        (first, u32::try_from(count).unwrap_or(0))
    }

    fn part(&mut self, part: Part) -> u64 {
        if self.parts.len() >= KEPT {
            self.parts.pop_front();
            self.forgotten += 1;
        }
        self.parts.push_back(part);
        self.forgotten + self.parts.len() as u64 - 1
    }

    pub(super) fn part_of(&self, number: u64) -> Option<&Part> {
        self.parts.get(self.place(number)?)
    }

    /// Where the part of a number is.
    pub(super) fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.forgotten)?).ok()
    }

    fn row(&mut self, key: Key) -> u32 {
        if let Some(row) = self.by_key.get(&key) {
            return *row;
        }
        let (communicator, size, operation, element) = &key;
        let row = Row {
            communicator: communicator.to_string(),
            size: *size,
            operation: operation.clone(),
            element: element.clone(),
            ..Row::default()
        };
        let number = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        self.rows.push(Counted { row, ..Counted::default() });
        self.by_key.insert(key, number);
        number
    }

    /// The communicator of a handle; one that nobody saw being made is called after it.
    fn communicator(&mut self, pid: i64, function: FunctionId, handle: u64) -> u32 {
        if let Some(known) = self.by_handle.get(&(pid, self.owners.api(function), handle)) {
            return *known;
        }
        let about = Communicator { communicator: format!("{handle:#x}"), ..Communicator::default() };
        self.make(pid, function, handle, about)
    }

    /// What is known of the communicator of a handle that a call of a function in a process names.
    pub fn communicator_of(&self, pid: i64, function: FunctionId, handle: u64) -> Option<&Communicator> {
        let number = *self.by_handle.get(&(pid, self.owners.api(function), handle))?;
        self.communicators.get(number as usize).map(|known| &known.about)
    }

    fn make(&mut self, pid: i64, function: FunctionId, handle: u64, about: Communicator) -> u32 {
        let number = u32::try_from(self.communicators.len()).unwrap_or(u32::MAX);
        let about = Communicator { pid, handle: format!("{handle:#x}"), ..about };
        self.communicators.push(Known { about, ..Known::default() });
        self.by_handle.insert((pid, self.owners.api(function), handle), number);
        number
    }

    /// A call ends.
    #[inline]
    pub fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) {
        match self.kinds.get(call.function.index()) {
            None | Some(Kind::Nothing | Kind::Other) => {}
            Some(Kind::Enqueues) => {
                if let Some(inside) = self.threads.get_mut(&call.thread).and_then(|t| t.inside.as_mut()) {
                    inside.enqueued += u64::from(call.error.is_none());
                }
            }
            Some(Kind::Waits) if call.error.is_none() => self.waited(at.who().pid, call),
            Some(Kind::Waits) => {}
            Some(_) => self.returned(at, call, event),
        }
    }

    /// The device has done all that it had: collectives whose commands were not reported, too.
    #[cold]
    fn waited(&mut self, pid: i64, call: &Call) {
        for at in 0..self.communicators.len() {
            let known = &self.communicators[at];
            // A process with several ranks has several devices, and waits for one.
            if known.about.pid != pid || known.pending.is_empty() || self.has_other_rank(at) {
                continue;
            }
            let known = &mut self.communicators[at];
            let over = |p: &Pending| p.returned != 0 && p.returned <= call.start;
            while known.pending.front().is_some_and(over) {
                known.ended = known.pending.pop_front();
                known.any_command = true;
            }
        }
    }

    /// Whether the process of a communicator has another rank of it.
    fn has_other_rank(&self, at: usize) -> bool {
        let known = &self.communicators[at].about;
        let same = |o: &Communicator| o.pid == known.pid && o.communicator == known.communicator;
        self.communicators.iter().enumerate().any(|(n, other)| n != at && same(&other.about))
    }

    #[cold]
    fn returned(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) {
        let makes = match self.kinds.get(call.function.index()) {
            Some(Kind::Makes(about)) if call.error.is_none() => Some(about.clone()),
            Some(Kind::Makes(_)) => return,
            _ => None,
        };
        if let Some(about) = makes {
            return self.made(at, call.function, &about, event);
        }
        let is_flush = matches!(self.kinds.get(call.function.index()), Some(Kind::Flush));
        let who = at.who();
        let Some(thread) = self.threads.get_mut(&call.thread) else { return };
        let Some(inside) = thread.inside.filter(|i| i.depth == call.depth) else { return };
        thread.inside = None;
        self.history.change(who.pid, who.tid, call.end, (0, 0));
        let (first, count) = inside.parts;
        for part in first..first.saturating_add(count.into()) {
            let Some(part) = self.place(part).and_then(|at| self.parts.get_mut(at)) else { continue };
            part.returned = call.end;
        }
        let Some(thread) = self.threads.get_mut(&call.thread) else { return };
        if is_flush {
            if inside.enqueued > 0 {
                thread.waiting.clear();
                (first..first + u64::from(count)).for_each(|number| self.count(number, true));
            }
            return;
        }
        if call.error.is_some() {
            return self.failed(first);
        }
        if inside.enqueued == 0 && thread.waiting.len() < KEPT {
            thread.waiting.push(first);
        }
        if let Some(part) = self.part_of(first).cloned() {
            let pending = &mut self.communicators[part.communicator as usize].pending;
            if let Some(open) = pending.iter_mut().rev().find(|p| p.number == part.last) {
                open.returned = call.end;
            }
        }
        if inside.enqueued > 0 {
            self.count(first, false);
        }
    }

    fn failed(&mut self, number: u64) {
        let Some(part) = self.part_of(number).cloned() else { return };
        self.communicators[part.communicator as usize].pending.retain(|p| p.number != part.last);
        if let Some(Counted { row, .. }) = self.rows.get_mut(part.row as usize) {
            row.calls += 1;
            row.errors += 1;
        }
    }

    /// Counts the calls of a part.
    pub(super) fn count(&mut self, number: u64, grouped: bool) {
        let Some(part) = self.part_of(number).cloned() else { return };
        let Some(Counted { row, .. }) = self.rows.get_mut(part.row as usize) else { return };
        row.calls += part.calls;
        row.grouped += if grouped { part.calls } else { 0 };
        row.bytes = row.bytes.saturating_add(part.bytes);
    }

    /// What a communicator is made of stands in the entry, what it is in the exit.
    fn made(
        &mut self,
        at: At<'_>,
        function: FunctionId,
        about: &hetrace_model::Communicator,
        event: &Event<'_, '_>,
    ) {
        let pid = at.who().pid;
        let passed = self.passed.remove(&at.thread).unwrap_or_default();
        let handles = Content::of(event, &about.handle).numbers;
        let several = handles.len() > 1;
        // All ranks of the parent take part, also those that get nothing.
        let child = passed.parent.filter(|_| passed.id == 0).map(|parent| {
            let parent = self.communicator(pid, function, parent);
            let parent = &mut self.communicators[parent as usize];
            parent.children += 1;
            let label = format!("{}.{}", parent.about.communicator, parent.children);
            passed.color.map_or_else(|| label.clone(), |color| format!("{label} color {color}"))
        });
        for (rank, handle) in (0u64..).zip(handles).filter(|(_, handle)| *handle != 0) {
            let label = match (&child, passed.id) {
                (Some(label), _) => label.clone(),
                (_, 0) => format!("{pid}:{:x}", at.time & 0xff_ffff),
                (_, id) => format!("{:08x}", (id >> 32) ^ (id & 0xffff_ffff)),
            };
            let rank = if several { Some(rank) } else { passed.rank };
            let about =
                Communicator { communicator: label, rank, size: passed.size, ..Communicator::default() };
            self.make(pid, function, handle, about);
        }
    }
}
