//! The values of a command's fields, to a command.

use hetrace_ctf::Scalar;

use super::field::{CommandField, UNKNOWN_DISTANCE};
use super::{Command, CommandKind, Geometry, MemoryKind, Sizes, Times};

/// Dimensions of a geometry, and the slot for how many there are.
const SIZES: usize = 3 + 1;

/// Slots of all fields: one for each, and those of geometries.
pub(super) const SLOTS: usize = CommandField::ALL.len() + 4 * SIZES;

/// Holds the values of a command's fields, each in its slot. Those that do not come have been written by an older version:
/// they are 0, or not known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoder {
    pub kind: CommandKind,
    /// Bits of integers with the sign extended. Of kinds, the number in this version plus one, and of
    /// kinds of memory the number in this version: what counts in the trace are names.
    pub slots: [u64; SLOTS],
}

/// What the slots hold where no field comes.
const EMPTY: [u64; SLOTS] = {
    let mut slots = [0; SLOTS];
    slots[CommandField::CauseBefore as usize] = UNKNOWN_DISTANCE as u64;
    slots
};

/// Returns the first slot of a geometry's sizes; they are followed by their count.
pub(super) const fn sizes_slot(field: CommandField) -> Option<usize> {
    let geometry = match field {
        CommandField::Offset => 0,
        CommandField::Global => 1,
        CommandField::Local => 2,
        CommandField::Cluster => 3,
        _ => return None,
    };
    Some(CommandField::ALL.len() + geometry * SIZES)
}

/// Returns whether a field's values have a sign.
pub(super) const fn is_signed(field: CommandField) -> bool {
    matches!(
        field,
        CommandField::CauseBefore
            | CommandField::QueuedBefore
            | CommandField::SubmittedBefore
            | CommandField::Duration
            | CommandField::Status
            | CommandField::TimesError
    )
}

/// Returns what stands in the slot of a field that is an enumeration, for one of its labels; none if
/// the field is a number.
pub(super) fn of_label(field: CommandField, label: Option<&str>) -> Option<u64> {
    let kind = || label.and_then(CommandKind::of_name).map_or(0, |kind| u64::from(kind.number()) + 1);
    let memory = || label.and_then(MemoryKind::of_name).unwrap_or_default().number().into();
    match field {
        CommandField::Kind => Some(kind()),
        CommandField::From | CommandField::To => Some(memory()),
        _ => None,
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
        let bits = match of_label(field, value.as_str()) {
            Some(number) => number,
            None if is_signed(field) => value.as_i64().unwrap_or(0) as u64,
            None => value.as_u64().unwrap_or(0),
        };
        match sizes_slot(field) {
            Some(first) if element + 1 < SIZES => {
                self.slots[first + element] = bits;
                let count = &mut self.slots[first + SIZES - 1];
                *count = (*count).max(element as u64 + 1);
            }
            None if element == 0 => self.slots[field as usize] = bits,
            _ => {}
        }
    }

    fn sizes(&self, field: CommandField) -> Sizes {
        match sizes_slot(field).and_then(|first| self.slots.get(first..first + SIZES)) {
            Some([x, y, z, count]) => Sizes::of_slots([*x, *y, *z], *count as u8),
            _ => Sizes::default(),
        }
    }

    /// Returns the command of an event at this time. A distance that is not known counts as none; the
    /// weight is at least 1.
    #[inline]
    pub fn command(&self, time: u64, untimed: bool) -> Command {
        let long = |field: CommandField| self.slots[field as usize];
        let word = |field| u32::try_from(long(field)).unwrap_or(0);
        let short = |field| i32::try_from(long(field) as i64).unwrap_or(0);
        let memory = |field| MemoryKind::of_number(long(field) as u8).unwrap_or_default();
        let known = |field| Some(long(field) as i64).filter(|distance| *distance != UNKNOWN_DISTANCE);
        let before = |distance: i64| time.saturating_add_signed(distance.saturating_neg());
        let times = || Times {
            queued: known(CommandField::QueuedBefore).map_or(time, before),
            submitted: known(CommandField::SubmittedBefore).map_or(time, before),
            start: time,
            end: time.saturating_add_signed(known(CommandField::Duration).unwrap_or(0)),
        };
        let kind = (long(CommandField::Kind) as u8).checked_sub(1).and_then(CommandKind::of_number);
        Command {
            kind: kind.unwrap_or(self.kind),
            queue: word(CommandField::Queue),
            cause_tid: word(CommandField::CauseTid),
            cause: known(CommandField::CauseBefore).map(before),
            times: (!untimed).then(times),
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
