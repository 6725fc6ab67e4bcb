//! What an open call was passed, as far as rules ask for it when it ends.

use super::facts::{Facts, KindId, Waits};
use super::findings::{Hit, Ref};
use hetrace_trace::values::{Place, Values};

/// Bytes in a row, in an object or at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Span {
    /// The object; none at an address.
    pub object: Option<(KindId, u64)>,
    /// Where it begins.
    pub start: u64,
    pub bytes: u64,
}

impl Span {
    /// The first byte behind it.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes)
    }

    /// Whether both have a byte in common.
    pub fn meets(&self, other: &Span) -> bool {
        self.object == other.object && self.start < other.end() && other.start < self.end()
    }

    /// Whether it begins where the other ends.
    pub fn follows(&self, other: &Span) -> bool {
        self.object == other.object && self.start == other.end()
    }
}

/// What an open call was passed.
#[derive(Clone, Debug)]
pub(super) struct Passed {
    pub call: Ref,
    /// The outermost call around it, or itself.
    pub outer: Ref,
    /// In no other call.
    pub root: bool,
    /// Whether the outermost call waits for the device.
    pub root_waits: bool,
    /// Objects by parameter.
    pub handles: Vec<(u16, KindId, u64)>,
    pub queue: Option<u64>,
    pub waits: bool,
    /// How much memory it asks for.
    pub size: Option<u64>,
    pub source: Option<Span>,
    pub target: Option<Span>,
    pub freed: Vec<u64>,
    /// Of what it was passed but handles.
    pub hash: u64,
    /// Of what sets an argument: the first object, which one, and its value, if it may be a handle.
    pub argument: Option<(u64, u64, Option<u64>)>,
    /// What is wrong with it, whatever comes of it.
    pub faults: Vec<Hit>,
    /// Objects and addresses whose end is to be taken back if it fails.
    pub ended: Vec<(Option<KindId>, u64)>,
    /// Whether it took a reference.
    pub retained: bool,
}

impl Passed {
    pub fn read(facts: &Facts<'_>, values: &Values<'_>, call: Ref, root: bool) -> Self {
        let number = |at: u16| values.first(Place::Param(at));
        let mut handles = Vec::new();
        for &(at, kind) in &facts.handles {
            handles.extend(values.all(Place::Param(at)).iter().map(|handle| (at, kind, *handle)));
        }
        let waits = match facts.waits {
            Waits::Never => false,
            Waits::Always => true,
            Waits::If(at) => number(at).is_some_and(|value| value != 0),
        };
        let expr = facts.allocation.as_ref().and_then(|a| a.bytes.as_ref()).or(facts.extent);
        let (mut source, mut target) = (None, None);
        if let Some(transfer) = facts.transfer
            && let Some(bytes) = values.eval(&transfer.bytes).filter(|bytes| *bytes > 0)
        {
            let span = |name: &Option<String>, offset: &Option<String>| {
                let at = facts.param(name.as_ref()?)?;
                let value = number(at)?;
                let offset = offset.as_ref().and_then(|name| values.named(name)).unwrap_or(0);
                let kind = facts.handles.iter().find(|(p, _)| *p == at).map(|(_, kind)| *kind);
                Some(match kind {
                    Some(kind) => Span { object: Some((kind, value)), start: offset, bytes },
                    None => Span { object: None, start: value.saturating_add(offset), bytes },
                })
            };
            source = span(&transfer.source, &transfer.source_offset);
            target = span(&transfer.target, &transfer.target_offset);
        }
        Self {
            call,
            outer: call,
            root,
            root_waits: waits,
            queue: facts.queue.and_then(|name| values.named(name)),
            waits,
            size: expr.and_then(|expr| values.eval(expr)),
            source,
            target,
            freed: facts.frees.map_or_else(Vec::new, |at| values.all(Place::Param(at)).to_vec()),
            hash: values.hash,
            argument: argument(facts, values).filter(|_| facts.sets_argument),
            faults: Vec::new(),
            ended: Vec::new(),
            retained: false,
            handles,
        }
    }
}

fn argument(facts: &Facts<'_>, values: &Values<'_>) -> Option<(u64, u64, Option<u64>)> {
    let (of, _) = *facts.handles.first()?;
    let index = facts.function.params.iter().zip(0u16..).find(|(p, at)| p.pointers == 0 && *at != of);
    let (_, index) = index?;
    let last = u16::try_from(facts.function.params.len().checked_sub(1)?).ok()?;
    let value = word(values.all(Place::Param(last)));
    Some((values.first(Place::Param(of))?, values.first(Place::Param(index))?, value))
}

/// A number that stands in eight bytes.
pub(super) fn word(bytes: &[u64]) -> Option<u64> {
    match bytes {
        [one] => Some(*one),
        bytes if bytes.len() == 8 => {
            Some(bytes.iter().rev().fold(0, |word, byte| (word << 8) | (byte & 0xff)))
        }
        _ => None,
    }
}
