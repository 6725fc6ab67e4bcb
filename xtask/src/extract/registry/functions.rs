//! Prototypes out of `<commands>`.

use std::collections::HashMap;

use anyhow::{Context, Result};
use hetrace_model::{ExtractedFunction, ExtractedParam};
use roxmltree::Node;

use super::history::Origin;
use super::{Special, children, ctext, text};

/// All functions in the registry's order.
pub fn read(
    root: Node<'_, '_>,
    origins: &HashMap<String, Origin>,
    special: &Special,
) -> Result<Vec<ExtractedFunction>> {
    let commands = children(root, "commands").flat_map(|c| children(c, "command"));
    let mut functions = Vec::new();
    for command in commands {
        let proto = children(command, "proto").next().context("a <command> without <proto>")?;
        let (name, returns) = declaration(proto)?;
        if special.except_functions.contains(&name) {
            continue;
        }
        let params = children(command, "param").map(|p| {
            let (name, ctype) = declaration(p)?;
            Ok(ExtractedParam { name, ctype })
        });
        let params = params.collect::<Result<_>>().with_context(|| format!("in {name}"))?;
        let origin = origins.get(&name).cloned().unwrap_or_default();
        functions.push(ExtractedFunction {
            name,
            since: origin.since,
            deprecated: origin.deprecated,
            extension: origin.extension,
            returns,
            params,
            ..ExtractedFunction::default()
        });
    }
    Ok(functions)
}

/// Name and type of `<type>ty_int</type>* <name>x</name>`.
fn declaration(node: Node<'_, '_>) -> Result<(String, String)> {
    let name = children(node, "name").next().and_then(|n| n.text());
    let name = name.with_context(|| format!("no <name> in `{}`", text(node)))?;
    let parts = node.descendants().filter(|n| n.is_text());
    let named = |n: &Node<'_, '_>| n.parent().is_some_and(|p| p.has_tag_name("name"));
    let ctype: String = parts.filter(|n| !named(n)).filter_map(|n| n.text()).collect();
    Ok((name.to_owned(), ctext::normalize(&ctype)))
}
