//! Payloads of whole bytes as lists of steps: the short way past an event.
//!
//! A payload of fixed size needs none of this: it is passed over by adding its
//! size. Where lengths and texts stand between, a [`Step`] goes from one of them
//! to the next, and all that is fixed between is one number.

use std::cell::Cell;

use super::decode::State;
use super::plan::{Kind, Node};
use crate::bits::{find_nul, get, mask, word};
use crate::class::ByteOrder;

/// Steps over a structure that starts at a byte.
#[derive(Debug)]
pub(super) struct Steps {
    steps: Vec<Step>,
    /// The same as skips, if they can be; what these cannot read, as a length near the end of the data, the steps do.
    skips: Option<Box<[Skip]>>,
    /// Bytes behind the last step.
    tail: usize,
}

#[derive(Debug)]
struct Step {
    /// Bytes before it.
    before: usize,
    action: Action,
}

#[derive(Debug)]
enum Action {
    /// Reads a length into a slot.
    Count { bytes: u32, order: ByteOrder, slot: u32 },
    /// Passes over as many elements as a slot says.
    Elements { slot: u32, size: u64 },
    /// Passes over a text and its NUL.
    Text,
    /// Passes over as many texts as a slot says.
    Texts { slot: u32 },
}

/// A step for who wants nothing but the end: it leaves no lengths behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skip {
    /// Bytes before it.
    before: u32,
    /// The bits of the length, which is a word's first; 0 for a text, and for a list that has the
    /// length of the one before.
    length: u64,
    /// Bytes of the length.
    width: u32,
    /// Of an element; 0 for a text.
    size: u32,
}

impl Skip {
    /// Of a list with a length of its own: bytes before the length, its bits, its bytes and those of
    /// an element.
    pub fn list(&self) -> Option<(u32, u32, u32, u32)> {
        let mask = u32::try_from(self.length).ok().filter(|mask| *mask > 0)?;
        (self.size > 0).then_some((self.before, mask, self.width, self.size))
    }
}

/// Returns where the last of these skips ends that start at byte `at`; none where that is not surely
/// inside of `data`.
#[inline(always)]
pub(super) fn over(skips: &[Skip], data: &[u8], at: usize) -> Option<usize> {
    let (mut at, mut len) = (at, 0);
    for skip in skips {
        at += skip.before as usize;
        let rest = data.get(at..)?;
        if skip.size == 0 {
            at += find_nul(rest)? + 1;
            continue;
        }
        if skip.length != 0 {
            len = u64::from_le_bytes(*rest.first_chunk()?) & skip.length;
        }
        // Neither has more than 32 bits.
        at = at.checked_add(usize::try_from(len * u64::from(skip.size)).ok()?)?;
        at = at.checked_add(skip.width as usize)?;
    }
    Some(at)
}

/// Takes steps together while they are made.
#[derive(Default)]
struct Builder {
    steps: Vec<Step>,
    before: usize,
}

impl Steps {
    /// Returns the steps over `node`; none if it has bits, variants or nested lengths.
    pub fn of(node: &Node) -> Option<Self> {
        let mut builder = Builder::default();
        builder.node(node)?;
        let mut steps = Self { steps: builder.steps, skips: None, tail: builder.before };
        steps.skips = steps.skips().map(|(skips, _)| skips.into());
        Some(steps)
    }

    /// Goes from byte `at` to the end; none if that is beyond `data`. Of lengths in the payload nothing need be left
    /// in the slots: who looks at an event reads them again.
    #[inline(always)]
    pub fn run(&self, data: &[u8], at: usize, state: &State) -> Option<usize> {
        // Most payloads are of one size, and worth no call.
        let at = match &self.skips {
            _ if self.steps.is_empty() => at,
            Some(skips) if let Some(end) = over(skips, data, at) => end,
            _ => self.walk(data, at, state)?,
        };
        at.checked_add(self.tail).filter(|&end| end <= data.len())
    }

