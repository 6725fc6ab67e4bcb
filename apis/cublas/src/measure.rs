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
    scalars(handle) * part(data_type) * parts(data_type)
}

/// Bytes of a scalar there, of a `cublasComputeType_t`: two numbers if the matrices are complex, as a `cudaDataType` says.
pub fn compute_bytes(handle: usize, compute: usize, matrix: usize) -> usize {
    let number = match compute {
        // 16F
        64 | 65 => 2,
        // 32F and its faster and emulated ways, 32I
        68 | 69 | 72..=75 | 77 | 78 => 4,
        // 64F, also emulated
        70 | 71 | 79 => 8,
        _ => 0,
    };
    scalars(handle) * number * parts(matrix)
}

/// Bytes of one number of a `cudaDataType`.
fn part(data_type: usize) -> usize {
    match data_type {
        // 32F, 32I, 32U, real and complex
        0 | 4 | 10..=13 => 4,
        // 64F, 64I, 64U
        1 | 5 | 24..=27 => 8,
        // 16F, 16BF, 16I, 16U
        2 | 6 | 14 | 15 | 20..=23 => 2,
        // 8I, 8U
        3 | 7..=9 => 1,
        _ => 0,
    }
}

/// Numbers in one value of a `cudaDataType`: complex ones have two.
fn parts(data_type: usize) -> usize {
    match data_type {
        4..=7 | 9 | 11 | 13 | 15 | 17 | 19 | 21 | 23 | 25 | 27 => 2,
        _ => 1,
    }
}
