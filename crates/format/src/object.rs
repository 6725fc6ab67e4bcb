//! Events about objects, in the device stream: one table makes their classes and their bytes.
//!
//! Named `object:KIND`. Each begins with the fields
//! `cause_tid` and `cause` (the call that showed it, as commands have them).
//! `length` counts the bytes of the whole content; `hash` names the file under
//! `hetrace/blobs` that has it. Texts are never empty: `-` stands for none.
//! Without a `hash` the content stands in the event.
//!
//! | event                  | option              | fields |
//! |---|---|---|
//! | `object:source`        | `--sources`         | `program`, `pieces` (texts it was given in), `length`, `hash` |
//! | `object:il`            | `--sources`         | `program`, `length`, `hash` |
//! | `object:binary`        | `--sources`         | `program`, `device`, `index` (in the list of devices), `length`, `hash` |
//! | `object:build_options` | `--build-logs`      | `program`, `step` (`build`, `compile`, `link`), `length`, `hash`, `text` |
//! | `object:build_log`     | `--build-logs`      | `program`, `device`, `step`, `result` (of the call; 0 from a callback), `status` (`success`, `error`, `none`, `in progress`, `unknown`), `length`, `hash`, `text` |
//! | `object:kernel`        | `--kernel-args`     | `kernel`, `program`, `name`, `arguments` (how many) |
//! | `object:kernel_arg`    | `--kernel-args`     | `kernel`, `kernel_name`, `index`, `name`, `type`, `address`, `access`, `qualifiers`; each text may be `unknown` |
//! | `object:property`      | `--properties`      | `object`, `kind` (`platform`, `device`), `query`, `length`, `hash`, `text` (when the value is one, or a number), `value` (its bytes) |
//! | `object:buffer`        | `--capture-buffers` | `kernel`, `kernel_name`, `launch` (from 0 for each name), `argument`, `when` (`before`, `after`), `mem`, `size`, `stored`, `hash`, `waited` (0: other commands may have come between, if the queue has no order) |
//! | `object:not_captured`  | `--capture-buffers` | `kernel`, `kernel_name`, `launch`, `argument`, `value` (handle or address), `reason`, `code` (an error, or 0) |
//! | `object:launch_args`   | `--kernel-args`     | `kernel`, `kernel_name`, `arguments` (how many), `values` (those that fit, in order: numbers by their size, longer ones as bytes), `bytes` (the same, one after the other) |
//! | `object:sent`          | `--hash-copies`     | `source` (its address), `length`, `hashed` (bytes: all or none), `content_hash` (of these bytes, 64 bits), `error` (why none: 7 too long, 14 not readable, others as the system says) |
//! | `object:truncated`     |                     | `object`, `what` (the event before), `length`, `stored`, `hash` |

use std::borrow::Cow;

use hetrace_ctf::class::{EnumClass, EnumMapping, EventClass, FieldClass, IntegerClass, StructClass};
use hetrace_model::Model;

use crate::event;
use crate::field::{counted, put_text};
use crate::files;

/// Number of the first of these events in the device stream.
pub const FIRST: u16 = 80;
/// Texts and values of an object.
pub const PARTS: usize = 8;

/// What an event shows; its number behind [`FIRST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A program's source.
    Source,
    /// A program's intermediate code.
    Il,
    /// A program's binary for one device.
    Binary,
    /// Options of a build.
    BuildOptions,
    /// What a build says about one device.
    BuildLog,
    /// A kernel was made.
    Kernel,
    /// One of its arguments.
    KernelArg,
    /// A property of a platform or device.
    Property,
    /// Content of a buffer before or after a launch.
    Buffer,
    /// An argument of a launch that should have been stored and is not.
    NotCaptured,
    /// A content that is longer than what is stored.
    Truncated,
    /// What a launch passes to its kernel: name, 16-bit sizes, values.
    LaunchArgs,
    /// The hash of what a call sends from memory of the host.
    Sent,
}

impl ObjectKind {
    /// All of them, by number.
    pub const ALL: [Self; 13] = [
        Self::Source,
        Self::Il,
        Self::Binary,
        Self::BuildOptions,
        Self::BuildLog,
        Self::Kernel,
        Self::KernelArg,
        Self::Property,
        Self::Buffer,
        Self::NotCaptured,
        Self::Truncated,
        Self::LaunchArgs,
        Self::Sent,
    ];

    /// That of a number; none if it has none.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Number of the event in the device stream.
    pub const fn id(self) -> u16 {
        FIRST + self as u16
    }

