//! From a tracepoint's record to an event of the trace: its class, and its bytes.

use hetrace_ctf::class::{FieldClass, FieldPath, IntegerClass, StructClass};

use crate::layout::{Field, Form, Layout};
use crate::perf::record::{Who, until_nul};

/// A field that the kernel's record does not have, and LTTng's event has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The thread that ran.
    Tid,
    /// Its process.
    Pid,
    /// The process of a thread that begins.
    ChildPid,
}

/// What an event is made of besides the kernel's record.
#[derive(Debug, Clone, Copy, Default)]
pub struct Source<'a> {
    /// The kernel's record.
    pub record: &'a [u8],
    /// The thread that ran.
    pub who: Who,
    /// The process of a thread that begins.
    pub child_pid: u32,
}

/// How one kind of event is laid out, and where its values come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: StructClass,
    steps: Vec<Step>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A number of this many bytes.
    Number(Field),
    /// Characters up to a NUL, then NULs.
    Characters(Field),
    /// Characters up to a NUL, and one NUL.
    Text(Field),
    /// All bytes, as they are.
    Bytes(Field),
    /// Elements of this size, with their number before them.
    Elements(Field, usize),
    /// Letters that say what a block request does, as LTTng's bits.
    Request(Field),
    /// Something that is not in the record.
    Added(Added),
}

impl Event {
    /// Lays out a tracepoint's event.
    pub fn new(name: &str, layout: &Layout, renamed: &[(&str, &str)], added: &[(&str, Added)]) -> Self {
        let mut event = Event { name: name.to_owned(), fields: StructClass::default(), steps: Vec::new() };
        for field in &layout.fields {
            let other = renamed.iter().find(|(from, _)| *from == field.name).map(|(_, to)| *to);
            event.field(other.unwrap_or(&field.name), field);
        }
        for (name, added) in added {
            let fields = std::mem::take(&mut event.fields);
            event.fields = fields.field(*name, IntegerClass::signed(32));
            event.steps.push(Step::Added(*added));
        }
        event
    }

    fn field(&mut self, name: &str, field: &Field) {
        let (mut fields, from) = (std::mem::take(&mut self.fields), field.clone());
        let (class, step) = match field.form {
            _ if name == "rwbs" && field.is_text() => {
                (IntegerClass::unsigned(32).into(), Step::Request(from))
            }
            Form::Array if field.is_text() => {
                let class = FieldClass::array(field.size as u64, IntegerClass::character());
                (class, Step::Characters(from))
            }
            Form::Elsewhere { .. } if field.is_text() => (FieldClass::string(), Step::Text(from)),
            Form::Elsewhere { .. } => {
                let size = element_size(&field.c_type);
                let length = format!("_{name}_length");
                fields = fields.field(length.clone(), IntegerClass::unsigned(32));
                let element = IntegerClass::new(8 * size as u32, field.signed);
                (FieldClass::sequence(FieldPath::relative(length), element), Step::Elements(from, size))
            }
            Form::Plain if matches!(field.size, 1 | 2 | 4 | 8) => (number(field).into(), Step::Number(from)),
            Form::Plain | Form::Array => {
                let size = element_size(&field.c_type);
                let size = if field.size.is_multiple_of(size) { size } else { 1 };
                let element = IntegerClass::new(8 * size as u32, field.signed);
                (FieldClass::array((field.size / size) as u64, element), Step::Bytes(from))
            }
        };
        self.fields = fields.field(name, class);
        self.steps.push(step);
    }

    /// Appends an event's bytes. Returns whether the record had all of it; if not, nothing is appended.
    pub fn encode(&self, source: &Source<'_>, into: &mut Vec<u8>) -> bool {
        let begin = into.len();
        let whole = self.steps.iter().all(|step| step.encode(source, into).is_some());
        if !whole {
            into.truncate(begin);
        }
        whole
    }
}

impl Step {
    fn encode(&self, source: &Source<'_>, into: &mut Vec<u8>) -> Option<()> {
        let record = source.record;
        match self {
            Step::Number(field) => {
                let number = field.number(record)?;
                into.extend_from_slice(&number.to_le_bytes()[..field.size]);
            }
            Step::Characters(field) => {
                let begin = into.len();
                into.extend_from_slice(until_nul(field.bytes(record)?));
                into.resize(begin + field.size, 0);
            }
            Step::Text(field) => {
                into.extend_from_slice(until_nul(field.bytes(record)?));
                into.push(0);
            }
            Step::Bytes(field) => into.extend_from_slice(field.bytes(record)?),
            Step::Elements(field, size) => {
                let bytes = field.bytes(record)?;
                let number = bytes.len() / size;
                into.extend_from_slice(&u32::try_from(number).ok()?.to_le_bytes());
                into.extend_from_slice(&bytes[..number * size]);
            }
            Step::Request(field) => {
                into.extend_from_slice(&request_bits(until_nul(field.bytes(record)?)).to_le_bytes());
            }
            Step::Added(added) => {
                let number = match added {
                    Added::Tid => source.who.tid,
                    Added::Pid => source.who.pid,
                    Added::ChildPid => source.child_pid,
                };
                into.extend_from_slice(&number.to_le_bytes());
            }
        }
        Some(())
    }
}

/// Returns how a number is shown.
fn number(field: &Field) -> IntegerClass {
    let class = IntegerClass::new(8 * field.size as u32, field.signed);
    let address = field.c_type.ends_with('*') || matches!(&*field.name, "address" | "ip");
    if address { class.hex() } else { class }
}

