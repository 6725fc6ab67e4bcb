//! The values of a command's fields, to a command.

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Slots;

use super::field::{CommandField, UNKNOWN_DISTANCE};
use super::{Command, CommandKind, Geometry, MemoryKind, Sizes, Times};

/// Dimensions of a geometry, and the slot for how many there are.
const SIZES: usize = 3 + 1;

/// Slots of all fields: one for each, and those of geometries.
pub(super) const SLOTS: usize = CommandField::ALL.len() + 4 * SIZES;

/// Holds the values of a command's fields, each in its slot. Those that do not come have been written by an
/// older version: they are 0, or not known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoder {
    pub kind: CommandKind,
    /// What [`Holds`] says; of integers the bits with the sign extended. Numbers of kinds are this version's: what
    /// counts in the trace are names.
    pub slots: [u64; SLOTS],
}

/// What the slots hold where no field comes.
const EMPTY: [u64; SLOTS] = {
    let mut slots = [0; SLOTS];
    slots[CommandField::CauseBefore as usize] = UNKNOWN_DISTANCE as u64;
    slots
};

/// What the slots of a field hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    Unsigned,
    Signed,
    /// The number of a [`CommandKind`] plus one; 0 if it is not known.
    Kind,
    /// The number of a [`MemoryKind`].
    Memory,
    /// The sizes of a geometry, by its number.
    Sizes(usize),
}

impl Holds {
    pub const fn of(field: CommandField) -> Self {
        match field {
            CommandField::Kind => Self::Kind,
            CommandField::From | CommandField::To => Self::Memory,
            CommandField::CauseBefore
            | CommandField::QueuedBefore
            | CommandField::SubmittedBefore
            | CommandField::Duration
            | CommandField::Status
            | CommandField::TimesError => Self::Signed,
            CommandField::Offset => Self::Sizes(0),
            CommandField::Global => Self::Sizes(1),
            CommandField::Local => Self::Sizes(2),
            CommandField::Cluster => Self::Sizes(3),
            CommandField::Queue
            | CommandField::CauseTid
            | CommandField::Function
            | CommandField::Bytes
            | CommandField::Peer
            | CommandField::Shared
            | CommandField::Graph
            | CommandField::Node
            | CommandField::Weight => Self::Unsigned,
        }
    }

    /// Returns what stands for a label; none if the field is no enumeration.
    pub fn of_label(self, label: Option<&str>) -> Option<u64> {
        match self {
            Self::Kind => {
                let kind = label.and_then(CommandKind::of_name);
                Some(kind.map_or(0, |kind| u64::from(kind.number()) + 1))
            }
            Self::Memory => Some(label.and_then(MemoryKind::of_name).unwrap_or_default().number().into()),
            Self::Unsigned | Self::Signed | Self::Sizes(_) => None,
        }
    }
}

/// Returns the slots of a field. Those of sizes are followed by their count.
pub(super) const fn slots(field: CommandField) -> Slots {
    match Holds::of(field) {
        Holds::Sizes(geometry) => {
            let first = CommandField::ALL.len() + geometry * SIZES;
            Slots { first, most: SIZES - 1, count: Some(first + SIZES - 1) }
        }
        Holds::Unsigned | Holds::Signed | Holds::Kind | Holds::Memory => {
            Slots { first: field as usize, most: 1, count: None }
        }
    }
}

/// How far a command's other times are from that of its event, as it has them in the slots of [`Self::FIELDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Distances(pub [u64; 4]);

impl Distances {
    /// Which they are.
    pub const FIELDS: [CommandField; 4] = [
        CommandField::CauseBefore,
        CommandField::QueuedBefore,
        CommandField::SubmittedBefore,
        CommandField::Duration,
    ];

    /// Returns when the call began that enqueued the command of an event at `time`; none if that is not known.
    #[inline(always)]
    pub fn cause(self, time: u64) -> Option<u64> {
        before(time, self.0[0])
    }

