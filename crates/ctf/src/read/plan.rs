//! Classes compiled for decoding.
//!
//! A [`Node`] stands beside each field class: what is needed to find the end of
//! the field without looking at names. Lengths and tags go through numbered
//! slots: the field that holds one writes it, the one that needs it reads it.

use crate::class::ByteOrder;

/// How to pass over one field.
#[derive(Debug)]
pub(super) struct Node {
    pub align: u32,
    /// The size in bits from an aligned start on, if it is always the same.
    pub fixed: Option<u64>,
    /// Whether decoding it leaves something behind: a slot, the clock, an id.
    pub active: bool,
    pub kind: Kind,
}

impl Node {
    /// Whether decoding it takes what another field has left in a slot.
    pub fn needs_slot(&self) -> bool {
        match &self.kind {
            Kind::Int(_) | Kind::Leb(_) | Kind::Float { .. } | Kind::Str { .. } | Kind::Text { .. } => false,
            Kind::Struct { nodes, .. } => nodes.iter().any(Self::needs_slot),
            Kind::Array { element, .. } => element.needs_slot(),
            Kind::TextSequence { .. } | Kind::Sequence { .. } | Kind::Variant(_) | Kind::Optional(_) => true,
        }
    }
}

#[derive(Debug)]
pub(super) enum Kind {
    Int(Int),
    /// In LEB128.
    Leb(Int),
    Float {
        bits: u32,
        order: ByteOrder,
        reversed: bool,
    },
    /// Ended by a zero of so many bytes.
    Str {
        unit: usize,
    },
    Struct {
        nodes: Vec<Node>,
        offsets: Vec<Option<u64>>,
    },
    /// Bytes up to a zero of `unit` bytes; all of them for 0.
    Text {
        len: u64,
        unit: usize,
    },
    TextSequence {
        slot: u32,
        unit: usize,
    },
    Array {
        len: u64,
        element: Box<Node>,
    },
    Sequence {
        slot: u32,
        element: Box<Node>,
    },
    Variant(Variant),
    Optional(Optional),
}

/// An integer, also that of an enumeration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Int {
    pub bits: u32,
    pub signed: bool,
    pub order: ByteOrder,
    pub reversed: bool,
    pub slot: Option<u32>,
    pub clock: bool,
    pub event_id: bool,
}

#[derive(Debug)]
pub(super) struct Variant {
    pub slot: u32,
    pub tag_signed: bool,
    /// First, last, option.
    pub ranges: Vec<(i128, i128, usize)>,
    pub options: Vec<Node>,
    /// Slots written by the options: unset until one of them is chosen.
    pub slots: Vec<u32>,
}

#[derive(Debug)]
pub(super) struct Optional {
    pub slot: u32,
    pub signed: bool,
    /// First and last value with which it is there.
    pub ranges: Vec<(i128, i128)>,
    pub inner: Box<Node>,
    /// Slots written inside: unset where it is not there.
    pub slots: Vec<u32>,
}

/// Returns whether a packet context shows the whole clock, whatever is in it.
pub(super) fn shows_clock(context: Option<&Node>) -> bool {
    match context.map(|node| &node.kind) {
        Some(Kind::Struct { nodes, .. }) => nodes.iter().any(|node| match &node.kind {
            Kind::Int(int) => int.clock && int.bits == 64,
            Kind::Struct { .. } => shows_clock(Some(node)),
            _ => false,
        }),
        _ => false,
    }
}
