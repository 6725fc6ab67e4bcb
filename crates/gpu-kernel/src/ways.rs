//! Which ways lanes went, in a word of each lane, and where it has to be looked whether that is full.
//!
//! A word begins as 1. At each choice it is moved up by as many bits as the choice needs, which say the way: 1 of two ways
//! is the first, 0 the second; of more it is the number. The highest bit that is set is the end. So a word says itself how
//! much it holds, and it fits any graph.

use crate::graph::{Block, EXIT, Graph};

/// Bits that a word has beside its end.
const BITS: u32 = 31;
/// Room that there is behind a place where lanes say what they have, if their words are not emptier anyway.
const ROOM: u32 = 8;
/// Rounds in which places are sought, before all are taken.
const ROUNDS: usize = 64;

/// Returns how many bits a choice between so many ways needs; 0 for none.
pub fn bits(ways: usize) -> u32 {
    usize::BITS - ways.saturating_sub(1).leading_zeros()
}

/// Takes the first way out of a word: of a choice between so many. Returns the case and the rest; nothing if there is none.
pub(crate) fn first(word: u32, ways: usize) -> Option<(usize, u32)> {
    let needs = bits(ways);
    let held = word.checked_ilog2()?;
    let rest = held.checked_sub(needs).filter(|_| needs > 0)?;
    let way = (word >> rest & !(u32::MAX.checked_shl(needs).unwrap_or(0))) as usize;
    let case = if ways == 2 { 1 - way } else { way };
    Some((case, word & !(u32::MAX << rest) | 1 << rest))
}

/// Returns by block how much room lanes must have for ways when they come to its choice, or else say those that they went
/// and begin anew: none where they have enough in any case.
pub(crate) fn checks(graph: &Graph) -> Vec<Option<u32>> {
    let needs: Vec<u32> = (0..graph.len()).map(|block| bits(graph.successors(block).len())).collect();
    let mut checks = vec![None; graph.len()];
    for _ in 0..ROUNDS {
        let Some(short) = short(graph, &needs, &checks) else { return checks };
        checks[short] = Some(ROOM.max(needs[short]));
    }
    needs.iter().map(|needs| (*needs > 0).then_some(ROOM.max(*needs))).collect()
}

/// Returns a block to whose choice lanes may come without room enough.
fn short(graph: &Graph, needs: &[u32], checks: &[Option<u32>]) -> Option<Block> {
    let mut room: Vec<Option<u32>> = vec![None; graph.len()];
    let mut open = vec![(0, BITS)];
    while let Some((block, there)) = open.pop() {
        if room[block].is_some_and(|known| known <= there) {
            continue;
        }
        room[block] = Some(there);
        // Behind a place where it is looked there may be as little as was asked for there.
        let there = checks[block].unwrap_or(there);
        let Some(left) = there.checked_sub(needs[block]) else { return Some(block) };
        open.extend(graph.successors(block).iter().filter(|to| **to != EXIT).map(|to| (*to, left)));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_ways_in_order() {
        // Of two ways the second, then the first, then the fifth of six.
        let word = 0b10_1100;
        let (one, rest) = first(word, 2).unwrap();
        let (two, rest) = first(rest, 2).unwrap();
        assert_eq!((one, two, first(rest, 6)), (1, 0, Some((4, 1))));
        assert_eq!((first(1, 2), first(0, 2), first(0b11, 5)), (None, None, None));
        assert_eq!([1, 2, 3, 4, 5, 4096].map(bits), [0, 1, 2, 2, 3, 12]);
        assert_eq!(first(u32::MAX, 2), Some((0, u32::MAX >> 1)));
    }

    #[test]
    fn words_never_overflow() {
        // A line of choices is looked at nowhere while there are at most 31, a loop in one place.
        let line = |length: usize| {
            let last = |block| if block + 1 == length { EXIT } else { block + 1 };
            Graph::new((0..length).map(|block| vec![last(block), EXIT]).collect()).unwrap()
        };
        assert!(checks(&line(31)).iter().all(Option::is_none));
        assert_eq!(checks(&line(32)).iter().flatten().count(), 1);
        let around = Graph::new(vec![vec![1, 2], vec![2], vec![0, EXIT]]).unwrap();
        assert_eq!(checks(&around).iter().flatten().collect::<Vec<_>>(), [&8]);
    }
}
