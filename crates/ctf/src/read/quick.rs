//! The quick way past an event: what hetrace writes, and most that is like it.
//!
//! It takes whole bytes throughout: a header of plain integers (LTTng's too), contexts of fixed
//! size, and a payload of [`Steps`]. Where anything else comes, or something is
//! wrong, it gives up, having done nothing that counts, and the long way is taken.

use std::ops::RangeInclusive;

use super::clock;
use super::decode::State;
use super::plan::{Int, Kind, Node, Variant};
use super::steps::{Skip, Steps, whole_bytes};
use crate::bits::{align_up, mask, word};
use crate::class::ByteOrder;

/// An event header of plain unsigned integers, of which only the id and the time
/// are looked at. It may end in a variant of such integers that one of those before
/// chooses: this is how LTTng shortens the headers of most events.
#[derive(Debug)]
pub(super) struct QuickHeader {
    /// Whether it is an id of 16 bits and 32 bits of the clock, which are read in one.
    common: bool,
    tag: Option<Tag>,
    /// The only form, or the first.
    main: Form,
    others: Vec<(RangeInclusive<u64>, Form)>,
}

/// What chooses a form, and the values that choose the first.
#[derive(Debug)]
struct Tag {
    part: Part,
    slot: u32,
    main: RangeInclusive<u64>,
}

/// A header whose fields all have their places.
#[derive(Clone, Debug)]
pub(super) struct Form {
    /// Its size.
    pub bytes: usize,
    id: Part,
    clock: Option<Part>,
}

/// A field of it, as part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Where the word starts.
    byte: usize,
    pub order: ByteOrder,
    shift: u32,
    pub bits: u32,
}

/// The main form of a header.
pub(super) struct MainForm {
    pub bytes: usize,
    pub id: Part,
    pub clock: Part,
    /// The ids that it can decode.
    pub ids: RangeInclusive<u64>,
    /// The slot that the id is to be left in.
    pub slot: Option<u32>,
}

/// The fields found so far, the last ones of those that come again.
#[derive(Clone, Copy, Default)]
struct Found {
    id: Option<Part>,
    clock: Option<Part>,
    /// The slot that one of them is to be left in.
    tag: Option<(u32, Part)>,
}

impl QuickHeader {
    pub fn of(node: &Node) -> Option<Self> {
        let Kind::Struct { nodes, offsets } = &node.kind else {
            return None;
        };
        if node.align != 8 {
            return None;
        }
        if let Some((last, plain)) = nodes.split_last()
            && let Kind::Variant(variant) = &last.kind
        {
            return Self::chosen(plain, offsets, variant);
        }
        let mut found = Found::default();
        let end = found.plain(nodes, offsets, 0)?;
        match found.tag {
            None => {
                let main = found.form(end)?;
                Some(Self { common: main.is_common(), tag: None, main, others: Vec::new() })
            }
            Some(_) => None,
        }
    }

    fn chosen(plain: &[Node], offsets: &[Option<u64>], variant: &Variant) -> Option<Self> {
        let mut before = Found::default();
        let start = before.plain(plain, offsets, 0)?;
        let (slot, part) = before.tag?;
        if slot != variant.slot || variant.tag_signed || !variant.slots.is_empty() {
            return None;
        }
        let mut forms = variant.ranges.iter().map(|&(first, last, option)| {
            let option = variant.options.get(option)?;
            let Kind::Struct { nodes, offsets } = &option.kind else {
                return None;
            };
            if option.align > 8 {
                return None;
            }
            let mut found = Found { tag: None, ..before };
            let end = found.plain(nodes, offsets, align_up(start, option.align)?)?;
            let known = found.tag.is_none().then(|| found.form(end))??;
            let range = u64::try_from(first.max(0)).ok()?..=u64::try_from(last).ok()?;
            Some((range, known))
        });
        let (main, form) = forms.next()??;
        let others = forms.collect::<Option<Vec<_>>>()?;
        Some(Self { common: false, tag: Some(Tag { part, slot, main }), main: form, others })
    }

