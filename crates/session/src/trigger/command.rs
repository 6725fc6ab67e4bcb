//! What triggers compare of commands on devices.

use hetrace_format::command::CommandKind;

use super::fields::Value;
use super::units::{Dimension, Number};

/// Which commands are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Those that run a function.
    Kernels,
    /// Those that move bytes.
    Copies,
    /// All.
    All,
}

/// What of a command is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The function that it runs; of others what it does: `read`, `write`, `copy`, `fill`, …
    Name,
    /// How long it ran.
    Duration,
    /// From the call that enqueued it to its start.
    Wait,
    /// Bytes that it moves.
    Size,
    /// The process that enqueued it.
    Pid,
    /// The thread.
    Tid,
}

/// Words for commands.
pub const SETS: &[(&str, Set)] = &[("kernel", Set::Kernels), ("copy", Set::Copies), ("command", Set::All)];

/// Words for what is compared.
pub const PROPERTIES: &[(&str, Of)] = &[
    ("name", Of::Name),
    ("duration", Of::Duration),
    ("wait", Of::Wait),
    ("size", Of::Size),
    ("pid", Of::Pid),
    ("tid", Of::Tid),
];

/// Finds what a word means in one of these lists.
pub fn meant<T: Copy>(list: &[(&str, T)], word: &str) -> Option<T> {
    list.iter().find(|(name, _)| *name == word).map(|(_, what)| *what)
}

impl Set {
    /// Returns whether commands of a kind are meant.
    pub fn has(self, kind: CommandKind) -> bool {
        use CommandKind::{Copy, Kernel, Migrate, Read, Write};
        match self {
            Set::Kernels => kind == Kernel,
            Set::Copies => matches!(kind, Read | Write | Copy | Migrate),
            Set::All => true,
        }
    }
}

impl Of {
    /// Returns what its values are of; none of texts.
    pub fn dimension(self) -> Option<Dimension> {
        match self {
            Of::Name => None,
            Of::Duration | Of::Wait => Some(Dimension::Time),
            Of::Size => Some(Dimension::Bytes),
            Of::Pid | Of::Tid => Some(Dimension::Plain),
        }
    }
}

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// What it does.
    pub kind: CommandKind,
    /// The function that it runs, if it is known and runs one.
    pub function: String,
    /// When it started and ended; none if that is not known.
    pub times: Option<(u64, u64)>,
    /// When the call began that enqueued it.
    pub cause: Option<u64>,
    /// Bytes that it moves.
    pub bytes: u64,
    /// Who enqueued it.
    pub pid: u32,
    /// See [`Ran::pid`].
    pub tid: u32,
}

impl Ran {
    /// Returns what it is called.
    pub fn name(&self) -> &str {
        if self.kind == CommandKind::Kernel { &self.function } else { self.kind.name() }
    }

    /// Returns what is compared; none if it is not known.
    pub fn value(&self, of: Of) -> Option<Value> {
        let whole = |number: u64| Some(Value::Number(Number::Int(number.into())));
        match of {
            Of::Name => Some(Value::Text(self.name().to_owned())),
            Of::Duration => self.times.and_then(|(start, end)| whole(end.saturating_sub(start))),
            Of::Wait => {
                self.times.zip(self.cause).and_then(|((start, _), cause)| whole(start.saturating_sub(cause)))
            }
            Of::Size => whole(self.bytes),
            Of::Pid => whole(self.pid.into()),
            Of::Tid => whole(self.tid.into()),
        }
    }
}
