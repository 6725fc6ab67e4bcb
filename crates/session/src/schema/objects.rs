//! Events about objects: one table makes their classes and their bytes.

use std::borrow::Cow;

use hetrace_ctf::class::{
    EnumClass, EnumMapping, EventClass, FieldClass, FieldPath, IntegerClass, StructClass,
};
use hetrace_model::Model;
use hetrace_ring::abi::{ObjectRecord, object};

use super::event;

/// Number of the first of these events in the device stream.
pub const FIRST: u16 = 80;

/// Where a field's value comes from, and so its class.
#[derive(Debug, Clone, Copy)]
enum Field {
    /// A handle or address.
    Object,
    Other,
    /// A number.
    Number,
    Index,
    Length,
    Stored,
    /// A flag.
    Flag,
    /// An error.
    Code,
    /// The number of a query, with its name.
    Query,
    /// Name of the stored content, or nothing.
    Hash,
    /// This part, as a text.
    Text(usize),
    /// This part as a text, if it is one, or a number.
    Readable(usize),
    /// This part, as bytes.
    Bytes(usize),
    /// The values in this part, whose 16-bit sizes are in the part before it.
    Values(usize),
}
use Field::*;

/// Fields behind `cause_tid` and `cause`, by [`object`].
const EVENTS: &[(&str, &[(&str, Field)])] = &[
    ("source", &[("program", Object), ("pieces", Index), ("length", Length), ("hash", Hash)]),
    ("il", &[("program", Object), ("length", Length), ("hash", Hash)]),
    (
        "binary",
        &[("program", Object), ("device", Other), ("index", Index), ("length", Length), ("hash", Hash)],
    ),
    (
        "build_options",
        &[("program", Object), ("step", Text(0)), ("length", Length), ("hash", Hash), ("text", Text(1))],
    ),
    (
        "build_log",
        &[
            ("program", Object),
            ("device", Other),
            ("step", Text(0)),
            ("result", Code),
            ("status", Text(1)),
            ("length", Length),
            ("hash", Hash),
            ("text", Text(2)),
        ],
    ),
    ("kernel", &[("kernel", Object), ("program", Other), ("name", Text(0)), ("arguments", Index)]),
    (
        "kernel_arg",
        &[
            ("kernel", Object),
            ("kernel_name", Text(0)),
            ("index", Index),
            ("name", Text(1)),
            ("type", Text(2)),
            ("address", Text(3)),
            ("access", Text(4)),
            ("qualifiers", Text(5)),
        ],
    ),
    (
        "property",
        &[
            ("object", Object),
            ("kind", Text(0)),
            ("query", Query),
            ("length", Length),
            ("hash", Hash),
            ("text", Readable(1)),
            ("value", Bytes(1)),
        ],
    ),
    (
        "buffer",
        &[
            ("kernel", Object),
            ("kernel_name", Text(0)),
            ("launch", Number),
            ("argument", Index),
            ("when", Text(1)),
            ("mem", Other),
            ("size", Length),
            ("stored", Stored),
            ("hash", Hash),
            ("waited", Flag),
        ],
    ),
    (
        "not_captured",
        &[
            ("kernel", Object),
            ("kernel_name", Text(0)),
            ("launch", Number),
            ("argument", Index),
            ("value", Other),
            ("reason", Text(1)),
            ("code", Code),
        ],
    ),
    (
        "truncated",
        &[("object", Object), ("what", Text(0)), ("length", Length), ("stored", Stored), ("hash", Hash)],
    ),
    (
        "launch_args",
        &[
            ("kernel", Object),
            ("kernel_name", Text(0)),
            ("arguments", Index),
            ("values", Values(2)),
            ("bytes", Bytes(2)),
        ],
    ),
];

/// The name of an event, without what stands before it.
pub fn name(what: u32) -> Option<&'static str> {
    EVENTS.get(what as usize).map(|(name, _)| *name)
}

/// All classes.
pub fn classes(models: &[&Model]) -> impl Iterator<Item = EventClass> {
    let queries = queries(models);
    EVENTS.iter().enumerate().map(move |(what, (name, fields))| {
        let start = StructClass::default()
            .field("cause_tid", IntegerClass::unsigned(32))
            .field("cause", IntegerClass::unsigned(64));
        let fields = fields.iter().fold(start, |all, (name, field)| add(all, name, *field, &queries));
        event(FIRST + what as u16, &format!("object:{name}"), fields)
    })
}

