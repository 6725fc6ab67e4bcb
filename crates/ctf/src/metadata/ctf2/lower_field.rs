//! JSON to field classes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::json::Json;
use super::properties::{self, Part};
use super::{JsonErrorKind as Kind, names};
use crate::class::{
    ArrayClass, BlobClass, BlobLength, ByteOrder, Encoding, EnumClass, EnumMapping, Field, FieldClass,
    FieldPath, FloatClass, IntegerClass, IntegerForm, OptionRange, OptionalClass, Role, Roles, SequenceClass,
    StringClass, StructClass, VariantClass,
};
use crate::metadata::MAX_DEPTH;

pub(super) type Result<T> = std::result::Result<T, Kind>;

/// Alignments above this are mistakes, not layouts.
const MAX_ALIGN: i128 = 1 << 20;

/// A class with what it weighs.
struct Alias {
    class: FieldClass,
    nodes: usize,
    depth: u32,
}

/// The field class aliases known so far.
pub(super) struct Aliases {
    known: HashMap<String, Alias>,
    /// Fields that may still be made.
    budget: usize,
    limit: usize,
    /// How deep the class is that was made last.
    deepest: u32,
}

/// Returns what a property is set to, short enough for an error.
pub(super) fn bad(property: &'static str, value: &Json) -> Kind {
    let mut value = value.to_string();
    if let Some((end, _)) = value.char_indices().nth(60) {
        value.truncate(end);
        value.push('…');
    }
    Kind::BadValue { property, value }
}

pub(super) fn need<'j>(of: &'j Json, property: &'static str) -> Result<&'j Json> {
    of.get(property).ok_or(Kind::Missing(property))
}

pub(super) fn text<'j>(of: &'j Json, property: &'static str) -> Result<Option<&'j str>> {
    match of.get(property) {
        None => Ok(None),
        Some(Json::Str(text)) => Ok(Some(text)),
        Some(other) => Err(bad(property, other)),
    }
}

pub(super) fn unsigned(of: &Json, property: &'static str) -> Result<Option<u64>> {
    match of.get(property) {
        None => Ok(None),
        Some(Json::Int(value)) if let Ok(value) = u64::try_from(*value) => Ok(Some(value)),
        Some(other) => Err(bad(property, other)),
    }
}

fn items<'j>(value: &'j Json, property: &'static str) -> Result<&'j [Json]> {
    match value {
        Json::Array(items) => Ok(items),
        other => Err(bad(property, other)),
    }
}

fn alignment(of: &Json, property: &'static str) -> Result<u32> {
    match of.get(property) {
        None => Ok(1),
        Some(Json::Int(value)) if (1..=MAX_ALIGN).contains(value) && (*value as u32).is_power_of_two() => {
            Ok(*value as u32)
        }
        Some(other) => Err(bad(property, other)),
    }
}

impl Aliases {
    pub fn new(limit: usize) -> Self {
        Self { known: HashMap::new(), budget: limit, limit, deepest: 0 }
    }

    fn spend(&mut self, nodes: usize) -> Result<()> {
        self.budget = self.budget.checked_sub(nodes).ok_or(Kind::TooLarge(self.limit))?;
        Ok(())
    }

    /// Gives a name to a class.
    pub fn define(&mut self, name: &str, json: &Json) -> Result<()> {
        let before = self.budget;
        let class = self.class(json)?;
        let alias = Alias { class, nodes: before - self.budget, depth: self.deepest };
        if self.known.insert(name.into(), alias).is_some() {
            return Err(Kind::Redefined { what: "field class alias", name: name.into() });
        }
        Ok(())
    }

    /// Returns a class from its JSON.
    pub fn class(&mut self, json: &Json) -> Result<FieldClass> {
        self.deepest = 0;
        self.inner(json, 1)
    }

    /// Returns the structure of a scope.
    pub fn scope(&mut self, of: &Json, property: &'static str) -> Result<Option<StructClass>> {
        match of.get(property) {
            None => Ok(None),
            Some(json) => match self.class(json)? {
                FieldClass::Struct(class) => Ok(Some(class)),
                _ => Err(bad(property, json)),
            },
        }
    }

    fn inner(&mut self, json: &Json, depth: u32) -> Result<FieldClass> {
        self.spend(1)?;
        let (class, deepest) = match json {
            Json::Str(name) => {
                let unknown = || Kind::Unknown { what: "field class alias", name: name.clone() };
                let alias = self.known.get(name).ok_or_else(unknown)?;
                let (nodes, deepest) = (alias.nodes, depth + alias.depth);
                self.budget = self.budget.checked_sub(nodes).ok_or(Kind::TooLarge(self.limit))?;
                if deepest > MAX_DEPTH {
                    return Err(Kind::TooDeep(MAX_DEPTH));
                }
                (alias.class.clone(), deepest)
            }
            _ if depth > MAX_DEPTH => return Err(Kind::TooDeep(MAX_DEPTH)),
            _ => (self.object(json, depth)?, depth),
        };
        self.deepest = self.deepest.max(deepest);
        Ok(class)
    }

