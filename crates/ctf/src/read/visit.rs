//! Decoding fields, without an allocation, for whoever wants to see them.

use super::decode::Decoder;
use super::error::DecodeError;
use super::plan::{Int, Kind, Node};
use crate::bits::{mask, reverse};
use crate::class::{FieldClass, IntegerForm, StructClass};
use crate::value::{Scalar, Value};

/// A field that is visited.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef<'t> {
    /// Its name; empty for an element of an array.
    pub name: &'t str,
    /// Its class.
    pub class: &'t FieldClass,
}

/// Sees the fields of a structure in their order. The structure asked for has
/// no begin and end of its own; those inside have.
pub trait FieldVisitor<'t> {
    /// A value without parts.
    fn scalar(&mut self, field: FieldRef<'t>, value: Scalar<'t>);

    /// A structure begins.
    fn begin_struct(&mut self, _field: FieldRef<'t>) {}

    /// It ends.
    fn end_struct(&mut self, _field: FieldRef<'t>) {}

    /// An array or sequence begins.
    fn begin_array(&mut self, _field: FieldRef<'t>, _len: u64) {}

    /// It ends.
    fn end_array(&mut self, _field: FieldRef<'t>) {}

    /// A variant begins: one field follows, with the name of the chosen option.
    fn begin_variant(&mut self, _field: FieldRef<'t>, _option: &'t str) {}

    /// It ends.
    fn end_variant(&mut self, _field: FieldRef<'t>) {}

    /// An optional field: if it is there, it follows under the same name.
    fn begin_optional(&mut self, _field: FieldRef<'t>, _present: bool) {}

    /// It ends.
    fn end_optional(&mut self, _field: FieldRef<'t>) {}
}

impl<'t> Decoder<'t, '_> {
    /// Shows the fields of a structure, which starts here.
    pub fn visit_fields(
        &mut self,
        class: &'t StructClass,
        node: &Node,
        visitor: &mut dyn FieldVisitor<'t>,
    ) -> Result<(), DecodeError> {
        self.align(node.align)?;
        let Kind::Struct { nodes, .. } = &node.kind else {
            return Ok(());
        };
        for (field, node) in class.fields.iter().zip(nodes) {
            self.visit(FieldRef { name: &field.name, class: &field.class }, node, visitor)?;
        }
        Ok(())
    }

    /// Shows a field, which starts here.
    pub fn visit(
        &mut self,
        field: FieldRef<'t>,
        node: &Node,
        visitor: &mut dyn FieldVisitor<'t>,
    ) -> Result<(), DecodeError> {
        match (&node.kind, field.class) {
            (Kind::Struct { .. }, FieldClass::Struct(class)) => {
                visitor.begin_struct(field);
                self.visit_fields(class, node, visitor)?;
                visitor.end_struct(field);
            }
            (Kind::Array { len, element }, FieldClass::Array(class)) => {
                self.align(node.align)?;
                self.visit_elements(field, *len, &class.element, element, visitor)?;
            }
            (Kind::Sequence { slot, element }, FieldClass::Sequence(class)) => {
                let len = self.slot(*slot)?;
                self.align(node.align)?;
                self.visit_elements(field, len, &class.element, element, visitor)?;
            }
            (Kind::Variant(variant), FieldClass::Variant(class)) => {
                let option = self.option(variant)?;
                let chosen = &class.options[option];
                visitor.begin_variant(field, &chosen.name);
                let inner = FieldRef { name: &chosen.name, class: &chosen.class };
                self.visit(inner, &variant.options[option], visitor)?;
                visitor.end_variant(field);
            }
            (Kind::Optional(optional), FieldClass::Optional(class)) => {
                let present = self.present(optional)?;
                visitor.begin_optional(field, present);
                if present {
                    let inner = FieldRef { name: field.name, class: &class.class };
                    self.visit(inner, &optional.inner, visitor)?;
                }
                visitor.end_optional(field);
            }
            _ => {
                if let Some(value) = self.scalar(field.class, node)? {
                    visitor.scalar(field, value);
                }
            }
        }
        Ok(())
    }

    fn visit_elements(
        &mut self,
        field: FieldRef<'t>,
        len: u64,
        class: &'t FieldClass,
        node: &Node,
        visitor: &mut dyn FieldVisitor<'t>,
    ) -> Result<(), DecodeError> {
        self.align(node.align)?;
        visitor.begin_array(field, len);
        for _ in 0..len {
            let before = self.pos;
            self.visit(FieldRef { name: "", class }, node, visitor)?;
            self.progress(before)?;
        }
        visitor.end_array(field);
        Ok(())
    }

    /// Returns the value of a field without parts; none for others, which are passed over.
    pub fn scalar(&mut self, class: &'t FieldClass, node: &Node) -> Result<Option<Scalar<'t>>, DecodeError> {
        Ok(Some(match &node.kind {
            Kind::Int(int) => {
                self.align(node.align)?;
                let raw = self.int(int)?;
                integer(class, int, raw)
            }
            Kind::Leb(int) => {
                self.align(node.align)?;
                let raw = self.leb(int)?;
                integer(class, int, raw)
            }
            Kind::Float { bits, order, reversed } => {
                self.align(node.align)?;
                let raw = self.raw(*bits, *order)?;
                let raw = if *reversed { reverse(raw, *bits) } else { raw };
                Scalar::Float(match bits {
                    32 => f64::from(f32::from_bits((raw & mask(32)) as u32)),
                    _ => f64::from_bits(raw),
                })
            }
            Kind::Str { unit } => text(self.string(*unit)?, *unit),
            Kind::Text { len, unit } => {
                self.align(node.align)?;
                text(self.text(*len, *unit)?, *unit)
            }
            Kind::TextSequence { slot, unit } => {
                let len = self.slot(*slot)?;
                self.align(node.align)?;
                text(self.text(len, *unit)?, *unit)
            }
            _ => {
                self.skip(node)?;
                return Ok(None);
            }
        }))
    }
}

/// Text of bytes; what is not made of bytes stays as it is.
fn text(bytes: &[u8], unit: usize) -> Scalar<'_> {
    if unit == 1 { Scalar::text(bytes) } else { Scalar::Bytes(bytes) }
}

fn integer<'t>(class: &'t FieldClass, int: &Int, raw: u64) -> Scalar<'t> {
    let signed = raw as i64;
    match class {
        FieldClass::Enum(class) => {
            let value = if int.signed { i128::from(signed) } else { i128::from(raw) };
            Scalar::Enum { value, label: class.label(value) }
        }
        FieldClass::Integer(c) if c.form == IntegerForm::Boolean => {
            Scalar::Enum { value: raw.into(), label: Some(if raw == 0 { "false" } else { "true" }) }
        }
        _ if int.signed => Scalar::Signed(signed),
        _ => Scalar::Unsigned(raw),
    }
}

/// Makes an owned tree of what it sees.
#[derive(Default)]
pub(super) struct TreeBuilder {
    /// Fields of the structures, arrays and variants that are open.
    open: Vec<Vec<(String, Value)>>,
    fields: Vec<(String, Value)>,
}

impl TreeBuilder {
    pub fn finish(self) -> Value {
        Value::Struct(self.fields)
    }

    fn begin(&mut self) {
        self.open.push(std::mem::take(&mut self.fields));
    }

    fn end(&mut self, name: &str, make: impl FnOnce(Vec<(String, Value)>) -> Value) {
        let outer = self.open.pop().unwrap_or_default();
        let inner = std::mem::replace(&mut self.fields, outer);
        self.fields.push((name.into(), make(inner)));
    }
}

impl<'t> FieldVisitor<'t> for TreeBuilder {
    fn scalar(&mut self, field: FieldRef<'t>, value: Scalar<'t>) {
        let decoded = match value {
            Scalar::Bytes(bytes) => field.class.encoding().and_then(|e| e.decode(bytes)),
            _ => None,
        };
        self.fields.push((field.name.into(), decoded.map_or_else(|| value.into(), Value::Str)));
    }

    fn begin_struct(&mut self, _: FieldRef<'t>) {
        self.begin();
    }

    fn end_struct(&mut self, field: FieldRef<'t>) {
        self.end(field.name, Value::Struct);
    }

    fn begin_array(&mut self, _: FieldRef<'t>, _: u64) {
        self.begin();
    }

    fn end_array(&mut self, field: FieldRef<'t>) {
        self.end(field.name, |items| Value::Array(items.into_iter().map(|(_, v)| v).collect()));
    }

    fn begin_variant(&mut self, _: FieldRef<'t>, _: &'t str) {
        self.begin();
    }

    fn end_variant(&mut self, field: FieldRef<'t>) {
        self.end(field.name, |mut chosen| match chosen.pop() {
            Some((option, value)) => Value::Variant { option, value: Box::new(value) },
            None => Value::Struct(Vec::new()),
        });
    }

    fn begin_optional(&mut self, _: FieldRef<'t>, _: bool) {
        self.begin();
    }

    fn end_optional(&mut self, field: FieldRef<'t>) {
        self.end(field.name, |mut inner| Value::Optional(inner.pop().map(|(_, value)| Box::new(value))));
    }
}
