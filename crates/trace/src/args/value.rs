//! Types by name, and the values of bytes.

use hetrace_model::{Kind, Model, Type};

/// Returns a type by name.
pub(super) fn find<'m>(model: &'m Model, name: &str) -> Option<&'m Type> {
    model.types.get(name)
}

/// Returns the size of a value in bytes; 0 if it is not known.
pub(super) fn size_of_type(model: &Model, name: &str) -> usize {
    if name.ends_with('*') {
        return 8;
    }
    match find(model, name) {
        Some(ty) if ty.kind == Kind::Handle => 8,
        Some(ty) => ty.size as usize,
        None => 0,
    }
}

/// Returns up to eight little-endian bytes as a number.
pub(super) fn unsigned(bytes: &[u8]) -> u64 {
    let value = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
    bytes.iter().take(8).rev().fold(0, value)
}

/// The same, of which the highest bit is the sign.
pub(super) fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    ((unsigned(bytes) << unused) as i64) >> unused
}

/// Returns what is before the first zero byte.
pub(super) fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}