    fn object(&mut self, json: &Json, depth: u32) -> Result<FieldClass> {
        let kind = text(json, "type")?.ok_or(Kind::Missing("type"))?;
        properties::check(json, kind)?;
        Ok(match kind {
            "fixed-length-bit-array" => fixed(json, false, IntegerForm::BitArray)?.into(),
            "fixed-length-boolean" => fixed(json, false, IntegerForm::Boolean)?.into(),
            "fixed-length-bit-map" => {
                let container = fixed(json, false, IntegerForm::BitMap)?;
                let mappings = self.mappings(need(json, "flags")?, "flags")?;
                EnumClass { container, mappings }.into()
            }
            "fixed-length-unsigned-integer" => self.number(json, fixed(json, false, IntegerForm::Number)?)?,
            "fixed-length-signed-integer" => self.number(json, fixed(json, true, IntegerForm::Number)?)?,
            "variable-length-unsigned-integer" => self.number(json, IntegerClass::leb128(false))?,
            "variable-length-signed-integer" => self.number(json, IntegerClass::leb128(true))?,
            "fixed-length-floating-point-number" => float(json)?.into(),
            "null-terminated-string" => StringClass { encoding: encoding(json)? }.into(),
            "static-length-string" => FieldClass::array(length(json)?, character(json)?),
            "dynamic-length-string" => FieldClass::sequence(location(json, LENGTH)?, character(json)?),
            "static-length-blob" => blob(json, BlobLength::Static(length(json)?))?.into(),
            "dynamic-length-blob" => blob(json, BlobLength::Dynamic(location(json, LENGTH)?))?.into(),
            "structure" => self.structure(json, depth)?.into(),
            "static-length-array" => {
                let (element, min_align) = self.elements(json, depth)?;
                ArrayClass { len: length(json)?, element, min_align }.into()
            }
            "dynamic-length-array" => {
                let (element, min_align) = self.elements(json, depth)?;
                SequenceClass { length: location(json, LENGTH)?, element, min_align }.into()
            }
            "optional" => {
                let class = Box::new(self.inner(need(json, "field-class")?, depth + 1)?);
                let ranges = match json.get(RANGES) {
                    Some(json) => Some(self.ranges(json, RANGES)?),
                    None => None,
                };
                OptionalClass { selector: location(json, SELECTOR)?, ranges, class }.into()
            }
            "variant" => self.variant(json, depth)?.into(),
            _ => return Err(bad("type", need(json, "type")?)),
        })
    }

    fn structure(&mut self, json: &Json, depth: u32) -> Result<StructClass> {
        let mut class = StructClass { min_align: alignment(json, "minimum-alignment")?, fields: Vec::new() };
        for member in json.get("member-classes").map_or(Ok(&[][..]), |m| items(m, "member-classes"))? {
            properties::check_part(member, Part::Member)?;
            let name = text(member, "name")?.ok_or(Kind::Missing("name"))?;
            let inner = self.inner(need(member, "field-class")?, depth + 1)?;
            class.fields.push(Field { name: name.into(), class: inner });
        }
        Ok(class)
    }

    fn elements(&mut self, json: &Json, depth: u32) -> Result<(Box<FieldClass>, u32)> {
        let element = self.inner(need(json, "element-field-class")?, depth + 1)?;
        Ok((Box::new(element), alignment(json, "minimum-alignment")?))
    }

    fn variant(&mut self, json: &Json, depth: u32) -> Result<VariantClass> {
        let (mut options, mut ranges) = (Vec::new(), Vec::new());
        for json in items(need(json, "options")?, "options")? {
            properties::check_part(json, Part::Option)?;
            // Values refer to their option by its name, so every option has one.
            let option = options.len();
            let name = text(json, "name")?.map_or_else(|| format!("option{option}"), str::to_owned);
            for (start, end) in self.ranges(need(json, RANGES)?, RANGES)? {
                ranges.push(OptionRange { start, end, option });
            }
            let class = self.inner(need(json, "field-class")?, depth + 1)?;
            options.push(Field { name, class });
        }
        Ok(VariantClass { tag: location(json, SELECTOR)?, options, ranges: Some(ranges) })
    }

    /// Returns an integer with its names, if it has some.
    fn number(&mut self, json: &Json, mut class: IntegerClass) -> Result<FieldClass> {
        if let Some(base) = json.get("preferred-display-base") {
            let known = match base {
                Json::Int(radix) => names::base(*radix),
                _ => None,
            };
            class.base = known.ok_or_else(|| bad("preferred-display-base", base))?;
        }
        class.roles = roles(json)?;
        Ok(match json.get("mappings") {
            Some(mappings) => {
                let mappings = self.mappings(mappings, "mappings")?;
                EnumClass { container: class, mappings }.into()
            }
            None => class.into(),
        })
    }