    /// The same as skips, and the bytes behind the last; none if they are not all texts and lists
    /// right behind their lengths.
    pub fn skips(&self) -> Option<(Vec<Skip>, u32)> {
        let (mut skips, mut steps, mut last) = (Vec::new(), self.steps.iter(), None);
        while let Some(step) = steps.next() {
            let before = u32::try_from(step.before).ok()?;
            skips.push(match step.action {
                Action::Text => Skip { before, length: 0, width: 0, size: 0 },
                Action::Count { bytes, order: ByteOrder::Little, slot } if (1..=4).contains(&bytes) => {
                    let list = steps.next()?;
                    let Action::Elements { slot: of, size } = list.action else { return None };
                    if list.before != 0 || of != slot {
                        return None;
                    }
                    last = Some(slot);
                    let size = u32::try_from(size).ok().filter(|size| *size > 0)?;
                    Skip { before, length: mask(bytes * 8), width: bytes, size }
                }
                Action::Elements { slot, size } if last == Some(slot) => {
                    let size = u32::try_from(size).ok().filter(|size| *size > 0)?;
                    Skip { before, length: 0, width: 0, size }
                }
                _ => return None,
            });
        }
        Some((skips, u32::try_from(self.tail).ok()?))
    }

    /// Goes over all steps.
    fn walk(&self, data: &[u8], mut at: usize, state: &State) -> Option<usize> {
        let slot = |slot: u32| state.slots.get(slot as usize);
        for step in &self.steps {
            at = at.checked_add(step.before)?;
            match step.action {
                Action::Count { bytes, order, slot: to } => {
                    let value = match word(data, at) {
                        Some(word) if order == ByteOrder::Little => word & mask(bytes * 8),
                        _ => get(data, at as u64 * 8, bytes * 8, order)?,
                    };
                    slot(to)?.set(Some(value));
                    at += bytes as usize;
                }
                Action::Elements { slot: from, size } => {
                    let len = slot(from).and_then(Cell::get)?.checked_mul(size)?;
                    at = at.checked_add(usize::try_from(len).ok()?)?;
                }
                Action::Text => at += find_nul(data.get(at..)?)? + 1,
                Action::Texts { slot: from } => {
                    for _ in 0..slot(from).and_then(Cell::get)? {
                        at += find_nul(data.get(at..)?)? + 1;
                    }
                }
            }
        }
        Some(at)
    }
}

impl Builder {
    fn node(&mut self, node: &Node) -> Option<()> {
        if node.align > 8 {
            return None;
        }
        if let (Some(bits), false) = (node.fixed, node.active) {
            self.before = self.before.checked_add(whole_bytes(bits)?)?;
            return Some(());
        }
        match &node.kind {
            Kind::Struct { nodes, .. } => nodes.iter().try_for_each(|n| self.node(n)),
            Kind::Int(int) if !(int.signed || int.reversed || int.clock || int.event_id) => {
                let bytes = whole_bytes(u64::from(int.bits))? as u32;
                self.step(Action::Count { bytes, order: int.order, slot: int.slot? })
            }
            Kind::Str { unit: 1 } => self.step(Action::Text),
            Kind::TextSequence { slot, .. } => self.step(Action::Elements { slot: *slot, size: 1 }),
            Kind::Sequence { slot, element } => self.elements(*slot, element),
            _ => None,
        }
    }

    fn elements(&mut self, slot: u32, element: &Node) -> Option<()> {
        match (&element.kind, element.fixed) {
            (Kind::Str { unit: 1 }, _) => self.step(Action::Texts { slot }),
            (_, Some(bits)) if !element.active && element.align <= 8 => {
                let size = whole_bytes(bits)? as u64;
                self.step(Action::Elements { slot, size })
            }
            _ => None,
        }
    }

    fn step(&mut self, action: Action) -> Option<()> {
        let before = std::mem::take(&mut self.before);
        self.steps.push(Step { before, action });
        Some(())
    }
}

/// Returns a number of bits in bytes.
pub(super) fn whole_bytes(bits: u64) -> Option<usize> {
    usize::try_from(bits / 8).ok().filter(|_| bits.is_multiple_of(8))
}
