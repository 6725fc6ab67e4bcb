//! Types of objects.

use hetrace_trace::values::Place;

/// Number of a type of objects.
pub(super) type KindId = u32;

/// A type of objects that functions make.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub name: String,
    /// References are counted.
    pub counted: bool,
    /// Programs are to give it back.
    pub leaks: bool,
    /// Something to wait for.
    pub event: bool,
    /// An event that the program may complete itself.
    pub completed: bool,
    /// What all others belong to.
    pub context: bool,
    /// Where commands go.
    pub queue: bool,
    /// It holds memory.
    pub memory: bool,
}

/// What a function makes or hands out.
pub(super) type Handed = Vec<(Place, KindId)>;
