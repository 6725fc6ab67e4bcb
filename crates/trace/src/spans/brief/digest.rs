//! What is kept of an event until its turn comes.

use super::super::calls::{Fold, Why};
use crate::trace::{FunctionId, ThreadId};

/// An entry, an exit, or both of a call with nothing between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digest {
    pub time: u64,
    /// What [`Kind`] says.
    pub word: u32,
    /// Function and kind.
    what: u32,
}

/// The kinds of digests, and what their words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call: how long it took.
    Leaf,
    /// An entry: nothing.
    Entry,
    /// The exit of a call that went well: nothing.
    Exit,
    /// The exit of one that failed: the code.
    Failed,
    /// Something rare: the number of a [`Special`].
    Special,
    /// The exit of a call that failed if its result is 0: only while it is scanned.
    NonZero,
    /// The exit of a call that went well if its result is 0, or may have: only while it is scanned.
    State,
    /// A command, whose number of the event class is in the place of the function: only while it is
    /// scanned.
    Command,
}

/// By number.
const KINDS: [Kind; 8] = [
    Kind::Leaf,
    Kind::Entry,
    Kind::Exit,
    Kind::Failed,
    Kind::Special,
    Kind::NonZero,
    Kind::State,
    Kind::Command,
];
const KIND_BITS: u32 = 3;

/// The greatest number of a function that fits.
pub(super) const MOST_FUNCTIONS: usize = 1 << (u32::BITS - KIND_BITS);

/// Function and kind in one number.
pub(super) fn what(kind: Kind, function: u32) -> u32 {
    function << KIND_BITS | kind as u32
}

/// The number in the place of the function.
#[inline]
pub(super) fn number(what: u32) -> u32 {
    what >> KIND_BITS
}

/// Whether it is of this kind.
#[inline]
pub(super) fn is(what: u32, kind: Kind) -> bool {
    what % KINDS.len() as u32 == kind as u32
}

/// The same with another kind.
#[inline]
pub(super) fn turned(what: u32, kind: Kind) -> u32 {
    what & !(KINDS.len() as u32 - 1) | kind as u32
}

impl Digest {
    /// `what` is of [`what`].
    #[inline]
    pub fn of(what: u32, time: u64, word: u32) -> Self {
        Self { time, word, what }
    }

    #[inline]
    pub fn new(kind: Kind, function: u32, time: u64, word: u32) -> Self {
        Self::of(what(kind, function), time, word)
    }

    /// Function and kind.
    #[inline]
    pub fn what(self) -> u32 {
        self.what
    }

    #[inline]
    pub fn kind(self) -> Kind {
        KINDS[(self.what % KINDS.len() as u32) as usize]
    }

    #[inline]
    pub fn function(self) -> FunctionId {
        FunctionId(self.what >> KIND_BITS)
    }

    /// When it is over.
    #[inline]
    pub fn end(self) -> u64 {
        if self.kind() == Kind::Leaf { self.time.saturating_add(self.word.into()) } else { self.time }
    }

    /// The entry and the exit of a call.
    pub fn split(self) -> (Digest, Digest) {
        let function = self.what >> KIND_BITS;
        let entry = Self::new(Kind::Entry, function, self.time, 0);
        (entry, Self::new(Kind::Exit, function, self.end(), 0))
    }
}

/// What does not fit a digest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Special {
    /// A run of equal calls; its depth and its error are not known yet.
    Fold(Fold),
    /// An entry in a packet that lost events.
    Doubtful(FunctionId),
    /// An exit with a code of more than 32 bits.
    Failed(FunctionId, i64),
    /// The stream's open calls will have no end.
    GiveUp(Why),
    /// Exits of the stream's open calls may be lost.
    Doubt,
    /// The stream is the thread's from here on.
    Begins,
}

/// Digests of one thread, one after the other in a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub thread: ThreadId,
    /// The position of the first.
    pub start: usize,
}
