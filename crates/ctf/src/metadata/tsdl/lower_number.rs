//! Types of the syntax tree to field classes: numbers and enumerations.

use super::ast::{Assign, EnumItem, Literal, TypeSpec};
use super::attributes::{alignment, bad, base, boolean, byte_order, encoding, int, ranged};
use super::lower_type::Types;
use super::{ParseError, ParseErrorKind as Kind};
use crate::class::{EnumClass, EnumMapping, FieldClass, FloatClass, IntegerClass};

type Result<T> = std::result::Result<T, ParseError>;

impl Types<'_> {
    pub fn integer(&self, line: u32, attributes: &[Assign]) -> Result<IntegerClass> {
        let mut class = IntegerClass { byte_order: self.byte_order, ..IntegerClass::unsigned(0) };
        let mut align = None;
        for a in attributes {
            match &*a.name() {
                "size" => class.size = ranged(a, 1, 64)?,
                "align" => align = Some(alignment(a.line, int(a)?)?),
                "signed" => class.signed = boolean(a)?,
                "byte_order" => class.byte_order = byte_order(a, self.byte_order)?,
                "base" => class.base = base(a)?,
                "encoding" => class.encoding = encoding(a)?,
                "map" => class.clock = Some(self.clock(a)?),
                _ => {}
            }
        }
        if class.size == 0 {
            return Err(ParseError::new(line, Kind::Missing("size")));
        }
        class.align = align.unwrap_or(if class.size.is_multiple_of(8) { 8 } else { 1 });
        Ok(class)
    }

    /// `clock.NAME.value`
    fn clock(&self, a: &Assign) -> Result<String> {
        let name = match &a.value {
            Literal::Path(path) if path.len() == 3 && path[0] == "clock" && path[2] == "value" => &path[1],
            Literal::Path(path) if path.len() == 2 && path[0] == "clock" => &path[1],
            Literal::Path(path) if path.len() == 1 => &path[0],
            _ => return Err(bad(a)),
        };
        if self.clocks.iter().any(|c| &c.name == name) {
            Ok(name.clone())
        } else {
            Err(ParseError::new(a.line, Kind::UnknownClock(name.clone())))
        }
    }

    pub fn float(&self, line: u32, attributes: &[Assign]) -> Result<FloatClass> {
        let mut class =
            FloatClass { align: 0, exp_dig: 0, mant_dig: 0, byte_order: self.byte_order, reversed: false };
        for a in attributes {
            match &*a.name() {
                "exp_dig" => class.exp_dig = ranged(a, 1, 64)?,
                "mant_dig" => class.mant_dig = ranged(a, 1, 64)?,
                "align" => class.align = alignment(a.line, int(a)?)?,
                "byte_order" => class.byte_order = byte_order(a, self.byte_order)?,
                _ => {}
            }
        }
        if !matches!((class.exp_dig, class.mant_dig), (8, 24) | (11, 53)) {
            let expected = "a floating point number of 8+24 or 11+53 bits";
            return Err(ParseError::new(line, Kind::WrongClass { expected }));
        }
        if class.align == 0 {
            class.align = 8;
        }
        Ok(class)
    }

    pub fn enumeration(
        &mut self,
        line: u32,
        container: Option<&TypeSpec>,
        body: &[EnumItem],
    ) -> Result<FieldClass> {
        let container = match container {
            Some(spec) => self.class(spec)?,
            None => self.named(line, "int")?,
        };
        let FieldClass::Integer(container) = container else {
            return Err(ParseError::new(line, Kind::WrongClass { expected: "an integer" }));
        };
        let mut next = 0;
        let mut mappings = Vec::with_capacity(body.len());
        for item in body {
            let (start, end) = item.range.unwrap_or((next, next));
            let (start, end) = (start.min(end), start.max(end));
            // Bounded by the lexer to 65 bits, so this does not overflow.
            next = end + 1;
            mappings.push(EnumMapping { label: item.label.clone(), start, end });
        }
        self.spend(line, mappings.len())?;
        Ok(EnumClass { container, mappings: mappings.into() }.into())
    }
}
