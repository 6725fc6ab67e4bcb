//! The last calls that moved bytes, for the commands that they caused.
//!
//! A ring of calls with chains of those of one hash: nothing is ever taken out, a call is over when its
//! place is taken, and what lies behind it in its chain is older.

use std::hash::Hasher;

use super::findings::Ref;
use super::span::Span;
use hetrace_trace::hash::Mix;

/// Calls that are remembered; a power of two.
const KEPT: usize = 1 << 16;
/// Calls that begin in the same 2^10 ns share a slot.
const COARSE: u32 = 10;

/// A call that moves bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub call: Ref,
    pub source: Option<Span>,
    pub target: Option<Span>,
    /// Whether the caller waits for it.
    pub waits: bool,
}

/// Process, thread and time of a call's beginning.
pub(super) type Key = (i64, i64, u64);

/// What is looked at before a call is: few of those in a chain are the one that is looked for.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Bits of the hash that are not in its slot.
    tag: u32,
    /// The number of the call before in the chain.
    before: u32,
}

/// The calls.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// By number, modulo [`KEPT`].
    ring: Vec<(Key, Move)>,
    /// The same for the chains.
    links: Vec<Link>,
    /// By hash: the number of the last call; empty until there is one.
    last: Vec<u32>,
    /// The number of the next call. It wraps: what is found then is looked at, as all is.
    next: u32,
}

impl Moves {
    pub fn insert(&mut self, key: Key, moves: Move) {
        if self.last.is_empty() {
            // No call has this number for long.
            self.last.resize(KEPT, u32::MAX);
        }
        let (slot, tag) = slot(&key);
        let Some(last) = self.last.get_mut(slot) else { return };
        let link = Link { tag, before: std::mem::replace(last, self.next) };
        let at = self.next as usize % KEPT;
        match self.ring.get_mut(at).zip(self.links.get_mut(at)) {
            Some((oldest, of_oldest)) => (*oldest, *of_oldest) = ((key, moves), link),
            None => {
                self.ring.push((key, moves));
                self.links.push(link);
            }
        }
        self.next = self.next.wrapping_add(1);
    }

    /// The call of a key; the last, if it came again.
    pub fn get(&self, key: &Key) -> Option<&Move> {
        let (slot, tag) = slot(key);
        let mut number = *self.last.get(slot)?;
        let mut age = 0;
        loop {
            let older = self.next.wrapping_sub(number);
            // Each is older than the one before, and in the ring.
            if older <= age || older as usize > self.ring.len() {
                return None;
            }
            let at = number as usize % KEPT;
            let link = self.links.get(at)?;
            if link.tag == tag
                && let Some((_, moves)) = self.ring.get(at).filter(|(known, _)| known == key)
            {
                return Some(moves);
            }
            (age, number) = (older, link.before);
        }
    }
}

/// The slot of a key, and its tag.
fn slot(key: &Key) -> (usize, u32) {
    let &(pid, tid, start) = key;
    // Calls of one thread that begin in one window of time are beside each other: commands come soon after.
    let window = mix([pid as u64, tid as u64, start >> (COARSE + KEPT.ilog2())]);
    let slot = (start >> COARSE).wrapping_add(window) as usize % KEPT;
    (slot, mix([pid as u64, tid as u64, start]) as u32)
}

fn mix(numbers: [u64; 3]) -> u64 {
    let mut hash = Mix::default();
    numbers.iter().for_each(|number| hash.write_u64(*number));
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hetrace_trace::trace::FunctionId;

    #[test]
    fn the_last_calls_are_found_and_no_others() {
        let mut moves = Moves::default();
        assert!(moves.get(&(1, 1, 0)).is_none());
        let total = KEPT as u64 * 2 + 77;
        for start in 0..total {
            let tid = (start % 3) as i64;
            let call = Ref { pid: 1, tid, start, function: FunctionId(0) };
            moves.insert((1, tid, start), Move { call, source: None, target: None, waits: false });
        }
        for start in 0..total + 10 {
            let tid = (start % 3) as i64;
            let found = moves.get(&(1, tid, start)).map(|moves| moves.call.start);
            let kept = start < total && start >= total - KEPT as u64;
            assert_eq!(found, kept.then_some(start));
            assert!(moves.get(&(2, tid, start)).is_none());
        }
    }

    #[test]
    fn a_key_that_comes_again_is_the_last() {
        let mut moves = Moves::default();
        let call = Ref { pid: 1, tid: 1, start: 5, function: FunctionId(0) };
        let first = Move { call, source: None, target: None, waits: false };
        moves.insert((1, 1, 5), first);
        moves.insert((1, 1, 5), Move { waits: true, ..first });
        assert_eq!(moves.get(&(1, 1, 5)).map(|moves| moves.waits), Some(true));
    }
}
