//! What reading the trace hands over to the rules: steps in their order, many at a time.

use hetrace_trace::sent::SentBytes;
use hetrace_trace::spans::{Call, Command, CommandKind, Fold, Geometry, MemoryKind, Open, Times, Unfinished};
use hetrace_trace::values::Values;

use super::findings::Hit;

/// Steps of a batch: enough that handing them over is seldom, few enough that they stay in a processor's cache.
const STEPS: usize = 1024;

/// A process and a thread.
pub(super) type Ids = (i64, i64);

/// What the rules look at next. Numbers are places in the [`Batch`].
#[derive(Debug)]
pub(super) enum Step {
    /// A call begins, with what it was passed.
    Entry(Open, u32),
    /// It ends, with what came back, if anything of that is asked for.
    Exit(Call, Option<u32>),
    /// A command has run.
    Command(u32),
    /// Any other.
    Rare(Box<Rare>),
}

/// Steps that are few.
#[derive(Debug)]
pub(super) enum Rare {
    /// What is wrong with structs of the call that begins next.
    Structs(Vec<Hit>),
    /// A call of this thread will have no end.
    Unfinished(Ids, Unfinished),
    /// A run of polls.
    Polls(Ids, Fold),
    /// What an open call of this process sends, and at which time it was hashed.
    Hashed(i64, u64, SentBytes),
    /// Calls of this process are added up from now on.
    SumsUp(i64),
    /// A call of a function that no model has.
    Unknown,
}

/// A command, as rules ask for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    pub kind: CommandKind,
    pub pid: i64,
    pub cause_tid: i64,
    pub cause: u64,
    pub times: Option<Times>,
    pub bytes: u64,
    pub from: MemoryKind,
    pub to: MemoryKind,
    pub geometry: Geometry,
    pub weight: u64,
    /// The kernel's number; 0 if it is not known.
    pub kernel: u32,
    /// Compute units of its device; 0 if they are not known.
    pub units: u64,
}

impl From<&Command<'_>> for Ran {
    fn from(command: &Command<'_>) -> Self {
        let &Command { kind, pid, cause_tid, cause, times, bytes, from, to, geometry, weight, .. } = command;
        let kernel = command.function.map_or(0, |kernel| kernel.id);
        let units = command.on_device.map_or(0, |device| u64::from(device.compute_units));
        Self { kind, pid, cause_tid, cause, times, bytes, from, to, geometry, weight, kernel, units }
    }
}

/// Steps, and what they refer to. Its memory is used again.
#[derive(Debug, Default)]
pub(super) struct Batch<'t> {
    pub steps: Vec<Step>,
    /// Threads that come up in this batch first, by position behind all before.
    pub threads: Vec<Ids>,
    pub commands: Vec<Ran>,
    /// Of which so many are in use.
    values: Vec<Values<'t>>,
    used: usize,
}

impl<'t> Batch<'t> {
    pub fn is_full(&self) -> bool {
        self.steps.len() >= STEPS
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Forgets all steps.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.threads.clear();
        self.commands.clear();
        self.used = 0;
    }

    /// Values to be read, and their number.
    pub fn room(&mut self) -> (u32, &mut Values<'t>) {
        let at = self.used;
        self.used += 1;
        if self.values.len() <= at {
            self.values.resize_with(at + 1, Values::default);
        }
        // There are at most two for each step.
        (at as u32, &mut self.values[at])
    }

    /// The values of this number.
    pub fn values(&self, number: u32) -> Option<&Values<'t>> {
        self.values.get(number as usize)
    }
}
