//! Few fields of many events: what a sum over a trace needs.
//!
//! Who counts calls wants of most events the time, the kind, the thread and one
//! number. A [`Scanner`] says where these stand in the events of a stream class, and
//! [`StreamReader::scan`] goes over the rest of a packet with no more than that in
//! hand. It stops before each event that it cannot, or need not, read this way; the
//! reader is then at the place where [`StreamReader::next_event`] gives it whole.

use super::plan::{Int, Kind, Node};
use super::quick::{QuickBody, QuickHeader};
use super::steps::whole_bytes;
use super::stream::StreamReader;
use super::trace::{EventIndex, StreamPlan, Trace};
use crate::bits::{mask, sign_extend};
use crate::class::ByteOrder;

/// What is wanted of the events of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// The event as a whole: a scan stops before it.
    Whole,
    /// Its kind and its time.
    Time,
    /// Its kind, its time and the integer at this position of the payload.
    Field(usize),
}

/// What a scan tells of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glimpse {
    /// In ticks of the stream's clock.
    pub timestamp: u64,
    /// The position of its class in [`StreamClass::events`](crate::class::StreamClass::events).
    pub class_index: u32,
    /// The two integers of the event context of the stream that were asked for; 0 if none were.
    pub context: [i64; 2],
    /// The integer of the payload that was asked for; 0 if none was.
    pub field: i64,
}

/// What becomes of a scan after an event was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    Go,
    /// It ends behind the event.
    Enough,
    /// It ends before the event, which has to be read whole.
    Leave,
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
    header: &'t QuickHeader,
    context: [Option<Lane>; 2],
    rows: Vec<Option<Row<'t>>>,
}

#[derive(Clone, Copy, Debug)]
struct Row<'t> {
    /// Where the payload starts, behind the header.
    fields: usize,
    /// Behind the header, if it is always the same.
    size: Option<usize>,
    body: &'t QuickBody,
    field: Option<Lane>,
    class_index: u32,
}

/// An integer in a word that starts at a byte.
#[derive(Clone, Copy, Debug)]
struct Lane {
    byte: usize,
    bits: u32,
    shift: u32,
    order: ByteOrder,
    signed: bool,
}

impl Lane {
    /// Of a field that starts so many bits behind the place that offsets are told from.
    fn of(node: &Node, offset: u64) -> Option<Self> {
        let Kind::Int(Int { bits, signed, order, reversed: false, clock: false, event_id: false, .. }) =
            node.kind
        else {
            return None;
        };
        let inside = (offset % 8) as u32;
        let above = 64u32.checked_sub(inside + bits)?;
        Some(Self {
            byte: usize::try_from(offset / 8).ok()?,
            bits,
            shift: match order {
                ByteOrder::Little => inside,
                ByteOrder::Big => above,
            },
            order,
            signed,
        })
    }

    /// Its value; near the end of the data from the bytes that are there.
    #[inline(always)]
    fn get(self, data: &[u8], at: usize) -> Option<i64> {
        let from = at + self.byte;
        let word = match data.get(from..).and_then(<[u8]>::first_chunk) {
            Some(word) => *word,
            None => short(data, from, (self.bits + self.shift).div_ceil(8) as usize, self.order)?,
        };
        let word = match self.order {
            ByteOrder::Little => u64::from_le_bytes(word),
            ByteOrder::Big => u64::from_be_bytes(word),
        };
        let value = word >> self.shift;
        Some(if self.signed {
            sign_extend(value, self.bits)
        } else {
            (value & mask(self.bits)) as i64
        })
    }
}

/// A word of the last bytes, of which `need` have to be there.
#[cold]
fn short(data: &[u8], from: usize, need: usize, order: ByteOrder) -> Option<[u8; 8]> {
    // The bits of a big-endian field stand at the word's other end.
    let rest = data.get(from..)?;
    if order == ByteOrder::Big || rest.len() < need {
        return None;
    }
    let mut word = [0; 8];
    word.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    Some(word)
}

