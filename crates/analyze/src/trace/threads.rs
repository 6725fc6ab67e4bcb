//! The threads of a trace, numbered as they appear.

use std::collections::HashMap;

/// A thread's number in one walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// As a position in a table.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its process.
    pub pid: i64,
    /// Its own id; equal ones may be in several processes.
    pub tid: i64,
    /// Its name, as far as the trace says.
    pub name: String,
}

/// All threads seen so far.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    all: Vec<Thread>,
    by_ids: HashMap<(i64, i64), ThreadId>,
}

impl Threads {
    /// The number of a thread, a new one if it has none.
    pub(crate) fn number(&mut self, pid: i64, tid: i64) -> ThreadId {
        let next = ThreadId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let id = *self.by_ids.entry((pid, tid)).or_insert(next);
        if id == next {
            let name = String::new();
            self.all.push(Thread { pid, tid, name });
        }
        id
    }

    pub(crate) fn rename(&mut self, id: ThreadId, name: &str) {
        if let Some(thread) = self.all.get_mut(id.index())
            && thread.name != name
        {
            thread.name = name.to_owned();
        }
    }

    /// The thread of a number.
    pub fn get(&self, id: ThreadId) -> &Thread {
        // Numbers come from here, so they are in range; if one were not, some
        // thread is better than a panic.
        const NONE: &Thread = &Thread { pid: 0, tid: 0, name: String::new() };
        self.all.get(id.index()).unwrap_or(NONE)
    }

    /// All of them, by number.
    pub fn all(&self) -> &[Thread] {
        &self.all
    }
}
