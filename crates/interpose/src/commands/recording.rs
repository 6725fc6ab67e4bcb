//! Commands that are recorded now and executed later: command lists, graphs.

use super::nodes::Pending;
use super::store::{Put, Store, Thread};
use super::{Enqueued, Local};
use crate::pid;

/// The commands of a list, in the order in which they were recorded. Its user sees to it that one
/// thread at a time has it, as APIs demand it of the lists themselves.
#[derive(Debug, Default)]
pub struct Recording {
    first: u32,
    last: u32,
    /// Places that it has and does not need yet.
    spare: u32,
    commands: u32,
    /// Process that recorded them: a forked child has none of their places.
    pid: u32,
}

/// One execution of a list.
#[derive(Debug, Clone, Copy)]
pub struct Execution {
    /// Counter value of the entry record of the call that executes it.
    pub cause: u64,
    /// Counter value when that call returned.
    pub returned: u64,
    /// The key of the queue that it is executed in.
    pub queue: u64,
    /// The list's commands end in the order in which they were recorded.
    pub in_order: bool,
}

impl Recording {
    /// An empty one.
    pub const fn new() -> Self {
        Recording { first: 0, last: 0, spare: 0, commands: 0, pid: 0 }
    }

    /// Returns how many commands were recorded.
    pub fn len(&self) -> u32 {
        self.commands
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.commands == 0
    }

    /// Records a command. What is only known when it is executed (who, when, where) is filled in
    /// then. Returns false if there is no place: the command will have no times.
    pub fn append<T, X>(&mut self, store: &Store<T, X>, token: T, command: Enqueued) -> bool
    where
        T: Copy + Send + Sync + 'static,
        X: Local,
    {
        let Some(nodes) = store.nodes() else { return false };
        if self.pid != pid() {
            *self = Recording { pid: pid(), ..Recording::new() };
        }
        if self.spare == 0 {
            self.spare = nodes.take(store.limit());
        }
        let Some(node) = nodes.get(self.spare) else { return false };
        let number = std::mem::replace(&mut self.spare, node.next.get());
        // SAFETY: the node was among the free ones, which are this recording's alone.
        unsafe { node.write(Pending { token, command }) };
        node.next.set(0);
        match nodes.get(self.last) {
            Some(last) => last.next.set(number),
            None => self.first = number,
        }
        self.last = number;
        self.commands += 1;
        true
    }

    /// The list was executed: puts a command in for each that was recorded. `token` makes of the
    /// token that was recorded the one by which this execution's command is asked about, or `None`
    /// if it can't be. Returns whether it is time to look for commands that have ended; those
    /// that find no place are counted as lost.
    pub fn execute<T, X>(
        &self,
        store: &Store<T, X>,
        thread: &Thread<T, X>,
        execution: &Execution,
        mut token: impl FnMut(T) -> Option<T>,
    ) -> bool
    where
        T: Copy + Send + Sync + 'static,
        X: Local,
    {
        let mut is_due = false;
        self.each(store, |recorded| {
            // First, so that no token is made that nobody would release.
            let Some(place) = thread.place() else { return store.lose_for_room() };
            let Some(token) = token(recorded.token) else { return store.lose(1) };
            let command = Enqueued {
                cause_tid: thread.tid(),
                cause: execution.cause,
                returned: execution.returned,
                queue: execution.queue,
                in_order: execution.in_order,
                ..recorded.command
            };
            match place.put(token, command) {
                Put::Kept => {}
                Put::Due => is_due = true,
                Put::Full => store.lose_for_room(),
            }
        });
        is_due
    }

    /// Shows the token of each command that was recorded, in order.
    pub fn tokens<T, X>(&self, store: &Store<T, X>, mut work: impl FnMut(T))
    where
        T: Copy + Send + Sync + 'static,
        X: Local,
    {
        self.each(store, |recorded| work(recorded.token));
    }

    /// The list is reset or destroyed: forgets its commands, and has each token released. Those
    /// in flight are not concerned.
    pub fn clear<T, X>(&mut self, store: &Store<T, X>, mut release: impl FnMut(T))
    where
        T: Copy + Send + Sync + 'static,
        X: Local,
    {
        self.each(store, |recorded| release(recorded.token));
        if let Some(nodes) = store.nodes().filter(|_| self.pid == pid()) {
            // The chain of the commands, and behind it what was spare.
            nodes.give(self.first);
            nodes.give(self.spare);
        }
        *self = Recording::new();
    }

    fn each<T, X>(&self, store: &Store<T, X>, mut work: impl FnMut(&Pending<T>))
    where
        T: Copy + Send + Sync + 'static,
        X: Local,
    {
        let Some(nodes) = store.nodes().filter(|_| self.pid == pid()) else { return };
        let mut next = self.first;
        for _ in 0..self.commands {
            let Some(node) = nodes.get(next) else { return };
            // SAFETY: `append` wrote it, and it is this recording's until it is cleared.
            work(unsafe { node.read() });
            next = node.next.get();
        }
    }
}
