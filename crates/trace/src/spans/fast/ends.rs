//! Where streams end, for others that begin: a thread has one stream of an API at a time.

use crate::trace::ThreadId;

/// A stream, for others that begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamEnd {
    /// The position of its class, and whose it is.
    pub of: Option<(usize, ThreadId)>,
    pub end: When,
}

/// When a stream is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// After its last event, which is of this time.
    After(u64),
    /// Not before the next round.
    Later,
    Unknown,
}
