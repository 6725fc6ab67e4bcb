//! The threads of a trace, numbered as they appear.

use std::collections::HashMap;

/// A thread's number in one walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// As a position in a table.
    #[inline]
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
    /// When each got its name; later names count, in whatever order streams are read.
    named: Vec<u64>,
    by_ids: HashMap<(i64, i64), ThreadId>,
}

impl Threads {
    /// The number of a thread, a new one if it has none.
    pub fn number(&mut self, pid: i64, tid: i64) -> ThreadId {
        let next = ThreadId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        let id = *self.by_ids.entry((pid, tid)).or_insert(next);
        if id == next {
            let name = String::new();
            self.all.push(Thread { pid, tid, name });
            self.named.push(0);
        }
        id
    }

    /// A thread that was met.
    pub fn find(&self, pid: i64, tid: i64) -> Option<ThreadId> {
        self.by_ids.get(&(pid, tid)).copied()
    }

    /// The name of a thread that was met, if it has one.
    pub fn name_of(&self, pid: i64, tid: i64) -> Option<&str> {
        let thread = self.all.get(self.find(pid, tid)?.index())?;
        Some(&*thread.name).filter(|name| !name.is_empty())
    }

    /// From `time` on, a thread has this name.
    pub fn rename(&mut self, id: ThreadId, name: &str, time: u64) {
        if let (Some(thread), Some(named)) = (self.all.get_mut(id.index()), self.named.get_mut(id.index()))
            && time >= *named
            && !name.is_empty()
        {
            *named = time;
            if thread.name != name {
                thread.name = name.to_owned();
            }
        }
    }

    /// Names a thread that has no name yet.
    pub fn name_anew(&mut self, id: ThreadId, name: &str) {
        if let Some(thread) = self.all.get_mut(id.index())
            && thread.name.is_empty()
        {
            thread.name = name.to_owned();
        }
    }

    /// Takes the threads of a later part of the trace in; gives the number of each here.
    pub fn take(&mut self, later: &Threads) -> Vec<ThreadId> {
        let all = later.all.iter().zip(&later.named);
        let take = |(thread, named): (&Thread, &u64)| {
            let id = self.number(thread.pid, thread.tid);
            if *named > 0 {
                self.rename(id, &thread.name, *named);
            } else {
                self.name_anew(id, &thread.name);
            }
            id
        };
        all.map(take).collect()
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
