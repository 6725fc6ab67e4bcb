//! Field classes to JSON.

use super::json::Json;
use super::names;
use super::object::Object;
use crate::class::shared_enums;
use crate::class::{
    Base, BlobClass, BlobLength, ByteOrder, Encoding, EnumClass, FieldClass, FieldPath, FloatClass,
    IntegerClass, IntegerForm, OptionalClass, Role, Roles, Scope, StructClass, TraceClass, VariantClass,
};

/// Knows what has a name.
pub(super) struct Printer<'c> {
    named: Vec<&'c EnumClass>,
}

impl<'c> Printer<'c> {
    /// For a trace, whose enumerations that come again get names.
    pub fn of(trace: &'c TraceClass) -> Self {
        Self { named: shared_enums::collect(trace) }
    }

    /// Returns the fragments that give these names.
    pub fn aliases(&self) -> impl Iterator<Item = Object> {
        self.named.iter().zip(0..).map(|(class, number)| {
            Object::new("field-class-alias")
                .with("name", &*alias(number))
                .with("field-class", enumeration(class))
        })
    }

    pub fn structure(&self, class: &StructClass) -> Object {
        let member = |name: &str, class| {
            Json::from(Object::default().with("name", name).with("field-class", self.class(class)))
        };
        let members = class.fields.iter().map(|f| member(&f.name, &f.class)).collect();
        let align = Some(class.min_align).filter(|&a| a > 1);
        Object::new("structure")
            .maybe("minimum-alignment", align)
            .with("member-classes", Json::Array(members))
    }

    fn class(&self, class: &FieldClass) -> Json {
        match class {
            FieldClass::Integer(c) => integer(c).into(),
            FieldClass::Enum(c) => match self.named.iter().position(|named| *named == c) {
                Some(number) => alias(number).as_str().into(),
                None => enumeration(c).into(),
            },
            FieldClass::Float(c) => float(c).into(),
            FieldClass::String(c) => {
                Object::new("null-terminated-string").maybe("encoding", text(c.encoding)).into()
            }
            FieldClass::Struct(c) => self.structure(c).into(),
            FieldClass::Array(c) => match c.element.character() {
                Some(e) => Object::new("static-length-string")
                    .with("length", c.len)
                    .maybe("encoding", text(e))
                    .into(),
                None => {
                    self.elements("static-length-array", &c.element, c.min_align).with("length", c.len).into()
                }
            },
            FieldClass::Sequence(c) => {
                let object = match c.element.character() {
                    Some(e) => Object::new("dynamic-length-string").maybe("encoding", text(e)),
                    None => self.elements("dynamic-length-array", &c.element, c.min_align),
                };
                object.with("length-field-location", path(&c.length)).into()
            }
            FieldClass::Variant(c) => self.variant(c).into(),
            FieldClass::Optional(c) => self.optional(c).into(),
            FieldClass::Blob(c) => blob(c).into(),
        }
    }

    fn elements(&self, kind: &str, element: &FieldClass, min_align: u32) -> Object {
        let align = Some(min_align).filter(|&a| a > 1);
        Object::new(kind).maybe("minimum-alignment", align).with("element-field-class", self.class(element))
    }

    fn variant(&self, c: &VariantClass) -> Object {
        let options = c.options.iter().enumerate().map(|(index, option)| {
            let known = c.ranges.iter().flatten().filter(|r| r.option == index);
            Object::default()
                .with("name", option.name.as_str())
                .with("selector-field-ranges", ranges(known.map(|r| (r.start, r.end))))
                .with("field-class", self.class(&option.class))
                .into()
        });
        let options = Json::Array(options.collect());
        Object::new("variant").with("selector-field-location", path(&c.tag)).with("options", options)
    }

    fn optional(&self, c: &OptionalClass) -> Object {
        let known = c.ranges.as_ref().map(|r| ranges(r.iter().copied()));
        Object::new("optional")
            .with("selector-field-location", path(&c.selector))
            .maybe("selector-field-ranges", known)
            .with("field-class", self.class(&c.class))
    }
}

