//! Types of the syntax tree to field classes.

use std::collections::HashMap;

use super::ast::{Declarator, Dim, Item, Spec, TypeSpec};
use super::attributes::{alignment, encoding};
use super::names::from_ident;
use super::parse::MAX_DEPTH;
use super::{ParseError, ParseErrorKind as Kind};
use crate::class::{
    ArrayClass, ByteOrder, ClockClass, Encoding, Field, FieldClass, FieldPath, Scope, SequenceClass,
    StringClass, StructClass, VariantClass,
};

type Result<T> = std::result::Result<T, ParseError>;

/// A class with what it weighs, so that a type used twice is not measured twice.
#[derive(Clone)]
struct Named {
    class: FieldClass,
    nodes: usize,
    depth: u32,
}

/// The types known at a point of the text.
pub(super) struct Types<'a> {
    pub byte_order: ByteOrder,
    pub clocks: &'a [ClockClass],
    /// Innermost last.
    scopes: Vec<HashMap<String, Named>>,
    /// Fields that may still be made: a type of types of types doubles at
    /// each line, and would fill the memory from a few hundred bytes.
    budget: usize,
    limit: usize,
}

impl<'a> Types<'a> {
    pub fn new(byte_order: ByteOrder, clocks: &'a [ClockClass], limit: usize) -> Self {
        Self { byte_order, clocks, scopes: vec![HashMap::new()], budget: limit, limit }
    }

    /// Runs `inner` in a scope of its own.
    pub fn scoped<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.scopes.push(HashMap::new());
        let result = inner(self);
        self.scopes.pop();
        result
    }

    pub fn spend(&mut self, line: u32, nodes: usize) -> Result<()> {
        match self.budget.checked_sub(nodes) {
            Some(left) => self.budget = left,
            None => return Err(ParseError::new(line, Kind::TooLarge(self.limit))),
        }
        Ok(())
    }

    fn define(&mut self, line: u32, name: String, class: FieldClass) -> Result<()> {
        let (nodes, depth) = weigh(&class);
        if depth > MAX_DEPTH {
            return Err(ParseError::new(line, Kind::TooDeep(MAX_DEPTH)));
        }
        self.spend(line, nodes)?;
        let scope = self.scopes.last_mut().expect("the outermost scope is never popped");
        if scope.contains_key(&name) {
            return Err(ParseError::new(line, Kind::Redefined(name)));
        }
        scope.insert(name, Named { class, nodes, depth });
        Ok(())
    }

    pub fn named(&mut self, line: u32, name: &str) -> Result<FieldClass> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        let Some(found) = found else {
            return Err(ParseError::new(line, Kind::UnknownType(name.into())));
        };
        let (nodes, depth) = (found.nodes, found.depth);
        let class = found.class.clone();
        debug_assert!(depth <= MAX_DEPTH);
        self.spend(line, nodes)?;
        Ok(class)
    }

    /// A typedef, a typealias, or a type by itself.
    pub fn declare(&mut self, item: &Item) -> Result<()> {
        match item {
            Item::Typedef { spec, declarators } => {
                let class = self.class(spec)?;
                for declarator in declarators {
                    let class = self.dimensions(spec.line, class.clone(), declarator)?;
                    self.define(spec.line, declarator.name.clone(), class)?;
                }
                Ok(())
            }
            Item::TypeAlias { spec, name } => {
                let class = self.class(spec)?;
                self.define(spec.line, name.clone(), class)
            }
            Item::Type(spec) => self.class(spec).map(drop),
            // Unknown attributes and blocks are other tools' business.
            _ => Ok(()),
        }
    }

    pub fn struct_class(&mut self, spec: &TypeSpec) -> Result<StructClass> {
        match self.class(spec)? {
            FieldClass::Struct(class) => {
                let (_, depth) = weigh_fields(&class.fields);
                if depth > MAX_DEPTH {
                    return Err(ParseError::new(spec.line, Kind::TooDeep(MAX_DEPTH)));
                }
                Ok(class)
            }
            _ => Err(ParseError::new(spec.line, Kind::WrongClass { expected: "a struct" })),
        }
    }

    pub fn class(&mut self, spec: &TypeSpec) -> Result<FieldClass> {
        let line = spec.line;
        self.spend(line, 1)?;
        match &spec.kind {
            Spec::Named(name) => self.named(line, name),
            Spec::Integer(attributes) => self.integer(line, attributes).map(Into::into),
            Spec::Float(attributes) => self.float(line, attributes).map(Into::into),
            Spec::String(attributes) => {
                let mut class = StringClass { encoding: Encoding::Utf8 };
                for a in attributes.iter().filter(|a| a.name() == "encoding") {
                    class.encoding = encoding(a)?;
                }
                Ok(class.into())
            }
            Spec::Enum { name, container, body } => {
                let Some(body) = body else {
                    return self.named(line, &format!("enum {}", name.as_deref().unwrap_or("")));
                };
                let class = self.enumeration(line, container.as_deref(), body)?;
                self.define_tagged(line, "enum", name, class)
            }
            Spec::Struct { name, body, align } => {
                let min_align = align.map_or(Ok(1), |a| alignment(line, a))?;
                let mut class = match body {
                    Some(items) => {
                        let fields = self.fields(items, true)?;
                        StructClass { min_align, fields }.into()
                    }
                    None => self.named(line, &format!("struct {}", name.as_deref().unwrap_or("")))?,
                };
                if let FieldClass::Struct(class) = &mut class {
                    class.min_align = class.min_align.max(min_align);
                }
                if body.is_none() { Ok(class) } else { self.define_tagged(line, "struct", name, class) }
            }
            Spec::Variant { name, tag, body } => {
                let tag = tag.as_ref().map(|path| field_path(path));
                let empty = FieldPath { scope: None, names: Vec::new(), parents: None };
                let mut class = match body {
                    Some(items) => {
                        let options = self.fields(items, false)?;
                        let class = VariantClass { tag: empty, options, ranges: None }.into();
                        self.define_tagged(line, "variant", name, class)?
                    }
                    None => self.named(line, &format!("variant {}", name.as_deref().unwrap_or("")))?,
                };
                if let (FieldClass::Variant(class), Some(tag)) = (&mut class, tag) {
                    class.tag = tag;
                }
                Ok(class)
            }
        }
    }

    fn define_tagged(
        &mut self,
        line: u32,
        keyword: &str,
        name: &Option<String>,
        class: FieldClass,
    ) -> Result<FieldClass> {
        if let Some(name) = name {
            self.define(line, format!("{keyword} {name}"), class.clone())?;
        }
        Ok(class)
    }

    /// Returns the body of a structure or a variant.
    fn fields(&mut self, items: &[Item], strip: bool) -> Result<Vec<Field>> {
        self.scoped(|types| {
            let mut fields = Vec::new();
            for item in items {
                let Item::Field { spec, declarators } = item else {
                    types.declare(item)?;
                    continue;
                };
                let class = types.class(spec)?;
                if let FieldClass::Variant(v) = &class
                    && v.tag.names.is_empty()
                {
                    let expected = "a variant with a tag";
                    return Err(ParseError::new(spec.line, Kind::WrongClass { expected }));
                }
                let (nodes, depth) = weigh(&class);
                if depth > MAX_DEPTH {
                    return Err(ParseError::new(spec.line, Kind::TooDeep(MAX_DEPTH)));
                }
                for declarator in declarators {
                    types.spend(spec.line, nodes)?;
                    let class = types.dimensions(spec.line, class.clone(), declarator)?;
                    let name = &declarator.name;
                    let name = if strip { from_ident(name) } else { name };
                    fields.push(Field { name: name.into(), class });
                }
            }
            Ok(fields)
        })
    }

    /// Wraps a class into the arrays of its declarator, the innermost first.
    fn dimensions(&mut self, line: u32, mut class: FieldClass, d: &Declarator) -> Result<FieldClass> {
        if d.dims.len() > MAX_DEPTH as usize {
            return Err(ParseError::new(line, Kind::TooDeep(MAX_DEPTH)));
        }
        for dim in d.dims.iter().rev() {
            self.spend(line, 1)?;
            let element = Box::new(class);
            class = match dim {
                Dim::Fixed(len) => ArrayClass { len: *len, element, min_align: 1 }.into(),
                Dim::Path(path) => SequenceClass { length: field_path(path), element, min_align: 1 }.into(),
            };
        }
        Ok(class)
    }
}

