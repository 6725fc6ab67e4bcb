//! The compiler: field classes to the nodes of `plan.rs`.
//!
//! It goes over the classes twice: first to learn which fields are lengths or
//! tags of others and give them slots, then to make the nodes.

use std::collections::HashMap;

use super::plan::{Int, Kind, Node, Optional, Variant};
use crate::bits::align_up;
use crate::class::resolve::{ELEMENT, Place, Target, ranges, resolve};
use crate::class::scopes::Scopes;
use crate::class::{
    BlobLength, Encoding, Field, FieldClass, FieldPath, IntegerClass, OptionalClass, PlanError, Role, Scope,
    StructClass, VariantClass,
};

/// Deeper fields than this are refused, so that recursion is bounded.
const MAX_DEPTH: u32 = 80;

/// Which field writes which slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    map: HashMap<Place, u32>,
    count: u32,
}

impl Slots {
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// One slot for fields of which an event has one.
    fn want(&mut self, places: Vec<Place>) {
        let known = places.iter().find_map(|place| self.map.get(place).copied());
        let slot = known.unwrap_or(self.count);
        for place in places {
            self.map.entry(place).or_insert(slot);
            self.count = self.count.max(slot + 1);
        }
    }
}

/// Compiles the structures of one stream or event.
pub(super) struct Compiler<'c, 's> {
    pub scopes: Scopes<'c>,
    /// The clock that time stamps of the stream are of.
    pub clock: Option<&'c str>,
    pub slots: &'s mut Slots,
}

