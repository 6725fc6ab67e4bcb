//! Types with their kinds, sizes and members.

mod structs;

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result};
use hetrace_model::{EnumGroup, ExtractedFunction, Kind, Type};
use roxmltree::Node;

use super::{Special, children, ctext, text};

/// C's own types on 64-bit Linux.
const BASE: &[(&str, Kind, u32)] = &[
    ("void", Kind::Opaque, 0),
    ("char", Kind::Int, 1),
    ("int", Kind::Int, 4),
    ("unsigned char", Kind::Uint, 1),
    ("unsigned int", Kind::Uint, 4),
    ("intptr_t", Kind::Int, 8),
    ("size_t", Kind::Uint, 8),
    ("float", Kind::Float, 4),
    ("double", Kind::Float, 8),
    ("int8_t", Kind::Int, 1),
    ("int16_t", Kind::Int, 2),
    ("int32_t", Kind::Int, 4),
    ("int64_t", Kind::Int, 8),
    ("uint8_t", Kind::Uint, 1),
    ("uint16_t", Kind::Uint, 2),
    ("uint32_t", Kind::Uint, 4),
    ("uint64_t", Kind::Uint, 8),
];

/// Types known so far.
#[derive(Default)]
pub struct Known {
    types: HashMap<String, Type>,
    order: Vec<String>,
}

impl Known {
    fn add(&mut self, ty: Type) {
        if !self.types.contains_key(&ty.name) {
            self.order.push(ty.name.clone());
            self.types.insert(ty.name.clone(), ty);
        }
    }

    fn get(&self, name: &str) -> Result<&Type> {
        self.types.get(name).with_context(|| format!("type `{name}` is used before it is known"))
    }
}

fn plain(name: &str, kind: Kind, size: u32) -> Type {
    Type { name: name.to_owned(), kind, size, ..Type::default() }
}

/// All types: C's and foreign ones that are used, and every one of the API's own,
/// because the values of queries use more of them than parameters do.
pub fn read(
    root: Node<'_, '_>,
    functions: &[ExtractedFunction],
    enums: &[EnumGroup],
    special: &Special,
) -> Result<Vec<Type>> {
    let mut known = Known::default();
    for (name, kind, size) in BASE {
        known.add(plain(name, *kind, *size));
    }
    special.foreign.iter().for_each(|ty| known.add(ty.clone()));
    let left_out = required_by(root, &special.except_types_of);
    for node in definitions(root) {
        match node.attribute("category") {
            Some("struct") => known.add(structs::read(root, node, &known)?),
            Some("define") => {
                let ty = typedef(root, node, &known)?;
                ty.filter(|t| !left_out.contains(t.name.as_str())).into_iter().for_each(|t| known.add(t));
            }
            _ => {}
        }
    }
    let grouped = special.group_types.iter().filter(|ty| enums.iter().any(|g| g.name == ty.name));
    grouped.for_each(|ty| known.add(ty.clone()));
    let used = used(functions, &known);
    let mut types = Vec::new();
    for name in &known.order {
        let own = special.types.iter().any(|start| name.starts_with(start.as_str()));
        if own || used.contains(name.as_str()) {
            let mut ty = known.get(name)?.clone();
            ty.values = enums.iter().find(|g| g.name == *name).map(|g| g.name.clone());
            types.push(ty);
        }
    }
    Ok(types)
}

/// `typedef <type>toy_uint</type> <name>toy_bool</name>;`; the registry may define
/// what a type is made of after it.
fn typedef(root: Node<'_, '_>, node: Node<'_, '_>, known: &Known) -> Result<Option<Type>> {
    let text = text(node);
    let Some(definition) = text.trim_start().strip_prefix("typedef ") else {
        return Ok(None);
    };
    let child = |tag| children(node, tag).next().and_then(|n| n.text());
    let Some(name) = child("name") else {
        return Ok(None);
    };
    if definition.contains('*') {
        return Ok(Some(plain(name, Kind::Handle, 8)));
    }
    let Some(of) = child("type") else {
        return Ok(None);
    };
    if let Ok(of) = known.get(of) {
        return Ok(Some(Type { name: name.to_owned(), ..of.clone() }));
    }
    let defined = definitions(root).find(|n| children(*n, "name").any(|n| n.text() == Some(of)));
    let of = defined.map(|n| typedef(root, n, known)).transpose()?.flatten();
    let of = of.with_context(|| format!("`{name}` is made of something unknown"))?;
    Ok(Some(Type { name: name.to_owned(), ..of }))
}

fn definitions<'a, 'i>(root: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    children(root, "types").flat_map(|t| children(t, "type"))
}

/// Names of the types that extensions require.
fn required_by<'a>(root: Node<'a, '_>, extensions: &[String]) -> BTreeSet<&'a str> {
    let is_one = |name: &str| extensions.iter().any(|e| e == name);
    let of = super::requirers(root).filter(|r| r.attribute("name").is_some_and(is_one));
    let requires = of.flat_map(|r| children(r, "require").collect::<Vec<_>>());
    let types = requires.flat_map(|r| children(r, "type").collect::<Vec<_>>());
    types.filter_map(|t| t.attribute("name")).collect()
}

fn used<'a>(functions: &'a [ExtractedFunction], known: &'a Known) -> BTreeSet<&'a str> {
    let params = functions.iter().flat_map(|f| f.params.iter().map(|p| p.ctype.as_str()));
    let returns = functions.iter().map(|f| f.returns.as_str());
    let members = known.types.values().flat_map(|t| t.members.iter().map(|m| m.ty.as_str()));
    params.chain(returns).chain(members).map(ctext::base).collect()
}

/// Types that name a use of a plain integer, as enumerations do.
pub fn enum_like<'a>(root: Node<'a, '_>, special: &Special) -> BTreeSet<&'a str> {
    let name = |node: Node<'a, '_>| {
        let of = children(node, "type").next()?.text()?;
        let name = children(node, "name").next()?.text()?;
        let alias = node.attribute("category") == Some("define")
            && special.storage.iter().any(|s| s == of)
            && !special.storage.iter().any(|s| s == name)
            && !text(node).contains('*');
        alias.then_some(name)
    };
    definitions(root).filter_map(name).collect()
}