    /// Returns the first form, if nothing but the id chooses it, and it shows the clock.
    pub fn main_form(&self) -> Option<MainForm> {
        let Form { bytes, id, clock } = self.main;
        let (ids, slot) = match &self.tag {
            None => (0..=u64::MAX, None),
            Some(tag) if tag.part == id => (tag.main.clone(), Some(tag.slot)),
            Some(_) => return None,
        };
        Some(MainForm { bytes, id, clock: clock?, ids, slot })
    }

    /// Bytes of the header of most traces: an id of 16 bits, and 32 bits of the clock.
    pub const COMMON_BYTES: usize = 6;

    /// Returns whether it is that one.
    #[inline]
    pub fn is_common(&self) -> bool {
        self.common
    }

    /// Returns the id of such a header that `data` has at `at`, and where the clock stands after it, which stood at
    /// `before`; none where no whole word is there.
    #[inline(always)]
    pub fn common(data: &[u8], at: usize, before: u64) -> Option<(u64, u64)> {
        let word = word(data, at)?;
        Some((word & mask(16), clock::update(before, word >> 16, 32)))
    }

    /// Returns the id in the header that `data` has at `at`, where the clock stands after it, and its bytes. Leaves the
    /// tag in its slot, as the long way does.
    #[inline(always)]
    pub fn read(&self, data: &[u8], at: usize, state: &State) -> Option<(u64, u64, usize)> {
        let before = state.clock.get();
        if self.common
            && let Some((id, clock)) = Self::common(data, at, before)
        {
            return Some((id, clock, self.main.bytes));
        }
        let form = self.form(data, at, state)?;
        Some((form.id(data, at)?, form.clock(data, at, before)?, form.bytes))
    }

    #[inline]
    fn form(&self, data: &[u8], at: usize, state: &State) -> Option<&Form> {
        let Some(tag) = &self.tag else {
            return Some(&self.main);
        };
        let value = tag.part.get(data, at)?;
        state.slots.get(tag.slot as usize)?.set(Some(value));
        if tag.main.contains(&value) { Some(&self.main) } else { self.other(value) }
    }

    #[cold]
    fn other(&self, value: u64) -> Option<&Form> {
        self.others.iter().find(|(range, _)| range.contains(&value)).map(|(_, form)| form)
    }
}

impl Found {
    /// Takes in the fields of a structure that starts at bit `start`; gives its end.
    fn plain(&mut self, nodes: &[Node], offsets: &[Option<u64>], start: u64) -> Option<u64> {
        let mut end = start;
        for (node, offset) in nodes.iter().zip(offsets) {
            let Kind::Int(int) = &node.kind else {
                return None;
            };
            if int.signed || int.reversed {
                return None;
            }
            let at = start.checked_add((*offset)?)?;
            let part = Part::of(int, at);
            if let Some(slot) = int.slot
                && self.tag.replace((slot, part?)).is_some()
            {
                return None;
            }
            if int.event_id {
                self.id = Some(part?);
            }
            // Each reading of the clock goes on from the one before.
            if int.clock && self.clock.replace(part?).is_some() {
                return None;
            }
            end = at.checked_add(int.bits.into())?;
        }
        Some(end)
    }

    fn form(&self, end: u64) -> Option<Form> {
        let bytes = whole_bytes(end).filter(|&bytes| bytes > 0)?;
        Some(Form { bytes, id: self.id?, clock: self.clock })
    }
}

impl Form {
    fn is_common(&self) -> bool {
        let part = |byte, bits| Part { byte, order: ByteOrder::Little, shift: 0, bits };
        self.id == part(0, 16) && self.clock == Some(part(2, 32)) && self.bytes == 6
    }

    /// Returns the id of the header that `data` has at `at`.
    #[inline]
    pub fn id(&self, data: &[u8], at: usize) -> Option<u64> {
        self.id.get(data, at)
    }

    /// Returns where the clock stands after it.
    #[inline(always)]
    pub fn clock(&self, data: &[u8], at: usize, before: u64) -> Option<u64> {
        match self.clock {
            Some(part) => Some(clock::update(before, part.get(data, at)?, part.bits)),
            None => Some(before),
        }
    }
}