/// The place of a field in a structure whose fields before it are of fixed size.
fn lane(node: &Node, index: usize, base: u64) -> Option<Lane> {
    let Kind::Struct { nodes, offsets } = &node.kind else {
        return None;
    };
    let offset = (*offsets.get(index)?)?.checked_add(base)?;
    Lane::of(nodes.get(index)?, offset)
}

impl Trace {
    /// How to scan the events of a stream class, by its position: `context` are the
    /// positions of the integers that are wanted of the stream's event context, `want`
    /// tells what is wanted of each event class.
    ///
    /// There is none where events cannot be read this way at all: without a clock, with a
    /// header or a context of variable size, or with ids of no order.
    pub fn scanner(
        &self,
        stream: usize,
        context: [Option<usize>; 2],
        mut want: impl FnMut(usize) -> Want,
    ) -> Option<Scanner<'_>> {
        let plan: &StreamPlan = self.plans.get(stream)?;
        plan.clock?;
        let header = plan.quick_header.as_ref()?;
        let EventIndex::Dense(ids) = &plan.by_id else { return None };
        let mut lanes = [None; 2];
        for (to, index) in lanes.iter_mut().zip(context) {
            if let Some(index) = index {
                *to = Some(lane(plan.event_context.as_ref()?, index, 0)?);
            }
        }
        let mut row = |index: u32| {
            let event = plan.events.get(index as usize)?;
            let body = event.quick.as_ref()?;
            let field = match want(index as usize) {
                Want::Whole => return None,
                Want::Time => None,
                Want::Field(field) => Some(lane(&event.fields, field, body.fields as u64 * 8)?),
            };
            let size = event.fields.fixed.filter(|_| !event.fields.active).and_then(whole_bytes);
            let size = size.and_then(|size| size.checked_add(body.fields));
            Some(Row { fields: body.fields, size, body, field, class_index: index })
        };
        let rows = ids.iter().map(|index| row((*index)?)).collect();
        Some(Scanner { stream, header, context: lanes, rows })
    }
}

impl StreamReader<'_> {
    /// Goes over the events that follow, up to the end of the packet, and tells each to
    /// `each`. Events at `until` (in ticks) or later are left.
    ///
    /// [`Self::current`] has no event afterwards.
    #[inline]
    pub fn scan(
        &mut self,
        scanner: &Scanner<'_>,
        until: u64,
        mut each: impl FnMut(Glimpse) -> Next,
    ) -> Pause {
        self.event = None;
        let Some((mut at, end)) = self.scannable(scanner.stream) else {
            return Pause::Whole;
        };
        let Some(data) = self.data().get(..end) else {
            return Pause::Whole;
        };
        let mut now = self.state.clock.get();
        let pause = loop {
            let Some(form) = scanner.header.form(data, at, &self.state) else { break Pause::Whole };
            let Some(id) = form.id(data, at) else { break Pause::Whole };
            let row = usize::try_from(id).ok().and_then(|id| scanner.rows.get(id));
            let Some(Some(row)) = row else { break Pause::Whole };
            let Some(clock) = form.clock(data, at, now) else { break Pause::Whole };
            if clock >= until {
                break Pause::Until;
            }
            let body = at + form.bytes;
            let next = match row.size {
                Some(size) => Some(body + size).filter(|next| *next <= data.len()),
                None => row.body.end(data, body + row.fields, &self.state),
            };
            let Some(next) = next else { break Pause::Whole };
            let read = |lane: Option<Lane>| match lane {
                Some(lane) => lane.get(data, body),
                None => Some(0),
            };
            let (Some(one), Some(two)) = (read(scanner.context[0]), read(scanner.context[1])) else {
                break Pause::Whole;
            };
            let Some(field) = read(row.field) else { break Pause::Whole };
            let glimpse =
                Glimpse { timestamp: clock, class_index: row.class_index, context: [one, two], field };
            let told = each(glimpse);
            if told == Next::Leave {
                break Pause::Whole;
            }
            (at, now) = (next, clock);
            if told == Next::Enough {
                break Pause::Enough;
            }
        };
        self.state.clock.set(now);
        self.go_to(at);
        pause
    }
}
