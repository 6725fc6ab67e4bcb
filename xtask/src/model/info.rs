//! The gate for queries: the value of each has a type that is known.

use std::collections::BTreeMap;

use hetrace_model::{EnumGroup, Follow, Kind, Model};

/// Everything wrong with `[info]`.
pub fn problems(model: &Model) -> Vec<String> {
    let mut out = Vec::new();
    let mut canonical: BTreeMap<&str, &str> = BTreeMap::new();
    for group in queried(model, &mut out) {
        for (name, value) in &group.values {
            let first = group.values.iter().find(|(_, v)| v == value).map_or(name, |(n, _)| n);
            canonical.entry(name).or_insert(first);
            if name == first && !model.info.contains_key(name) {
                out.push(format!("info: no type for {name} of {}", group.name));
            }
        }
    }
    for group in selecting(model, &mut out) {
        for (name, value) in &group.values {
            let first = group.values.iter().find(|(_, v)| v == value).map_or(name, |(n, _)| n);
            canonical.entry(name).or_insert(first);
        }
    }
    for (name, ty) in &model.info {
        match canonical.get(name.as_str()) {
            None => out.push(format!("info: {name} is no query of this API")),
            Some(first) if first != name && !is_first_somewhere(model, name) => {
                out.push(format!("info: {name} is another name of {first}; give that one"));
            }
            Some(_) => {}
        }
        if let Some(what) = wrong_type(model, ty) {
            out.push(format!("info: {name} = \"{ty}\": {what}"));
        }
    }
    out
}

/// The groups whose values name queries.
fn queried<'m>(model: &'m Model, out: &mut Vec<String>) -> Vec<&'m EnumGroup> {
    let mut groups: Vec<&EnumGroup> = Vec::new();
    for f in &model.functions {
        for p in &f.params {
            let Follow::Info { name, .. } = &p.follow else {
                continue;
            };
            let query = f.params.iter().find(|q| q.name == *name);
            let values = query.and_then(|q| q.values.as_ref());
            match values.and_then(|v| model.enums.iter().find(|g| g.name == *v)) {
                None => out.push(format!("{}.{name}: its queries have no names", f.name)),
                Some(group) if groups.iter().any(|g| g.name == group.name) => {}
                Some(group) => groups.push(group),
            }
        }
    }
    groups
}

/// The groups whose values say of what type bytes are; a type need not be known for each.
fn selecting<'m>(model: &'m Model, out: &mut Vec<String>) -> Vec<&'m EnumGroup> {
    let mut groups: Vec<&EnumGroup> = Vec::new();
    for f in &model.functions {
        let kinds = f.params.iter().filter_map(|p| match &p.follow {
            Follow::Bytes { kind, .. } => kind.as_ref(),
            _ => None,
        });
        for name in kinds {
            let values = f.params.iter().find(|q| q.name == *name).and_then(|q| q.values.as_ref());
            match values.and_then(|v| model.enums.iter().find(|g| g.name == *v)) {
                None => {
                    out.push(format!("{}.{name}: its values have no names, so none selects a type", f.name))
                }
                Some(group) => groups.push(group),
            }
        }
    }
    groups
}

fn is_first_somewhere(model: &Model, name: &str) -> bool {
    let first = |g: &EnumGroup| {
        let value = g.values.iter().find(|(n, _)| n == name).map(|(_, v)| v)?;
        g.values.iter().find(|(_, v)| v == value).map(|(n, _)| n == name)
    };
    model.enums.iter().filter_map(first).any(|is| is)
}

/// `string`, `T`, `T[]`, `T{}`, with `void*` for an address.
fn wrong_type(model: &Model, ty: &str) -> Option<String> {
    let plain = ty.strip_suffix("[]").or_else(|| ty.strip_suffix("{}")).unwrap_or(ty);
    if plain == "string" || plain == "void*" {
        return None;
    }
    match model.types.iter().find(|t| t.name == plain) {
        None => Some(format!("no type `{plain}`")),
        Some(t) if t.kind == Kind::Opaque => Some(format!("nothing is known of `{plain}`")),
        Some(_) => None,
    }
}
