//! Calls of collectives to rows, and their commands to them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hetrace_ctf::read::Event;

use super::describe::{Content, Kind, Operation, bits, kinds};
use super::rows::{Communicator, Row, times_ranks};
use crate::history::History;
use crate::spans::{At, Call, Command, Open};
use crate::trace::{FunctionId, ThreadId, Trace};

/// Parts and open calls that are kept; the oldest are forgotten.
const KEPT: usize = 1 << 20;

/// What shares commands: a collective, or those of a group with one communicator.
#[derive(Clone, Debug)]
struct Part {
    communicator: u32,
    row: u32,
    calls: u64,
    bytes: u64,
    queues: Vec<u64>,
    /// The number of the last call in it.
    last: u64,
    timed: bool,
}

/// A call of which no command has ended.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    number: u64,
    pub tid: i64,
    pub row: u32,
    pub count: u64,
    pub since: u64,
    pub returned: bool,
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
}

/// A communicator and what is open in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub about: Communicator,
    children: u64,
    pub pending: VecDeque<Pending>,
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

/// Functions that are told of a row.
const FUNCTIONS: usize = 8;

/// What is needed of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pid: i64,
    tid: i64,
    cause: u64,
    queue: u64,
    function: u32,
    /// ns
    time: u64,
    commands: u64,
}

