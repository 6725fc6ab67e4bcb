//! Few fields of many events: what a sum over a trace needs.
//!
//! An analysis that counts calls needs the time, the kind, the thread and one number
//! of most events. A [`Scanner`] says where these are in the events of a stream class, and
//! [`StreamReader::scan`] reads them from the rest of a packet and nothing else.
//! It stops before each event that it cannot, or need not, read this way; the
//! reader is then at the place where [`StreamReader::next_event`] decodes the whole event.

mod pairs;

use std::hint::cold_path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use self::pairs::Pair;
use super::event_plan::EventIndex;
use super::plan::{Kind, Node};
use super::quick::{Part, QuickBody};
use super::steps::{Skip, whole_bytes};
use super::stream::StreamReader;
use super::stream_plan::StreamPlan;
use super::trace::Trace;
use crate::bits::{mask, word};
use crate::class::ByteOrder;

/// What is wanted of the events of a class, beside their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// The position of an integer of the payload.
    pub field: Option<usize>,
    /// What the scan calls such events.
    pub mark: u32,
    /// Whether the visitor reads all of the payload, and so finds out itself how long it is: such
    /// events go to [`EventVisitor::read`].
    pub open: bool,
    /// The position of the class of most events that follow right behind, as the end of a call follows its
    /// begin: where one does, both go to [`EventVisitor::pair`] first.
    pub then: Option<usize>,
}

/// An event as a scan reads it: its time, its class and one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventView<'e> {
    /// In ticks of the stream's clock.
    pub timestamp: u64,
    /// The mark of its class.
    pub mark: u32,
    /// The integer of the payload that was asked for; 0 if none was.
    pub field: i64,
    /// The packet from the event on.
    data: &'e [u8],
    /// Where its payload starts.
    payload: usize,
    /// Where it ends.
    end: usize,
}

impl<'e> EventView<'e> {
    /// The bytes of the packet from the payload on, for a [`Picker`](super::Picker) of its class.
    pub fn payload(&self) -> &'e [u8] {
        self.data.get(self.payload..).unwrap_or_default()
    }

    /// The bytes of its payload and no others, for a visitor that keeps them; none where the class is
    /// [`Want::open`].
    pub fn own_payload(&self) -> &'e [u8] {
        self.data.get(self.payload..self.end).unwrap_or_default()
    }
}

/// Receives the events of a scan.
pub trait EventVisitor {
    /// An event.
    fn visit(&mut self, event: EventView<'_>) -> Next;

    /// An event whose class is [`Want::open`]: returns how many bytes its payload has, or none if the
    /// event has to be read whole.
    fn read(&mut self, _: EventView<'_>) -> Option<usize> {
        None
    }

    /// Two events of which the second is of the class that [`Want::then`] names for the first one's.
    /// [`Next::Leave`]: they go to [`Self::visit`] one by one.
    fn pair(&mut self, _first: EventView<'_>, _second: EventView<'_>) -> Next {
        Next::Leave
    }
}

/// A closure is the short way to write one; on a type of one's own `visit` can be marked
/// `#[inline(always)]`, so that what is done with millions of events is compiled into the loop.
impl<F: FnMut(EventView<'_>) -> Next> EventVisitor for F {
    #[inline(always)]
    fn visit(&mut self, event: EventView<'_>) -> Next {
        self(event)
    }
}

/// What a scan does after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    Go,
    /// It ends behind the event.
    Enough,
    /// It ends before the event, which has to be read whole.
    Leave,
}

/// How far a scan went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scanned {
    /// Events that the visitor received and did not leave.
    pub events: u64,
    /// The timestamp of the last of them.
    pub timestamp: u64,
    /// Why it went no further.
    pub pause: Pause,
}

/// Why a scan went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The caller has enough.
    Enough,
    /// The next event is not before the time that was given.
    Until,
    /// The next event has to be read whole, or the packet ends.
    Whole,
}

