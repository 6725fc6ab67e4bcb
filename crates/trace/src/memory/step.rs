//! What calls did to memory, step by step.

use hetrace_model::Place;

use crate::owners::ApiIndex;

/// What memory belongs to, as a call says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// The handle of a context.
    Context(u64),
    /// The handle or the number of a device.
    Device(u64),
}

/// A holder with the API whose handle or number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    /// The API that alone has it; none if it may be one of any.
    pub api: Option<ApiIndex>,
    /// None where the call does not say it.
    pub holder: Option<Holder>,
}

/// What a call did.
#[derive(Clone, Debug)]
pub(super) enum What {
    Made {
        address: u64,
        bytes: Option<u64>,
        place: Place,
        holder: Option<Holder>,
    },
    /// A part of other memory was made, or memory that somebody else counts.
    Part {
        address: u64,
    },
    /// Whether another API holds the memory for the one whose this is, from now on.
    Below {
        address: u64,
        held: bool,
    },
    /// Nothing was made, because of an error.
    Failed {
        place: Place,
        holder: Option<Holder>,
    },
    Retained {
        address: u64,
    },
    Released {
        address: u64,
        at_once: bool,
    },
    /// All that belongs to this has ended; none for what is current.
    Reset {
        holder: Option<Holder>,
    },
    /// The context is on these devices.
    Context {
        context: u64,
        devices: Box<[u64]>,
    },
    /// This is what the thread's later calls belong to.
    Set(Option<Holder>),
    Pushed(Option<Holder>),
    Popped,
}

/// Something that a thread did.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub time: u64,
    pub pid: i64,
    pub tid: i64,
    /// The API that alone has the handles and addresses of the step; none if they may be of any.
    pub api: Option<ApiIndex>,
    pub what: What,
}

/// Whether what is of one API may be the same as what is of another one.
pub(super) fn may_be_one(a: Option<ApiIndex>, b: Option<ApiIndex>) -> bool {
    a.is_none() || b.is_none() || a == b
}