fn add(fields: StructClass, name: &str, field: Field, queries: &EnumClass) -> StructClass {
    match field {
        Object | Other => fields.field(name, IntegerClass::unsigned(64).hex()),
        Number | Length | Stored => fields.field(name, IntegerClass::unsigned(64)),
        Index => fields.field(name, IntegerClass::unsigned(32)),
        Flag => fields.field(name, IntegerClass::unsigned(8)),
        Code => fields.field(name, IntegerClass::signed(32)),
        // An enumeration without a name is none: babeltrace2 refuses it.
        Query if queries.mappings.is_empty() => fields.field(name, queries.container.clone()),
        Query => fields.field(name, FieldClass::Enum(queries.clone())),
        Hash | Text(_) | Readable(_) | Values(_) => fields.field(name, FieldClass::string()),
        Bytes(_) => {
            let length = format!("_{name}_length");
            fields.field(length.clone(), IntegerClass::unsigned(16)).field(
                name,
                FieldClass::sequence(FieldPath::relative(length), IntegerClass::unsigned(8).hex()),
            )
        }
    }
}

/// Names of what platforms and devices can be asked, in any API.
fn queries(models: &[&Model]) -> EnumClass {
    let mut mappings: Vec<EnumMapping> = Vec::new();
    let of_objects = |name: &str| name.ends_with("_platform_info") || name.ends_with("_device_info");
    for group in models.iter().flat_map(|m| &m.enums).filter(|g| of_objects(&g.name)) {
        for (label, value) in &group.values {
            let value = i128::from(*value);
            if (0..1 << 32).contains(&value) && !mappings.iter().any(|m| m.start == value) {
                mappings.push(EnumMapping { label: label.clone(), start: value, end: value });
            }
        }
    }
    EnumClass { container: IntegerClass::unsigned(32).hex(), mappings: mappings.into() }
}

/// The fields of an event. `None` if there is no such event.
pub fn fields(record: &ObjectRecord, parts: &[&[u8]], cause: u64) -> Option<Vec<u8>> {
    let (_, fields) = EVENTS.get(record.what as usize)?;
    let mut body = Vec::with_capacity(128);
    body.extend_from_slice(&record.cause_tid.to_le_bytes());
    body.extend_from_slice(&cause.to_le_bytes());
    let part = |i: usize| parts.get(i).copied().unwrap_or_default();
    for (_, field) in *fields {
        match *field {
            Object => body.extend_from_slice(&record.object.to_le_bytes()),
            Other => body.extend_from_slice(&record.other.to_le_bytes()),
            Number => body.extend_from_slice(&record.number.to_le_bytes()),
            Length => body.extend_from_slice(&record.length.to_le_bytes()),
            Stored => body.extend_from_slice(&record.stored.to_le_bytes()),
            Index | Query => body.extend_from_slice(&record.index.to_le_bytes()),
            Flag => body.push(u8::from(record.code != 0)),
            Code => body.extend_from_slice(&record.code.to_le_bytes()),
            Hash if record.hash == 0 => text(&mut body, b""),
            Hash => text(&mut body, format!("{:016x}", record.hash).as_bytes()),
            Text(i) => text(&mut body, part(i)),
            Readable(i) => text(&mut body, &readable(part(i))),
            Values(i) => text(&mut body, values(part(i - 1), part(i)).as_bytes()),
            Bytes(i) => {
                let bytes = part(i);
                body.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
                body.extend_from_slice(bytes);
            }
        }
    }
    Some(body)
}

/// Values by their sizes: numbers as far as they can be some, with all their
/// digits, so that their sizes show; what is longer as its bytes in memory.
fn values(sizes: &[u8], mut bytes: &[u8]) -> String {
    let mut all = String::new();
    for size in sizes.chunks_exact(2) {
        let size = usize::from(u16::from_le_bytes([size[0], size[1]]));
        let Some((value, rest)) = bytes.split_at_checked(size) else { break };
        bytes = rest;
        if !all.is_empty() {
            all.push_str(", ");
        }
        let is_number = matches!(size, 1 | 2 | 4 | 8);
        all.push_str(if is_number { "0x" } else { "bytes " });
        let digits = |b: &u8| format!("{b:02x}");
        // Numbers begin with their highest byte, which lies last.
        let digits: String = if is_number {
            value.iter().rev().map(digits).collect()
        } else {
            value.iter().map(digits).collect()
        };
        all.push_str(&digits);
    }
    all
}

