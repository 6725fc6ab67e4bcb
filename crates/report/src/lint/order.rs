//! In which order commands run: what a queue, a wait list or a barrier puts behind what, and what a
//! program has seen to be over.
//!
//! ```text
//! queue 1   a ──────► b ──────► c          in order: each behind the one before
//!                     │ event
//! queue 2   d ──────► e                    behind d, and behind b and all that b is behind
//! ```
//!
//! Commands of a process have numbers that grow. What a command is behind is kept as *all of queue Q up
//! to number N* for each queue, and single commands of queues without an order. What cannot be known,
//! such as an event that the program sets itself, puts a command behind everything: nothing is claimed of it.

use std::collections::VecDeque;
use std::rc::Rc;

use hetrace_trace::hash::QuickMap;

/// Commands of a process that are remembered; older ones count as over.
const KEPT: usize = 1 << 16;
/// What a command is behind of one by one, at most: beyond it everything.
const SINGLE: usize = 64;

/// The number of a command in its process, from 1; 0 is none.
pub(super) type Id = u64;

/// What something is behind.
#[derive(Clone, Debug, Default)]
struct Behind {
    /// Positions of queues, with the last command of each.
    queues: Vec<(u32, Id)>,
    /// Of queues without an order.
    single: Vec<Id>,
    /// It may be behind anything.
    all: bool,
}

impl Behind {
    fn add_queue(&mut self, queue: u32, last: Id) {
        if let Some((_, known)) = self.queues.iter_mut().find(|(known, _)| *known == queue) {
            *known = (*known).max(last);
        } else if self.queues.len() < SINGLE {
            self.queues.push((queue, last));
        } else {
            self.all = true;
        }
    }

    fn add(&mut self, other: &Behind) {
        other.queues.iter().for_each(|(queue, last)| self.add_queue(*queue, *last));
        for id in &other.single {
            self.add_single(*id);
        }
        self.all |= other.all;
    }

    fn add_single(&mut self, id: Id) {
        if self.single.contains(&id) {
            return;
        }
        self.all |= self.single.len() >= SINGLE;
        self.single.push(id);
        self.single.truncate(SINGLE);
    }
}

/// A command.
#[derive(Clone, Debug)]
struct Command {
    queue: u32,
    done: bool,
    behind: Option<Rc<Behind>>,
}

/// A queue.
#[derive(Clone, Debug, Default)]
struct Queue {
    /// Commands may overtake each other.
    unordered: bool,
    /// It may serialize with any other.
    default: bool,
    /// The last command; in another number space than its process's other queues there is none.
    last: Id,
    /// All up to this one are over.
    done: Id,
    /// What the next command is behind, beside those of its own queue if that has an order.
    behind: Option<Rc<Behind>>,
}

/// The commands of a process.
#[derive(Debug, Default)]
struct Process {
    /// Positions by handle.
    by_handle: QuickMap<u64, u32>,
    /// The last one that was asked for.
    recent: (u64, u32),
    queues: Vec<Queue>,
    /// The last ones.
    commands: VecDeque<Command>,
    /// The number of the last one.
    last: Id,
    /// All up to this one are over.
    done: Id,
    /// Nothing is claimed of the order of these and what came after them.
    fence: Id,
    /// Queues that were made, and those of them without an order.
    made: u32,
    unordered: u32,
}

/// What a wait list says.
#[derive(Clone, Copy, Debug)]
pub(super) enum After {
    /// A command.
    Command(Id),
    /// Something that is not known.
    Unknown,
}

/// The order of all commands.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// By position.
    processes: Vec<Process>,
}

impl Process {
    #[inline]
    fn queue(&mut self, handle: u64) -> u32 {
        let (known, position) = self.recent;
        if known == handle && (position as usize) < self.queues.len() {
            return position;
        }
        let position = self.queue_at(handle);
        self.recent = (handle, position);
        position
    }

    fn queue_at(&mut self, handle: u64) -> u32 {
        if let Some(position) = self.by_handle.get(&handle) {
            return *position;
        }
        // Handles come again: there are not more queues than a program has at a time.
        let position = u32::try_from(self.queues.len()).unwrap_or(u32::MAX);
        self.queues.push(Queue { default: handle == 0, ..Queue::default() });
        self.by_handle.insert(handle, position);
        position
    }

