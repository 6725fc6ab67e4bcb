//! What formats with properties or columns of their own say is missing of a trace.

/// Of events.
pub const LOST_EVENTS: &str = "events lost while recording";
/// Of context switches.
pub const UNSEEN_SWITCHES: &str = "context switches that the kernel did not deliver";
/// Of packets.
pub const LOST_PACKETS: &str = "packets missing from the streams";
/// Of files.
pub const DIFFERENCES: &str = "files that are missing, or not as they were written";
