//! The fields of an event as text.

use std::fmt::Write;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::{Base, FieldClass, Scope};
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor};
use hetrace_model::Model;

use super::compound::{Tags, append, write_chain, write_typed};
use super::info::{write_info, write_pairs};
use super::names::{quoted, write_bytes, write_encoded, write_named};
use super::pieces::{Args, Piece, Typed};
use super::plan::{How, Plan, Plans};
use crate::ranges::Payload;
use crate::text::digits;

impl<'t> Args<'t> {
    /// Takes the fields of an event; `entry` is what the call's entry had, and
    /// says which query a value is of.
    pub fn read(&mut self, plans: &Plans<'t>, event: &Event<'_, '_>, entry: Option<&Args<'t>>) {
        self.clear();
        let Some(plan) = plans.of(event) else { return };
        self.read_scope(event, Scope::EventFields, (&plan.fields, plan.model), entry);
    }

    /// Takes what another tracer has written beside the fields of an event: the processor, an address, and so on.
    pub fn read_contexts(&mut self, plans: &Plans<'t>, event: &Event<'_, '_>) {
        self.clear();
        let Some(plan) = plans.of(event) else { return };
        for (scope, fields) in &plan.contexts {
            self.read_scope(event, *scope, (fields, None), None);
        }
    }

