//! What the fields of an event say of a call's parameters.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor};
use hetrace_model::{Expr, Function};

/// Numbers that are kept of one event.
const KEPT: usize = 4096;

/// Where a value stands in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The result.
    Result,
    /// This parameter, or what is behind it.
    Param(u16),
}

/// The values of one event.
#[derive(Debug)]
pub struct Values<'e, 'f> {
    function: &'f Function,
    /// By field: whose it is and where its numbers begin.
    fields: Vec<(Option<Place>, usize)>,
    numbers: Vec<u64>,
    /// Members of structs, by parameter.
    members: Vec<(u16, &'e str, u64)>,
    /// Of all that the event has but single handles.
    pub hash: u64,
    /// Parameters that are such.
    handles: &'f [(u16, u32)],
    depth: u32,
}

impl<'e, 'f> Values<'e, 'f> {
    /// Reads an event of a function.
    pub fn read(function: &'f Function, handles: &'f [(u16, u32)], event: &Event<'e, '_>) -> Self {
        let mut values = Self {
            function,
            fields: Vec::with_capacity(16),
            numbers: Vec::with_capacity(16),
            members: Vec::new(),
            hash: 0xcbf2_9ce4_8422_2325,
            handles,
            depth: 0,
        };
        // What is damaged has been reported by the walk.
        let _ = event.visit(Scope::EventFields, &mut values);
        values
    }

    fn begin(&mut self, name: &str) {
        let place = match name {
            "result" => Some(Place::Result),
            name => {
                let name = if name == "result_" { "result" } else { name };
                let at = self.function.params.iter().position(|p| p.name == name);
                at.and_then(|at| u16::try_from(at).ok()).map(Place::Param)
            }
        };
        self.fields.push((place, self.numbers.len()));
    }

    fn add(&mut self, bytes: &[u8]) {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        self.hash = bytes.iter().fold(self.hash, step);
    }

    /// All numbers of a place.
    pub fn all(&self, place: Place) -> &[u64] {
        let Some(at) = self.fields.iter().position(|(p, _)| *p == Some(place)) else { return &[] };
        let start = self.fields.get(at).map_or(0, |(_, start)| *start);
        let end = self.fields.get(at + 1).map_or(self.numbers.len(), |(_, start)| *start);
        self.numbers.get(start..end).unwrap_or(&[])
    }

    /// The first number of a place.
    pub fn first(&self, place: Place) -> Option<u64> {
        self.all(place).first().copied()
    }

    fn param(&self, name: &str) -> Option<u16> {
        u16::try_from(self.function.params.iter().position(|p| p.name == name)?).ok()
    }

    /// A parameter by its name, or `parameter.member`.
    pub fn named(&self, name: &str) -> Option<u64> {
        match name.split_once('.') {
            None => self.first(Place::Param(self.param(name)?)),
            Some((param, member)) => {
                let param = self.param(param)?;
                let found = self.members.iter().find(|(p, m, _)| *p == param && *m == member);
                found.map(|(_, _, value)| *value)
            }
        }
    }

    /// The value of an expression, if the event has all that is in it.
    pub fn eval(&self, expr: &Expr) -> Option<u64> {
        match expr {
            Expr::Number(n) => Some(*n),
            Expr::Name(name) => self.named(name),
            Expr::Index(name, at) => {
                let all = self.all(Place::Param(self.param(name)?));
                all.get(usize::try_from(*at).ok()?).copied()
            }
            Expr::Binary(a, op, b) => {
                let (a, b) = (self.eval(a)?, self.eval(b)?);
                match op {
                    '+' => a.checked_add(b),
                    '-' => a.checked_sub(b),
                    '*' => a.checked_mul(b),
                    '/' => a.checked_div(b),
                    _ => None,
                }
            }
            Expr::Deref(_) | Expr::Call(..) => None,
        }
    }
}

impl<'e> FieldVisitor<'e> for Values<'e, '_> {
    fn scalar(&mut self, field: FieldRef<'e>, value: Scalar<'e>) {
        if self.depth == 0 {
            self.begin(field.name);
        }
        let number = match value {
            Scalar::Str(text) => return self.add(text.as_bytes()),
            Scalar::Bytes(bytes) => return self.add(bytes),
            Scalar::Float(v) => v.to_bits(),
            Scalar::Unsigned(v) => v,
            Scalar::Signed(v) => v as u64,
            Scalar::Enum { value, .. } => value as u64,
        };
        let place = self.fields.last().and_then(|(place, _)| *place);
        let is = |(at, _): &(u16, u32)| place == Some(Place::Param(*at));
        if self.depth > 0 || !self.handles.iter().any(is) {
            self.add(&number.to_le_bytes());
        }
        if self.numbers.len() < KEPT {
            self.numbers.push(number);
            if let Some(Place::Param(param)) = place
                && self.depth > 0
                && !field.name.is_empty()
            {
                self.members.push((param, field.name, number));
            }
        }
    }

    fn begin_struct(&mut self, field: FieldRef<'e>) {
        if self.depth == 0 {
            self.begin(field.name);
        }
        self.depth += 1;
    }

    fn end_struct(&mut self, _: FieldRef<'e>) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn begin_array(&mut self, field: FieldRef<'e>, _: u64) {
        self.begin_struct(field);
    }

    fn end_array(&mut self, field: FieldRef<'e>) {
        self.end_struct(field);
    }

    fn begin_variant(&mut self, field: FieldRef<'e>, _: &'e str) {
        self.begin_struct(field);
    }

    fn end_variant(&mut self, field: FieldRef<'e>) {
        self.end_struct(field);
    }
}
