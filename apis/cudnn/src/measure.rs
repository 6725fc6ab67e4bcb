//! Sizes that only the API itself knows; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

/// Bytes of an element of an attribute of a `cudnnBackendAttributeType_t`; 0 of a type that is not known.
pub fn element_bytes(attribute_type: usize) -> usize {
    match attribute_type {
        // BOOLEAN, CHAR
        2 | 24 => 1,
        // DATA_TYPE, FLOAT, INT32; enumerations
        1 | 4 | 7..=14 | 16..=23 | 25 | 27..=33 => 4,
        // HANDLE, INT64, DOUBLE, VOID_PTR, BACKEND_DESCRIPTOR
        0 | 3 | 5 | 6 | 15 => 8,
        // FRACTION: two numbers of 64 bits
        26 => 16,
        _ => 0,
    }
}

/// Bytes of a value of a `cudnnDataType_t`; 0 of a type that is not known, and of those of less than a byte.
pub fn value_bytes(data_type: usize) -> usize {
    match data_type {
        // INT8, UINT8, BOOLEAN, the kinds of FP8, BYTE_BOOLEAN
        3 | 6 | 11..=13 | 15 | 22 | 23 => 1,
        // HALF, BFLOAT16
        2 | 9 => 2,
        // FLOAT, INT32, INT8x4, UINT8x4, FAST_FLOAT_FOR_FP8, UINT32
        0 | 4 | 5 | 7 | 14 | 19 => 4,
        // DOUBLE, INT64, COMPLEX_FP32
        1 | 10 | 20 => 8,
        // COMPLEX_FP64
        21 => 16,
        // INT8x32
        8 => 32,
        _ => 0,
    }
}

/// Dimensions of `n` behind the first two, those of images and channels.
pub fn spatial(n: usize) -> usize {
    n.saturating_sub(2)
}