    fn command(&self, id: Id) -> Option<&Command> {
        let age = self.last.checked_sub(id)?;
        let at = self.commands.len().checked_sub(1)?.checked_sub(usize::try_from(age).ok()?)?;
        self.commands.get(at)
    }

    fn is_done(&self, id: Id) -> bool {
        if id <= self.done {
            return true;
        }
        let Some(command) = self.command(id) else { return true };
        command.done || self.queues.get(command.queue as usize).is_none_or(|queue| id <= queue.done)
    }

    /// Whether what a command is behind, and itself, is before the next command of this queue anyway: it is in this queue,
    /// which has an order, and has handed on what it is behind.
    fn is_before_next_of(&self, queue: u32, id: Id) -> bool {
        let same = self.command(id).is_none_or(|command| command.queue == queue);
        same && self.queues.get(queue as usize).is_some_and(|queue| !queue.unordered)
    }

    /// What a command is behind, and itself.
    fn with(&self, id: Id, behind: &mut Behind) {
        let Some(command) = self.command(id) else { return };
        if let Some(before) = &command.behind {
            behind.add(before);
        }
        match self.queues.get(command.queue as usize) {
            Some(queue) if !queue.unordered => behind.add_queue(command.queue, id),
            _ => behind.add_single(id),
        }
    }

    /// All of this is over.
    fn over(&mut self, behind: &Behind) {
        for (queue, last) in &behind.queues {
            if let Some(queue) = self.queues.get_mut(*queue as usize) {
                queue.done = queue.done.max(*last);
            }
        }
        for id in &behind.single {
            let at = self.last.checked_sub(*id).and_then(|age| usize::try_from(age).ok());
            let at = at.and_then(|age| self.commands.len().checked_sub(age + 1));
            if let Some(command) = at.and_then(|at| self.commands.get_mut(at)) {
                command.done = true;
            }
        }
    }
}

impl Order {
    fn process(&mut self, at: usize) -> &mut Process {
        if self.processes.len() <= at {
            self.processes.resize_with(at + 1, Process::default);
        }
        &mut self.processes[at]
    }

    /// A queue was made.
    pub fn made(&mut self, process: usize, handle: u64, unordered: bool) {
        let process = self.process(process);
        process.by_handle.remove(&handle);
        process.recent = (0, u32::MAX);
        let position = process.queue(handle) as usize;
        process.queues[position].unordered = unordered;
        process.made += 1;
        process.unordered += u32::from(unordered);
    }

    /// Whether commands of a process may run in more than one order.
    pub fn is_open(&self, process: usize) -> bool {
        self.processes.get(process).is_some_and(|process| process.made > 1 || process.unordered > 0)
    }

    /// The number of the last command of a process.
    pub fn last(&self, process: usize) -> Id {
        self.processes.get(process).map_or(0, |process| process.last)
    }

    /// A command is enqueued, after these; a `barrier` holds back what comes later in its queue.
    pub fn enqueue(
        &mut self,
        process: usize,
        handle: u64,
        after: impl Iterator<Item = After>,
        barrier: bool,
    ) -> Id {
        let process = self.process(process);
        let position = process.queue(handle);
        let mut own: Option<Behind> = None;
        for after in after {
            match after {
                After::Command(id) if process.is_done(id) || process.is_before_next_of(position, id) => {}
                After::Command(id) => process.with(id, own.get_or_insert_default()),
                After::Unknown => own.get_or_insert_default().all = true,
            }
        }
        let Some(queue) = process.queues.get_mut(position as usize) else { return 0 };
        let id = process.last + 1;
        let mut behind = match own {
            None => queue.behind.clone(),
            Some(mut own) => {
                queue.behind.iter().for_each(|before| own.add(before));
                let own = Some(Rc::new(own));
                if !queue.unordered {
                    queue.behind.clone_from(&own);
                }
                own
            }
        };
        if queue.default {
            // It may wait for all other queues, and they for it.
            process.fence = id;
        }
        if barrier && queue.unordered {
            let mut all = behind.as_deref().cloned().unwrap_or_default();
            all.add_queue(position, id);
            behind = Some(Rc::new(all));
            queue.behind.clone_from(&behind);
        }
        queue.last = id;
        process.last = id;
        process.commands.push_back(Command { queue: position, done: false, behind });
        if process.commands.len() > KEPT {
            process.commands.pop_front();
        }
        id
    }