/// Where the wanted fields are in the events of a stream class.
#[derive(Debug)]
pub struct Scanner<'t> {
    stream: usize,
    /// Of the header.
    bytes: usize,
    id: BitField,
    clock: BitField,
    /// Whether the header is that of most traces: [`COMMON_ID`] and [`COMMON_CLOCK`].
    common: bool,
    /// The bits of the clock that it shows.
    low: u64,
    /// What comes on top of the clock when these have wrapped.
    wrap: u64,
    /// The slot that the id has to be left in, for lengths that depend on it.
    slot: Option<u32>,
    context: [BitField; 2],
    /// The bits of the context's first word, if both are in it: when they are as before, so
    /// are both.
    both: Option<u64>,
    /// By id.
    rows: Vec<Row<'t>>,
    /// By id; empty where the header is another.
    pairs: Vec<Pair>,
    /// By id.
    ends: Vec<Guess>,
    /// Those of all rows.
    skips: Vec<Skip>,
}

/// An event class.
#[derive(Clone, Copy, Debug)]
struct Row<'t> {
    /// Bytes behind the header, if these are always as many, or [`VARIABLE`] or [`OPEN`].
    size: u32,
    mark: u32,
    field: BitField,
    /// The bits of the field's word that are not 0 if it is not.
    bits: u64,
    /// Where the payload starts behind the header.
    payload: u32,
    /// How to skip a payload of variable size: empty if only `body` can.
    skips: (u32, u32),
    /// Bytes behind the last skip.
    tail: u32,
    /// The only skip, if it is one over a list: most payloads of variable size have no other.
    list: List,
    /// The position of the class of what mostly follows.
    then: Option<usize>,
    /// None for what has to be read whole.
    body: Option<&'t QuickBody>,
}

/// How long an event of a class is, counted from its header on: always, or as the one before was.
///
/// The next event starts there. Finding the end of an event with lists takes loads that wait for each other, and
/// all that follows would wait for them. So the scan goes on where the event ends if it is as long as the
/// one before, while the processor finds out that it is.
#[derive(Debug, Default)]
struct Guess(AtomicU64);

impl Guess {
    /// Bits below the end that was found: how often it was another one.
    const CHANGES: u32 = 6;
    /// Bits of an end.
    const BITS: u32 = 32 - Self::CHANGES;

    fn new(end: usize) -> Self {
        Self(AtomicU64::new(u32::try_from(end).unwrap_or(0).into()))
    }

    #[inline(always)]
    fn end(&self) -> usize {
        // Relaxed: any value will do, as it is checked.
        self.0.load(Relaxed) as u32 as usize
    }

    /// The end that was found, which is taken from the guess if that is the same: the compiler
    /// cannot know that both halves of the word are.
    #[inline(always)]
    fn checked(&self, found: usize) -> usize {
        let word = self.0.load(Relaxed);
        if word >> (32 + Self::CHANGES) == found as u64 {
            return word as u32 as usize;
        }
        cold_path();
        self.learn(word, found);
        found
    }

    /// Remembers an end, a few times only: other threads use the same guesses, and would have to fetch
    /// each new one.
    fn learn(&self, word: u64, found: usize) {
        let changes = (word >> 32) & mask(Self::CHANGES);
        if changes < mask(Self::CHANGES) && found as u64 <= mask(Self::BITS) {
            let high = (found as u64) << Self::CHANGES | (changes + 1);
            self.0.store(high << 32 | found as u64, Relaxed);
        }
    }
}

/// A payload with one list whose length stands right before it.
#[derive(Clone, Copy, Debug, Default)]
struct List {
    /// Where the length is behind the header.
    at: u32,
    /// Its bits.
    mask: u32,
    /// Bytes of an element; 0 if there is no such list.
    element: u32,
    /// Bytes behind the header, but for the elements.
    others: u32,
}

impl List {
    /// One that never has elements, right behind the header.
    const NOTHING: Self = Self { at: 0, mask: 0, element: 0, others: 0 };

