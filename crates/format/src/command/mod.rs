//! Commands on devices.
//!
//! An event's name is `device:KIND` and its time the command's start; other times are distances to
//! that. A command without usable times is `device:untimed`; its time is when it was seen to be
//! complete.

mod decode;
mod field;
mod geometry;
mod kind;
mod read;

use hetrace_ctf::class::EventClass;

pub use field::{CommandField, UNKNOWN_DISTANCE};
pub use geometry::{Geometry, Sizes};
pub use kind::{CommandKind, Direction, MemoryKind};
pub use read::{Again, Pattern, Reader};

use crate::event;
use field::{KERNEL, Layout, TRANSFER, UNTIMED, Values};

/// Number of the event of a command without times. Those of others are their kinds' numbers.
pub const UNTIMED_ID: u16 = 65;
/// Its name.
pub const UNTIMED_EVENT: &str = "device:untimed";
/// What stands before the names of the others.
pub const PREFIX: &str = "device:";

/// When a command was where, in nanoseconds on the trace's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// In the queue.
    pub queued: u64,
    /// On the device.
    pub submitted: u64,
    /// Running.
    pub start: u64,
    /// Done.
    pub end: u64,
}

impl Times {
    /// Returns how long it ran.
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// A command as it stands in the trace: times of the host's clock, numbers of definitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub kind: CommandKind,
    /// Number of its queue.
    pub queue: u32,
    /// Thread that enqueued it; 0 if it is not known.
    pub cause_tid: u32,
    /// When the call that enqueued it began: exactly the time of its entry; none if it is not known.
    pub cause: Option<u64>,
    /// Its times; none if they could not be known.
    pub times: Option<Times>,
    /// When it was seen to be complete: the event's time if it has no times.
    pub seen: u64,
    /// Why it has no times, as the API says; 0 if it has.
    pub times_error: i32,
    /// Number of its function; 0 if it has none.
    pub function: u32,
    /// Bytes moved or set; not of kernels.
    pub bytes: u64,
    /// Where they came from.
    pub from: MemoryKind,
    /// Where they went.
    pub to: MemoryKind,
    /// Number of the other device; 0 if there is none.
    pub peer: u32,
    /// Negative: the error with which it ended.
    pub status: i32,
    /// Bytes of local memory that the launch asked for beside the function's own.
    pub shared: u32,
    /// How it was launched.
    pub geometry: Geometry,
    /// The graph that it was launched with; 0 if none.
    pub graph: u32,
    /// Its node of the graph.
    pub node: u64,
    /// How many launches it stands for; 0 is 1.
    pub weight: u64,
}

impl Command {
    /// Returns the event's time, number and fields.
    pub fn encode(&self) -> (u64, u16, Vec<u8>) {
        let mut body = Vec::with_capacity(96);
        let (time, id) = match self.times {
            Some(times) => (times.start, u16::from(self.kind.number())),
            None => (self.seen, UNTIMED_ID),
        };
        let layout = if self.times.is_some() { layout(self.kind) } else { UNTIMED };
        field::put(layout, &mut body, |field| self.values(field, time));
        (time, id, body)
    }

    /// Returns the values of a field; none where it has none.
    fn values(&self, field: CommandField, time: u64) -> Values {
        let before = |earlier: Option<u64>| distance(earlier, Some(time));
        let in_graph = self.graph != 0 || self.node != 0;
        match field {
            CommandField::Kind => Values::one(self.kind.number().into()),
            CommandField::Queue => Values::one(self.queue.into()),
            CommandField::CauseTid => Values::one(self.cause_tid.into()),
            CommandField::CauseBefore => before(self.cause),
            CommandField::QueuedBefore => before(self.times.map(|times| times.queued)),
            CommandField::SubmittedBefore => before(self.times.map(|times| times.submitted)),
            CommandField::Duration => {
                distance(self.times.map(|times| times.start), self.times.map(|times| times.end))
            }
            CommandField::Function => Values::some(self.function.into(), self.function != 0),
            CommandField::Bytes => Values::one(self.bytes),
            CommandField::From => Values::one(self.from.number().into()),
            CommandField::To => Values::one(self.to.number().into()),
            CommandField::Peer => Values::some(self.peer.into(), self.peer != 0),
            CommandField::Status => Values::some(i64::from(self.status) as u64, self.status != 0),
            CommandField::TimesError => Values::one(i64::from(self.times_error) as u64),
            CommandField::Shared => Values::some(self.shared.into(), self.shared != 0),
            CommandField::Offset => Values::of(self.geometry.offset.as_slice()),
            CommandField::Global => Values::of(self.geometry.global.as_slice()),
            CommandField::Local => Values::of(self.geometry.local.as_slice()),
            CommandField::Cluster => Values::of(self.geometry.cluster.as_slice()),
            CommandField::Graph => Values::some(self.graph.into(), in_graph),
            CommandField::Node => Values::some(self.node, in_graph),
            CommandField::Weight => Values::some(self.weight, self.weight > 1),
        }
    }
}

/// From one time to another, if both are known and not further apart than 64 bits say.
fn distance(from: Option<u64>, to: Option<u64>) -> Values {
    let known = from.zip(to).and_then(|(from, to)| i64::try_from(i128::from(to) - i128::from(from)).ok());
    known.map_or(Values::default(), |ns| Values::one(ns as u64))
}

fn layout(kind: CommandKind) -> Layout {
    match kind {
        CommandKind::Kernel => KERNEL,
        CommandKind::Other
        | CommandKind::Read
        | CommandKind::Write
        | CommandKind::Copy
        | CommandKind::Fill
        | CommandKind::Map
        | CommandKind::Unmap
        | CommandKind::Migrate
        | CommandKind::Marker
        | CommandKind::Barrier
        | CommandKind::Native
        | CommandKind::Free
        | CommandKind::Acquire
        | CommandKind::Release
        | CommandKind::Graph => TRANSFER,
    }
}

/// Returns the classes of commands with times, by kind.
pub fn classes() -> impl Iterator<Item = EventClass> {
    CommandKind::ALL.iter().map(|kind| class(*kind))
}

/// Returns whether an event of a device's stream is a command, by its number.
pub fn is_command(id: u16) -> bool {
    let kind = u8::try_from(id).ok().and_then(CommandKind::of_number);
    id == UNTIMED_ID || kind.is_some()
}

/// Returns the class of an event's number; none if it is no command.
pub fn class_of(id: u16) -> Option<EventClass> {
    if id == UNTIMED_ID {
        return Some(untimed_class());
    }
    let kind = CommandKind::ALL.iter().find(|kind| u64::from(kind.number()) == u64::from(id))?;
    Some(class(*kind))
}

fn class(kind: CommandKind) -> EventClass {
    let name = format!("{PREFIX}{}", kind.name());
    event(kind.number().into(), &name, field::class(layout(kind)))
}

/// Returns the class of commands without times.
pub fn untimed_class() -> EventClass {
    event(UNTIMED_ID, UNTIMED_EVENT, field::class(UNTIMED))
}

#[cfg(test)]
mod tests;
