//! The fields of an event as members of a JSON object.

use std::fmt::Write;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{Base, FieldClass, Scope};
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor};

use super::json::{float, quoted};

/// Up to here every reader takes a number as it is.
const EXACT: u64 = 1 << 53;
/// Longer texts and arrays are cut.
const MOST: usize = 256;

/// Appends the fields of an event to the members gathered. Addresses and large numbers are texts.
pub(super) fn append(members: &mut String, event: &Event<'_, '_>) {
    let start = members.len();
    let mut writer = Writer { out: members, open: Vec::new(), first: start == 0, hidden: 0, bytes: None };
    if event.visit(Scope::EventFields, &mut writer).is_err() {
        // What was visited is not to be trusted, and may not be closed.
        members.truncate(start);
        let comma = if start > 0 { "," } else { "" };
        let _ = write!(members, "{comma}\"damaged\":true");
    }
}

struct Writer<'o> {
    out: &'o mut String,
    /// What is open: how many elements it has, if it is an array.
    open: Vec<Option<usize>>,
    first: bool,
    /// Inside of an element that is left out, how deep.
    hidden: u32,
    /// Inside of a list of bytes: what they are as text.
    bytes: Option<String>,
}

impl Writer<'_> {
    /// Whether a value is to be written; what stands before it is.
    fn next(&mut self, name: &str) -> bool {
        if self.hidden > 0 || is_internal(name) {
            return false;
        }
        let comma = if self.first { "" } else { "," };
        self.first = false;
        match self.open.last_mut() {
            Some(Some(count)) => {
                *count += 1;
                if *count == MOST + 1 {
                    self.out.push_str(",\"…\"");
                }
                if *count > MOST {
                    return false;
                }
                self.out.push_str(comma);
            }
            _ => {
                self.out.push_str(comma);
                quoted(self.out, name);
                self.out.push(':');
            }
        }
        true
    }

    fn begin(&mut self, name: &str, bracket: char, count: Option<usize>) {
        if !self.next(name) {
            self.hidden += 1;
            return;
        }
        self.out.push(bracket);
        self.open.push(count);
        self.first = true;
    }

    fn end(&mut self, bracket: char) {
        if self.hidden > 0 {
            self.hidden -= 1;
            return;
        }
        self.out.push(bracket);
        self.open.pop();
        self.first = false;
    }

    fn text(&mut self, text: &str) {
        match text.char_indices().nth(MOST) {
            Some((end, _)) => quoted(self.out, &format!("{}…", &text[..end])),
            None => quoted(self.out, text),
        }
    }
}

/// Whether a field is there for what lies in the trace only: lengths of lists, and padding of structs.
fn is_internal(name: &str) -> bool {
    name.starts_with('_') && (name.ends_with("_length") || name.starts_with("_padding_"))
}

/// Whether it is a list of bytes without a meaning of their own.
fn is_bytes(class: &FieldClass) -> bool {
    let element = match class {
        FieldClass::Array(c) => &c.element,
        FieldClass::Sequence(c) => &c.element,
        _ => return false,
    };
    matches!(&**element, FieldClass::Integer(c) if c.size == 8)
}

fn is_hexadecimal(class: &FieldClass) -> bool {
    match class {
        FieldClass::Integer(c) => c.base == Base::Hexadecimal && c.size > 8,
        _ => false,
    }
}

impl<'v> FieldVisitor<'v> for Writer<'_> {
    fn scalar(&mut self, field: FieldRef<'v>, value: Scalar<'v>) {
        if let Some(bytes) = &mut self.bytes {
            match value {
                Scalar::Unsigned(n) if bytes.len() < 3 * MOST => {
                    let _ = write!(bytes, "{}{n:02x}", if bytes.is_empty() { "" } else { " " });
                }
                _ => {}
            }
            return;
        }
        if !self.next(field.name) {
            return;
        }
        let _ = match value {
            Scalar::Unsigned(n) if is_hexadecimal(field.class) => write!(self.out, "\"{n:#x}\""),
            Scalar::Unsigned(n) if n > EXACT => write!(self.out, "\"{n}\""),
            Scalar::Unsigned(n) => write!(self.out, "{n}"),
            Scalar::Signed(n) if n.unsigned_abs() > EXACT => write!(self.out, "\"{n}\""),
            Scalar::Signed(n) => write!(self.out, "{n}"),
            Scalar::Enum { label: Some(label), .. } => {
                self.text(label);
                Ok(())
            }
            Scalar::Enum { value, label: None } => write!(self.out, "\"{value}\""),
            Scalar::Float(n) => {
                float(self.out, n);
                Ok(())
            }
            Scalar::Str(text) => {
                self.text(text);
                Ok(())
            }
            Scalar::Bytes(bytes) => {
                let text = field.class.encoding().and_then(|encoding| encoding.decode(bytes));
                self.text(text.as_deref().unwrap_or(&String::from_utf8_lossy(bytes)));
                Ok(())
            }
        };
    }

    fn begin_struct(&mut self, field: FieldRef<'v>) {
        self.begin(field.name, '{', None);
    }

    fn end_struct(&mut self, _: FieldRef<'v>) {
        self.end('}');
    }

    fn begin_array(&mut self, field: FieldRef<'v>, _: u64) {
        if is_bytes(field.class) && self.hidden == 0 && self.bytes.is_none() {
            if self.next(field.name) {
                self.bytes = Some(String::new());
            } else {
                self.hidden += 1;
            }
            return;
        }
        self.begin(field.name, '[', Some(0));
    }

    fn end_array(&mut self, _: FieldRef<'v>) {
        if let Some(bytes) = self.bytes.take() {
            return quoted(self.out, &bytes);
        }
        self.end(']');
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hetrace_ctf::metadata;
    use hetrace_ctf::read::Trace;

    use super::*;

    #[test]
    fn texts_are_decoded() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/data/ctf2");
        let read = |name: &str| std::fs::read(data.join(name)).expect(name);
        let class = metadata::parse(&read("metadata")).expect("metadata");
        let streams = ["stream-0", "stream-1"].map(|name| (name.to_owned(), read(name)));
        let trace = Trace::from_class(class, streams.to_vec()).expect("a trace");
        let mut shown = String::new();
        for mut reader in trace.streams() {
            while let Some(Ok(event)) = reader.next_event() {
                if event.class().name == "strings" {
                    append(&mut shown, &event);
                }
            }
        }
        assert!(shown.contains(r#""u16":"aĀ😀","u32":"b","fixed":"abc","fixed16":"hi""#), "{shown}");
    }
}
