//! What is kept of an event until its turn comes.

use std::collections::VecDeque;

use super::super::calls::{Fold, Why};
use super::super::stack::First;
use crate::trace::{FunctionId, ThreadId};
use crate::values::{Room, Values};

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
    /// A command, or a call of which more is looked at; the number of the event class is in the place of
    /// the function: only while it is scanned.
    Rare,
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
    Kind::Rare,
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
#[derive(Clone, Debug)]
pub(super) enum Special<'t> {
    /// A run of equal calls; its depth and its error are not known yet.
    Fold(Fold),
    /// An entry in a packet that lost events.
    Doubtful(FunctionId),
    /// An exit with a code of more than 32 bits.
    Failed(FunctionId, i64),
    /// An entry of which the values are shown, and whether its packet lost events.
    NotedEntry(FunctionId, bool, Values<'t>),
    /// An exit of which the values are shown, and the code if it failed.
    NotedExit(FunctionId, Option<i64>, Values<'t>),
    /// What the tracer did inside of the innermost call, ns.
    OwnWork(u64),
    /// The stream's open calls will have no end.
    GiveUp(Why),
    /// Exits of the stream's open calls may be lost.
    Doubt,
    /// The stream is the thread's from here on, and begins so.
    Begins(First),
}

/// All of them that were not needed yet, numbered in their order.
#[derive(Debug, Default)]
pub(super) struct Specials<'t> {
    all: VecDeque<Special<'t>>,
    /// The number of the first.
    first: u32,
    /// Memory of those that are done with.
    rooms: Vec<Room>,
}

impl<'t> Specials<'t> {
    /// Keeps one; gives its number.
    pub fn push(&mut self, special: Special<'t>) -> u32 {
        let number = self.first.wrapping_add(self.all.len() as u32);
        self.all.push_back(special);
        number
    }

    pub fn get(&self, number: u32) -> Option<&Special<'t>> {
        self.all.get(number.wrapping_sub(self.first) as usize)
    }

    /// Forgets those before the least of these numbers; all, if there is none.
    pub fn keep(&mut self, numbers: impl Iterator<Item = u32>) {
        let (first, rooms) = (self.first, &mut self.rooms);
        let done = numbers.map(|number| number.wrapping_sub(first) as usize).min();
        let done = done.unwrap_or(self.all.len()).min(self.all.len());
        for special in self.all.drain(..done) {
            if let Special::NotedEntry(_, _, values) | Special::NotedExit(_, _, values) = special {
                rooms.push(values.into_room());
            }
        }
        self.first = first.wrapping_add(done as u32);
    }

    /// Memory for values.
    pub fn room(&mut self) -> Room {
        self.rooms.pop().unwrap_or_default()
    }

    /// Takes it back.
    pub fn take_room(&mut self, room: Room) {
        self.rooms.push(room);
    }
}

/// Digests of one thread, one after the other in a stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub thread: ThreadId,
    /// The position of the first.
    pub start: usize,
}
