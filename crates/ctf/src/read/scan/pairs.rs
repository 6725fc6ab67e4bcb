//! Events that come two by two, as the begin and the end of a call without calls inside do: most of a trace.
//!
//! A loop over nothing else has few variables, which all stay in registers, and looks up one row for two events.

use super::{BitField, COMMON_BYTES, EventView, EventVisitor, Guess, List, Next, OPEN, Row, Scanner};
use crate::bits::word;

/// An event class with the common header whose events are mostly followed by one of another class. Where what is meant is
/// behind a header, places count from its begin.
#[derive(Debug)]
pub(super) struct Pair {
    /// The id of the other class; [`NO_ID`] if there is none.
    then: u32,
    /// How to find the end of the first event. Of one of fixed size that is behind a list of nothing.
    list: List,
    /// How long the first event is, as that before was.
    guess: Guess,
    /// Bytes of the second.
    size: u32,
    /// Where the word of the second's field is, and the bits of it that are not 0 if the field is not.
    word: u32,
    bits: u64,
    /// Where the payloads start.
    payloads: [u32; 2],
    marks: [u32; 2],
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

impl Pair {
    /// Of what is no first event.
    pub const NONE: Self = Self {
        then: NO_ID,
        list: List::NOTHING,
        guess: Guess::UNKNOWN,
        size: 0,
        word: 0,
        bits: 0,
        payloads: [0; 2],
        marks: [0; 2],
    };

    /// Of these rows, the second of which has this id. None if the first may have several lists or texts, or a field is
    /// wanted of it, or the second is not always as long.
    pub fn of(first: &Row<'_>, then: usize, second: &Row<'_>) -> Option<Self> {
        let header = COMMON_BYTES as u32;
        let list = match first.size {
            size if size < OPEN => List { others: size, ..List::NOTHING },
            _ => Some(first.list).filter(|list| list.element > 0)?,
        };
        let places = [list.at, list.others, second.size, second.field.byte, first.payload, second.payload];
        let [at, others, size, word, one, two] = places.map(|place| place.checked_add(header));
        let plain = first.field == BitField::NONE && second.size < OPEN;
        Some(Self {
            then: u32::try_from(then).ok().filter(|_| plain)?,
            list: List { at: at?, others: others?, ..list },
            guess: Guess::UNKNOWN,
            size: size?,
            word: word?,
            bits: second.bits,
            payloads: [one?, two?],
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
        let end = pair.guess.checked(pair.list.end(data, 0)?);
        let next = data.get(end..)?;
        let payload = pair.payloads[0] as usize;
        let first = EventView { timestamp, mark: pair.marks[0], field: 0, data, payload, end };
        let head = word(next, 0)?;
        if self.id_of::<true>(head) != u64::from(pair.then) {
            return None;
        }
        // No earlier than the first, of which it need not be asked, then.
        let timestamp = self.time::<true>(head, next, timestamp).filter(|time| *time < until)?;
        let bits = word(next, pair.word as usize)?;
        let field =
            if bits & pair.bits == 0 { 0 } else { self.rows.get(pair.then as usize)?.field.of_word(bits) };
        let (payload, end) = (pair.payloads[1] as usize, pair.size as usize);
        let second = EventView { timestamp, mark: pair.marks[1], field, data: next, payload, end };
        Some((first, second, next.get(end..)?))
    }
}
