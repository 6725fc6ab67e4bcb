//! The compiler: field classes to the nodes of `plan.rs`.
//!
//! It goes over the classes twice: first to learn which fields are lengths or
//! tags of others and give them slots, then to make the nodes.

use std::collections::HashMap;

use super::error::PlanError;
use super::plan::{Int, Kind, Node, Variant};
use super::resolve::{ELEMENT, Place, resolve};
use super::scopes::Scopes;
use crate::bits::align_up;
use crate::class::{EnumClass, Field, FieldClass, FieldPath, IntegerClass, Scope, StructClass, VariantClass};

/// Deeper fields than this are refused, so that recursion is bounded.
const MAX_DEPTH: u32 = 80;

/// Which field writes which slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    map: HashMap<Place, u32>,
}

impl Slots {
    pub fn len(&self) -> usize {
        self.map.len()
    }

    fn want(&mut self, place: Place) {
        let next = self.map.len() as u32;
        self.map.entry(place).or_insert(next);
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
        let (target, _) = self.target(path, at)?;
        if target.scope <= last {
            self.slots.want(target);
        }
        Ok(())
    }

    fn target(&self, path: &FieldPath, at: &Place) -> Result<(Place, &'c FieldClass), PlanError> {
        resolve(&self.scopes, at, path).ok_or_else(|| PlanError::Unresolved {
            place: self.scopes.place(at.scope),
            reference: path.to_string(),
        })
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
            // A variant's options may have greater alignments than itself.
            let start = start.filter(|_| !matches!(node.kind, Kind::Variant(_)));
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
                let kind = Kind::Float { bits, order: c.byte_order };
                Ok(Node { align: c.align, fixed: Some(u64::from(bits)), active: false, kind })
            }
            FieldClass::String(_) => Ok(Node { align: 8, fixed: None, active: false, kind: Kind::Str }),
            FieldClass::Struct(c) => self.structure(c, name, at),
            FieldClass::Array(c) if c.element.is_character() => {
                let fixed = c.len.checked_mul(8);
                Ok(Node { align: 8, fixed, active: false, kind: Kind::Text { len: c.len } })
            }
            FieldClass::Array(c) => {
                let element = Box::new(self.element(&c.element, name, at)?);
                let fixed = array_size(c.len, &element);
                let (align, active) = (element.align, element.active);
                Ok(Node { align, fixed, active, kind: Kind::Array { len: c.len, element } })
            }
            FieldClass::Sequence(c) => {
                let slot = self.length(&c.length, at)?;
                if c.element.is_character() {
                    let kind = Kind::TextSequence { slot };
                    return Ok(Node { align: 8, fixed: None, active: false, kind });
                }
                let element = Box::new(self.element(&c.element, name, at)?);
                let (align, active) = (element.align, element.active);
                Ok(Node { align, fixed: None, active, kind: Kind::Sequence { slot, element } })
            }
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
        let is_end = at.scope == Scope::PacketContext && name == "timestamp_end";
        let int = Int {
            bits,
            signed: c.signed,
            order: c.byte_order,
            slot: self.slots.map.get(at).copied(),
            // The end of a packet is a time too, but not yet.
            clock: c.clock.is_some() && c.clock.as_deref() == self.clock && !is_end,
            event_id: at.scope == Scope::EventHeader && name == "id",
        };
        let active = int.slot.is_some() || int.clock || int.event_id;
        Ok(Node { align: c.align, fixed: Some(u64::from(bits)), active, kind: Kind::Int(int) })
    }

    fn length(&self, path: &FieldPath, at: &Place) -> Result<u32, PlanError> {
        let (target, class) = self.target(path, at)?;
        match class {
            FieldClass::Integer(c) if !c.signed => {}
            FieldClass::Enum(c) if !c.container.signed => {}
            _ => return Err(self.wrong_target(path, at, "length")),
        }
        self.slots.map.get(&target).copied().ok_or_else(|| self.wrong_target(path, at, "length"))
    }

    fn variant(&self, c: &'c VariantClass, at: &mut Place) -> Result<Node, PlanError> {
        let (target, class) = self.target(&c.tag, at)?;
        let FieldClass::Enum(tag) = class else {
            return Err(self.wrong_target(&c.tag, at, "tag"));
        };
        let slot = self.slots.map.get(&target).copied();
        let slot = slot.ok_or_else(|| self.wrong_target(&c.tag, at, "tag"))?;
        let inside = |p: &Place| p.scope == at.scope && p.indexes.starts_with(&at.indexes);
        let slots = self.slots.map.iter().filter(|(p, _)| inside(p)).map(|(_, &s)| s).collect();
        let options = self.children(&c.options, at)?;
        let active = options.iter().any(|n: &Node| n.active);
        let kind = Kind::Variant(Variant {
            slot,
            tag_signed: tag.container.signed,
            ranges: ranges(tag, c),
            options,
            slots,
        });
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

/// Bits of an array of fixed-size elements.
fn array_size(len: u64, element: &Node) -> Option<u64> {
    let size = element.fixed?;
    let Some(gaps) = len.checked_sub(1) else {
        return Some(0);
    };
    align_up(size, element.align)?.checked_mul(gaps)?.checked_add(size)
}

/// The options by the values of the tag. Some writers put the `_` of an
/// identifier into the label as well, others do not.
fn ranges(tag: &EnumClass, variant: &VariantClass) -> Vec<(i128, i128, usize)> {
    let option = |label: &str| {
        let options = &variant.options;
        let bare = |name: &str| name.strip_prefix('_').map(str::to_owned);
        options
            .iter()
            .position(|o| o.name == label)
            .or_else(|| options.iter().position(|o| bare(&o.name).as_deref() == Some(label)))
            .or_else(|| options.iter().position(|o| bare(label).as_deref() == Some(&o.name)))
    };
    tag.mappings.iter().filter_map(|m| Some((m.start, m.end, option(&m.label)?))).collect()
}