fn alias(number: usize) -> String {
    format!("values_{number}")
}

fn path(path: &FieldPath) -> Object {
    location(path.scope, path.parents.unwrap_or(0), &path.names)
}

/// Returns an encoding that is not what is meant without one.
fn text(encoding: Encoding) -> Option<&'static str> {
    Some(names::encoding_name(encoding)).filter(|name| *name != "utf-8")
}

fn ranges(ranges: impl Iterator<Item = (i128, i128)>) -> Json {
    Json::Array(ranges.map(|(start, end)| Json::Array(vec![start.into(), end.into()])).collect())
}

/// Returns what all classes of a fixed number of bits have.
/// Returns a field location.
fn location(scope: Option<Scope>, parents: u32, path: &[String]) -> Object {
    let up = (0..parents).map(|_| Json::Null);
    let path = up.chain(path.iter().map(|name| Json::from(name.as_str())));
    Object::default().maybe("origin", scope.map(names::scope_name)).with("path", Json::Array(path.collect()))
}

fn bits(kind: &str, length: u32, align: u32, order: ByteOrder, reversed: bool) -> Object {
    let (order, other) = match order {
        ByteOrder::Little => ("little-endian", "last-to-first"),
        ByteOrder::Big => ("big-endian", "first-to-last"),
    };
    Object::new(kind)
        .with("length", length)
        .with("byte-order", order)
        .maybe("bit-order", reversed.then_some(other))
        .maybe("alignment", Some(align).filter(|&a| a > 1))
}

fn integer(c: &IntegerClass) -> Object {
    let kind = match (c.form, c.signed) {
        (IntegerForm::Boolean, _) => "boolean",
        (IntegerForm::BitArray, _) => "bit-array",
        (IntegerForm::BitMap, _) => "bit-map",
        (IntegerForm::Number, true) => "signed-integer",
        (IntegerForm::Number, false) => "unsigned-integer",
    };
    let object = match c.variable {
        true => Object::new(&format!("variable-length-{kind}")),
        false => bits(&format!("fixed-length-{kind}"), c.size, c.align, c.byte_order, c.reversed),
    };
    let base = Some(names::radix(c.base)).filter(|_| c.base != Base::Decimal);
    object.maybe("preferred-display-base", base).maybe("roles", roles(c.roles))
}

fn float(c: &FloatClass) -> Object {
    bits("fixed-length-floating-point-number", c.size(), c.align, c.byte_order, c.reversed)
}

fn enumeration(c: &EnumClass) -> Object {
    let mut labels: Vec<(String, Vec<(i128, i128)>)> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for m in c.mappings.iter() {
        let index = *known.entry(&m.label).or_insert(labels.len());
        if index == labels.len() {
            labels.push((m.label.clone(), Vec::new()));
        }
        labels[index].1.push((m.start, m.end));
    }
    let labels = labels.into_iter().map(|(label, known)| (label, ranges(known.into_iter()))).collect();
    let property = if c.container.form == IntegerForm::BitMap { "flags" } else { "mappings" };
    integer(&c.container).with(property, Json::Object(labels))
}

fn blob(c: &BlobClass) -> Object {
    let object = match &c.length {
        BlobLength::Static(length) => Object::new("static-length-blob").with("length", *length),
        BlobLength::Dynamic(length) => {
            Object::new("dynamic-length-blob").with("length-field-location", path(length))
        }
    };
    let media_type = Some(c.media_type.as_str()).filter(|m| *m != BlobClass::OCTETS);
    object.maybe("media-type", media_type).maybe("roles", roles(c.roles))
}

fn roles(roles: Roles) -> Option<Json> {
    let names = roles.iter().map(Role::name).map(Json::from).collect();
    Some(Json::Array(names)).filter(|_| !roles.is_empty())
}