    /// A command whose effects are not followed is enqueued inside of another call.
    pub fn count(&mut self, process: usize, handle: u64) {
        self.enqueue(process, handle, std::iter::empty(), false);
    }

    /// What is enqueued so far may be ordered in ways that are not followed.
    pub fn fence(&mut self, process: usize) {
        let process = self.process(process);
        process.fence = process.last;
    }

    /// Nothing is known of what later commands of a queue wait for.
    pub fn forget(&mut self, process: usize, handle: u64) {
        let process = self.process(process);
        let position = process.queue(handle) as usize;
        process.queues[position].behind = Some(Rc::new(Behind { all: true, ..Behind::default() }));
    }

    /// Whether a command is known to be over.
    pub fn is_done(&self, process: usize, id: Id) -> bool {
        self.processes.get(process).is_none_or(|process| process.is_done(id))
    }

    /// Whether all commands of a queue, or of all queues, are known to be over.
    pub fn is_idle(&self, process: usize, handle: Option<u64>) -> bool {
        let Some(process) = self.processes.get(process) else { return true };
        let idle = |queue: &Queue| queue.last <= queue.done.max(process.done);
        match handle.filter(|handle| *handle != 0) {
            Some(handle) => process
                .by_handle
                .get(&handle)
                .is_none_or(|at| process.queues.get(*at as usize).is_none_or(idle)),
            None => process.queues.iter().all(idle),
        }
    }

    /// Whether one of two commands is behind the other, or that is not known.
    pub fn are_ordered(&self, process: usize, first: Id, second: Id) -> bool {
        let Some(process) = self.processes.get(process) else { return true };
        let Some((a, b)) = process.command(first).zip(process.command(second)) else { return true };
        let queues = (process.queues.get(a.queue as usize), process.queues.get(b.queue as usize));
        let (Some(of_a), Some(of_b)) = queues else { return true };
        if of_a.default || of_b.default || (a.queue == b.queue && !of_a.unordered) {
            return true;
        }
        let knows_all = |command: &Command| command.behind.as_ref().is_some_and(|behind| behind.all);
        if first <= process.fence || process.is_done(first) || knows_all(a) {
            return true;
        }
        b.behind.as_ref().is_some_and(|behind| {
            behind.all
                || behind.queues.iter().any(|(queue, last)| *queue == a.queue && *last >= first)
                || behind.single.contains(&first)
        })
    }

    /// Whether both commands are in one queue that has an order.
    pub fn are_ordered_by_queue(&self, process: usize, first: Id, second: Id) -> bool {
        let Some(process) = self.processes.get(process) else { return false };
        let Some((a, b)) = process.command(first).zip(process.command(second)) else { return false };
        let queue = process.queues.get(a.queue as usize);
        a.queue == b.queue && queue.is_some_and(|queue| !queue.unordered)
    }

    /// The program has waited for a command.
    pub fn wait(&mut self, process: usize, id: Id) {
        let process = self.process(process);
        if process.is_done(id) {
            return;
        }
        let mut behind = Behind::default();
        process.with(id, &mut behind);
        process.over(&behind);
    }

