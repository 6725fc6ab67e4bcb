//! References to lengths and tags, from names to positions.

use super::scopes::Scopes;
use super::{EnumClass, Field, FieldClass, FieldPath, Scope, StructClass, VariantClass};

/// Stands in a [`Place`] for the elements of an array, whichever.
pub(crate) const ELEMENT: u32 = u32::MAX;

/// The position of a field: indexes of fields and options from a scope on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub scope: Scope,
    pub indexes: Vec<u32>,
}

/// A field that is referred to.
pub(crate) type Target<'c> = (Place, &'c FieldClass);

/// Finds what `path` refers to when used at `from`; only what is decoded before
/// counts. By the rules of CTF 2 this may be several fields, of which each event
/// has one at most: one for each option that the path goes through.
pub(crate) fn resolve<'c>(scopes: &Scopes<'c>, from: &Place, path: &FieldPath) -> Vec<Target<'c>> {
    match path.parents {
        Some(parents) => located(scopes, from, path, parents).unwrap_or_default(),
        None => named(scopes, from, path).into_iter().collect(),
    }
}

/// Returns the rules of CTF 2.
fn located<'c>(scopes: &Scopes<'c>, from: &Place, path: &FieldPath, parents: u32) -> Option<Vec<Target<'c>>> {
    let (class, mut at) = match path.scope {
        Some(scope) => (scopes.get(scope)?, Place { scope, indexes: Vec::new() }),
        None => {
            let around = around(scopes, from)?;
            let index = around.len().checked_sub(parents as usize + 1)?;
            let (depth, class, _) = around[index];
            (class, Place { scope: from.scope, indexes: from.indexes[..depth].to_vec() })
        }
    };
    let mut targets = Vec::new();
    member(class, &path.names, &mut at, &mut targets);
    targets.retain(|(place, _)| place < from);
    Some(targets)
}

/// Follows names from a structure on.
fn member<'c>(class: &'c StructClass, names: &[String], at: &mut Place, targets: &mut Vec<Target<'c>>) {
    let Some((first, rest)) = names.split_first() else {
        return;
    };
    if let Some(index) = class.fields.iter().position(|f| f.name == *first) {
        at.indexes.push(index as u32);
        content(&class.fields[index].class, rest, at, targets);
        at.indexes.pop();
    }
}

/// Goes through what has no names of its own.
fn content<'c>(class: &'c FieldClass, names: &[String], at: &mut Place, targets: &mut Vec<Target<'c>>) {
    let inner: &[(u32, &'c FieldClass)] = match class {
        FieldClass::Struct(class) => return member(class, names, at, targets),
        FieldClass::Variant(class) => {
            for (index, option) in class.options.iter().enumerate() {
                at.indexes.push(index as u32);
                content(&option.class, names, at, targets);
                at.indexes.pop();
            }
            return;
        }
        FieldClass::Optional(class) => &[(0, &*class.class)],
        FieldClass::Array(class) => &[(ELEMENT, &*class.element)],
        FieldClass::Sequence(class) => &[(ELEMENT, &*class.element)],
        _ if names.is_empty() => return targets.push((at.clone(), class)),
        _ => return,
    };
    for (index, class) in inner {
        at.indexes.push(*index);
        content(class, names, at, targets);
        at.indexes.pop();
    }
}

/// Returns the rules of CTF 1.8.
fn named<'c>(scopes: &Scopes<'c>, from: &Place, path: &FieldPath) -> Option<Target<'c>> {
    if let Some(scope) = path.scope {
        return in_scope(scopes, scope, path).filter(|(place, _)| place < from);
    }
    nearby(scopes, from, path).or_else(|| {
        // babeltrace2 also takes a relative name for one of an earlier scope.
        let earlier = Scope::ALL.into_iter().rev().filter(|&s| s < from.scope);
        earlier.into_iter().find_map(|scope| in_scope(scopes, scope, path))
    })
}

fn in_scope<'c>(scopes: &Scopes<'c>, scope: Scope, path: &FieldPath) -> Option<(Place, &'c FieldClass)> {
    let mut indexes = Vec::new();
    let class = down(scopes.get(scope)?, usize::MAX, &path.names, &mut indexes)?;
    Some((Place { scope, indexes }, class))
}

/// Returns the structures around a place, the innermost last: how deep each is, and which
/// of its fields leads on.
fn around<'c>(scopes: &Scopes<'c>, from: &Place) -> Option<Vec<(usize, &'c StructClass, u32)>> {
    enum Around<'c> {
        Struct(&'c StructClass),
        Other(&'c FieldClass),
    }
    let mut around = Vec::new();
    let mut here = Around::Struct(scopes.get(from.scope)?);
    for (depth, &index) in from.indexes.iter().enumerate() {
        let next = match here {
            Around::Struct(class) => {
                around.push((depth, class, index));
                &class.fields.get(index as usize)?.class
            }
            Around::Other(FieldClass::Variant(class)) => &class.options.get(index as usize)?.class,
            Around::Other(FieldClass::Array(class)) => &*class.element,
            Around::Other(FieldClass::Sequence(class)) => &*class.element,
            Around::Other(FieldClass::Optional(class)) => &*class.class,
            Around::Other(_) => return None,
        };
        here = match next {
            FieldClass::Struct(class) => Around::Struct(class),
            other => Around::Other(other),
        };
    }
    Some(around)
}

/// Looks in the structures around `from`, the innermost first, at what precedes it.
fn nearby<'c>(scopes: &Scopes<'c>, from: &Place, path: &FieldPath) -> Option<Target<'c>> {
    around(scopes, from)?.into_iter().rev().find_map(|(depth, class, index)| {
        let mut indexes = from.indexes[..depth].to_vec();
        let class = down(class, index as usize, &path.names, &mut indexes)?;
        Some((Place { scope: from.scope, indexes }, class))
    })
}

/// Follows names down; the first among the fields before `limit`.
fn down<'c>(
    class: &'c StructClass,
    limit: usize,
    names: &[String],
    indexes: &mut Vec<u32>,
) -> Option<&'c FieldClass> {
    let (first, rest) = names.split_first()?;
    let known = &class.fields[..limit.min(class.fields.len())];
    let index = find(known, first)?;
    indexes.push(u32::try_from(index).ok()?);
    let mut class = &known[index].class;
    for name in rest {
        let fields = match class {
            FieldClass::Struct(class) => &class.fields,
            FieldClass::Variant(class) => &class.options,
            _ => return None,
        };
        let index = find(fields, name)?;
        indexes.push(u32::try_from(index).ok()?);
        class = &fields[index].class;
    }
    Some(class)
}

/// Returns the last field of that name. Options keep the `_` that paths lose.
fn find(fields: &[Field], name: &str) -> Option<usize> {
    fields
        .iter()
        .rposition(|f| f.name == name)
        .or_else(|| fields.iter().rposition(|f| f.name.strip_prefix('_').is_some_and(|n| n == name)))
}

/// Returns the options by the values of the tag. Some writers put the `_` of an
/// identifier into the label as well, others do not.
pub(crate) fn ranges(tag: &EnumClass, variant: &VariantClass) -> Vec<(i128, i128, usize)> {
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
