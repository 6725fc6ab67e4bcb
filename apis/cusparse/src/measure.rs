//! Sizes that take knowledge of the API; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

use crate::hooks::IN_HOST;

/// 1 if the scalars of this handle are known to be in memory of the host, else 0.
#[inline(always)]
pub fn scalars(handle: usize) -> usize {
    usize::from(IN_HOST.contains(handle))
}

/// Bytes of a value of a `cudaDataType` there; 0 for a type that is not known.
pub fn value_bytes(handle: usize, data_type: usize) -> usize {
    let bytes = match data_type {
        // 8I, 8U
        3 | 8 => 1,
        // 16F, 16BF; of two of 8 bits
        2 | 14 | 7 | 9 => 2,
        // 32F, 32I, 32U; 16F and 16BF, complex
        0 | 10 | 12 | 6 | 15 => 4,
        // 64F; 32F, 32I, 32U, complex
        1 | 4 | 11 | 13 => 8,
        // 64F, complex
        5 => 16,
        _ => 0,
    };
    scalars(handle) * bytes
}
