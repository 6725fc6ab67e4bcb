//! Events that come two by two, as the begin and the end of a call without calls inside do: most of a trace.
//!
//! A loop over nothing else has few variables, which all stay in registers, and looks up one row for two events.

use super::{BitField, COMMON_BYTES, EventView, EventVisitor, Guess, List, Next, OPEN, Row, Scanner};
use crate::bits::word;
use crate::read::steps::{self, Skip};

/// An event class with the common header whose events are mostly followed by one of another class. Places count from the
/// begin of a header.
#[derive(Debug)]
pub(super) struct Pair {
    /// The id of the other class; [`NO_ID`] if there is none.
    then: u32,
    first: Extent,
    second: Extent,
    /// Where the word of the second's field is, and the bits of it that are not 0 if the field is not.
    word: u32,
    bits: u64,
    marks: [u32; 2],
}

/// How to find the end of an event.
#[derive(Debug, Default)]
struct Extent {
    /// Where its payload starts.
    payload: u32,
    /// Its only list; that of an event of fixed size is of nothing. Others have one of elements without bytes.
    list: List,
    /// How to skip a payload that has more than a list, and the bytes behind.
    skips: (u32, u32),
    tail: u32,
    /// How long it is, as the one before was.
    guess: Guess,
}

/// An id that no header of 16 bits has.
const NO_ID: u32 = u32::MAX;

/// How far a scan of pairs went.
pub(super) struct Passed<'e> {
    /// The bytes behind them.
    pub rest: &'e [u8],
    /// The time of the last event.
    pub now: u64,
    /// How many events they are.
    pub events: u64,
    /// Whether the visitor has enough.
    pub enough: bool,
}

impl Extent {
    /// That of the events of a row; none if they have to be read otherwise.
    fn of(row: &Row<'_>) -> Option<Self> {
        let header = COMMON_BYTES as u32;
        let list = match row.size {
            OPEN => return None,
            size if size < OPEN => List { element: 1, others: size, ..List::NOTHING },
            _ => row.list,
        };
        let (start, last) = row.skips;
        (list.element > 0 || start < last).then_some(())?;
        let (at, others) = (list.at.checked_add(header)?, list.others.checked_add(header)?);
        Some(Self {
            payload: row.payload.checked_add(header)?,
            list: List { at, others, ..list },
            skips: row.skips,
            tail: row.tail,
            guess: Guess::default(),
        })
    }

    /// Where an event ends with which `data` begins; none where that is not surely inside of it.
    #[inline(always)]
    fn end(&self, data: &[u8], skips: &[Skip]) -> Option<usize> {
        // That of one of fixed size is never another.
        if self.list.mask == 0 && self.list.element > 0 {
            return Some(self.list.others as usize);
        }
        let found = match self.list.element {
            0 => self.skipped(data, skips)?,
            _ => self.list.end(data, 0)?,
        };
        Some(self.guess.checked(found))
    }

    /// The same for one with several lists or texts. Inlined, it would take registers from all others.
    #[inline(never)]
    fn skipped(&self, data: &[u8], skips: &[Skip]) -> Option<usize> {
        let skips = skips.get(self.skips.0 as usize..self.skips.1 as usize)?;
        steps::over(skips, data, self.payload as usize)?.checked_add(self.tail as usize)
    }
}

/// That of what is no first event.
impl Default for Pair {
    fn default() -> Self {
        Self {
            then: NO_ID,
            first: Extent::default(),
            second: Extent::default(),
            word: 0,
            bits: 0,
            marks: [0; 2],
        }
    }
}

impl Pair {
    /// Of these rows, the second of which has this id. None if a field is wanted of the first, or the end of one is not found
    /// by lists and texts.
    pub fn of(first: &Row<'_>, then: usize, second: &Row<'_>) -> Option<Self> {
        (first.field == BitField::NONE).then_some(Self {
            then: u32::try_from(then).ok()?,
            first: Extent::of(first)?,
            second: Extent::of(second)?,
            word: second.field.byte.checked_add(COMMON_BYTES as u32)?,
            bits: second.bits,
            marks: [first.mark, second.mark],
        })
    }

    /// Whether there is another class.
    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.then != NO_ID
    }
}

impl Scanner<'_> {
    /// Goes on as long as pairs come that the visitor takes: `rest` are the bytes behind an event of the time `now`.
    #[inline(never)]
    pub(super) fn pairs<'e>(
        &self,
        mut rest: &'e [u8],
        mut now: u64,
        until: u64,
        visitor: &mut impl EventVisitor,
    ) -> Passed<'e> {
        let (mut events, mut enough) = (0, false);
        while !enough && let Some((first, second, behind)) = self.pair(rest, now, until) {
            match visitor.pair(first, second) {
                Next::Go => {}
                Next::Enough => enough = true,
                Next::Leave => break,
            }
            (rest, now, events) = (behind, second.timestamp, events + 2);
        }
        Passed { rest, now, events, enough }
    }

    /// The pair that `data` begins with, and what is behind it.
    #[inline(always)]
    fn pair<'e>(
        &self,
        data: &'e [u8],
        now: u64,
        until: u64,
    ) -> Option<(EventView<'e>, EventView<'e>, &'e [u8])> {
        let head = word(data, 0)?;
        let pair = self.pairs.get(self.id_of::<true>(head) as usize)?;
        let timestamp = self.time::<true>(head, data, now)?;
        let end = pair.first.end(data, &self.skips)?;
        let next = data.get(end..)?;
        let (mark, payload) = (pair.marks[0], pair.first.payload as usize);
        let first = EventView { timestamp, mark, field: 0, data, payload, end };
        let head = word(next, 0)?;
        if self.id_of::<true>(head) != u64::from(pair.then) {
            return None;
        }
        // No earlier than the first, of which it need not be asked, then.
        let timestamp = self.time::<true>(head, next, timestamp)?;
        if timestamp >= until {
            return None;
        }
        let bits = word(next, pair.word as usize)?;
        let field =
            if bits & pair.bits == 0 { 0 } else { self.rows.get(pair.then as usize)?.field.of_word(bits) };
        let end = pair.second.end(next, &self.skips)?;
        let (mark, payload) = (pair.marks[1], pair.second.payload as usize);
        let second = EventView { timestamp, mark, field, data: next, payload, end };
        Some((first, second, next.get(end..)?))
    }
}
