//! The fields of a command's event, as they come, to a command.

use hetrace_ctf::Scalar;

use super::field::{CommandField, UNKNOWN_DISTANCE};
use super::{Command, CommandKind, MemoryKind, Times};

/// Takes the fields of a command. Those that do not come have been written by an older version: they
/// are 0, or not known.
#[derive(Debug, Clone, Copy)]
pub struct Decoder {
    command: Command,
    cause_before: i64,
    queued_before: i64,
    submitted_before: i64,
    duration: i64,
}

impl Decoder {
    /// For an event of a kind; of one without times a field says the kind.
    #[inline]
    pub fn new(kind: CommandKind) -> Self {
        Decoder {
            command: Command { kind, ..Command::default() },
            cause_before: UNKNOWN_DISTANCE,
            queued_before: 0,
            submitted_before: 0,
            duration: 0,
        }
    }

    /// A value of a field; `element` counts those of a list.
    #[inline]
    pub fn set(&mut self, field: CommandField, element: usize, value: Scalar<'_>) {
        let signed = || value.as_i64().unwrap_or(0);
        let short = || i32::try_from(signed()).unwrap_or(0);
        let long = || value.as_u64().unwrap_or(0);
        let word = || u32::try_from(long()).unwrap_or(0);
        let command = &mut self.command;
        match field {
            CommandField::Kind => command.kind = kind(value).unwrap_or(command.kind),
            CommandField::Queue => command.queue = word(),
            CommandField::CauseTid => command.cause_tid = word(),
            CommandField::CauseBefore => self.cause_before = signed(),
            CommandField::QueuedBefore => self.queued_before = signed(),
            CommandField::SubmittedBefore => self.submitted_before = signed(),
            CommandField::Duration => self.duration = signed(),
            CommandField::Function => command.function = word(),
            CommandField::Bytes => command.bytes = long(),
            CommandField::From => command.from = memory(value),
            CommandField::To => command.to = memory(value),
            CommandField::Peer => command.peer = word(),
            CommandField::Status => command.status = short(),
            CommandField::TimesError => command.times_error = short(),
            CommandField::Shared => command.shared = word(),
            CommandField::Offset => command.geometry.offset.set(element, long()),
            CommandField::Global => command.geometry.global.set(element, long()),
            CommandField::Local => command.geometry.local.set(element, long()),
            CommandField::Cluster => command.geometry.cluster.set(element, long()),
            CommandField::Graph => command.graph = word(),
            CommandField::Node => command.node = long(),
            CommandField::Weight => command.weight = long(),
        }
    }

    /// Returns the command of an event at this time. A distance that is not known counts as none; the
    /// weight is at least 1.
    #[inline]
    pub fn command(self, time: u64, untimed: bool) -> Command {
        let known = |distance: i64| (distance != UNKNOWN_DISTANCE).then_some(distance);
        let before = |distance: i64| time.saturating_add_signed(distance.saturating_neg());
        let times = Times {
            queued: known(self.queued_before).map_or(time, before),
            submitted: known(self.submitted_before).map_or(time, before),
            start: time,
            end: time.saturating_add_signed(known(self.duration).unwrap_or(0)),
        };
        Command {
            cause: known(self.cause_before).map(before),
            times: (!untimed).then_some(times),
            seen: time,
            weight: self.command.weight.max(1),
            ..self.command
        }
    }
}

/// Returns a kind by its name, which is what counts; the number only says where to look for it first.
fn kind(value: Scalar<'_>) -> Option<CommandKind> {
    let name = value.as_str()?;
    let by_number = value.as_u64().and_then(|n| CommandKind::of_number(u8::try_from(n).ok()?));
    by_number.filter(|kind| kind.name() == name).or_else(|| CommandKind::of_name(name))
}

#[inline]
fn memory(value: Scalar<'_>) -> MemoryKind {
    let Some(name) = value.as_str() else { return MemoryKind::Unknown };
    let by_number = value.as_u64().and_then(|n| MemoryKind::of_number(u8::try_from(n).ok()?));
    by_number
        .filter(|kind| kind.name() == name)
        .or_else(|| MemoryKind::of_name(name))
        .unwrap_or(MemoryKind::Unknown)
}
