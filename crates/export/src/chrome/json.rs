//! JSON on its way out.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Bytes gathered before they are written.
const CHUNK: usize = 64 * 1024;

/// Gathers events and writes them.
pub(super) struct Events<'o> {
    out: &'o mut dyn Write,
    chunk: String,
    /// How many there are.
    pub count: u64,
    /// Time of the first event of the trace.
    first: Option<u64>,
}

/// An event being written; it is an open object.
pub(super) struct Event<'c> {
    chunk: &'c mut String,
    first: u64,
}

impl<'o> Events<'o> {
    pub fn new(out: &'o mut dyn Write) -> Self {
        let chunk = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".to_owned();
        Self { out, chunk, count: 0, first: None }
    }

    /// Sets the time that all times are relative to.
    pub fn begin(&mut self, first: u64) {
        self.first.get_or_insert(first);
    }

    /// Adds an event of a kind, of a process and thread.
    pub fn add(
        &mut self,
        kind: &str,
        (pid, tid): (i64, u64),
        rest: impl FnOnce(&mut Event<'_>),
    ) -> io::Result<()> {
        let comma = if self.count > 0 { "," } else { "" };
        let _ = write!(self.chunk, "{comma}\n{{\"ph\":\"{kind}\",\"pid\":{pid},\"tid\":{tid}");
        rest(&mut Event { chunk: &mut self.chunk, first: self.first.unwrap_or(0) });
        self.chunk.push('}');
        self.count += 1;
        if self.chunk.len() >= CHUNK { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(self.chunk.as_bytes())?;
        self.chunk.clear();
        Ok(())
    }

    /// Ends the file; `other` are its members about the trace as a whole.
    pub fn end(&mut self, other: impl FnOnce(&mut Event<'_>)) -> io::Result<()> {
        self.chunk.push_str("\n],\"otherData\":{\"tool\":\"hetrace\"");
        other(&mut Event { chunk: &mut self.chunk, first: 0 });
        self.chunk.push_str("}}\n");
        self.flush()?;
        self.out.flush()
    }
}

impl Event<'_> {
    /// Microseconds since the first event.
    pub fn time(&mut self, name: &str, time: u64) -> &mut Self {
        // What a late command says may be before it.
        let (sign, since) = match time.checked_sub(self.first) {
            Some(since) => ("", since),
            None => ("-", self.first - time),
        };
        let _ = write!(self.chunk, ",\"{name}\":{sign}{}.{:03}", since / 1000, since % 1000);
        self
    }

    /// Microseconds.
    pub fn duration(&mut self, ns: u64) -> &mut Self {
        let _ = write!(self.chunk, ",\"dur\":{}.{:03}", ns / 1000, ns % 1000);
        self
    }

    /// A member that is a text.
    pub fn text(&mut self, name: &str, text: &str) -> &mut Self {
        self.name(name);
        quoted(self.chunk, text);
        self
    }

    /// A member that is a number, or JSON already.
    pub fn raw(&mut self, name: &str, value: impl std::fmt::Display) -> &mut Self {
        self.name(name);
        let _ = write!(self.chunk, "{value}");
        self
    }

    fn name(&mut self, name: &str) {
        if !self.chunk.ends_with('{') {
            self.chunk.push(',');
        }
        quoted(self.chunk, name);
        self.chunk.push(':');
    }

    /// A member that is an object.
    pub fn object(&mut self, name: &str, members: impl FnOnce(&mut Event<'_>)) -> &mut Self {
        self.name(name);
        self.chunk.push('{');
        members(&mut Event { chunk: self.chunk, first: self.first });
        self.chunk.push('}');
        self
    }
}

/// A text as JSON has it.
pub(super) fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A number as JSON has it, or a text for what it has not.
pub(super) fn float(out: &mut String, value: f64) {
    let _ = if value.is_finite() { write!(out, "{value}") } else { write!(out, "\"{value}\"") };
}
