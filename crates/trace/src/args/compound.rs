//! Structs and unions, by what the model says lies where in them.
//!
//! A trace has a struct byte by byte as C lays it out, unions as bytes without
//! more. So the memory is put together again and shown by its type; which member
//! of a union is meant, a member beside it or a parameter says.

use std::fmt::Write;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::FieldClass;
use hetrace_model::layout::recorded_size;
use hetrace_model::{CHAIN_HEAD, Kind, Member, Model, Type};

use super::names::{group, quoted, write_bytes, write_named};
use super::pieces::Args;
use super::value::{find, signed, size_of_type, text, unsigned};

/// How deep structs in structs are followed.
const MAX_DEPTH: u32 = 8;
/// Elements shown of an array in a struct.
const MAX_ELEMENTS: usize = 64;

/// Where the member that is meant of a union may stand.
#[derive(Clone, Copy)]
pub(super) struct Tags<'a> {
    model: &'a Model,
    /// Arguments read so far.
    args: [Option<&'a Args<'a>>; 2],
}

/// A struct or union that a value stands in.
struct Around<'a> {
    ty: &'a Type,
    bytes: &'a [u8],
    outer: Option<&'a Around<'a>>,
}

impl<'a> Tags<'a> {
    pub fn new(model: &'a Model, args: [Option<&'a Args<'a>>; 2]) -> Self {
        Self { model, args }
    }

    /// The member of a union that is meant.
    fn meant<'t>(&self, ty: &'t Type, bytes: &[u8], around: Option<&Around<'_>>) -> Option<&'t Member> {
        let union = self.model.unions.get(&ty.name)?;
        let names = union.tag.iter().find_map(|tag| self.names(tag, ty, bytes, around))?;
        let (member, _) =
            union.members.iter().find(|(_, values)| values.iter().any(|v| names.iter().any(|n| n == v)))?;
        ty.members.iter().find(|m| m.name == *member)
    }

    /// All names of a tag's value.
    fn names(&self, tag: &str, ty: &Type, bytes: &[u8], around: Option<&Around<'_>>) -> Option<Vec<&'a str>> {
        let mut place = around;
        while let Some(outer) = place {
            if let Some(names) = self.member_names(outer.ty, outer.bytes, tag) {
                return Some(names);
            }
            place = outer.outer;
        }
        for piece in self.args.iter().flatten().flat_map(|args| args.pieces.iter().map(move |p| (args, p))) {
            let (args, piece) = piece;
            if piece.name == tag {
                let label = args.of(piece);
                let has = |g: &&hetrace_model::EnumGroup| g.values.iter().any(|(name, _)| name == label);
                let known = self.model.enums.mentioning(label).find(has)?;
                let value = known.values.iter().find(|(name, _)| name == label)?.1;
                return Some(known.values.iter().filter(|(_, v)| *v == value).map(|(n, _)| &**n).collect());
            }
        }
        // What all members begin with may be found as one of them.
        self.member_names(ty, bytes, tag)
    }

    fn member_names(&self, ty: &Type, bytes: &[u8], name: &str) -> Option<Vec<&'a str>> {
        let member = ty.members.iter().find(|m| m.name == name && m.count == 1 && m.pointers == 0)?;
        let kind = find(self.model, &member.ty)?;
        let values = &group(self.model, kind.values.as_ref())?.values;
        let bytes = part(member, size_of_type(self.model, &member.ty), bytes)?;
        let value = if kind.kind == Kind::Int { signed(bytes) } else { unsigned(bytes) as i64 };
        Some(values.iter().filter(|(_, v)| *v == value).map(|(name, _)| name.as_str()).collect())
    }
}

/// Appends the memory of a value as the class has it.
pub(super) fn append(bytes: &mut Vec<u8>, class: &FieldClass, value: Scalar<'_>) {
    let integer = |bytes: &mut Vec<u8>, value: u64, bits: u32| {
        let size = (bits as usize / 8).clamp(1, 8);
        bytes.extend_from_slice(&value.to_le_bytes()[..size]);
    };
    let bits = match class {
        FieldClass::Integer(c) => c.size,
        FieldClass::Enum(c) => c.container.size,
        _ => 64,
    };
    match value {
        Scalar::Unsigned(v) => integer(bytes, v, bits),
        Scalar::Signed(v) => integer(bytes, v as u64, bits),
        Scalar::Enum { value, .. } => integer(bytes, value as u64, bits),
        Scalar::Float(v) => match class {
            FieldClass::Float(c) if c.mant_dig <= 24 => {
                bytes.extend_from_slice(&(v as f32).to_bits().to_le_bytes());
            }
            _ => bytes.extend_from_slice(&v.to_bits().to_le_bytes()),
        },
        Scalar::Str(text) => append_text(bytes, class, text.as_bytes()),
        Scalar::Bytes(text) => append_text(bytes, class, text),
    }
}