    fn of(payload: u32, skips: &[Skip], tail: u32) -> Option<Self> {
        let [skip] = skips else { return None };
        let (before, mask, width, element) = skip.list()?;
        let at = payload.checked_add(before)?;
        Some(Self { at, mask, element, others: at.checked_add(width)?.checked_add(tail)? })
    }

    /// Where the payload ends whose event has its header before `body`; none where that is not surely
    /// inside of `data`.
    #[inline(always)]
    fn end(self, data: &[u8], body: usize) -> Option<usize> {
        let length = u32::from_le_bytes(*data.get(body + self.at as usize..)?.first_chunk()?) & self.mask;
        // Neither has more than 32 bits.
        let elements = usize::try_from(u64::from(length) * u64::from(self.element)).ok()?;
        elements.checked_add(body + self.others as usize)
    }
}

/// The size of what has lengths or texts, and of what has to be read whole.
const VARIABLE: u32 = u32::MAX;
/// The size of what is [`Want::open`].
const OPEN: u32 = VARIABLE - 1;

impl Row<'_> {
    const WHOLE: Self = Row {
        size: VARIABLE,
        mark: 0,
        field: BitField::NONE,
        bits: 0,
        payload: 0,
        skips: (0, 0),
        tail: 0,
        list: List::NOTHING,
        then: None,
        body: None,
    };

    /// How long such events are, with a header of so many bytes; at first that is not known of
    /// those that have lists.
    fn guess(&self, header: usize) -> Guess {
        match self.size {
            VARIABLE | OPEN => Guess::default(),
            size => Guess::new(header.saturating_add(size as usize)),
        }
    }
}

/// The header that LTTng and hetrace write: an id of 16 bits, 32 bits of the clock. For this one
/// the loop has constants instead of variables, of which there are more than registers.
const COMMON_ID: BitField = BitField { byte: 0, up: 48, down: 48, keep: 0xffff };
const COMMON_CLOCK: BitField = BitField { byte: 0, up: 16, down: 32, keep: 0xffff_ffff };
const COMMON_BYTES: usize = 6;

/// An integer in a word that starts at a byte: which bits to keep after moving them up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BitField {
    byte: u32,
    up: u8,
    down: u8,
    keep: u64,
}

impl BitField {
    /// One that is not there.
    const NONE: BitField = BitField { byte: 0, up: 0, down: 0, keep: 0 };

    /// Of a field `offset` bits behind the byte that offsets count from.
    fn of(node: &Node, offset: u64) -> Option<Self> {
        let Kind::Int(int) = &node.kind else { return None };
        let plain = !int.reversed && !int.clock && !int.event_id;
        if plain { Self::new(int.order, int.bits, int.signed, offset) } else { None }
    }

    /// The same for a field of the header: in its first word, if it fits.
    fn of_header(part: Part) -> Option<Self> {
        let (order, bits, offset) = (part.order, part.bits, part.offset());
        let field = Self::new(order, bits, false, offset)?;
        match 64u64.checked_sub(offset + u64::from(bits)) {
            Some(above) => Some(Self { byte: 0, up: above as u8, ..field }),
            None => Some(field),
        }
    }

    /// None of the other byte order: such traces are rare, and read whole.
    fn new(order: ByteOrder, bits: u32, signed: bool, offset: u64) -> Option<Self> {
        let above = 64u32.checked_sub((offset % 8) as u32 + bits)?;
        Some(Self {
            byte: u32::try_from(offset / 8).ok().filter(|_| order == ByteOrder::Little)?,
            up: above as u8,
            down: (64 - bits) as u8,
            keep: if signed { u64::MAX } else { mask(bits) },
        })
    }

    /// Its value; none where no whole word is there.
    #[inline(always)]
    fn get(self, data: &[u8], at: usize) -> Option<i64> {
        Some(self.of_word(word(data, at + self.byte as usize)?))
    }

    /// The bits of its word that it takes.
    fn bits(self) -> u64 {
        mask(64 - u32::from(self.down)) << (self.down.saturating_sub(self.up) % 64)
    }