/// Nodes and depth of a class.
fn weigh(class: &FieldClass) -> (usize, u32) {
    let (nodes, depth) = match class {
        FieldClass::Struct(c) => weigh_fields(&c.fields),
        FieldClass::Variant(c) => weigh_fields(&c.options),
        FieldClass::Array(c) => weigh(&c.element),
        FieldClass::Sequence(c) => weigh(&c.element),
        FieldClass::Enum(c) => (c.mappings.len(), 0),
        _ => (0, 0),
    };
    (nodes + 1, depth + 1)
}

fn weigh_fields(fields: &[Field]) -> (usize, u32) {
    fields.iter().map(|f| weigh(&f.class)).fold((0, 0), |(n, d), (nodes, depth)| (n + nodes, d.max(depth)))
}

/// Returns a reference: `stream.event.header.id` from a scope on, anything else relative.
fn field_path(path: &[String]) -> FieldPath {
    let dotted: Vec<&str> = path.iter().map(String::as_str).collect();
    let (scope, rest) = match dotted.as_slice() {
        ["trace", "packet", "header", rest @ ..] => (Some(Scope::PacketHeader), rest),
        ["stream", "packet", "context", rest @ ..] => (Some(Scope::PacketContext), rest),
        ["stream", "event", "header", rest @ ..] => (Some(Scope::EventHeader), rest),
        ["stream", "event", "context", rest @ ..] => (Some(Scope::StreamEventContext), rest),
        ["event", "context", rest @ ..] => (Some(Scope::EventContext), rest),
        ["event", "fields", rest @ ..] => (Some(Scope::EventFields), rest),
        rest => (None, rest),
    };
    let names = rest.iter().map(|name| from_ident(name).to_owned()).collect();
    FieldPath { scope, names, parents: None }
}