    /// The program has waited for all commands of a queue, or of all queues, up to a number.
    pub fn finish(&mut self, process: usize, handle: Option<u64>, upto: Id) {
        let process = self.process(process);
        let Some(handle) = handle.filter(|handle| *handle != 0) else {
            process.done = process.done.max(upto);
            return;
        };
        let position = process.queue(handle) as usize;
        let Some(queue) = process.queues.get_mut(position) else { return };
        queue.done = queue.done.max(upto);
        if queue.last <= upto
            && let Some(behind) = queue.behind.take()
        {
            process.over(&behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(order: &mut Order, queue: u64, after: &[Id]) -> Id {
        order.enqueue(0, queue, after.iter().map(|id| After::Command(*id)), false)
    }

    fn two(unordered: bool) -> Order {
        let mut order = Order::default();
        order.made(0, 1, unordered);
        order.made(0, 2, unordered);
        order
    }

    #[test]
    fn queues_keep_their_order_and_others_have_none() {
        let mut order = two(false);
        let (a, b, c) = (put(&mut order, 1, &[]), put(&mut order, 2, &[]), put(&mut order, 1, &[]));
        assert!(order.are_ordered(0, a, c) && !order.are_ordered(0, a, b) && !order.are_ordered(0, b, c));
    }

    #[test]
    fn an_event_orders_what_is_before_it_and_behind_it() {
        let mut order = two(false);
        let (a, b) = (put(&mut order, 1, &[]), put(&mut order, 1, &[]));
        let c = put(&mut order, 2, &[b]);
        let (d, e) = (put(&mut order, 2, &[]), put(&mut order, 1, &[]));
        assert!(order.are_ordered(0, a, c) && order.are_ordered(0, a, d) && order.are_ordered(0, b, d));
        assert!(!order.are_ordered(0, d, e));
    }

    #[test]
    fn an_event_of_the_own_queue_hands_on_what_was_before() {
        let mut order = two(false);
        let a = put(&mut order, 2, &[]);
        let b = put(&mut order, 1, &[a]);
        let c = put(&mut order, 1, &[b]);
        let d = put(&mut order, 2, &[]);
        assert!(order.are_ordered(0, a, c) && order.are_ordered(0, b, c) && !order.are_ordered(0, c, d));
        order.wait(0, c);
        assert!([a, b, c].iter().all(|id| order.is_done(0, *id)) && !order.is_done(0, d));
    }

    #[test]
    fn without_an_order_barriers_and_events_make_one() {
        let mut order = two(true);
        let (a, b) = (put(&mut order, 1, &[]), put(&mut order, 1, &[]));
        assert!(!order.are_ordered(0, a, b));
        let c = put(&mut order, 1, &[a]);
        assert!(order.are_ordered(0, a, c) && !order.are_ordered(0, b, c));
        order.enqueue(0, 1, std::iter::empty(), true);
        let d = put(&mut order, 1, &[]);
        assert!([a, b, c].iter().all(|id| order.are_ordered(0, *id, d)));
        order.wait(0, c);
        assert!(order.is_done(0, a) && order.is_done(0, c) && !order.is_done(0, b));
    }

    #[test]
    fn what_was_waited_for_is_over() {
        let mut order = two(false);
        let (a, b) = (put(&mut order, 1, &[]), put(&mut order, 1, &[]));
        let c = put(&mut order, 2, &[a]);
        order.wait(0, c);
        assert!(order.is_done(0, a) && !order.is_done(0, b) && order.is_idle(0, Some(2)));
        assert!(!order.is_idle(0, Some(1)) && !order.is_idle(0, None));
        order.finish(0, Some(1), order.last(0));
        assert!(order.is_idle(0, None) && order.is_done(0, b));
        let d = put(&mut order, 2, &[]);
        order.finish(0, None, d);
        assert!(order.is_idle(0, None));
    }

    #[test]
    fn nothing_is_claimed_of_what_is_not_known() {
        let mut order = two(false);
        let a = put(&mut order, 1, &[]);
        let b = order.enqueue(0, 2, std::iter::once(After::Unknown), false);
        let c = put(&mut order, 2, &[]);
        assert!(order.are_ordered(0, a, b) && order.are_ordered(0, a, c));
        let first = put(&mut order, 1, &[]);
        for _ in 0..=KEPT {
            put(&mut order, 1, &[]);
        }
        assert!(order.is_done(0, first) && order.are_ordered(0, first, c));
        // The default queue may wait for others.
        let mut order = two(false);
        let (a, b) = (put(&mut order, 1, &[]), put(&mut order, 0, &[]));
        assert!(order.are_ordered(0, a, b));
        let c = put(&mut order, 2, &[]);
        assert!(order.are_ordered(0, a, c), "both are ordered with the default queue");
        let d = put(&mut order, 1, &[]);
        assert!(!order.are_ordered(0, c, d));
        order.fence(0);
        assert!(order.are_ordered(0, c, d) && !order.is_done(0, c));
    }
}
