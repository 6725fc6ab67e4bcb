//! A command that is to be counted.

/// What is needed of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub pid: i64,
    pub tid: i64,
    pub cause: u64,
    pub queue: u64,
    /// Whether that is a default queue, which calls may name otherwise.
    pub on_default: bool,
    pub is_kernel: bool,
    pub function: u32,
    /// ns
    pub end: u64,
    /// ns
    pub time: u64,
    pub commands: u64,
}