/// A text in an array ends before the array does.
fn append_text(bytes: &mut Vec<u8>, class: &FieldClass, text: &[u8]) {
    let length = match class {
        FieldClass::Array(c) => usize::try_from(c.len).unwrap_or(usize::MAX),
        _ => text.len(),
    };
    // A class that asks for more than any record has is damage.
    let length = length.min(1 << 16);
    bytes.extend(text.iter().take(length));
    bytes.extend(std::iter::repeat_n(0, length.saturating_sub(text.len())));
}

/// Appends a struct or union, or several.
pub(super) fn write_typed(out: &mut String, tags: &Tags<'_>, name: &str, bytes: &[u8], several: bool) {
    let size = size_of_type(tags.model, name);
    if !several || size == 0 {
        return value(out, tags, name, bytes, 0, None);
    }
    out.push('[');
    // One that grew is recorded only as far as all versions have it.
    for (i, element) in bytes.chunks(size.min(bytes.len()).max(1)).enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        value(out, tags, name, element, 0, None);
    }
    out.push(']');
}

/// Appends structs that are linked by their first members, as they lie one after the other. Of one that the model
/// does not have there are the tag and the next one's address.
pub(super) fn write_chain(out: &mut String, tags: &Tags<'_>, linked: &[(u32, String)], bytes: &[u8]) {
    let mut rest = bytes;
    out.push('[');
    while !rest.is_empty() {
        out.push_str(if rest.len() < bytes.len() { ", " } else { "" });
        let head = CHAIN_HEAD as usize;
        let tag = unsigned(rest.get(..4).unwrap_or(rest)) as u32;
        let ty = linked.iter().find(|(known, _)| *known == tag).and_then(|(_, ty)| find(tags.model, ty));
        let size = ty.map_or(head, |ty| recorded_size(ty) as usize).clamp(head, rest.len().max(head));
        let Some((one, others)) = rest.split_at_checked(size) else {
            write_bytes(out, rest);
            break;
        };
        match ty {
            Some(ty) => {
                out.push_str(&ty.name);
                value(out, tags, &ty.name, one, 0, None);
            }
            None => {
                let next = unsigned(one.get(8..).unwrap_or_default());
                let _ = write!(out, "{{tag={tag:#x}, next={next:#x}}}");
            }
        }
        rest = others;
    }
    out.push(']');
}

/// Appends a value of a type.
pub(super) fn write_value(out: &mut String, tags: &Tags<'_>, name: &str, bytes: &[u8]) {
    value(out, tags, name, bytes, 0, None);
}

fn value(
    out: &mut String,
    tags: &Tags<'_>,
    name: &str,
    bytes: &[u8],
    depth: u32,
    around: Option<&Around<'_>>,
) {
    let model = tags.model;
    let address = |out: &mut String| {
        let _ = match unsigned(bytes) {
            0 => out.write_str("NULL"),
            address => write!(out, "{address:#x}"),
        };
    };
    let Some(ty) = find(model, name) else { return address(out) };
    let number = match ty.kind {
        Kind::Int => signed(bytes),
        _ => unsigned(bytes) as i64,
    };
    let _ = match (ty.kind, group(model, ty.values.as_ref()), bytes.len()) {
        (Kind::Uint | Kind::Int, Some(group), _) => return write_named(out, group, number),
        (Kind::Uint, None, _) if ty.hex => write!(out, "{:#x}", unsigned(bytes)),
        (Kind::Uint, None, _) => write!(out, "{}", unsigned(bytes)),
        (Kind::Int, None, _) => write!(out, "{number}"),
        (Kind::Float, _, 4) => write!(out, "{}", f32::from_bits(unsigned(bytes) as u32)),
        (Kind::Float, _, 8) => write!(out, "{}", f64::from_bits(unsigned(bytes))),
        (Kind::Struct, ..) if depth < MAX_DEPTH && !ty.members.is_empty() => {
            out.push('{');
            members(out, tags, &Around { ty, bytes, outer: around }, depth, &mut true);
            out.push('}');
            return;
        }
        (Kind::Union, ..) if depth < MAX_DEPTH => {
            return match tags.meant(ty, bytes, around) {
                Some(meant) => {
                    let _ = write!(out, "{{{}=", meant.name);
                    member(out, tags, meant, &Around { ty, bytes, outer: around }, depth);
                    out.push('}');
                }
                None => write_bytes(out, bytes),
            };
        }
        (Kind::Struct | Kind::Union | Kind::Float, ..) => return write_bytes(out, bytes),
        (Kind::Handle | Kind::Callback | Kind::Opaque, ..) => return address(out),
    };
}