    fn read_scope(
        &mut self,
        event: &Event<'_, '_>,
        scope: Scope,
        (fields, model): (&[Plan<'t>], Option<&'t Model>),
        entry: Option<&Args<'t>>,
    ) {
        let mut writer = Writer {
            args: self,
            fields,
            model,
            entry,
            top: 0,
            start: 0,
            depth: 0,
            items: 0,
            numbers: Vec::new(),
            bytes: Vec::new(),
            later: Vec::new(),
        };
        let damaged = event.visit(scope, &mut writer).is_err();
        writer.write_later();
        if damaged {
            self.text.push_str(" (damaged)");
        }
    }
}

struct Writer<'a, 't> {
    args: &'a mut Args<'t>,
    fields: &'a [Plan<'t>],
    model: Option<&'t Model>,
    entry: Option<&'a Args<'t>>,
    /// Position of the field at depth 0.
    top: usize,
    /// Where its text starts, if it has parts.
    start: usize,
    depth: u32,
    /// Elements or members of the innermost open thing.
    items: u64,
    /// Elements of an array that is shown as a whole.
    numbers: Vec<i64>,
    /// The memory of what is shown by its type.
    bytes: Vec<u8>,
    /// Memory whose type a field says that has not come yet: the piece that waits for its text, that field's name, and
    /// the memory.
    later: Vec<(usize, &'t str, Vec<u8>)>,
}

impl<'t> Writer<'_, 't> {
    fn plan(&self) -> Option<Plan<'t>> {
        self.fields.get(self.top).copied()
    }

    /// Whether the elements of the open array are collected.
    fn collects(&self) -> bool {
        let how = self.plan().map(|p| p.how);
        self.depth > 0 && matches!(how, Some(How::Bytes | How::Info(_) | How::Pairs(_) | How::Chain(_)))
    }

    /// Whether the memory of the open thing is collected.
    fn is_typed(&self) -> bool {
        let how = self.plan().map(|p| p.how);
        matches!(how, Some(How::Typed(_) | How::TypedArray(_) | How::TypedPointee(_)))
    }

    /// What was collected, by its type.
    fn write_typed(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let start = self.start;
        if let (Some(plan), Some(model)) = (self.plan(), self.model) {
            let mut text = String::new();
            let tags = Tags::new(model, [Some(&*self.args), self.entry]);
            match plan.how {
                How::TypedPointee(_) if bytes.is_empty() => text.push_str("NULL"),
                How::Typed(ty) => write_typed(&mut text, &tags, ty, &bytes, false),
                How::TypedArray(ty) | How::TypedPointee(ty) => {
                    write_typed(&mut text, &tags, ty, &bytes, true)
                }
                _ => {}
            }
            self.args.text.push_str(&text);
        }
        self.done(start, None);
        self.bytes = bytes;
        self.bytes.clear();
    }

    /// Before a value that is inside of another.
    fn separate(&mut self, field: FieldRef<'_>) {
        if self.depth == 0 {
            return;
        }
        if self.items > 0 {
            self.args.text.push_str(", ");
        }
        self.items += 1;
        if !field.name.is_empty() {
            self.args.text.push_str(field.name);
            self.args.text.push('=');
        }
    }

    /// After a field at depth 0, whose text began at `start`.
    fn done(&mut self, start: usize, typed: Option<Typed>) {
        if let Some(plan) = self.plan() {
            let range = start..self.args.text.len();
            self.args.pieces.push(Piece { role: plan.role, name: plan.name, range, typed });
        }
    }

    /// A value by its class, or by the names of a set of bits.
    fn write(&mut self, how: How<'t>, class: &FieldClass, value: Scalar<'_>) -> Option<Typed> {
        let bits = match how {
            How::Bits(group) | How::Pointee(Some(group)) => Some(group),
            _ => None,
        };
        if let (How::Number(param), Scalar::Unsigned(bits)) = (how, value)
            && let Some(typed) = self.write_number(param, bits)
        {
            return Some(typed);
        }
        let out = &mut self.args.text;
        let hex = match class {
            FieldClass::Integer(c) => c.base == Base::Hexadecimal,
            FieldClass::Enum(c) => c.container.base == Base::Hexadecimal,
            _ => false,
        };
        if let (Some(group), Some(value)) = (bits, integer(value)) {
            write_named(out, group, value);
            return None;
        }
        let hexadecimal = |out: &mut String, v| {
            digits::hexadecimal(out, v);
            Some(Typed::Pointer(v))
        };
        match value {
            Scalar::Unsigned(v) if hex => hexadecimal(out, v),
            Scalar::Unsigned(v) => {
                digits::unsigned(out, v);
                Some(Typed::Unsigned(v))
            }
            Scalar::Signed(v) if hex => hexadecimal(out, v as u64),
            Scalar::Signed(v) => {
                digits::signed(out, v);
                Some(Typed::Signed(v))
            }
            Scalar::Float(v) => {
                let _ = write!(out, "{v}");
                Some(Typed::Float(v))
            }
            Scalar::Enum { label: Some(label), .. } => {
                out.push_str(label);
                None
            }
            Scalar::Enum { value, label: None } => {
                let _ = if hex { write!(out, "{value:#x}") } else { write!(out, "{value}") };
                None
            }
            Scalar::Str(text) => {
                quoted(out, text);
                None
            }
            Scalar::Bytes(bytes) => {
                match class.encoding() {
                    Some(encoding) => write_encoded(out, encoding, bytes),
                    None => write_bytes(out, bytes),
                }
                None
            }
        }
    }

    /// A number whose type a field before it says; nothing if that is not known.
    fn write_number(&mut self, param: &str, bits: u64) -> Option<Typed> {
        let piece = self.args.pieces.iter().find(|piece| piece.name == param)?;
        let payload = Payload::typed(self.args.of(piece), bits)?;
        let out = &mut self.args.text;
        Some(match payload {
            Payload::Unsigned(v) => {
                digits::unsigned(out, v);
                Typed::Unsigned(v)
            }
            Payload::Signed(v) => {
                digits::signed(out, v);
                Typed::Signed(v)
            }
            Payload::Float(v) => {
                let _ = write!(out, "{v}");
                Typed::Float(v)
            }
            Payload::Bits(_) => return None,
        })
    }

    /// An array that was collected.
    fn write_whole(&mut self, how: How<'t>) {
        let numbers = std::mem::take(&mut self.numbers);
        let out = &mut self.args.text;
        if let (How::Pairs(ty), Some(model)) = (how, self.model) {
            write_pairs(out, model, ty, &numbers);
        } else {
            let bytes: Vec<u8> = numbers.iter().map(|&n| n as u8).collect();
            if let (How::Chain(linked), Some(model)) = (how, self.model) {
                let mut text = String::new();
                write_chain(&mut text, &Tags::new(model, [Some(&*self.args), self.entry]), linked, &bytes);
                self.args.text.push_str(&text);
                self.numbers = numbers;
                return self.numbers.clear();
            }
            match self.query(how) {
                Some((model, ty)) if !bytes.is_empty() => {
                    write_info(&mut self.args.text, model, ty, &bytes);
                }
                None if let How::Info(param) = how => {
                    self.later.push((self.args.pieces.len(), param, bytes));
                }
                _ => write_bytes(&mut self.args.text, &bytes),
            }
        }
        self.numbers = numbers;
        self.numbers.clear();
    }

    /// What waited for a field behind it.
    fn write_later(&mut self) {
        for (at, param, bytes) in std::mem::take(&mut self.later) {
            let start = self.args.text.len();
            let by = self.args.pieces.iter().find(|p| p.name == param).map(|p| self.args.of(p));
            match self.model.and_then(|model| Some((model, model.info.get(by?)?))) {
                Some((model, ty)) if !bytes.is_empty() => {
                    write_info(&mut self.args.text, model, ty, &bytes);
                }
                _ => write_bytes(&mut self.args.text, &bytes),
            }
            let end = self.args.text.len();
            if let Some(piece) = self.args.pieces.get_mut(at) {
                piece.range = start..end;
            }
        }
    }

    /// The type of a query's value.
    fn query(&self, how: How<'t>) -> Option<(&'t Model, &'t str)> {
        let (How::Info(param), Some(model), Some(entry)) = (how, self.model, self.entry) else {
            return None;
        };
        let piece = entry.pieces.iter().find(|p| p.name == param)?;
        let ty = model.info.get(entry.of(piece))?;
        Some((model, ty))
    }
}

