//! Sizes that take knowledge of the API; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

use crate::hooks::IN_HOST;

/// 1 if the scalars of this handle are known to be in memory of the host, else 0.
#[inline(always)]
pub fn scalars(handle: usize) -> usize {
    usize::from(IN_HOST.contains(handle))
}

/// Bytes of a value of a `rocblas_datatype` there; 0 for a type that is not known.
pub fn value_bytes(handle: usize, data_type: usize) -> usize {
    let bytes = match data_type {
        // i8_r, u8_r, f8_r, bf8_r
        160 | 161 | 170 | 171 => 1,
        // f16_r, i8_c, u8_c, bf16_r
        150 | 164 | 165 | 168 => 2,
        // f32_r, f16_c, i32_r, u32_r, bf16_c
        151 | 153 | 162 | 163 | 169 => 4,
        // f64_r, f32_c, i32_c, u32_c
        152 | 154 | 166 | 167 => 8,
        // f64_c
        155 => 16,
        _ => 0,
    };
    scalars(handle) * bytes
}
