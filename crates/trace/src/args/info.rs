//! Bytes whose type the model knows: values of queries.

use std::fmt::Write;

use hetrace_model::{Kind, Model, Type};

use super::compound::{Tags, write_value};
use super::names::{group, quoted, write_bytes, write_named};

/// Appends a value of a type as in [`Model::info`].
pub(super) fn write_info(out: &mut String, model: &Model, ty: &str, bytes: &[u8]) {
    if ty == "string" {
        return quoted(out, &text(bytes));
    }
    if let Some(base) = ty.strip_suffix("{}") {
        return write_pairs(out, model, base, &words(model, base, bytes));
    }
    let (base, array) = match ty.strip_suffix("[]") {
        Some(base) => (base, true),
        None => (ty, false),
    };
    let size = size_of_type(model, base);
    if size == 0 || (!array && bytes.len() < size) {
        return write_bytes(out, bytes);
    }
    if !array {
        return write_value(out, &Tags::new(model, [None, None]), base, &bytes[..size]);
    }
    out.push('[');
    for (i, element) in bytes.chunks_exact(size).enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        write_value(out, &Tags::new(model, [None, None]), base, element);
    }
    out.push(']');
}

/// Appends pairs of a property's name and its value, as `{A: 1, B: 2}`.
pub(super) fn write_pairs(out: &mut String, model: &Model, base: &str, words: &[i64]) {
    let names = find(model, base).and_then(|ty| group(model, ty.values.as_ref()));
    out.push('{');
    for (i, pair) in words.chunks(2).enumerate() {
        let key = pair[0];
        let Some(&value) = pair.get(1) else { break };
        if key == 0 {
            break;
        }
        out.push_str(if i > 0 { ", " } else { "" });
        let at = out.len();
        match names {
            Some(group) => write_named(out, group, key),
            None => {
                let _ = write!(out, "{key:#x}");
            }
        }
        // What a property's value is, the queries know.
        let ty = model.info.get(&out[at..]).cloned();
        out.push_str(": ");
        let bytes = value.to_le_bytes();
        match ty {
            Some(ty) if find(model, &ty).is_some() => {
                let size = size_of_type(model, &ty).clamp(1, 8);
                write_value(out, &Tags::new(model, [None, None]), &ty, &bytes[..size]);
            }
            _ => {
                let _ = write!(out, "{value:#x}");
            }
        }
    }
    out.push('}');
}

pub(super) fn find<'m>(model: &'m Model, name: &str) -> Option<&'m Type> {
    model.types.iter().find(|t| t.name == name)
}

/// The size of a value, 0 if it is not known.
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

/// The values of a list, of the size that its type has.
fn words(model: &Model, base: &str, bytes: &[u8]) -> Vec<i64> {
    let size = size_of_type(model, base).clamp(1, 8);
    bytes.chunks_exact(size).map(|chunk| unsigned(chunk) as i64).collect()
}

/// Up to eight little-endian bytes.
pub(super) fn unsigned(bytes: &[u8]) -> u64 {
    let value = |n: u64, byte: &u8| n << 8 | u64::from(*byte);
    bytes.iter().take(8).rev().fold(0, value)
}

pub(super) fn signed(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    ((unsigned(bytes) << unused) as i64) >> unused
}

pub(super) fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end])
}
