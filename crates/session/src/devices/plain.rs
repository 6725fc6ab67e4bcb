//! Bytes of a ring as records. What does not fit is refused.

use hetrace_ring::abi::{
    ClockRecord, CommandRecord, CountRecord, DeviceRecord, FrameRecord, FunctionRecord, LinkRecord,
    ModuleRecord, ObjectRecord, PendingRecord, PropertyRecord, PyFrameRecord, QueueRecord,
};

/// Returns a record and what stands behind it. `None` if the bytes are too few.
pub fn split<T: Plain>(bytes: &[u8]) -> Option<(T, &[u8])> {
    let (head, rest) = bytes.split_at_checked(size_of::<T>())?;
    // SAFETY: enough bytes, of a type that is valid for all bit patterns.
    Some((unsafe { head.as_ptr().cast::<T>().read_unaligned() }, rest))
}

/// Text up to its NUL.
pub fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|b| *b == 0).next().unwrap_or_default()
}

/// Marker of structs of integers only.
///
/// # Safety
/// Every bit pattern is a valid value.
pub unsafe trait Plain: Copy {}

// SAFETY: integers only.
unsafe impl Plain for CommandRecord {}
// SAFETY: integers only.
unsafe impl Plain for ClockRecord {}
// SAFETY: integers only.
unsafe impl Plain for QueueRecord {}
// SAFETY: integers only.
unsafe impl Plain for ObjectRecord {}
// SAFETY: integers only.
unsafe impl Plain for PendingRecord {}
// SAFETY: integers only.
unsafe impl Plain for LinkRecord {}
// SAFETY: integers only.
unsafe impl Plain for FunctionRecord {}
// SAFETY: integers only.
unsafe impl Plain for CountRecord {}
// SAFETY: integers only.
unsafe impl Plain for DeviceRecord {}
// SAFETY: integers only.
unsafe impl Plain for PropertyRecord {}
// SAFETY: integers only.
unsafe impl Plain for PyFrameRecord {}
// SAFETY: integers only.
unsafe impl Plain for FrameRecord {}
// SAFETY: integers only.
unsafe impl Plain for ModuleRecord {}
