//! The layout of a tracepoint's record, as its `format` file in tracefs describes it.
//!
//! ```text
//! name: sched_wakeup
//! ID: 374
//! format:
//!         field:unsigned short common_type;       offset:0;       size:2; signed:0;
//!         …
//!         field:char comm[16];    offset:8;       size:16;        signed:0;
//!         field:__data_loc char[] cmd;    offset:24;      size:4; signed:0;
//! ```
//! Offsets differ between kernels, so they are read at run time and never assumed. The file comes from
//! the kernel, but nothing here trusts it: lines that make no sense are errors, and reading a record
//! checks its length.

use std::fmt;

/// Most fields that a layout may have.
const MOST_FIELDS: usize = 256;
/// Longest record of a tracepoint: perf's buffers hold no longer one.
const LONGEST: usize = 1 << 16;
/// What names of fields common to all tracepoints begin with.
const COMMON: &str = "common_";
/// The common field with the number of the thread that ran.
const CURRENT: &str = "common_pid";

/// The layout of a tracepoint's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// The tracepoint's name.
    pub name: String,
    /// The number that records of it begin with.
    pub id: u16,
    /// The field with the number of the thread that ran, if there is one.
    pub current: Option<Field>,
    /// Its own fields, without those common to all tracepoints.
    pub fields: Vec<Field>,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type in C, without the name and without the length of an array.
    pub c_type: String,
    /// Where it begins in the record, in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Whether it is a signed number.
    pub signed: bool,
    /// How it is stored.
    pub form: Form,
}

/// How a field is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A number, an address or a structure.
    Plain,
    /// An array of a fixed length.
    Array,
    /// 32 bits that say where the content is: its length in the upper half, its offset in the lower.
    /// `relative`: the offset is counted from the end of these 32 bits, not from the record's beginning.
    Elsewhere {
        /// See there.
        relative: bool,
    },
}

/// A `format` file that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFormat {
    /// The line, from 1; 0 if something is missing.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl fmt::Display for BadFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.what),
            line => write!(f, "line {line}: {}", self.what),
        }
    }
}

impl Layout {
    /// Reads a `format` file.
    ///
    /// # Errors
    /// When the name, the number or a field makes no sense.
    pub fn parse(text: &str) -> Result<Self, BadFormat> {
        let (mut name, mut id, mut current, mut fields) = (None, None, None, Vec::new());
        for (line, content) in (1..).zip(text.lines()) {
            let bad = |what| BadFormat { line, what };
            if let Some(rest) = content.strip_prefix("name: ") {
                name = Some(rest.trim().to_owned());
            } else if let Some(rest) = content.strip_prefix("ID: ") {
                id = Some(rest.trim().parse().map_err(|_| bad("the ID is no 16-bit number"))?);
            } else if let Some(rest) = content.trim_start().strip_prefix("field:") {
                let field = Field::parse(rest).map_err(bad)?;
                if field.name == CURRENT {
                    current = Some(field);
                } else if !field.name.starts_with(COMMON) {
                    fields.push(field);
                }
                if fields.len() > MOST_FIELDS {
                    return Err(bad("more than 256 fields"));
                }
            } else if content.starts_with("print fmt:") {
                // What follows is for people.
                break;
            }
        }
        let missing = |what| BadFormat { line: 0, what };
        let name = name.filter(|n| !n.is_empty()).ok_or(missing("there is no name"))?;
        Ok(Layout { name, id: id.ok_or(missing("there is no ID"))?, current, fields })
    }