    /// Its value in its word.
    #[inline(always)]
    fn of_word(self, word: u64) -> i64 {
        (((word << (self.up % 64)) as i64) >> (self.down % 64)) & self.keep as i64
    }
}

/// The place of a field in a structure whose fields before it are of fixed size.
fn bit_field(node: &Node, index: usize, base: u64) -> Option<BitField> {
    let Kind::Struct { nodes, offsets } = &node.kind else {
        return None;
    };
    let offset = (*offsets.get(index)?)?.checked_add(base)?;
    BitField::of(nodes.get(index)?, offset)
}

impl Trace {
    /// How to scan the events of a stream class, by its position: `context` are the
    /// positions of the integers that are wanted of the stream's event context, `want`
    /// returns what is wanted of each event class. Events of classes for which it returns none are
    /// read whole.
    ///
    /// There is none where events cannot be read this way at all: without a clock, with a
    /// header or a context of variable size, big-endian, or with ids of no order.
    pub fn scanner(
        &self,
        stream: usize,
        context: [Option<usize>; 2],
        mut want: impl FnMut(usize) -> Option<Want>,
    ) -> Option<Scanner<'_>> {
        let plan: &StreamPlan = self.plans.get(stream)?;
        plan.clock?;
        let header = plan.quick_header.as_ref()?.main_form()?;
        let EventIndex::Dense(ids) = &plan.by_id else { return None };
        let mut fields = [BitField::NONE; 2];
        for (to, index) in fields.iter_mut().zip(context) {
            if let Some(index) = index {
                *to = bit_field(plan.event_context.as_ref()?, index, 0)?;
            }
        }
        let longest = u32::try_from(header.bytes).ok()?;
        let mut all_skips = Vec::new();
        let mut row = |(id, index): (u64, &Option<u32>)| {
            let index = usize::try_from((*index)?).ok().filter(|_| header.ids.contains(&id))?;
            let event = plan.events.get(index)?;
            let body = event.quick.as_ref()?;
            let Want { field, mark, open, then } = want(index)?;
            let field = match field {
                None => BitField::NONE,
                Some(field) => bit_field(&event.fields, field, body.fields as u64 * 8)?,
            };
            let bits = if field == BitField::NONE { 0 } else { field.bits() };
            let size = event.fields.fixed.filter(|_| !event.fields.active).and_then(whole_bytes);
            let size = size.and_then(|size| u32::try_from(size.checked_add(body.fields)?).ok());
            let payload = u32::try_from(body.fields).ok()?;
            // A header and a payload that no packet holds have their end looked for, which is not found.
            let size = size.filter(|size| size.checked_add(longest).is_some_and(|end| end < OPEN));
            let (mut skips, mut tail, mut list) = ((0, 0), 0, List::default());
            if size.is_none()
                && !open
                && let Some((own, rest)) = body.skips()
            {
                list = List::of(payload, &own, rest).unwrap_or_default();
                let first = u32::try_from(all_skips.len()).ok()?;
                all_skips.extend(own);
                (skips, tail) = ((first, u32::try_from(all_skips.len()).ok()?), rest);
            }
            let size = if open { OPEN } else { size.unwrap_or(VARIABLE) };
            Some(Row { size, mark, field, bits, payload, skips, tail, list, then, body: Some(body) })
        };
        let rows: Vec<_> = (0..).zip(ids).map(|known| row(known).unwrap_or(Row::WHOLE)).collect();
        let bits = header.clock.bits;
        let (id, clock) = (BitField::of_header(header.id)?, BitField::of_header(header.clock)?);
        (id.byte == 0).then_some(())?;
        let common = id == COMMON_ID && clock == COMMON_CLOCK && header.bytes == COMMON_BYTES;
        Some(Scanner {
            stream,
            bytes: header.bytes,
            id,
            clock,
            common,
            low: mask(bits),
            wrap: 1u64.checked_shl(bits).unwrap_or(0),
            slot: header.slot,
            both: one_word(&fields),
            context: fields,
            ends: rows.iter().map(|row| row.guess(header.bytes)).collect(),
            pairs: if common { pairs_of(&rows, ids) } else { Vec::new() },
            rows,
            skips: all_skips,
        })
    }
}