/// Follows the collectives of a walk.
#[derive(Debug)]
pub struct Collectives {
    kinds: Vec<Kind>,
    pub(super) communicators: Vec<Known>,
    by_handle: HashMap<(i64, u64), u32>,
    pub(super) threads: HashMap<ThreadId, Thread>,
    /// The first has the number `forgotten`.
    parts: VecDeque<Part>,
    forgotten: u64,
    pub(super) rows: Vec<Counted>,
    by_key: HashMap<Key, u32>,
    history: History<(u64, u32)>,
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
    pub(crate) fn needs(&self, function: FunctionId) -> bool {
        let kind = self.kinds.get(function.index());
        kind.is_some_and(|kind| !matches!(kind, Kind::Nothing | Kind::Other))
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) {
        match self.kinds.get(call.function.index()) {
            None | Some(Kind::Nothing | Kind::Enqueues | Kind::Other) => {}
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
                let number = |name: &Option<String>| event.get(name.as_ref()?).and_then(bits);
                let id = about.id.as_ref().map_or(0, |name| Content::of(event, name).hash);
                let [size, rank, parent] = [&about.size, &about.rank, &about.parent].map(number);
                self.passed.insert(call.thread, Passed { id, size, rank, parent });
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
        let number = |name: &str| event.get(name).and_then(bits).unwrap_or(0);
        let who = at.who();
        let communicator = self.communicator(who.pid, number(&op.about.communicator));
        let known = &self.communicators[communicator as usize].about;
        let (label, size) = (Arc::from(known.communicator.as_str()), known.size);
        let count = number(&op.about.count);
        let code = number(&op.about.element) as i64;
        let element = event.get(&op.about.element).and_then(hetrace_ctf::Scalar::as_str);
        let element = element.map_or_else(|| code.to_string(), str::to_owned);
        let ranks = if times_ranks(&op.about.operation) { size.unwrap_or(1) } else { 1 };
        let bytes = count.saturating_mul(op.sizes.get(&code).copied().unwrap_or(0).into());
        let row = self.row((label, size, op.about.operation.clone(), element));
        self.calls += 1;
        let last = self.calls;
        let pending = &mut self.communicators[communicator as usize].pending;
        if pending.len() >= KEPT {
            pending.pop_front();
        }
        pending.push_back(Pending {
            number: last,
            tid: who.tid,
            row,
            count,
            since: call.start,
            returned: false,
        });
        let queues = op.queues.iter().map(|name| number(name)).collect();
        self.part(Part {
            communicator,
            row,
            calls: 1,
            bytes: bytes.saturating_mul(ranks),
            queues,
            last,
            timed: false,
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

    fn part_of(&self, number: u64) -> Option<&Part> {
        self.parts.get(usize::try_from(number.checked_sub(self.forgotten)?).ok()?)
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
    fn communicator(&mut self, pid: i64, handle: u64) -> u32 {
        if let Some(known) = self.by_handle.get(&(pid, handle)) {
            return *known;
        }
        let about = Communicator { communicator: format!("{handle:#x}"), ..Communicator::default() };
        self.make(pid, handle, about)
    }

    /// What is known of the communicator of a handle in a process.
    pub fn communicator_of(&self, pid: i64, handle: u64) -> Option<&Communicator> {
        let number = *self.by_handle.get(&(pid, handle))?;
        self.communicators.get(number as usize).map(|known| &known.about)
    }

    fn make(&mut self, pid: i64, handle: u64, about: Communicator) -> u32 {
        let number = u32::try_from(self.communicators.len()).unwrap_or(u32::MAX);
        let about = Communicator { pid, handle: format!("{handle:#x}"), ..about };
        self.communicators.push(Known { about, ..Known::default() });
        self.by_handle.insert((pid, handle), number);
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
            Some(_) => self.returned(at, call, event),
        }
    }

    #[cold]
    fn returned(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) {
        let makes = match self.kinds.get(call.function.index()) {
            Some(Kind::Makes(about)) if call.error.is_none() => Some(about.clone()),
            Some(Kind::Makes(_)) => return,
            _ => None,
        };
        if let Some(about) = makes {
            return self.made(at, &about, event);
        }
        let is_flush = matches!(self.kinds.get(call.function.index()), Some(Kind::Flush));
        let who = at.who();
        let Some(thread) = self.threads.get_mut(&call.thread) else { return };
        let Some(inside) = thread.inside.filter(|i| i.depth == call.depth) else { return };
        thread.inside = None;
        self.history.change(who.pid, who.tid, call.end, (0, 0));
        let (first, count) = inside.parts;
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
                open.returned = true;
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
    fn made(&mut self, at: At<'_>, about: &hetrace_model::Communicator, event: &Event<'_, '_>) {
        let pid = at.who().pid;
        let passed = self.passed.remove(&at.thread).unwrap_or_default();
        let handles = Content::of(event, &about.handle).numbers;
        let several = handles.len() > 1;
        for (rank, handle) in (0u64..).zip(handles).filter(|(_, handle)| *handle != 0) {
            let label = match (passed.parent, passed.id) {
                (Some(parent), 0) => {
                    let parent = self.communicator(pid, parent);
                    let parent = &mut self.communicators[parent as usize];
                    parent.children += 1;
                    format!("{}.{}", parent.about.communicator, parent.children)
                }
                (_, 0) => format!("{pid}:{:x}", at.time & 0xff_ffff),
                (_, id) => format!("{:08x}", (id >> 32) ^ (id & 0xffff_ffff)),
            };
            let rank = if several { Some(rank) } else { passed.rank };
            let about =
                Communicator { communicator: label, rank, size: passed.size, ..Communicator::default() };
            self.make(pid, handle, about);
        }
    }

    /// A command on a device.
    #[inline]
    pub fn command(&mut self, at: At<'_>, command: &Command<'_>) {
        if !self.is_active() || command.cause_tid == 0 || command.cause == 0 {
            return;
        }
        let Some(times) = command.times else { return };
        let seen = Seen {
            pid: command.pid,
            tid: command.cause_tid,
            cause: command.cause,
            queue: command.queue,
            function: command.function.map_or(0, |f| f.id),
            time: times.duration().saturating_mul(command.weight),
            commands: command.weight,
        };
        // Clocks differ a little, and what caused it may come later.
        if command.cause > at.time && self.early.len() < KEPT {
            self.early.push(seen);
        } else {
            self.seen(&seen);
        }
    }

    pub(super) fn seen(&mut self, command: &Seen) {
        let Some((first, count)) = self.history.at(command.pid, command.tid, command.cause) else { return };
        let mut parts = first..first.saturating_add(count.into());
        let on_queue =
            |number: &u64| self.part_of(*number).is_some_and(|p| p.queues.contains(&command.queue));
        let Some(number) = parts.clone().find(on_queue).or_else(|| parts.next()) else { return };
        let Some(at) = number.checked_sub(self.forgotten).and_then(|n| usize::try_from(n).ok()) else {
            return;
        };
        let Some(part) = self.parts.get_mut(at) else { return };
        let Some(counted) = self.rows.get_mut(part.row as usize) else { return };
        let Counted { row, timed_bytes, functions } = counted;
        if command.function != 0 && functions.len() < FUNCTIONS && !functions.contains(&command.function) {
            functions.push(command.function);
        }
        row.commands = row.commands.saturating_add(command.commands);
        row.total_ns = row.total_ns.saturating_add(command.time);
        if !std::mem::replace(&mut part.timed, true) {
            row.timed_calls += part.calls;
            *timed_bytes = timed_bytes.saturating_add(part.bytes);
        }
        let known = &mut self.communicators[part.communicator as usize];
        known.any_command = true;
        // What a rank does in a communicator is done in order.
        while known.pending.front().is_some_and(|p| p.number <= part.last) {
            known.pending.pop_front();
        }
    }
}