impl<'c> Compiler<'c, '_> {
    /// Reserves slots for what a scope refers to, in scopes up to `last`.
    pub fn collect(&mut self, scope: Scope, last: Scope) -> Result<(), PlanError> {
        let Some(class) = self.scopes.get(scope) else {
            return Ok(());
        };
        let mut place = Place { scope, indexes: Vec::new() };
        for (index, field) in class.fields.iter().enumerate() {
            place.indexes.push(index as u32);
            self.collect_field(&field.class, &mut place, last)?;
            place.indexes.pop();
        }
        Ok(())
    }

    fn collect_field(&mut self, class: &'c FieldClass, at: &mut Place, last: Scope) -> Result<(), PlanError> {
        if at.indexes.len() > MAX_DEPTH as usize {
            return Err(PlanError::TooDeep { place: self.scopes.place(at.scope), limit: MAX_DEPTH });
        }
        let (fields, reference) = match class {
            FieldClass::Struct(c) => (c.fields.as_slice(), None),
            FieldClass::Variant(c) => (c.options.as_slice(), Some(&c.tag)),
            FieldClass::Array(c) => return self.collect_element(&c.element, at, last),
            FieldClass::Sequence(c) => {
                self.collect_reference(&c.length, at, last)?;
                return self.collect_element(&c.element, at, last);
            }
            FieldClass::Optional(c) => {
                self.collect_reference(&c.selector, at, last)?;
                at.indexes.push(0);
                let result = self.collect_field(&c.class, at, last);
                at.indexes.pop();
                return result;
            }
            FieldClass::Blob(c) => {
                return match &c.length {
                    BlobLength::Dynamic(length) => self.collect_reference(length, at, last),
                    BlobLength::Static(_) => Ok(()),
                };
            }
            _ => return Ok(()),
        };
        if let Some(reference) = reference {
            self.collect_reference(reference, at, last)?;
        }
        for (index, field) in fields.iter().enumerate() {
            at.indexes.push(index as u32);
            self.collect_field(&field.class, at, last)?;
            at.indexes.pop();
        }
        Ok(())
    }

    fn collect_element(
        &mut self,
        class: &'c FieldClass,
        at: &mut Place,
        last: Scope,
    ) -> Result<(), PlanError> {
        at.indexes.push(ELEMENT);
        let result = self.collect_field(class, at, last);
        at.indexes.pop();
        result
    }

    fn collect_reference(&mut self, path: &FieldPath, at: &Place, last: Scope) -> Result<(), PlanError> {
        let targets = self.targets(path, at)?.into_iter();
        self.slots.want(targets.map(|(place, _)| place).filter(|place| place.scope <= last).collect());
        Ok(())
    }

    /// Returns the fields that a path refers to: one at least.
    fn targets(&self, path: &FieldPath, at: &Place) -> Result<Vec<Target<'c>>, PlanError> {
        let targets = resolve(&self.scopes, at, path);
        if targets.is_empty() {
            let place = self.scopes.place(at.scope);
            return Err(PlanError::Unresolved { place, reference: path.to_string() });
        }
        Ok(targets)
    }

    /// Returns the slot of the fields that a path refers to, and whether they are signed;
    /// none if they cannot serve as what `fits` asks for.
    fn slot(
        &self,
        path: &FieldPath,
        at: &Place,
        role: &'static str,
        fits: impl Fn(&FieldClass) -> bool,
    ) -> Result<(u32, bool), PlanError> {
        let mut found = None;
        for (target, class) in self.targets(path, at)? {
            let signed = match class {
                FieldClass::Integer(c) => c.signed,
                FieldClass::Enum(c) => c.container.signed,
                _ => return Err(self.wrong_target(path, at, role)),
            };
            let slot = self.slots.map.get(&target).copied();
            let this = slot.filter(|_| fits(class)).map(|slot| (slot, signed));
            if this.is_none() || found.is_some() && found != this {
                return Err(self.wrong_target(path, at, role));
            }
            found = this;
        }
        found.ok_or_else(|| self.wrong_target(path, at, role))
    }

    /// Compiles a scope; none where the metadata has none.
    pub fn scope(&self, scope: Scope) -> Result<Option<Node>, PlanError> {
        let Some(class) = self.scopes.get(scope) else {
            return Ok(None);
        };
        let mut place = Place { scope, indexes: Vec::new() };
        self.structure(class, "", &mut place).map(Some)
    }

    fn structure(&self, class: &'c StructClass, name: &str, at: &mut Place) -> Result<Node, PlanError> {
        let nodes = self.children(&class.fields, at)?;
        let align = nodes.iter().map(|n: &Node| n.align).fold(class.min_align, u32::max);
        self.check(name, at, 1, align)?;
        let mut offset = Some(0);
        let mut offsets = Vec::with_capacity(nodes.len());
        for node in &nodes {
            let start = offset.and_then(|o| align_up(o, node.align));
            // What a variant or an optional field has in it may be aligned more than itself.
            let start = start.filter(|_| !matches!(node.kind, Kind::Variant(_) | Kind::Optional(_)));
            offsets.push(start);
            offset = start.zip(node.fixed).and_then(|(start, size)| start.checked_add(size));
        }
        let active = nodes.iter().any(|n| n.active);
        Ok(Node { align, fixed: offset, active, kind: Kind::Struct { nodes, offsets } })
    }

    fn children(&self, fields: &'c [Field], at: &mut Place) -> Result<Vec<Node>, PlanError> {
        let mut nodes = Vec::with_capacity(fields.len());
        for (index, field) in fields.iter().enumerate() {
            at.indexes.push(index as u32);
            nodes.push(self.node(&field.class, &field.name, at)?);
            at.indexes.pop();
        }
        Ok(nodes)
    }

    fn node(&self, class: &'c FieldClass, name: &str, at: &mut Place) -> Result<Node, PlanError> {
        match class {
            FieldClass::Integer(c) => self.integer(c, name, at),
            FieldClass::Enum(c) => self.integer(&c.container, name, at),
            FieldClass::Float(c) => {
                let bits = if c.size() == 32 || c.size() == 64 { c.size() } else { 0 };
                self.check(name, at, bits, c.align)?;
                let kind = Kind::Float { bits, order: c.byte_order, reversed: c.reversed };
                Ok(Node { align: c.align, fixed: Some(u64::from(bits)), active: false, kind })
            }
            FieldClass::String(c) => Ok(bytes(8, None, Kind::Str { unit: c.encoding.unit() })),
            FieldClass::Struct(c) => self.structure(c, name, at),
            FieldClass::Array(c) => {
                self.check(name, at, 1, c.min_align)?;
                if let Some(unit) = c.element.character().map(Encoding::unit) {
                    let kind = Kind::Text { len: c.len, unit };
                    return Ok(bytes(c.min_align, c.len.checked_mul(8), kind));
                }
                let element = Box::new(self.element(&c.element, name, at)?);
                let fixed = array_size(c.len, &element);
                let (align, active) = (element.align.max(c.min_align), element.active);
                Ok(Node { align, fixed, active, kind: Kind::Array { len: c.len, element } })
            }
            FieldClass::Sequence(c) => {
                let slot = self.length(&c.length, at)?;
                self.check(name, at, 1, c.min_align)?;
                if let Some(unit) = c.element.character().map(Encoding::unit) {
                    return Ok(bytes(c.min_align, None, Kind::TextSequence { slot, unit }));
                }
                let element = Box::new(self.element(&c.element, name, at)?);
                let (align, active) = (element.align.max(c.min_align), element.active);
                Ok(Node { align, fixed: None, active, kind: Kind::Sequence { slot, element } })
            }
            FieldClass::Blob(c) => Ok(match &c.length {
                BlobLength::Static(len) => bytes(8, len.checked_mul(8), Kind::Text { len: *len, unit: 0 }),
                BlobLength::Dynamic(length) => {
                    bytes(8, None, Kind::TextSequence { slot: self.length(length, at)?, unit: 0 })
                }
            }),
            FieldClass::Optional(c) => self.optional(c, name, at),
            FieldClass::Variant(c) => self.variant(c, at),
        }
    }

    fn element(&self, class: &'c FieldClass, name: &str, at: &mut Place) -> Result<Node, PlanError> {
        at.indexes.push(ELEMENT);
        let node = self.node(class, name, at);
        at.indexes.pop();
        node
    }

    fn integer(&self, c: &IntegerClass, name: &str, at: &Place) -> Result<Node, PlanError> {
        let bits = if c.size <= 64 { c.size } else { 0 };
        self.check(name, at, bits, c.align)?;
        let roles = Roles18 { by_name: self.scopes.trace.major < 2, class: c, name };
        let is_end = at.scope == Scope::PacketContext
            && roles.is(Role::PacketEndDefaultClockTimestamp, "timestamp_end")
            && !c.roles.has(Role::DefaultClockTimestamp);
        let int = Int {
            bits,
            signed: c.signed,
            order: c.byte_order,
            reversed: c.reversed,
            slot: self.slots.map.get(at).copied(),
            // The end of a packet is a time too, but not yet.
            clock: c.clock.is_some() && c.clock.as_deref() == self.clock && !is_end,
            event_id: at.scope == Scope::EventHeader && roles.is(Role::EventRecordClassId, "id"),
        };
        let active = int.slot.is_some() || int.clock || int.event_id;
        if c.variable {
            return Ok(Node { align: c.align.max(8), fixed: None, active, kind: Kind::Leb(int) });
        }
        Ok(Node { align: c.align, fixed: Some(u64::from(bits)), active, kind: Kind::Int(int) })
    }

    fn length(&self, path: &FieldPath, at: &Place) -> Result<u32, PlanError> {
        let unsigned = |class: &FieldClass| match class {
            FieldClass::Integer(c) => !c.signed,
            FieldClass::Enum(c) => !c.container.signed,
            _ => false,
        };
        self.slot(path, at, "length", unsigned).map(|(slot, _)| slot)
    }

    /// Returns the slots that fields inside of a place write.
    fn inside(&self, at: &Place) -> Vec<u32> {
        let inside = |p: &Place| p.scope == at.scope && p.indexes.starts_with(&at.indexes);
        self.slots.map.iter().filter(|(p, _)| inside(p)).map(|(_, &s)| s).collect()
    }

    fn variant(&self, c: &'c VariantClass, at: &mut Place) -> Result<Node, PlanError> {
        let (slot, tag_signed, ranges) = match &c.ranges {
            Some(ranges) => {
                let (slot, signed) = self.slot(&c.tag, at, "tag", |_| true)?;
                let known = ranges.iter().filter(|r| r.option < c.options.len());
                (slot, signed, known.map(|r| (r.start, r.end, r.option)).collect())
            }
            None => {
                let is_enum = |class: &FieldClass| matches!(class, FieldClass::Enum(_));
                let (slot, signed) = self.slot(&c.tag, at, "tag", is_enum)?;
                let targets = self.targets(&c.tag, at)?;
                let Some((_, FieldClass::Enum(tag))) = targets.first() else {
                    return Err(self.wrong_target(&c.tag, at, "tag"));
                };
                (slot, signed, ranges(tag, c))
            }
        };
        let slots = self.inside(at);
        let options = self.children(&c.options, at)?;
        let active = options.iter().any(|n: &Node| n.active);
        let kind = Kind::Variant(Variant { slot, tag_signed, ranges, options, slots });
        Ok(Node { align: 1, fixed: None, active, kind })
    }

    fn optional(&self, c: &'c OptionalClass, name: &str, at: &mut Place) -> Result<Node, PlanError> {
        let (slot, signed) = self.slot(&c.selector, at, "selector", |_| true)?;
        let slots = self.inside(at);
        at.indexes.push(0);
        let inner = self.node(&c.class, name, at);
        at.indexes.pop();
        let inner = Box::new(inner?);
        let truth = || vec![(i128::MIN, -1), (1, i128::MAX)];
        let ranges = c.ranges.clone().unwrap_or_else(truth);
        let active = inner.active;
        let kind = Kind::Optional(Optional { slot, signed, ranges, inner, slots });
        Ok(Node { align: 1, fixed: None, active, kind })
    }

    fn wrong_target(&self, path: &FieldPath, at: &Place, role: &'static str) -> PlanError {
        let place = self.scopes.place(at.scope);
        PlanError::WrongTarget { place, reference: path.to_string(), role }
    }

    fn check(&self, name: &str, at: &Place, bits: u32, align: u32) -> Result<(), PlanError> {
        if (1..=64).contains(&bits) && align.is_power_of_two() {
            return Ok(());
        }
        Err(PlanError::BadLayout { place: self.scopes.place(at.scope), field: name.into() })
    }
}

/// What an integer says to the reader: by its name, or by its roles.
struct Roles18<'a> {
    by_name: bool,
    class: &'a IntegerClass,
    name: &'a str,
}

impl Roles18<'_> {
    fn is(&self, role: Role, name: &str) -> bool {
        if self.by_name { self.name == name } else { self.class.roles.has(role) }
    }
}

/// Returns the node of bytes that leave nothing behind.
fn bytes(align: u32, fixed: Option<u64>, kind: Kind) -> Node {
    Node { align: align.max(8), fixed, active: false, kind }
}

/// Bits of an array of fixed-size elements.
fn array_size(len: u64, element: &Node) -> Option<u64> {
    let size = element.fixed?;
    let Some(gaps) = len.checked_sub(1) else {
        return Some(0);
    };
    align_up(size, element.align)?.checked_mul(gaps)?.checked_add(size)
}