/// What stands for an empty text: babeltrace2 (2.0.4) shows the text of an
/// earlier event in its place.
const NOTHING: &[u8] = b"-";

/// Appends a text up to its NUL, or what stands for none.
pub fn text(body: &mut Vec<u8>, text: &[u8]) {
    let text = text.split(|b| *b == 0).next().filter(|t| !t.is_empty()).unwrap_or(NOTHING);
    body.extend_from_slice(text);
    body.push(0);
}

/// A value that is a text, with one NUL at its end and nothing unprintable, or
/// a number; of others nothing.
fn readable(bytes: &[u8]) -> Cow<'_, [u8]> {
    let printable = |c: char| !c.is_control() || c.is_ascii_whitespace();
    if let Some((0, text)) = bytes.split_last()
        && std::str::from_utf8(text).is_ok_and(|t| t.chars().all(printable))
        && (!text.is_empty() || bytes.len() == 1)
    {
        return text.into();
    }
    let mut word = [0; 8];
    match word.get_mut(..bytes.len()) {
        Some(low) if matches!(bytes.len(), 1 | 2 | 4 | 8) => low.copy_from_slice(bytes),
        _ => return Cow::default(),
    }
    u64::from_le_bytes(word).to_string().into_bytes().into()
}

/// The event that says that a content was stored in part.
pub fn truncated(record: &ObjectRecord) -> Option<ObjectRecord> {
    (record.hash != 0 && record.stored < record.length)
        .then_some(ObjectRecord { what: object::TRUNCATED, ..*record })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_names() {
        for (what, expected) in [
            (object::SOURCE, "source"),
            (object::IL, "il"),
            (object::BINARY, "binary"),
            (object::BUILD_OPTIONS, "build_options"),
            (object::BUILD_LOG, "build_log"),
            (object::KERNEL, "kernel"),
            (object::KERNEL_ARG, "kernel_arg"),
            (object::PROPERTY, "property"),
            (object::BUFFER, "buffer"),
            (object::NOT_CAPTURED, "not_captured"),
            (object::TRUNCATED, "truncated"),
            (object::LAUNCH_ARGS, "launch_args"),
        ] {
            assert_eq!(name(what), Some(expected));
        }
        assert_eq!(EVENTS.len(), object::LAUNCH_ARGS as usize + 1);
    }

    #[test]
    fn values_of_a_launch_are_told_by_their_sizes() {
        let sizes = [8, 0, 4, 0, 3, 0];
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 42, 0, 0, 0, 0xab, 0xcd, 0xef];
        assert_eq!(values(&sizes, &bytes), "0x0807060504030201, 0x0000002a, bytes abcdef");
        assert_eq!(values(&sizes, &bytes[..9]), "0x0807060504030201", "what is cut is left out");
        assert_eq!(values(&[], &bytes), "");
    }

    #[test]
    fn texts_are_told_from_numbers() {
        for (value, expected) in [
            (&b"PoCL\0"[..], "PoCL"),
            (b"\0", ""),
            (b"", ""),
            (b"PoC", ""),
            (b"\x01\0\0\0", "1"),
            (b"\0\x01\0\0\0\0\0\0", "256"),
            (b"a\0b\0c\0", ""),
            (b"\xff\xfe\0", ""),
        ] {
            assert_eq!(readable(value), expected.as_bytes(), "{value:?}");
        }
    }

    #[test]
    fn fields_are_as_long_as_their_classes_say() {
        let record = ObjectRecord { what: object::BUFFER, hash: 0xabc, ..ObjectRecord::default() };
        let body = fields(&record, &[b"name", b"after"], 5).expect("an event");
        assert_eq!(body.len(), 4 + 8 + 8 + 5 + 8 + 4 + 6 + 8 + 8 + 8 + 17 + 1);
        assert!(fields(&ObjectRecord { what: 99, ..record }, &[], 0).is_none());
    }
}
