//! What an open call was passed, as far as rules ask for it when it ends.

use super::duties::MadeNow;
use super::facts::Facts;
use super::findings::{Hit, Ref};
use super::kinds::KindId;
use super::objects::Memory;
use super::order::Id;
use super::reads::Argument;
use super::span::Span;
use hetrace_trace::facts::Waits;
use hetrace_trace::values::{Place, Values};

/// What an open call was passed. It is filled anew for each call, as it is large and calls are many.
#[derive(Clone, Debug, Default)]
pub(super) struct Passed {
    /// Whether the call is open; otherwise nothing of it counts.
    pub open: bool,
    pub call: Ref,
    /// Positions of its thread and its process.
    pub by: By,
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
    /// Whether it has any of what few functions have: see [`Facts::rare`].
    rare: bool,
    /// Of what it was passed but handles; only where [`Reads`](super::reads::Reads) says so.
    pub hash: u64,
    /// Of what sets an argument.
    pub argument: Option<Setting>,
    /// The kernel that it launches.
    pub kernel: Option<u64>,
    /// The bits that say what it makes.
    pub flags: u64,
    /// The address of bytes that it reads before it returns.
    pub host: Option<u64>,
    /// The address whose mapping it ends.
    pub unmapped: Option<u64>,
    /// What is known of the arguments of the kernel that it launches.
    pub launched: Launched,
    /// The memory objects among them, where they are looked at.
    pub used: Vec<Used>,
    /// What it sends, where the trace has the hash of it.
    pub hashed: Option<Hashed>,
    /// It repeats a copy that nothing has read.
    pub repeats: bool,
    /// The command that it enqueued.
    pub command: Id,
    /// The last command of its process when it began.
    pub mark: Id,
    /// What it waits for was known to be over when it began.
    pub idle: bool,
    /// What is wrong with it, whatever comes of it.
    pub faults: Vec<Hit>,
    /// Objects and addresses whose end is to be taken back if it fails.
    pub ended: Vec<(Option<KindId>, u64)>,
    /// Whether it took a reference.
    pub retained: bool,
    /// What it says of what it makes, and for which device; only of functions with duties.
    pub made: MadeNow,
    pub device: Option<u64>,
}

/// What a call sends, by its hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashed {
    pub hash: u64,
    pub bytes: u64,
    /// How long hashing took, in the call.
    pub ns: u64,
}

/// What is known of a launch's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Launched {
    /// Nothing.
    #[default]
    Unknown,
    /// Which memory objects they are.
    Objects,
    /// They are as when a launch of this kernel was looked at last, and no object came or went.
    Same,
}

/// A memory object that a launch uses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used {
    pub object: (KindId, u64),
    pub memory: Memory,
    pub bytes: Option<u64>,
}

/// A call that sets an argument.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    /// Whose.
    pub of: u64,
    /// Which one.
    pub index: u64,
    /// Its value, if it may be a handle.
    pub value: Option<u64>,
    /// How many bytes were recorded of it; 0 if it has no value.
    pub bytes: usize,
    /// The memory object that the value is.
    pub object: Option<(KindId, u64)>,
}

/// Who calls, as positions in tables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct By {
    pub thread: usize,
    pub process: usize,
}

impl Passed {
    /// A call begins, the outermost if it is `root`.
    pub fn begin(&mut self, facts: &Facts<'_>, values: &Values<'_>, call: Ref, by: By, root: bool) {
        let reads = &facts.numbers;
        self.handles.clear();
        for &(at, kind) in &facts.handles {
            // Nearly always one, for which there is room.
            for handle in values.all(Place::Param(at)) {
                self.handles.push((at, kind, *handle));
            }
        }
        self.waits = match facts.waits {
            Waits::Never => false,
            Waits::Always => true,
            Waits::If(at) => values.first(Place::Param(at)).is_some_and(|value| value != 0),
        };
        (self.open, self.call, self.by, self.root) = (true, call, by, root);
        (self.outer, self.root_waits) = (call, self.waits);
        if facts.rare || self.rare {
            self.begin_rare(facts, values);
        }
        self.hash = values.hash;
        self.argument = reads.argument.and_then(|argument| set_by(&argument, values));
        (self.command, self.mark, self.idle, self.repeats) = (0, 0, false, false);
        self.hashed = None;
        self.launched = Launched::Unknown;
        self.used.clear();
        self.faults.clear();
        self.ended.clear();
        self.retained = false;
    }

    /// What few functions have, so that those that set arguments need not look for it.
    fn begin_rare(&mut self, facts: &Facts<'_>, values: &Values<'_>) {
        let reads = &facts.numbers;
        self.rare = facts.rare;
        self.queue = reads.queue.and_then(|queue| queue.get(values));
        self.size = reads.size.and_then(|size| size.get(values));
        (self.source, self.target) = reads.moved.map_or((None, None), |moved| moved.spans(values));
        self.freed.clear();
        if let Some(at) = facts.frees {
            self.freed.extend_from_slice(values.all(Place::Param(at)));
        }
        self.kernel = reads.kernel.and_then(|at| values.first(Place::Param(at)));
        self.flags = reads.flags.map_or(0, |bits| bits.get(values));
        self.host = facts.host.and_then(|at| values.first(Place::Param(at)));
        self.unmapped = reads.unmapped.and_then(|at| values.first(Place::Param(at)));
    }
}

/// What a call sets that sets an argument.
fn set_by(argument: &Argument, values: &Values<'_>) -> Option<Setting> {
    let one_by_one = || {
        let recorded = values.all(Place::Param(argument.value));
        (recorded.len(), word(recorded))
    };
    let (recorded, value) = values.packed.unwrap_or_else(one_by_one);
    let of = values.first(Place::Param(argument.of))?;
    let index = values.first(Place::Param(argument.index))?;
    let bytes = if argument.has_bytes { recorded } else { 0 };
    Some(Setting { of, index, value, bytes, object: None })
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