    /// Returns the field of a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

impl Field {
    /// Reads what stands behind `field:`.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let mut parts = text.split(';');
        let declaration = parts.next().unwrap_or_default().trim();
        let (mut offset, mut size, mut signed) = (None, None, false);
        for part in parts {
            match part.trim().split_once(':') {
                Some(("offset", n)) => offset = n.parse().ok(),
                Some(("size", n)) => size = n.parse().ok(),
                Some(("signed", n)) => signed = n == "1",
                _ => {}
            }
        }
        let offset: usize = offset.ok_or("a field without an offset")?;
        let size: usize = size.ok_or("a field without a size")?;
        if offset.checked_add(size).is_none_or(|end| end > LONGEST) {
            return Err("a field beyond the end of any record");
        }
        let (declaration, is_array) = match declaration.split_once('[') {
            // `char comm[16]`, and `__data_loc char[] name`.
            Some((before, rest)) if rest.trim_end().ends_with(']') => (before.trim_end(), true),
            Some((before, rest)) => {
                let (_, name) = rest.split_once(']').ok_or("a field with half a length")?;
                return Self::elsewhere(before, name.trim(), offset, size, signed);
            }
            None => (declaration, false),
        };
        let at = declaration.rfind([' ', '*']).ok_or("a field without a type or without a name")? + 1;
        let (c_type, name) = declaration.split_at(at);
        let form = if is_array { Form::Array } else { Form::Plain };
        let field =
            Field { name: identifier(name)?, c_type: c_type.trim().to_owned(), offset, size, signed, form };
        Ok(field)
    }

    fn elsewhere(
        before: &str,
        name: &str,
        offset: usize,
        size: usize,
        signed: bool,
    ) -> Result<Self, &'static str> {
        let (relative, c_type) = match before.split_once(' ') {
            Some(("__data_loc", c_type)) => (false, c_type),
            Some(("__rel_loc", c_type)) => (true, c_type),
            _ => return Err("an array whose place is unknown"),
        };
        if size != 4 {
            return Err("the place of an array is not in 4 bytes");
        }
        let (name, c_type) = (identifier(name)?, c_type.trim().to_owned());
        Ok(Field { name, c_type, offset, size, signed, form: Form::Elsewhere { relative } })
    }

    /// Returns a number in a record; none if the record is too short or this is no number.
    pub fn number(&self, record: &[u8]) -> Option<i64> {
        let bytes = record.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match (bytes.len(), self.signed) {
            (1, false) => i64::from(bytes[0]),
            (1, true) => i64::from(bytes[0] as i8),
            (2, false) => i64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            (2, true) => i64::from(i16::from_ne_bytes(bytes.try_into().ok()?)),
            (4, false) => i64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            (4, true) => i64::from(i32::from_ne_bytes(bytes.try_into().ok()?)),
            (8, _) => i64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }

    /// Returns the bytes of this field in a record, wherever they are; none if they are not all there.
    pub fn bytes<'r>(&self, record: &'r [u8]) -> Option<&'r [u8]> {
        let end = self.offset.checked_add(self.size)?;
        let own = record.get(self.offset..end)?;
        let Form::Elsewhere { relative } = self.form else { return Some(own) };
        let place = u32::from_ne_bytes(own.try_into().ok()?);
        let (len, at) = ((place >> 16) as usize, (place & 0xffff) as usize);
        let at = if relative { at.checked_add(end)? } else { at };
        record.get(at..at.checked_add(len)?)
    }

    /// Returns whether this is text: characters, of a fixed length or not.
    pub fn is_text(&self) -> bool {
        self.form != Form::Plain && matches!(self.c_type.as_str(), "char" | "const char")
    }
}