    fn mappings(&mut self, json: &Json, property: &'static str) -> Result<Arc<[EnumMapping]>> {
        let Json::Object(members) = json else {
            return Err(bad(property, json));
        };
        let mut mappings = Vec::new();
        let mut seen = HashSet::new();
        for (label, json) in members {
            if !seen.insert(label) {
                return Err(Kind::Redefined { what: "label", name: label.clone() });
            }
            for (start, end) in self.ranges(json, property)? {
                mappings.push(EnumMapping { label: label.clone(), start, end });
            }
        }
        Ok(mappings.into())
    }

    /// `[[first, last], …]`
    fn ranges(&mut self, json: &Json, property: &'static str) -> Result<Vec<(i128, i128)>> {
        let ranges = items(json, property)?;
        self.spend(ranges.len())?;
        let range = |json: &Json| match json {
            Json::Array(range) => match range[..] {
                [Json::Int(start), Json::Int(end)] if start <= end => Ok((start, end)),
                _ => Err(bad(property, json)),
            },
            _ => Err(bad(property, json)),
        };
        ranges.iter().map(range).collect()
    }
}

const LENGTH: &str = "length-field-location";
const SELECTOR: &str = "selector-field-location";
const RANGES: &str = "selector-field-ranges";

fn length(json: &Json) -> Result<u64> {
    unsigned(json, "length")?.ok_or(Kind::Missing("length"))
}

/// Returns the order of bytes, and whether the bits stand the other way round.
fn order(json: &Json) -> Result<(ByteOrder, bool)> {
    let (order, usual) = match text(json, "byte-order")?.ok_or(Kind::Missing("byte-order"))? {
        "little-endian" => (ByteOrder::Little, "first-to-last"),
        "big-endian" => (ByteOrder::Big, "last-to-first"),
        _ => return Err(bad("byte-order", need(json, "byte-order")?)),
    };
    match text(json, "bit-order")? {
        None => Ok((order, false)),
        Some(bits @ ("first-to-last" | "last-to-first")) => Ok((order, bits != usual)),
        Some(_) => Err(bad("bit-order", need(json, "bit-order")?)),
    }
}

fn fixed(json: &Json, signed: bool, form: IntegerForm) -> Result<IntegerClass> {
    let size = match length(json)? {
        size @ 1..=64 => size as u32,
        _ => return Err(bad("length", need(json, "length")?)),
    };
    let (byte_order, reversed) = order(json)?;
    let align = alignment(json, "alignment")?;
    Ok(IntegerClass { align, byte_order, reversed, form, ..IntegerClass::new(size, signed) })
}

fn float(json: &Json) -> Result<FloatClass> {
    let class = match length(json)? {
        32 => FloatClass::single(),
        64 => FloatClass::double(),
        _ => return Err(bad("length", need(json, "length")?)),
    };
    let (byte_order, reversed) = order(json)?;
    Ok(FloatClass { align: alignment(json, "alignment")?, byte_order, reversed, ..class })
}

fn encoding(json: &Json) -> Result<Encoding> {
    match text(json, "encoding")? {
        None => Ok(Encoding::Utf8),
        Some(name) => {
            names::encoding(name).ok_or_else(|| Kind::BadValue { property: "encoding", value: name.into() })
        }
    }
}

/// Returns what a text of a given length consists of.
fn character(json: &Json) -> Result<IntegerClass> {
    Ok(IntegerClass { encoding: encoding(json)?, ..IntegerClass::character() })
}

fn blob(json: &Json, length: BlobLength) -> Result<BlobClass> {
    let mut class = BlobClass::new(length);
    if let Some(media_type) = text(json, "media-type")? {
        class.media_type = media_type.into();
    }
    class.roles = roles(json)?;
    Ok(class)
}

fn roles(json: &Json) -> Result<Roles> {
    let mut roles = Roles::default();
    for role in json.get("roles").map_or(Ok(&[][..]), |roles| items(roles, "roles"))? {
        let known = |name: &str| Role::ALL.into_iter().find(|role| role.name() == name);
        match role {
            // A role that is not known says nothing to this reader.
            Json::Str(name) => roles = known(name).map_or(roles, |role| roles.with(role)),
            other => return Err(bad("roles", other)),
        }
    }
    Ok(roles)
}

fn location(of: &Json, property: &'static str) -> Result<FieldPath> {
    let json = need(of, property)?;
    properties::check_part(json, Part::Location)?;
    let scope = match text(json, "origin")? {
        Some(origin) => Some(names::scope(origin).ok_or_else(|| bad(property, json))?),
        None => None,
    };
    let (mut names, mut parents) = (Vec::new(), 0);
    for step in items(need(json, "path")?, "path")? {
        match step {
            Json::Str(name) => names.push(name.clone()),
            // Up again from where a name led, or from where the path begins.
            Json::Null if names.pop().is_none() && scope.is_none() => parents += 1,
            Json::Null if scope.is_none() || !names.is_empty() => {}
            other => return Err(bad("path", other)),
        }
    }
    if names.is_empty() {
        return Err(bad(property, json));
    }
    Ok(FieldPath { scope, names, parents: Some(parents) })
}
