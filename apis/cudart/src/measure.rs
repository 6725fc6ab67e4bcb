//! Sizes that take knowledge of the API; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

/// Sizes of the types that attributes have.
const INT: usize = 4;
const LONG: usize = 8;
/// `cudaMemFabricHandle_t`.
const FABRIC: usize = 64;

/// Bytes of the value of a `cudaMemPoolAttr`; 0 for one that is not known.
pub fn pool_attribute_bytes(attribute: usize) -> usize {
    match attribute {
        // What may be reused, how memory is allocated and exported, where it is.
        1..=3 | 9..=12 | 14 | 15 => INT,
        // Sizes.
        4..=8 | 13 => LONG,
        _ => 0,
    }
}

/// Bytes of what a pool of a `cudaMemAllocationHandleType` is exported to: a
/// file descriptor, or a handle for a fabric.
pub fn exported_bytes(handle_type: usize) -> usize {
    match handle_type {
        1 => INT,
        8 => FABRIC,
        _ => 0,
    }
}

/// Bytes behind the address that is imported; a file descriptor is passed in
/// the address's place.
pub fn imported_bytes(handle_type: usize) -> usize {
    if handle_type == 8 { FABRIC } else { 0 }
}

/// 1 for a `cudaStreamCaptureStatus` that says the stream is capturing, else
/// 0: of an invalid capture the runtime returns nothing more.
pub fn if_capturing(status: usize) -> usize {
    usize::from(status == 1)
}
