//! Commands that differ in nothing but their times: what they do, and what they name, is looked up once.
//!
//! Programs launch the same kernels and move the same bytes again and again. A few of those that came last are
//! kept, in sets by a number that all that are alike have in common:
//!
//! ```text
//!  payload ──► number ──► set: │ seen │ seen │ seen │ seen │ ──► with its own times, to the sums
//!                                └─ none is like it: read in full, and kept instead of the oldest
//! ```

use hetrace_format::command::{Pattern, Reader};

use super::commands::Command;
use crate::trace::ThreadId;

const SETS: usize = 256;
/// Commands of a set.
const WAYS: usize = 4;

/// From so many commands on that are like none, it is looked at how many they are.
const PATIENCE: u64 = 4096;

/// Commands that have been seen, with what sums keep of each.
#[derive(Debug)]
pub(super) struct Alike<'t, K> {
    /// Empty before the first one.
    sets: Vec<Set<'t, K>>,
    /// How many were like a known one, and how many were not.
    hits: u64,
    misses: u64,
}

#[derive(Debug)]
struct Set<'t, K> {
    ways: [Option<Box<Seen<'t, K>>>; WAYS],
    oldest: usize,
}

/// A command, the last of those like it.
#[derive(Debug)]
pub(super) struct Seen<'t, K> {
    of: Origin,
    pattern: Pattern,
    pub command: Command<'t>,
    /// What sums keep of it.
    pub known: K,
}

/// Where a command is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Origin {
    /// The positions of stream class and event class.
    pub stream: usize,
    pub class: u32,
    /// Whose event it is.
    pub thread: ThreadId,
}

impl<K> Default for Alike<'_, K> {
    fn default() -> Self {
        Self { sets: Vec::new(), hits: 0, misses: 0 }
    }
}

impl<'t, K> Alike<'t, K> {
    /// Returns the place of a command's payload; none if it can't be like others, or hardly any is.
    #[inline]
    pub fn place(&self, of: Origin, reader: &Reader, payload: &[u8]) -> Option<usize> {
        if self.misses > PATIENCE && self.misses / 2 > self.hits {
            return None;
        }
        let common = reader.common(payload)?.wrapping_add(u64::from(of.class));
        Some(common as usize % SETS)
    }

    /// Returns the command whose event is at `time` and whose payload `data` begins with, if it is like one that was
    /// seen, and the length of the payload.
    #[inline]
    pub fn find(
        &mut self,
        place: usize,
        of: Origin,
        reader: &Reader,
        data: &[u8],
        time: u64,
    ) -> Option<(&mut Seen<'t, K>, usize)> {
        let set = self.sets.get_mut(place)?;
        for seen in set.ways.iter_mut().flatten() {
            if seen.of == of
                && let Some(again) = reader.read_again(&seen.pattern, data, time)
            {
                self.hits += 1;
                (seen.command.cause, seen.command.times) = (again.cause.unwrap_or(0), again.times);
                return Some((seen, again.length));
            }
        }
        None
    }

    /// Keeps one that was like none.
    #[cold]
    pub fn keep(
        &mut self,
        place: usize,
        of: Origin,
        pattern: Option<Pattern>,
        command: Command<'t>,
        known: K,
    ) {
        self.misses += 1;
        if self.sets.is_empty() {
            self.sets.resize_with(SETS, || Set { ways: [const { None }; WAYS], oldest: 0 });
        }
        let (Some(pattern), Some(set)) = (pattern, self.sets.get_mut(place)) else { return };
        if let Some(way) = set.ways.get_mut(set.oldest % WAYS) {
            *way = Some(Box::new(Seen { of, pattern, command, known }));
        }
        set.oldest = (set.oldest + 1) % WAYS;
    }
}