/// An integer's bits as an `i64`.
fn integer(value: Scalar<'_>) -> Option<i64> {
    match value {
        Scalar::Unsigned(v) => Some(v as i64),
        Scalar::Signed(v) => Some(v),
        Scalar::Enum { value, .. } => Some(value as i64),
        _ => None,
    }
}

impl<'v> FieldVisitor<'v> for Writer<'_, '_> {
    fn scalar(&mut self, field: FieldRef<'v>, value: Scalar<'v>) {
        if self.depth == 0 {
            let plan = self.plan();
            self.top += 1;
            let Some(plan) = plan.filter(|plan| !matches!(plan.how, How::Hidden)) else { return };
            let start = self.args.text.len();
            let typed = self.write(plan.how, field.class, value);
            let range = start..self.args.text.len();
            self.args.pieces.push(Piece { role: plan.role, name: plan.name, range, typed });
        } else if self.is_typed() {
            append(&mut self.bytes, field.class, value);
        } else if self.collects() {
            self.numbers.extend(integer(value));
        } else {
            self.separate(field);
            self.write(self.plan().map_or(How::Plain, |plan| plan.how), field.class, value);
        }
    }

    /// One that is there follows under its name.
    fn begin_optional(&mut self, field: FieldRef<'v>, present: bool) {
        if present || self.is_typed() || self.collects() {
            return;
        }
        self.separate(field);
        let start = self.args.text.len();
        self.args.text.push_str("none");
        if self.depth == 0 {
            self.done(start, None);
            self.top += 1;
        }
    }

    fn begin_struct(&mut self, field: FieldRef<'v>) {
        self.begin(field, "{");
    }

    fn end_struct(&mut self, _: FieldRef<'v>) {
        self.end("}");
    }

    fn begin_array(&mut self, field: FieldRef<'v>, len: u64) {
        let null = len == 0 && matches!(self.plan(), Some(Plan { how: How::Pointee(_), .. }));
        self.begin(field, if null { "NULL" } else { "[" });
    }

    fn end_array(&mut self, _: FieldRef<'v>) {
        let how = self.plan().map(|p| p.how);
        match how {
            Some(how @ (How::Bytes | How::Info(_) | How::Pairs(_) | How::Chain(_))) if self.depth == 1 => {
                // The bracket that was written when the array began.
                self.args.text.pop();
                self.write_whole(how);
                self.end("");
            }
            Some(How::Pointee(_)) if self.depth == 1 && self.items == 0 => self.end(""),
            _ => self.end("]"),
        }
    }
}

impl Writer<'_, '_> {
    fn begin(&mut self, field: FieldRef<'_>, bracket: &str) {
        if self.is_typed() {
            self.start = self.args.text.len();
            self.depth += 1;
            return;
        }
        self.separate(field);
        if self.depth == 0 {
            self.start = self.args.text.len();
        }
        self.args.text.push_str(bracket);
        self.depth += 1;
        self.items = 0;
    }

    fn end(&mut self, bracket: &str) {
        if self.is_typed() {
            self.depth = self.depth.saturating_sub(1);
            if self.depth == 0 {
                self.write_typed();
                self.top += 1;
            }
            return;
        }
        self.args.text.push_str(bracket);
        self.depth = self.depth.saturating_sub(1);
        // Whatever is next in the thing around is not its first.
        self.items = 1;
        if self.depth == 0 {
            self.done(self.start, None);
            self.top += 1;
        }
    }
}
