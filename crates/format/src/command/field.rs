//! The fields of a command's events: names, widths, signs, and what stands for none.
//!
//! A new field is a row of [`CommandField`] and one of the layouts below. The compiler then asks
//! for its value ([`Command::values`](super::Command)) and what it holds
//! ([`Holds`](super::decode::Holds)); what it means is in [`Decoder::command`](super::decode::Decoder::command).

use hetrace_ctf::class::{FieldClass, FieldPath, IntegerClass, StructClass};

use super::kind::{CommandKind, MemoryKind};
use crate::field::{counted, length, names};

macro_rules! fields {
    ($($(#[$meaning:meta])* $field:ident = $name:literal,)*) => {
        /// A field of a command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum CommandField { $($(#[$meaning])* $field,)* }

        impl CommandField {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$field,)*];

            /// Its name in the trace.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$field => $name,)* }
            }

            /// That of a name; none if this version does not know it.
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|field| field.name() == name)
            }
        }
    };
}

fields! {
    /// What the command does, where the event's name does not say it.
    Kind = "kind",
    /// Number of its queue.
    Queue = "queue",
    /// Thread that enqueued it.
    CauseTid = "cause_tid",
    /// From the beginning of the call that enqueued it to the event's time.
    CauseBefore = "cause_before",
    /// From entering the queue to the start.
    QueuedBefore = "queued_before",
    /// From reaching the device to the start.
    SubmittedBefore = "submitted_before",
    /// From the start to the end.
    Duration = "duration",
    /// Number of its function.
    Function = "function",
    /// Bytes moved or set.
    Bytes = "bytes",
    /// Kind of memory the bytes come from.
    From = "from",
    /// Kind of memory they go to.
    To = "to",
    /// Number of the other device.
    Peer = "peer",
    /// Negative: the error with which it ended.
    Status = "status",
    /// Why it has no times.
    TimesError = "times_error",
    /// Bytes of local memory that the launch asked for.
    Shared = "shared",
    /// Where work-items begin to count.
    Offset = "offset",
    /// Work-items.
    Global = "global",
    /// Work-items of a work-group.
    Local = "local",
    /// Work-groups of a cluster.
    Cluster = "cluster",
    /// The graph it was launched with.
    Graph = "graph",
    /// Its node of the graph.
    Node = "node",
    /// Launches it stands for.
    Weight = "weight",
}

/// A distance of two times that is not known, or too long for its 48 bits: 39 hours either way.
pub const UNKNOWN_DISTANCE: i64 = -(1 << 47);
/// Bits of a distance, and of a size.
const LONG: u32 = 48;

/// The form of a number. Numbers are little-endian and of whole bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// Without a sign, of so many bits; what is larger is written as the largest.
    Unsigned(u32),
    /// With a sign, of 32 bits.
    Signed,
    /// Nanoseconds from one time to another; [`UNKNOWN_DISTANCE`] if that is none.
    Distance,
    /// A [`CommandKind`].
    Kind,
    /// A [`MemoryKind`].
    Memory,
}

impl Number {
    const fn bits(self) -> u32 {
        match self {
            Self::Unsigned(bits) => bits,
            Self::Signed => 32,
            Self::Distance => LONG,
            Self::Kind | Self::Memory => 8,
        }
    }

    fn class(self) -> FieldClass {
        match self {
            Self::Unsigned(bits) => IntegerClass::unsigned(bits).into(),
            Self::Signed | Self::Distance => IntegerClass::signed(self.bits()).into(),
            Self::Kind => names(CommandKind::ALL.iter().map(|kind| kind.name())),
            Self::Memory => names(MemoryKind::ALL.iter().map(|kind| kind.name())),
        }
    }

    /// Returns what is written where there is no value.
    const fn none(self) -> u64 {
        match self {
            Self::Distance => UNKNOWN_DISTANCE as u64,
            Self::Unsigned(_) | Self::Signed | Self::Kind | Self::Memory => 0,
        }
    }

    /// Appends a value; one with a sign by its two's complement of 64 bits.
    fn put(self, body: &mut Vec<u8>, value: u64) {
        let value = match self {
            Self::Unsigned(bits) => value.min(u64::MAX >> (64 - bits)),
            Self::Distance if (value as i64).unsigned_abs() >= UNKNOWN_DISTANCE.unsigned_abs() => self.none(),
            Self::Signed | Self::Distance | Self::Kind | Self::Memory => value,
        };
        let bytes = value.to_le_bytes();
        body.extend_from_slice(bytes.get(..self.bits() as usize / 8).unwrap_or(&bytes));
    }
}

