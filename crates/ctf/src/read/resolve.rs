//! References to lengths and tags, from names to positions.

use super::scopes::Scopes;
use crate::class::{Field, FieldClass, FieldPath, Scope, StructClass};

/// Stands in a [`Place`] for the elements of an array, whichever.
pub(super) const ELEMENT: u32 = u32::MAX;

/// The position of a field: indexes of fields and options from a scope on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Place {
    pub scope: Scope,
    pub indexes: Vec<u32>,
}

/// Finds what `path` refers to when used at `from`; only what is decoded before counts.
pub(super) fn resolve<'c>(
    scopes: &Scopes<'c>,
    from: &Place,
    path: &FieldPath,
) -> Option<(Place, &'c FieldClass)> {
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

/// Looks in the structures around `from`, the innermost first, at what precedes it.
fn nearby<'c>(scopes: &Scopes<'c>, from: &Place, path: &FieldPath) -> Option<(Place, &'c FieldClass)> {
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
            Around::Other(_) => return None,
        };
        here = match next {
            FieldClass::Struct(class) => Around::Struct(class),
            other => Around::Other(other),
        };
    }
    around.into_iter().rev().find_map(|(depth, class, index)| {
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

/// The last field of that name. Options keep the `_` that paths lose.
fn find(fields: &[Field], name: &str) -> Option<usize> {
    fields
        .iter()
        .rposition(|f| f.name == name)
        .or_else(|| fields.iter().rposition(|f| f.name.strip_prefix('_').is_some_and(|n| n == name)))
}
