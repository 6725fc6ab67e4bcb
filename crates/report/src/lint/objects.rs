//! The objects that are followed, by handle.
//!
//! APIs hand out handles again, and one above or below has another name for a type: so what is asked
//! most is which objects a handle is, of whatever kind.

use super::findings::Ref;
use super::kinds::KindId;
use super::order::Id;
use hetrace_trace::hash::QuickMap;

/// Process, kind and handle.
pub(super) type Key = (i64, KindId, u64);

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// References that the program owns.
    pub count: u64,
    pub made: Ref,
    /// Where the last one was released.
    pub dead: Option<Ref>,
    /// The program released it and was refused, as runtimes are that clean up when the driver has ended.
    pub refused: bool,
    /// Handle of its context; 0 if it is not known.
    pub context: u64,
    pub bytes: Option<u64>,
    /// Of what it was made from.
    pub content: u64,
    pub used: bool,
    /// The command that it stands for.
    pub command: Id,
    /// What is known of its memory.
    pub memory: Memory,
}

/// What is known of an object's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Memory {
    /// It may have content that no command of the trace gave it, or share its bytes with another object.
    pub foreign: bool,
    /// Device code only reads it.
    pub only_read: bool,
    /// Device code only writes it.
    pub only_written: bool,
    /// What was written, from the first byte to behind the last.
    pub written: (u64, u64),
}

/// The objects of a handle: nearly always one.
#[derive(Debug)]
struct Here {
    first: (KindId, Object),
    others: Vec<(KindId, Object)>,
}

impl Here {
    fn iter(&self) -> impl Iterator<Item = &(KindId, Object)> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn get_mut(&mut self, kind: KindId) -> Option<&mut Object> {
        if self.first.0 == kind {
            return Some(&mut self.first.1);
        }
        self.others.iter_mut().find(|(known, _)| *known == kind).map(|(_, object)| object)
    }
}

/// All objects.
#[derive(Debug, Default)]
pub(super) struct Objects {
    by_handle: QuickMap<(i64, u64), Here>,
    len: usize,
}

impl Objects {
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn get(&self, (pid, kind, handle): &Key) -> Option<&Object> {
        let here = self.by_handle.get(&(*pid, *handle))?;
        here.iter().find(|(known, _)| known == kind).map(|(_, object)| object)
    }

    #[inline]
    pub fn get_mut(&mut self, (pid, kind, handle): &Key) -> Option<&mut Object> {
        self.by_handle.get_mut(&(*pid, *handle))?.get_mut(*kind)
    }

    /// All that a handle is, with their kinds.
    pub fn at(&self, pid: i64, handle: u64) -> impl Iterator<Item = &(KindId, Object)> {
        self.by_handle.get(&(pid, handle)).into_iter().flat_map(Here::iter)
    }

    /// All that a handle is.
    pub fn of_handle(&self, pid: i64, handle: u64) -> impl Iterator<Item = &Object> {
        let here = self.by_handle.get(&(pid, handle));
        here.into_iter().flat_map(Here::iter).map(|(_, object)| object)
    }

    pub fn insert(&mut self, (pid, kind, handle): Key, object: Object) {
        use std::collections::hash_map::Entry;
        match self.by_handle.entry((pid, handle)) {
            Entry::Vacant(entry) => {
                entry.insert(Here { first: (kind, object), others: Vec::new() });
            }
            Entry::Occupied(entry) => {
                let here = entry.into_mut();
                if let Some(known) = here.get_mut(kind) {
                    *known = object;
                    return;
                }
                here.others.push((kind, object));
            }
        }
        self.len += 1;
    }

    pub fn remove(&mut self, (pid, kind, handle): &Key) {
        self.retain_at((*pid, *handle), |known, _| known != *kind);
    }

    /// Removes what a handle was that is released.
    pub fn remove_dead(&mut self, pid: i64, handle: u64) {
        self.retain_at((pid, handle), |_, object| object.dead.is_none());
    }

    /// Removes all that a handle is.
    pub fn remove_all(&mut self, pid: i64, handle: u64) {
        if let Some(here) = self.by_handle.remove(&(pid, handle)) {
            self.len -= 1 + here.others.len();
        }
    }

    /// Removes all of a process.
    pub fn remove_process(&mut self, pid: i64) {
        self.by_handle.retain(|key, _| key.0 != pid);
        self.len = self.by_handle.values().map(|here| 1 + here.others.len()).sum();
    }

    /// Keeps of a handle's objects those that `keep` is true of.
    fn retain_at(&mut self, key: (i64, u64), keep: impl Fn(KindId, &Object) -> bool) {
        let Some(here) = self.by_handle.get_mut(&key) else { return };
        let before = here.others.len();
        here.others.retain(|(kind, object)| keep(*kind, object));
        self.len -= before - here.others.len();
        if keep(here.first.0, &here.first.1) {
            return;
        }
        self.len -= 1;
        match here.others.pop() {
            Some(other) => here.first = other,
            None => drop(self.by_handle.remove(&key)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key, &Object)> {
        self.by_handle.iter().flat_map(|((pid, handle), here)| {
            here.iter().map(move |(kind, object)| ((*pid, *kind, *handle), object))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(dead: bool) -> Object {
        let made = Ref::default();
        let dead = dead.then_some(made);
        Object {
            count: 1,
            made,
            dead,
            refused: false,
            context: 0,
            bytes: None,
            content: 0,
            used: false,
            command: 0,
            memory: Memory::default(),
        }
    }

    #[test]
    fn a_handle_may_be_several_objects() {
        let mut objects = Objects::default();
        for (kind, dead) in [(3, true), (1, false), (2, true)] {
            objects.insert((7, kind, 0x10), object(dead));
        }
        objects.insert((8, 1, 0x10), object(true));
        // Once more, of a kind that is there.
        objects.insert((7, 2, 0x10), object(true));
        assert_eq!((objects.len(), objects.of_handle(7, 0x10).count()), (4, 3));
        objects.remove_dead(7, 0x10);
        let kinds: Vec<Key> = objects.iter().map(|(key, _)| key).filter(|key| key.0 == 7).collect();
        assert_eq!((kinds, objects.len()), (vec![(7, 1, 0x10)], 2));
        assert!(objects.get(&(7, 2, 0x10)).is_none() && objects.get_mut(&(7, 1, 0x10)).is_some());
        objects.remove(&(7, 1, 0x10));
        objects.remove(&(7, 1, 0x10));
        assert_eq!((objects.len(), objects.of_handle(7, 0x10).count()), (1, 0));
        objects.insert((7, 1, 0x20), object(false));
        objects.remove_process(8);
        assert_eq!(objects.len(), 1);
        objects.remove_all(7, 0x20);
        assert_eq!((objects.len(), objects.iter().count()), (0, 0));
    }
}