    /// Name of the event, without what stands before it.
    pub const fn name(self) -> &'static str {
        self.table().0
    }
}

/// What is known of an object. What the words mean depends on `kind`; unused ones are 0.
#[derive(Debug, Clone, Copy)]
pub struct Object<'b> {
    /// What it shows.
    pub kind: ObjectKind,
    /// Thread that made the call which shows it.
    pub cause_tid: u32,
    /// When that call began, in nanoseconds; 0 if it is not known.
    pub cause: u64,
    /// The object's handle.
    pub object: u64,
    /// Another object that belongs to it.
    pub other: u64,
    /// A count, such as a launch's number.
    pub number: u64,
    /// Bytes of the whole content.
    pub length: u64,
    /// Bytes of it that were stored.
    pub stored: u64,
    /// Name of the stored content; 0 if none is stored.
    pub hash: u64,
    /// For an argument its index, for a property its query.
    pub index: u32,
    /// An error code or a flag.
    pub code: i32,
    /// Texts and values.
    pub parts: [&'b [u8]; PARTS],
}

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

impl ObjectKind {
    /// Name, and fields behind `cause_tid` and `cause`.
    #[expect(clippy::too_many_lines, reason = "a table: one row for each event")]
    const fn table(self) -> (&'static str, &'static [(&'static str, Field)]) {
        match self {
            Self::Source => {
                ("source", &[("program", Object), ("pieces", Index), ("length", Length), ("hash", Hash)])
            }
            Self::Il => ("il", &[("program", Object), ("length", Length), ("hash", Hash)]),
            Self::Binary => (
                "binary",
                &[
                    ("program", Object),
                    ("device", Other),
                    ("index", Index),
                    ("length", Length),
                    ("hash", Hash),
                ],
            ),
            Self::BuildOptions => (
                "build_options",
                &[
                    ("program", Object),
                    ("step", Text(0)),
                    ("length", Length),
                    ("hash", Hash),
                    ("text", Text(1)),
                ],
            ),
            Self::BuildLog => (
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
            Self::Kernel => {
                ("kernel", &[("kernel", Object), ("program", Other), ("name", Text(0)), ("arguments", Index)])
            }
            Self::KernelArg => (
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
            Self::Property => (
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
            Self::Buffer => (
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
            Self::NotCaptured => (
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
            Self::Truncated => (
                "truncated",
                &[
                    ("object", Object),
                    ("what", Text(0)),
                    ("length", Length),
                    ("stored", Stored),
                    ("hash", Hash),
                ],
            ),
            Self::LaunchArgs => (
                "launch_args",
                &[
                    ("kernel", Object),
                    ("kernel_name", Text(0)),
                    ("arguments", Index),
                    ("values", Values(2)),
                    ("bytes", Bytes(2)),
                ],
            ),
            Self::Sent => (
                "sent",
                &[
                    ("source", Object),
                    ("length", Length),
                    ("hashed", Stored),
                    ("content_hash", Other),
                    ("error", Code),
                ],
            ),
        }
    }
}

/// Returns all classes.
pub fn classes(models: &[&Model]) -> impl Iterator<Item = EventClass> {
    let queries = queries(models);
    ObjectKind::ALL.into_iter().map(move |kind| class(kind, &queries))
}

fn class(kind: ObjectKind, queries: &EnumClass) -> EventClass {
    let (name, fields) = kind.table();
    let start = StructClass::default()
        .field("cause_tid", IntegerClass::unsigned(32))
        .field("cause", IntegerClass::unsigned(64));
    let fields = fields.iter().fold(start, |all, (name, field)| add(all, name, *field, queries));
    event(kind.id(), &format!("object:{name}"), fields)
}

/// Returns the class of an event's number in the device stream, with the names of queries in these models; none
/// if it is no event of objects.
pub fn class_of(id: u16, models: &[&Model]) -> Option<EventClass> {
    let kind = ObjectKind::of_number(id.checked_sub(FIRST)?.into())?;
    Some(class(kind, &queries(models)))
}

/// Returns whether an event of this number has names that models bring: all of them must be known then.
pub fn needs_models(id: u16) -> bool {
    id == ObjectKind::Property.id()
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
        Bytes(_) => counted(fields, name, 16, IntegerClass::unsigned(8).hex().into()),
    }
}

/// Names of what platforms and devices can be asked, in any API.
fn queries(models: &[&Model]) -> EnumClass {
    let mut mappings: Vec<EnumMapping> = Vec::new();
    let of_objects = |name: &str| name.ends_with("_platform_info") || name.ends_with("_device_info");
    for group in models.iter().flat_map(|m| m.enums.iter()).filter(|g| of_objects(&g.name)) {
        for (label, value) in &group.values {
            let value = i128::from(*value);
            if (0..1 << 32).contains(&value) && !mappings.iter().any(|m| m.start == value) {
                mappings.push(EnumMapping { label: label.clone(), start: value, end: value });
            }
        }
    }
    EnumClass { container: IntegerClass::unsigned(32).hex(), mappings: mappings.into() }
}

impl Object<'_> {
    /// Returns the event's number and fields.
    pub fn encode(&self) -> (u16, Vec<u8>) {
        let mut body = Vec::with_capacity(128);
        body.extend_from_slice(&self.cause_tid.to_le_bytes());
        body.extend_from_slice(&self.cause.to_le_bytes());
        let part = |i: usize| self.parts.get(i).copied().unwrap_or_default();
        for (_, field) in self.kind.table().1 {
            match *field {
                Object => body.extend_from_slice(&self.object.to_le_bytes()),
                Other => body.extend_from_slice(&self.other.to_le_bytes()),
                Number => body.extend_from_slice(&self.number.to_le_bytes()),
                Length => body.extend_from_slice(&self.length.to_le_bytes()),
                Stored => body.extend_from_slice(&self.stored.to_le_bytes()),
                Index | Query => body.extend_from_slice(&self.index.to_le_bytes()),
                Flag => body.push(u8::from(self.code != 0)),
                Code => body.extend_from_slice(&self.code.to_le_bytes()),
                Hash if self.hash == 0 => put_text(&mut body, b""),
                Hash => put_text(&mut body, files::blob(self.hash).as_bytes()),
                Text(i) => put_text(&mut body, part(i)),
                Readable(i) => put_text(&mut body, &readable(part(i))),
                Values(i) => put_text(&mut body, values(part(i - 1), part(i)).as_bytes()),
                Bytes(i) => {
                    let bytes = part(i);
                    body.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
                    body.extend_from_slice(bytes);
                }
            }
        }
        (self.kind.id(), body)
    }

    /// Returns the event that says that a content was stored in part, if it was.
    pub fn truncated(&self) -> Option<Self> {
        let parts = [self.kind.name().as_bytes(), &[], &[], &[], &[], &[], &[], &[]];
        (self.hash != 0 && self.stored < self.length).then_some(Object {
            kind: ObjectKind::Truncated,
            parts,
            ..*self
        })
    }
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

/// Returns a value that is a text, with one NUL at its end and nothing unprintable, or
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order() {
        for (number, kind) in (0u32..).zip(ObjectKind::ALL) {
            assert_eq!(ObjectKind::of_number(number), Some(kind));
            assert_eq!(u32::from(kind.id()), u32::from(FIRST) + number);
        }
        assert_eq!(ObjectKind::of_number(99), None);
    }

    #[test]
    fn values_of_a_launch_are_found_by_their_sizes() {
        let sizes = [8, 0, 4, 0, 3, 0];
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 42, 0, 0, 0, 0xab, 0xcd, 0xef];
        assert_eq!(values(&sizes, &bytes), "0x0807060504030201, 0x0000002a, bytes abcdef");
        assert_eq!(values(&sizes, &bytes[..9]), "0x0807060504030201", "what is cut is left out");
        assert_eq!(values(&[], &bytes), "");
    }

    #[test]
    fn texts_are_distinguished_from_numbers() {
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

    fn object() -> Object<'static> {
        Object {
            kind: ObjectKind::Buffer,
            cause_tid: 1,
            cause: 5,
            object: 0,
            other: 0,
            number: 0,
            length: 9,
            stored: 8,
            hash: 0xabc,
            index: 0,
            code: 0,
            parts: [b"name", b"after", b"", b"", b"", b"", b"", b""],
        }
    }

    #[test]
    fn fields_are_as_long_as_their_classes_say() {
        let (id, body) = object().encode();
        assert_eq!(id, FIRST + 8);
        assert_eq!(body.len(), 4 + 8 + 8 + 5 + 8 + 4 + 6 + 8 + 8 + 8 + 17 + 1);
    }

    #[test]
    fn what_is_cut_is_said_to_be() {
        let (id, body) = object().truncated().expect("8 of 9 bytes").encode();
        assert_eq!(id, FIRST + 10);
        assert!(body.windows(7).any(|w| w == b"buffer\0"), "{body:?}");
        assert!(Object { stored: 9, ..object() }.truncated().is_none());
        assert!(Object { hash: 0, ..object() }.truncated().is_none());
    }
}