    /// Returns the times of the command of an event at `time`. A distance that is not known counts as none.
    #[inline(always)]
    pub fn times(self, time: u64) -> Times {
        let [_, queued, submitted, duration] = self.0;
        let end = match time.checked_add(duration).filter(|_| duration <= i64::MAX as u64) {
            Some(end) => end,
            None => time.saturating_add_signed(known(duration).unwrap_or(0)),
        };
        Times {
            queued: before(time, queued).unwrap_or(time),
            submitted: before(time, submitted).unwrap_or(time),
            start: time,
            end,
        }
    }
}

/// The distance that a slot holds, if it is known.
fn known(bits: u64) -> Option<i64> {
    Some(bits as i64).filter(|distance| *distance != UNKNOWN_DISTANCE)
}

/// So long before a time as a slot holds, if it is known.
#[inline(always)]
fn before(time: u64, bits: u64) -> Option<u64> {
    // Nearly always it is one.
    match time.checked_sub(bits).filter(|_| bits <= i64::MAX as u64) {
        Some(before) => Some(before),
        None => known(bits).map(|distance| time.saturating_add_signed(distance.saturating_neg())),
    }
}

impl Decoder {
    /// For an event of a kind; of one without times a field says the kind.
    #[inline]
    pub fn new(kind: CommandKind) -> Self {
        Decoder { kind, slots: EMPTY }
    }

    /// A value of a field; `element` counts those of a list.
    pub fn set(&mut self, field: CommandField, element: usize, value: Scalar<'_>) {
        let holds = Holds::of(field);
        let bits = match holds.of_label(value.as_str()) {
            Some(number) => number,
            None if holds == Holds::Signed => value.as_i64().unwrap_or(0) as u64,
            None => value.as_u64().unwrap_or(0),
        };
        let Slots { first, most, count } = slots(field);
        if element < most {
            self.slots[first + element] = bits;
            if let Some(count) = count {
                self.slots[count] = self.slots[count].max(element as u64 + 1);
            }
        }
    }

    fn sizes(&self, field: CommandField) -> Sizes {
        let first = slots(field).first;
        match self.slots.get(first..first + SIZES) {
            Some([x, y, z, count]) => Sizes::of_slots([*x, *y, *z], *count as u8),
            _ => Sizes::default(),
        }
    }

    /// The distances of its times.
    #[inline(always)]
    pub fn distances(&self) -> Distances {
        Distances(Distances::FIELDS.map(|field| self.slots[field as usize]))
    }

    /// Returns the command of an event at this time. The weight is at least 1.
    #[inline(always)]
    pub fn command(&self, time: u64, untimed: bool) -> Command {
        let long = |field: CommandField| self.slots[field as usize];
        let word = |field| u32::try_from(long(field)).unwrap_or(0);
        let short = |field| i32::try_from(long(field) as i64).unwrap_or(0);
        let memory = |field| MemoryKind::of_number(long(field) as u8).unwrap_or_default();
        let distances = self.distances();
        let kind = (long(CommandField::Kind) as u8).checked_sub(1).and_then(CommandKind::of_number);
        Command {
            kind: kind.unwrap_or(self.kind),
            queue: word(CommandField::Queue),
            cause_tid: word(CommandField::CauseTid),
            cause: distances.cause(time),
            times: (!untimed).then(|| distances.times(time)),
            seen: time,
            times_error: short(CommandField::TimesError),
            function: word(CommandField::Function),
            bytes: long(CommandField::Bytes),
            from: memory(CommandField::From),
            to: memory(CommandField::To),
            peer: word(CommandField::Peer),
            status: short(CommandField::Status),
            shared: word(CommandField::Shared),
            geometry: Geometry {
                offset: self.sizes(CommandField::Offset),
                global: self.sizes(CommandField::Global),
                local: self.sizes(CommandField::Local),
                cluster: self.sizes(CommandField::Cluster),
            },
            graph: word(CommandField::Graph),
            node: long(CommandField::Node),
            weight: long(CommandField::Weight).max(1),
        }
    }
}