/// Appends `a=1, b=2`.
fn members(out: &mut String, tags: &Tags<'_>, place: &Around<'_>, depth: u32, first: &mut bool) {
    for m in &place.ty.members {
        let inner = find(tags.model, &m.ty).filter(|_| m.pointers == 0 && m.count == 1);
        let size = if m.pointers > 0 { 8 } else { size_of_type(tags.model, &m.ty) };
        let bytes = part(m, size, place.bytes);
        // Older versions end before, and what is reserved says nothing unless it is in use.
        let known = (m.offset as usize) < place.bytes.len();
        let reserved = ["reserved", "pad", "unused"].iter().any(|word| m.name.to_lowercase().contains(word));
        if !known || (reserved && bytes.is_some_and(|b| b.iter().all(|byte| *byte == 0))) {
            continue;
        }
        let nameless = m.name.strip_prefix('_').is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        match (inner.map(|t| (t, t.kind)), bytes) {
            (Some((ty, Kind::Union)), Some(bytes)) if depth < MAX_DEPTH => {
                let Some(meant) = tags.meant(ty, bytes, Some(place)) else {
                    comma(out, first);
                    let _ = write!(out, "{}=", m.name);
                    write_bytes(out, bytes);
                    continue;
                };
                comma(out, first);
                let name = if nameless { String::new() } else { format!("{}.", m.name) };
                let _ = write!(out, "{name}{}=", meant.name);
                member(out, tags, meant, &Around { ty, bytes, outer: Some(place) }, depth + 1);
            }
            (Some((ty, Kind::Struct)), Some(bytes)) if nameless && depth < MAX_DEPTH => {
                members(out, tags, &Around { ty, bytes, outer: Some(place) }, depth + 1, first);
            }
            _ => {
                comma(out, first);
                let _ = write!(out, "{}=", m.name);
                member(out, tags, m, place, depth);
            }
        }
    }
}

fn comma(out: &mut String, first: &mut bool) {
    out.push_str(if std::mem::take(first) { "" } else { ", " });
}

/// The bytes of a member; none if they are not there, or nobody knows how many there are.
fn part<'b>(member: &Member, size: usize, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let start = member.offset as usize;
    let length = size.saturating_mul(member.count as usize);
    bytes.get(start..start.checked_add(length)?).filter(|part| !part.is_empty())
}

/// Appends the value of a member.
fn member(out: &mut String, tags: &Tags<'_>, m: &Member, place: &Around<'_>, depth: u32) {
    let pointer = m.pointers > 0;
    let size = if pointer { 8 } else { size_of_type(tags.model, &m.ty) };
    let name = if pointer { "void*" } else { &m.ty };
    let Some(bytes) = part(m, size, place.bytes) else { return out.push('?') };
    if m.count <= 1 {
        return value(out, tags, name, bytes, depth + 1, Some(place));
    }
    let kind = find(tags.model, name).map(|t| t.kind);
    match (size, kind) {
        // A `char` is a letter, an `unsigned char` a byte.
        (1, Some(Kind::Int)) => return quoted(out, &text(bytes)),
        (1, _) => return write_bytes(out, bytes),
        _ => {}
    }
    out.push('[');
    for (i, element) in bytes.chunks_exact(size).take(MAX_ELEMENTS).enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        value(out, tags, name, element, depth + 1, Some(place));
    }
    out.push_str(if m.count as usize > MAX_ELEMENTS { ", …]" } else { "]" });
}

#[cfg(test)]
mod tests {
    use super::{Tags, write_chain};

    #[test]
    fn linked_structs_are_shown_one_after_the_other() {
        let model = serde_json::json!({
            "api": "toy", "registry": {"file": "", "sha256": ""}, "interpose": {"libraries": []},
            "errors": "", "enums": [], "info": {}, "functions": [],
            "types": [
                {"name": "int", "kind": "int", "size": 4}, {"name": "void", "kind": "opaque", "size": 0},
                {"name": "toy_box", "kind": "struct", "size": 24, "members": [
                    {"name": "kind", "type": "int", "offset": 0},
                    {"name": "next", "type": "void", "pointers": 1, "offset": 8},
                    {"name": "width", "type": "int", "offset": 16}]},
            ],
        });
        let model = serde_json::from_value(model).unwrap();
        let shown = |words: &[u64], cut: usize| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let mut out = String::new();
            let linked = [(2, "toy_box".to_owned())];
            write_chain(&mut out, &Tags::new(&model, [None, None]), &linked, &bytes[..bytes.len() - cut]);
            out
        };
        assert_eq!(shown(&[], 0), "[]");
        assert_eq!(
            shown(&[9, 0x70, 2, 0, 5], 0),
            "[{tag=0x9, next=0x70}, toy_box{kind=2, next=NULL, width=5}]",
            "an unknown one, and one of the model"
        );
        // A trace that was damaged ends nothing.
        assert!(shown(&[2, 0, 5], 10).starts_with('['));
        assert!(shown(&[9, 0], 12).ends_with(']'));
    }
}
