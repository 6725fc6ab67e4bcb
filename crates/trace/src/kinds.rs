//! What kinds of commands mean for a device.

/// Returns whether a command of this kind keeps its device busy.
pub fn keeps_busy(kind: &str) -> bool {
    !matches!(kind, "marker" | "barrier" | "acquire" | "release" | "free")
}

/// Returns whether a command of this kind moves or sets memory.
pub fn is_traffic(kind: &str) -> bool {
    matches!(kind, "read" | "write" | "copy" | "fill" | "map" | "unmap" | "migrate")
}