impl Part {
    fn of(int: &Int, offset: u64) -> Option<Self> {
        let inside = (offset % 8) as u32;
        let above = 64u32.checked_sub(inside + int.bits)?;
        Some(Self {
            byte: usize::try_from(offset / 8).ok()?,
            order: int.order,
            shift: match int.order {
                ByteOrder::Little => inside,
                ByteOrder::Big => above,
            },
            bits: int.bits,
        })
    }

    /// Returns where it starts, in bits.
    pub fn offset(self) -> u64 {
        let inside = match self.order {
            ByteOrder::Little => self.shift,
            ByteOrder::Big => 64 - self.bits - self.shift,
        };
        self.byte as u64 * 8 + u64::from(inside)
    }

    /// Its value; none where no whole word is there.
    #[inline]
    fn get(self, data: &[u8], at: usize) -> Option<u64> {
        let word = *data.get(at + self.byte..)?.first_chunk()?;
        let word = match self.order {
            ByteOrder::Little => u64::from_le_bytes(word),
            ByteOrder::Big => u64::from_be_bytes(word),
        };
        Some((word >> self.shift) & mask(self.bits))
    }
}

/// What follows the header.
#[derive(Debug)]
pub(super) struct QuickBody {
    /// Where its context starts, behind the stream's.
    pub context: usize,
    /// Where the payload starts.
    pub fields: usize,
    payload: Steps,
    /// By position: the first fields of the payload, where these are plain integers at places that are always the same.
    pub leading: Box<[Option<Whole>]>,
}

/// A little-endian integer of whole bytes on which nothing depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    /// Where in the payload it is.
    byte: u32,
    /// Bits of a word that it has not.
    unused: u8,
    signed: bool,
}

impl Whole {
    fn of(node: &Node, offset: Option<u64>) -> Option<Self> {
        let Kind::Int(int) = &node.kind else { return None };
        let plain = int.order == ByteOrder::Little
            && int.slot.is_none()
            && !(int.reversed || int.clock || int.event_id)
            && int.bits.is_multiple_of(8);
        let byte = u32::try_from(whole_bytes(offset?)?).ok().filter(|_| plain)?;
        let unused = 64u32.checked_sub(int.bits).filter(|unused| *unused < 64)?;
        Some(Self { byte, unused: unused as u8, signed: int.signed })
    }

    /// Its bits in a payload that `data` has at `at`, those of an unsigned one as they are.
    #[inline(always)]
    pub fn get(self, data: &[u8], at: usize) -> Option<i64> {
        let unused = self.unused % 64;
        let high = word(data, at + self.byte as usize)? << unused;
        Some(if self.signed { (high as i64) >> unused } else { (high >> unused) as i64 })
    }
}

/// Fields of a payload that are looked at so.
const LEADING: usize = 16;

impl QuickBody {
    pub fn of(common: Option<&Node>, context: Option<&Node>, fields: &Node) -> Option<Self> {
        let common = fixed(common)?;
        Some(Self {
            context: common,
            fields: common.checked_add(fixed(context)?)?,
            payload: Steps::of(fields)?,
            leading: match &fields.kind {
                Kind::Struct { nodes, offsets } => {
                    nodes.iter().zip(offsets).take(LEADING).map(|(n, o)| Whole::of(n, *o)).collect()
                }
                _ => Box::default(),
            },
        })
    }

    /// Returns how to get over the payload without leaving lengths behind (see [`Steps::skips`]).
    pub fn skips(&self) -> Option<(Vec<Skip>, u32)> {
        self.payload.skips()
    }

    /// Returns where the payload that starts at `fields` ends.
    #[inline]
    pub fn end(&self, data: &[u8], fields: usize, state: &State) -> Option<usize> {
        self.payload.run(data, fields, state)
    }
}

/// Returns the bytes of a context; 0 if there is none.
fn fixed(node: Option<&Node>) -> Option<usize> {
    match node {
        None => Some(0),
        Some(node) if node.active || node.align > 8 => None,
        Some(node) => whole_bytes(node.fixed?),
    }
}