/// What mostly follows events of each id.
fn pairs_of(rows: &[Row<'_>], ids: &[Option<u32>]) -> Vec<Pair> {
    let pair = |row: &Row<'_>| {
        let then = row.then.and_then(|then| u32::try_from(then).ok())?;
        let then = ids.iter().position(|index| *index == Some(then))?;
        Pair::of(row, then, rows.get(then)?)
    };
    rows.iter().map(|row| pair(row).unwrap_or_default()).collect()
}

impl Scanner<'_> {
    /// The id in the first word of an event.
    #[inline(always)]
    fn id_of<const COMMON: bool>(&self, head: u64) -> u64 {
        if COMMON { COMMON_ID } else { self.id }.of_word(head) as u64
    }

    /// The time of the event that `data` begins with, and whose first word is `head`: it comes behind one of the time
    /// `now`. None if time goes back, or `data` ends too early.
    #[inline(always)]
    fn time<const COMMON: bool>(&self, head: u64, data: &[u8], now: u64) -> Option<u64> {
        let clock = if COMMON { COMMON_CLOCK } else { self.clock };
        let (low, wrap) = if COMMON { (mask(32), 1 << 32) } else { (self.low, self.wrap) };
        let shown = match clock.byte {
            0 => clock.of_word(head),
            _ => clock.get(data, 0)?,
        };
        let time = now & !low | shown as u64;
        if time >= now {
            return Some(time);
        }
        cold_path();
        // A clock with all its bits may have stepped back.
        Some(time.wrapping_add(wrap)).filter(|time| *time >= now)
    }
}

/// The bits of the first word that these fields take, if they are in it.
fn one_word(fields: &[BitField]) -> Option<u64> {
    let bits = fields.iter().map(|field| {
        let width = 64 - u32::from(field.down);
        let shift = field.byte * 8 + u32::from(field.down.checked_sub(field.up)?);
        let there = *field != BitField::NONE;
        (shift + width <= 64).then(|| if there { mask(width) << shift } else { 0 })
    });
    bits.sum::<Option<u64>>()
}

