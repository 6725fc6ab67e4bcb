//! Sizes that only the API itself knows; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;

/// Bytes of an element of an attribute of a `miopenBackendAttributeType_t`; 0 of a type that is not known.
pub fn element_bytes(attribute_type: usize) -> usize {
    match attribute_type {
        // BOOLEAN, CHAR
        2 | 24 => 1,
        // DATA_TYPE, FLOAT, INT32; enumerations
        1 | 4 | 7..=14 | 16..=23 | 25 | 27..=29 => 4,
        // HANDLE, INT64, DOUBLE, VOID_PTR, BACKEND_DESCRIPTOR
        0 | 3 | 5 | 6 | 15 => 8,
        // FRACTION: two numbers of 64 bits
        26 => 16,
        _ => 0,
    }
}
