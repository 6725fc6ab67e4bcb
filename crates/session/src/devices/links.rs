//! Which call causes what is reported with a correlation id.

use super::hash::ByNumber;
use super::key::Key;

/// Calls in a generation. Of two of them the younger takes new ones, so that
/// at least this many are always known, and at most twice as many.
const GENERATION: usize = 500_000;

/// A call that commands are joined with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Its thread.
    pub tid: u32,
    /// When it began, in nanoseconds: exactly the time of its entry event.
    pub entry: u64,
}

/// The calls of one process by API and correlation id.
///
/// A call is not forgotten when it is found: a graph's launch causes as many
/// commands as the graph has nodes, and a copy may be reported in parts.
#[derive(Debug, Default)]
pub struct Links {
    young: ByNumber<Key, Call>,
    old: ByNumber<Key, Call>,
}

impl Links {
    /// Notes a call; one with the same id before it is forgotten.
    pub fn insert(&mut self, correlation: Key, call: Call) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(correlation, call);
    }

    /// Returns the call with that id.
    pub fn get(&self, correlation: Key) -> Option<Call> {
        self.young.get(&correlation).or_else(|| self.old.get(&correlation)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(value: u64) -> Key {
        Key { api: 3, value }
    }

    #[test]
    fn the_oldest_are_forgotten_and_the_last_are_not() {
        let mut links = Links::default();
        let last = 3 * GENERATION as u64;
        for id in 1..=last {
            links.insert(key(id), Call { tid: 1, entry: id });
        }
        assert_eq!(links.get(key(1)), None);
        for id in last - GENERATION as u64 + 1..=last {
            assert_eq!(links.get(key(id)), Some(Call { tid: 1, entry: id }));
        }
        assert!(links.young.len() + links.old.len() <= 2 * GENERATION);
    }

    #[test]
    fn an_id_that_comes_again_is_the_later_call() {
        let mut links = Links::default();
        links.insert(key(7), Call { tid: 1, entry: 10 });
        links.insert(key(7), Call { tid: 2, entry: 20 });
        assert_eq!(links.get(key(7)), Some(Call { tid: 2, entry: 20 }));
    }
}
