//! An XML registry, in the form in which Khronos keeps OpenCL's, to [`Extracted`].
//!
//! ```text
//! <types>                  ─► types.rs      names, kinds, sizes, members
//! <enums>, <require>       ─► enums.rs      which names are values of which type
//! <commands>               ─► functions.rs  prototypes
//! <feature>, <extensions>  ─► history.rs    since, deprecated, extension
//! ```
//! The registry's schema: <https://github.com/KhronosGroup/OpenCL-Docs/tree/main/xml>.

mod ctext;
mod enums;
mod functions;
mod history;
mod types;

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use hetrace_model::{Extracted, Registry};
use roxmltree::{Document, Node};

use super::Extraction;
use super::description::Registry as Special;

/// Reads the registry's text.
pub fn extract(text: &str, registry: Registry, api: &str, special: &Special) -> Result<Extraction> {
    let document = Document::parse(text).context("not well-formed XML")?;
    let root = document.root_element();
    let history = history::read(root, &special.title);
    let functions = functions::read(root, &history, special)?;
    let enums = enums::read(root, special)?;
    let types = types::read(root, &functions, &enums, special)?;
    let notes = nameless(root, &functions, &types, special);
    let api = api.to_owned();
    Ok(Extraction { extracted: Extracted { api, registry, types, enums, functions }, notes })
}

/// Parameters whose type looks like an enumeration but has no group.
fn nameless(
    root: Node<'_, '_>,
    functions: &[hetrace_model::ExtractedFunction],
    types: &[hetrace_model::Type],
    special: &Special,
) -> Vec<String> {
    let aliases = types::enum_like(root, special);
    let mut found = BTreeSet::new();
    for param in functions.iter().flat_map(|f| &f.params) {
        let base = ctext::base(&param.ctype);
        let named = types.iter().any(|t| t.name == base && t.values.is_some());
        if aliases.contains(base) && !named {
            found.insert(format!("no named values for `{base}`"));
        }
    }
    found.into_iter().collect()
}

/// Child elements of this name.
fn children<'a, 'i>(node: Node<'a, 'i>, tag: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.children().filter(move |n| n.has_tag_name(tag))
}

/// All text inside, as one string.
fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|n| n.text()).collect()
}

/// The features in order, then the extensions in order.
fn requirers<'a, 'i>(root: Node<'a, 'i>) -> impl Iterator<Item = Node<'a, 'i>> {
    let extensions = children(root, "extensions").flat_map(|e| children(e, "extension"));
    children(root, "feature").chain(extensions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snippet_gives_the_golden_file() {
        let registry = Registry { file: "snippet.xml".to_owned(), ..Registry::default() };
        let special = toml::from_str(include_str!("testdata/snippet.toml")).unwrap();
        let got = extract(include_str!("testdata/snippet.xml"), registry, "toy", &special).unwrap();
        let json = crate::extract::json::write(&got.extracted);
        assert_eq!(json, include_str!("testdata/snippet.json"), "\n{json}");
        assert_eq!(got.notes, ["no named values for `ty_toy_nameless`"]);
    }
}
