//! What names a thing of a process.

/// A handle, id or other number by which an API names something of a process: a device, a queue, a
/// function, a call's correlation. It is the API's own: equal numbers of two APIs are two
/// things, and no API refers to what another one has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Number of the API in the session: that of the ring in which the record stands.
    pub api: usize,
    /// The number.
    pub value: u64,
}
