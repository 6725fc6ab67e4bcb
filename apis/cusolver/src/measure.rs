//! Sizes that only the API itself knows; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

/// Bytes of a real value of a `cudaDataType`; 0 of a type that is not known.
pub fn value_bytes(data_type: usize) -> usize {
    match data_type {
        // 16F, 16BF
        2 | 14 => 2,
        // 32F
        0 => 4,
        // 64F
        1 => 8,
        _ => 0,
    }
}