/// How often a field stands in an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Once.
    One(Number),
    /// As often as the 8 bits before it say: few commands have it.
    List(Number),
    /// As often as that field, which is a list.
    Beside(CommandField, Number),
}

/// The fields of an event in their order.
pub(super) type Layout = &'static [(CommandField, Form)];

use CommandField::{
    Bytes, CauseBefore, CauseTid, Cluster, Duration, From, Function, Global, Graph, Kind, Local, Node,
    Offset, Peer, Queue, QueuedBefore, Shared, Status, SubmittedBefore, TimesError, To, Weight,
};
use Form::{Beside, List, One};
use Number::{Distance, Memory, Signed, Unsigned};

/// Events of kernels.
pub(super) const KERNEL: Layout = &[
    (Queue, One(Unsigned(32))),
    (CauseTid, One(Unsigned(32))),
    (CauseBefore, One(Distance)),
    (QueuedBefore, One(Distance)),
    (SubmittedBefore, One(Distance)),
    (Duration, One(Distance)),
    (Function, One(Unsigned(32))),
    (Status, List(Signed)),
    (Shared, List(Unsigned(32))),
    (Offset, List(Unsigned(LONG))),
    (Global, List(Unsigned(LONG))),
    (Local, List(Unsigned(32))),
    (Cluster, List(Unsigned(16))),
    (Graph, List(Unsigned(32))),
    (Node, Beside(Graph, Unsigned(64))),
    (Weight, List(Unsigned(64))),
];

/// Events of all other kinds.
pub(super) const TRANSFER: Layout = &[
    (Queue, One(Unsigned(32))),
    (CauseTid, One(Unsigned(32))),
    (CauseBefore, One(Distance)),
    (QueuedBefore, One(Distance)),
    (SubmittedBefore, One(Distance)),
    (Duration, One(Distance)),
    (Bytes, One(Unsigned(LONG))),
    (From, One(Memory)),
    (To, One(Memory)),
    (Status, List(Signed)),
    (Function, List(Unsigned(32))),
    (Peer, List(Unsigned(32))),
    (Graph, List(Unsigned(32))),
    (Node, Beside(Graph, Unsigned(64))),
    (Weight, List(Unsigned(64))),
];

/// Events of commands without times.
pub(super) const UNTIMED: Layout = &[
    (Kind, One(Number::Kind)),
    (Queue, One(Unsigned(32))),
    (CauseTid, One(Unsigned(32))),
    (CauseBefore, One(Distance)),
    (Bytes, One(Unsigned(LONG))),
    (TimesError, One(Signed)),
    (Status, List(Signed)),
    (Function, List(Unsigned(32))),
];

/// Returns the class of a layout.
pub(super) fn class(layout: Layout) -> StructClass {
    layout.iter().fold(StructClass::default(), |fields, (field, form)| match form {
        One(number) => fields.field(field.name(), number.class()),
        List(number) => counted(fields, field.name(), 8, number.class()),
        Beside(other, number) => {
            let length = FieldPath::relative(length(other.name()));
            fields.field(field.name(), FieldClass::sequence(length, number.class()))
        }
    })
}

/// Values of a field: at most one for each dimension.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Values {
    all: [u64; 3],
    count: u8,
}

impl Values {
    /// Returns a value.
    pub fn one(value: u64) -> Self {
        Values { all: [value, 0, 0], count: 1 }
    }

    /// Returns a value, or none.
    pub fn some(value: u64, there: bool) -> Self {
        Values { all: [value, 0, 0], count: there.into() }
    }

    /// Up to three values.
    pub fn of(values: &[u64]) -> Self {
        let mut all = [0; 3];
        let count = values.iter().zip(&mut all).map(|(value, place)| *place = *value).count();
        Values { all, count: count as u8 }
    }

    fn as_slice(&self) -> &[u64] {
        self.all.get(..self.count.into()).unwrap_or(&self.all)
    }
}

/// Appends the fields of a layout.
#[inline]
pub(super) fn put(layout: Layout, body: &mut Vec<u8>, values: impl Fn(CommandField) -> Values) {
    for (field, form) in layout {
        let values = values(*field);
        let number = match form {
            One(number) => {
                let value = values.as_slice().first().copied().unwrap_or(number.none());
                number.put(body, value);
                continue;
            }
            List(number) => {
                body.push(values.count);
                number
            }
            Beside(_, number) => number,
        };
        values.as_slice().iter().for_each(|value| number.put(body, *value));
    }
}
