//! Where events end, by id: a row has all that going from one event to the next takes.
//!
//! It is for streams with the header of most traces ([`QuickHeader::COMMON_BYTES`]) and payloads of plain fields, lists
//! and texts. What has no row is read otherwise.

use super::event_plan::{EventIndex, EventPlan};
use super::position::Position;
use super::quick::QuickHeader;
use super::steps::{Skip, over};

/// The ends of a stream class's events.
#[derive(Debug)]
pub(super) struct Ends {
    /// By id.
    rows: Box<[Row]>,
    /// Those of all rows.
    skips: Box<[Skip]>,
}

/// How to find the end of an event.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The position of the class; [`Row::NONE`] has none.
    index: u32,
    /// Bytes from the start of the event to its context.
    context: u32,
    /// And to its payload.
    fields: u32,
    /// The skips over the payload, from the first to behind the last; equal if its size is fixed.
    skips: (u32, u32),
    /// Bytes behind the last skip.
    tail: u32,
}

impl Row {
    const NONE: Self = Self { index: u32::MAX, context: 0, fields: 0, skips: (0, 0), tail: 0 };

    /// The row of a class, whose skips come behind those of others.
    fn of(index: u32, event: &EventPlan, all: &mut Vec<Skip>) -> Option<Self> {
        let body = event.quick.as_ref()?;
        let behind = |bytes: usize| u32::try_from(bytes.checked_add(QuickHeader::COMMON_BYTES)?).ok();
        let (context, fields) = (behind(body.context)?, behind(body.fields)?);
        let (own, tail) = body.skips()?;
        let first = u32::try_from(all.len()).ok()?;
        all.extend(own);
        Some(Self { index, context, fields, skips: (first, u32::try_from(all.len()).ok()?), tail })
    }
}

impl Ends {
    pub fn new(ids: &EventIndex, events: &[EventPlan]) -> Option<Self> {
        let EventIndex::Dense(ids) = ids else { return None };
        let mut skips = Vec::new();
        let mut row = |index: Option<u32>| Row::of(index?, events.get(index? as usize)?, &mut skips);
        let rows = ids.iter().map(|index| row(*index).unwrap_or(Row::NONE)).collect();
        Some(Self { rows, skips: skips.into() })
    }

    /// Finds up to `most` events, of which the first starts at byte `at` and comes behind one of the time `clock`. Returns
    /// where the last one ends, and its time.
    #[inline]
    pub fn find(
        &self,
        data: &[u8],
        (mut at, mut clock): (usize, u64),
        (events, most): (&mut Vec<Position>, usize),
    ) -> (usize, u64) {
        for _ in 0..most {
            let Some((id, now)) = QuickHeader::common(data, at, clock) else { break };
            let Some(row) = self.rows.get(id as usize).filter(|row| row.index != u32::MAX) else { break };
            let fields = at + row.fields as usize;
            let mut end = fields;
            if row.skips.0 != row.skips.1 {
                let skips = self.skips.get(row.skips.0 as usize..row.skips.1 as usize);
                let Some(behind) = skips.and_then(|skips| over(skips, data, fields)) else { break };
                end = behind;
            }
            end += row.tail as usize;
            if end > data.len() {
                break;
            }
            events.push(Position {
                index: row.index as usize,
                timestamp: Some(now),
                header_at: at as u64 * 8,
                common_at: (at + QuickHeader::COMMON_BYTES) as u64 * 8,
                context_at: (at + row.context as usize) as u64 * 8,
                fields_at: fields as u64 * 8,
                end: end as u64 * 8,
            });
            (at, clock) = (end, now);
        }
        (at, clock)
    }
}
