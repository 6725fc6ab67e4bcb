//! Bytes whose type the model knows: values of queries.

use std::fmt::Write;

use hetrace_model::Model;

use super::compound::{Tags, write_value};
use super::names::{group, quoted, write_bytes, write_named};
use super::value::{find, size_of_type, text, unsigned};

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

/// The values of a list, of the size that its type has.
fn words(model: &Model, base: &str, bytes: &[u8]) -> Vec<i64> {
    let size = size_of_type(model, base).clamp(1, 8);
    bytes.chunks_exact(size).map(|chunk| unsigned(chunk) as i64).collect()
}