/// Returns the size of an element by its type in C; 1 if it is not known.
fn element_size(c_type: &str) -> usize {
    match c_type.trim_start_matches("const ") {
        "u16" | "s16" | "__u16" | "short" | "unsigned short" => 2,
        "u32" | "s32" | "__u32" | "int" | "unsigned int" | "pid_t" | "dev_t" => 4,
        "u64" | "s64" | "__u64" | "long" | "unsigned long" | "size_t" | "sector_t" => 8,
        _ => 1,
    }
}

/// LTTng's bits of block requests (`instrumentation/events/block.h` of lttng-modules).
mod request {
    pub const WRITE: u32 = 1 << 0;
    pub const DISCARD: u32 = 1 << 1;
    pub const READ: u32 = 1 << 2;
    pub const RAHEAD: u32 = 1 << 3;
    pub const SYNC: u32 = 1 << 5;
    pub const META: u32 = 1 << 6;
    pub const SECURE: u32 = 1 << 7;
    pub const FLUSH: u32 = 1 << 8;
    pub const FUA: u32 = 1 << 9;
    pub const PREFLUSH: u32 = 1 << 10;
}

/// Returns LTTng's bits for the kernel's letters: `[F]` flush before, then what it is, then how
/// (`blk_fill_rwbs` of the kernel).
fn request_bits(letters: &[u8]) -> u32 {
    let (before, rest) = match letters {
        [b'F', rest @ ..] if rest.first().is_some_and(|l| b"WDRNF".contains(l)) => (request::PREFLUSH, rest),
        _ => (0, letters),
    };
    let (what, how) = match rest {
        [b'W', how @ ..] => (request::WRITE, how),
        [b'D', b'E', how @ ..] => (request::DISCARD | request::SECURE, how),
        [b'D', how @ ..] => (request::DISCARD, how),
        [b'R', how @ ..] => (request::READ, how),
        [b'F', how @ ..] => (request::FLUSH, how),
        [_, how @ ..] => (0, how),
        [] => (0, rest),
    };
    let bit = |letter: &u8| match letter {
        b'F' => request::FUA,
        b'A' => request::RAHEAD,
        b'S' => request::SYNC,
        b'M' => request::META,
        _ => 0,
    };
    how.iter().map(bit).fold(before | what, |bits, bit| bits | bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(fields: &str) -> Layout {
        Layout::parse(&format!("name: a\nID: 1\nformat:\n{fields}")).unwrap()
    }

    #[test]
    fn letters_of_requests_are_bits() {
        let read_ahead = request::READ | request::RAHEAD;
        for (letters, bits) in [
            ("R", request::READ),
            ("RA", read_ahead),
            ("WS", request::WRITE | request::SYNC),
            ("WFS", request::WRITE | request::FUA | request::SYNC),
            ("FWFSM", request::PREFLUSH | request::WRITE | request::FUA | request::SYNC | request::META),
            ("FF", request::PREFLUSH | request::FLUSH),
            ("FN", request::PREFLUSH),
            ("F", request::FLUSH),
            ("DE", request::DISCARD | request::SECURE),
            ("N", 0),
            ("", 0),
        ] {
            assert_eq!(request_bits(letters.as_bytes()), bits, "{letters}");
        }
    }

    #[test]
    fn values_go_where_their_class_says() {
        let layout = layout(
            "field:char comm[4];offset:8;size:4;signed:0;\n\
             field:pid_t pid;offset:12;size:4;signed:1;\n\
             field:__data_loc char[] name;offset:16;size:4;signed:0;\n\
             field:__data_loc u16[] list;offset:20;size:4;signed:0;\n\
             field:unsigned long args[2];offset:24;size:16;signed:0;\n\
             field:char rwbs[8];offset:40;size:8;signed:0;\n",
        );
        let event = Event::new("e", &layout, &[("pid", "tid")], &[("pid", Added::Pid)]);
        let names: Vec<&str> = event.fields.fields.iter().map(|f| &*f.name).collect();
        assert_eq!(names, ["comm", "tid", "name", "_list_length", "list", "args", "rwbs", "pid"]);
        let mut record = vec![0xee; 64];
        record[8..12].copy_from_slice(b"a\0zz");
        record[12..16].copy_from_slice(&7u32.to_ne_bytes());
        record[16..20].copy_from_slice(&(4 << 16 | 48u32).to_ne_bytes());
        record[20..24].copy_from_slice(&(5 << 16 | 52u32).to_ne_bytes());
        record[40..43].copy_from_slice(b"WS\0");
        record[48..52].copy_from_slice(b"xyz\0");
        let source = Source { record: &record, who: Who { pid: 3, tid: 4 }, child_pid: 5 };
        let mut bytes = Vec::new();
        assert!(event.encode(&source, &mut bytes));
        let expected = [
            &b"a\0\0\0"[..],
            &[7, 0, 0, 0],
            b"xyz\0",
            &[2, 0, 0, 0, 0xee, 0xee, 0xee, 0xee],
            &[0xee; 16],
            &[0x21, 0, 0, 0],
            &[3, 0, 0, 0],
        ]
        .concat();
        assert_eq!(bytes, expected);
        // A record that is too short gives no half event.
        assert!(!event.encode(&Source { record: &record[..47], ..source }, &mut bytes));
        assert_eq!(bytes, expected);
    }
}