/// Returns a name if it is one in C.
fn identifier(name: &str) -> Result<String, &'static str> {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    let fits = name.starts_with(is_start) && name.chars().all(|c| is_start(c) || c.is_ascii_digit());
    if fits { Ok(name.to_owned()) } else { Err("a field whose name is no identifier") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WAKEUP: &str = "name: sched_wakeup\nID: 374\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:const char * where;\toffset:32;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] name;\toffset:40;\tsize:4;\tsigned:0;\n\
        \tfield:__rel_loc u32[] list;\toffset:44;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"field:no such;\\toffset:x\"\n";

    #[test]
    fn fields_are_as_the_kernel_writes_them() {
        let layout = Layout::parse(WAKEUP).unwrap();
        assert_eq!((&*layout.name, layout.id), ("sched_wakeup", 374));
        let shown: Vec<_> = layout.fields.iter().map(|f| (&*f.name, &*f.c_type, f.form)).collect();
        let elsewhere = |relative| Form::Elsewhere { relative };
        assert_eq!(
            shown,
            [
                ("comm", "char", Form::Array),
                ("pid", "pid_t", Form::Plain),
                ("where", "const char *", Form::Plain),
                ("name", "char", elsewhere(false)),
                ("list", "u32", elsewhere(true)),
            ]
        );
        let is_text: Vec<bool> = layout.fields.iter().map(Field::is_text).collect();
        assert_eq!(is_text, [true, false, false, true, false]);
    }

    #[test]
    fn values_are_read_where_they_are_and_nowhere_else() {
        let layout = Layout::parse(WAKEUP).unwrap();
        let mut record = vec![0; 56];
        record[24..28].copy_from_slice(&(-7i32).to_ne_bytes());
        record[40..44].copy_from_slice(&(3 << 16 | 48u32).to_ne_bytes());
        record[44..48].copy_from_slice(&(4 << 16 | 4u32).to_ne_bytes());
        record[48..56].copy_from_slice(b"abcdefgh");
        let field = |name| layout.field(name).unwrap();
        assert_eq!(field("pid").number(&record), Some(-7));
        assert_eq!(field("name").bytes(&record), Some(&b"abc"[..]));
        assert_eq!(field("list").bytes(&record), Some(&b"efgh"[..]));
        assert_eq!(field("list").bytes(&record[..55]), None);
        assert_eq!(field("pid").number(&record[..27]), None);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let of = |field: &str| {
            let text = format!("name: a\nID: 1\nformat:\n\tfield:{field}\n");
            Layout::parse(&text).map(|_| ()).map_err(|e| e.to_string())
        };
        assert_eq!(of("int a;offset:0;size:4;"), Ok(()));
        for (field, error) in [
            ("int a;size:4;", "line 4: a field without an offset"),
            ("int a;offset:-1;size:4;", "line 4: a field without an offset"),
            ("int a;offset:65533;size:4;", "line 4: a field beyond the end of any record"),
            ("int a;offset:18446744073709551615;size:4;", "line 4: a field beyond the end of any record"),
            ("int;offset:0;size:4;", "line 4: a field without a type or without a name"),
            ("int 4a;offset:0;size:4;", "line 4: a field whose name is no identifier"),
            ("__data_loc char[ a;offset:0;size:4;", "line 4: a field with half a length"),
            ("__data_loc char[] a;offset:0;size:8;", "line 4: the place of an array is not in 4 bytes"),
            ("somewhere char[] a;offset:0;size:4;", "line 4: an array whose place is unknown"),
        ] {
            assert_eq!(of(field), Err(error.to_owned()), "{field}");
        }
        assert_eq!(Layout::parse("ID: 1\n").unwrap_err().to_string(), "there is no name");
        assert_eq!(Layout::parse("name: a\n").unwrap_err().to_string(), "there is no ID");
        assert_eq!(Layout::parse("name: a\nID: 65536\n").unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn no_text_and_no_record_leads_astray(
            lines in prop::collection::vec("[a-z_:;0-9\\[\\]* \\t]{0,60}", 0..20),
            record in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let text = format!("name: a\nID: 1\n{}\n{WAKEUP}", lines.join("\n\tfield:"));
            if let Ok(layout) = Layout::parse(&text) {
                for field in &layout.fields {
                    let (_, bytes) = (field.number(&record), field.bytes(&record));
                    prop_assert!(bytes.is_none_or(|b| b.len() <= record.len()));
                }
            }
        }
    }
}