impl StreamReader<'_> {
    /// Goes over the events that follow, up to the end of the packet, and passes each to
    /// `visitor`. Events at `until` (in ticks) or later are left, and so are those whose integers of
    /// the event context are others than `context`, if that is given.
    ///
    /// [`Self::current`] has no event afterwards.
    #[inline(always)]
    pub fn scan(
        &mut self,
        scanner: &Scanner<'_>,
        context: Option<[i64; 2]>,
        until: u64,
        visitor: &mut impl EventVisitor,
    ) -> Scanned {
        match (scanner.common, context) {
            (true, None) => self.scan_as::<true, true>(scanner, context, until, visitor),
            (true, Some(_)) => self.scan_as::<true, false>(scanner, context, until, visitor),
            (false, _) => self.scan_as::<false, false>(scanner, context, until, visitor),
        }
    }

    /// `COMMON` is whether the header is the common one, `ALONE` whether no event context is asked for.
    #[expect(clippy::too_many_lines, reason = "one loop over packed events, whose state stays in registers")]
    #[inline(always)]
    fn scan_as<const COMMON: bool, const ALONE: bool>(
        &mut self,
        scanner: &Scanner<'_>,
        context: Option<[i64; 2]>,
        until: u64,
        visitor: &mut impl EventVisitor,
    ) -> Scanned {
        self.forget_events();
        let (mut events, mut now) = (0, self.state.clock.get());
        let Some((at, end)) = self.scannable(scanner.stream) else {
            return Scanned { events, timestamp: now, pause: Pause::Whole };
        };
        // The bytes from the next event on.
        let mut rest = self.data().get(at..end).unwrap_or_default();
        let body = if COMMON { COMMON_BYTES } else { scanner.bytes };
        // Of the context, the bits that were looked at before, and with what they were the same.
        let both = if context.is_some() { scanner.both } else { Some(0) };
        let (looked_at, mut same) = (both.unwrap_or(0), if context.is_some() { None } else { Some(0) });
        // What is too near to the end for a whole word is left, as all that is odd.
        let pause = loop {
            let Some(head) = word(rest, 0) else { break Pause::Whole };
            let id = scanner.id_of::<COMMON>(head);
            let Some(row) = scanner.rows.get(id as usize) else { break Pause::Whole };
            if COMMON && ALONE && scanner.pairs.get(id as usize).is_some_and(Pair::is_any) {
                let passed = scanner.pairs(rest, now, until, visitor);
                if passed.events > 0 {
                    (rest, now, events) = (passed.rest, passed.now, events + passed.events);
                    if passed.enough {
                        break Pause::Enough;
                    }
                    continue;
                }
            }
            let Some(clock) = scanner.time::<COMMON>(head, rest, now) else { break Pause::Whole };
            if clock >= until {
                break Pause::Until;
            }
            if !ALONE {
                let Some(bits) = word(rest, body) else { break Pause::Whole };
                if same != Some(bits & looked_at) {
                    let [Some(one), Some(two)] = scanner.context.map(|field| field.get(rest, body)) else {
                        break Pause::Whole;
                    };
                    if context != Some([one, two]) {
                        break Pause::Whole;
                    }
                    same = both.map(|both| bits & both);
                }
            }
            let Some(bits) = word(rest, body + row.field.byte as usize) else { break Pause::Whole };
            // Mostly it is 0, which shows without a shift.
            let field = if bits & row.bits == 0 { 0 } else { row.field.of_word(bits) };
            let payload = body + row.payload as usize;
            let view =
                EventView { timestamp: clock, mark: row.mark, field, data: rest, payload, end: payload };
            let Some(guess) = scanner.ends.get(id as usize) else { break Pause::Whole };
            let mut end = guess.end();
            if row.size >= OPEN {
                if row.size == OPEN {
                    let Some(length) = visitor.read(view) else { break Pause::Whole };
                    let Some(next) = rest.get(payload.saturating_add(length)..) else { break Pause::Whole };
                    (rest, now, events) = (next, clock, events + 1);
                    continue;
                }
                let Some(found) = self.end_of(scanner, row, id, rest, body) else {
                    break Pause::Whole;
                };
                end = guess.checked(found);
            }
            let Some(next) = rest.get(end..) else { break Pause::Whole };
            let decision = visitor.visit(EventView { end, ..view });
            if decision == Next::Leave {
                break Pause::Whole;
            }
            (rest, now, events) = (next, clock, events + 1);
            if decision == Next::Enough {
                break Pause::Enough;
            }
        };
        self.state.clock.set(now);
        self.go_to(end - rest.len());
        Scanned { events, timestamp: now, pause }
    }

    /// Where the event ends whose payload has lengths and texts; none if it has to be read whole.
    #[inline(always)]
    fn end_of(
        &self,
        scanner: &Scanner<'_>,
        row: &Row<'_>,
        id: u64,
        data: &[u8],
        body: usize,
    ) -> Option<usize> {
        if row.list.element > 0 {
            return row.list.end(data, body);
        }
        let (first, last) = row.skips;
        match scanner.skips.get(first as usize..last as usize) {
            Some(skips) if !skips.is_empty() => {
                let end = super::steps::over(skips, data, body + row.payload as usize)?;
                end.checked_add(row.tail as usize)
            }
            _ => self.step_over(scanner.slot, id, row.body?, data, body),
        }
    }

    /// The same for payloads that are not for skips.
    fn step_over(
        &self,
        slot: Option<u32>,
        id: u64,
        body: &QuickBody,
        data: &[u8],
        at: usize,
    ) -> Option<usize> {
        if let Some(slot) = slot {
            self.state.slots.get(slot as usize)?.set(Some(id));
        }
        body.end(data, at + body.fields, &self.state)
    }
}
