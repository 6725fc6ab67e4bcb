//! Which names are values of which type.
//!
//! The registry numbers its enumerants by vendor, not by type. The type stands
//! in the comments of `<require>` blocks (`comment="toy_info"`), and for
//! sets of bits in the name of `<enums type="bitmask">`. Both are merged: the
//! blocks first, features before extensions, so that a value's first name is
//! the core one and not its KHR or EXT alias.

mod value;

use std::collections::{BTreeMap, HashSet};

use anyhow::{Context, Result};
use hetrace_model::EnumGroup;
use roxmltree::Node;

use self::value::Values;
use super::{Special, children, requirers};

type Groups = BTreeMap<String, Vec<String>>;

/// All groups by name.
pub fn read(root: Node<'_, '_>, special: &Special) -> Result<Vec<EnumGroup>> {
    let values = Values::read(root);
    let mut groups = Groups::new();
    for requirer in requirers(root) {
        for require in children(requirer, "require") {
            for group in named_in(require.attribute("comment").unwrap_or_default(), special) {
                groups.entry(group).or_default().extend(enumerants(require));
            }
        }
    }
    for names in groups.values_mut() {
        names.retain(|n| !ends_a_list(root, n, &special.list_ends));
    }
    let mut bits: HashSet<&str> = HashSet::new();
    for enums in children(root, "enums") {
        let name = enums.attribute("name").unwrap_or_default();
        if name.starts_with(special.error_blocks.as_str()) {
            groups.entry(special.errors.clone()).or_default().extend(enumerants(enums));
        } else if enums.attribute("type") == Some("bitmask") && is_group(name, special) {
            groups.entry(name.to_owned()).or_default().extend(enumerants(enums));
        } else if let Some(group) = groups.get_mut(name)
            // With a range it is a block of numbers, not the values of a type.
            && !enums.has_attribute("start")
        {
            group.extend(enumerants(enums));
        }
        if enums.attribute("type") == Some("bitmask") {
            bits.extend(children(enums, "enum").filter_map(|e| e.attribute("name")));
        }
    }
    for (name, more) in &special.values {
        let known: Vec<String> = more.iter().filter(|v| values.has(v)).cloned().collect();
        if !known.is_empty() {
            groups.entry(name.clone()).or_default().extend(known);
        }
    }
    for (name, other) in &special.also {
        let more = groups.get(other).cloned().unwrap_or_default();
        if !more.is_empty() {
            groups.entry(name.clone()).or_default().extend(more);
        }
    }
    let groups = groups.into_iter().filter(|(_, names)| !names.is_empty());
    groups.map(|g| finish(g, &values, &bits, &special.except_values)).collect()
}

fn finish(
    (name, names): (String, Vec<String>),
    values: &Values<'_>,
    bits: &HashSet<&str>,
    except: &[String],
) -> Result<EnumGroup> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for n in names {
        if !except.contains(&n) && seen.insert(n.clone()) {
            let value = values.of(&n).with_context(|| format!("value of {n} in {name}"))?;
            out.push((n, value));
        }
    }
    let bits = out.iter().filter(|(n, _)| bits.contains(n.as_str())).count() * 2 > out.len();
    Ok(EnumGroup { name, bits, values: out })
}

/// Whether the registry gives this name for the sake of its number: the zeros
/// at the end of lists.
fn ends_a_list(root: Node<'_, '_>, name: &str, block: &str) -> bool {
    let mut misc = children(root, "enums").filter(|e| e.attribute("name") == Some(block));
    misc.any(|e| enumerants(e).any(|n| n == name))
}

fn enumerants(node: Node<'_, '_>) -> impl Iterator<Item = String> {
    children(node, "enum").filter_map(|e| e.attribute("name")).map(str::to_owned)
}

/// The groups whose values a `<require>` with this comment lists.
fn named_in(comment: &str, special: &Special) -> Vec<String> {
    if let Some(types) = special.comments.get(comment) {
        return types.clone();
    }
    let plain = comment.strip_prefix("Additional ").unwrap_or(comment);
    // `Toy 1.0 toy_info enums that were deprecated in Toy 1.2`
    let versioned = plain.strip_prefix(special.title.as_str()).and_then(|rest| rest.strip_prefix(' '));
    let plain = versioned.and_then(|rest| rest.split_once(' ')).map_or(plain, |(_, rest)| rest);
    let words = plain.split(' ').collect::<Vec<_>>();
    let mut types = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let joined = i == 0 || matches!(words[i - 1], "and" | "or");
        match joined && is_group(word, special) {
            true => types.push((*word).to_owned()),
            false if matches!(*word, "and" | "or") => {}
            false => break,
        }
    }
    types
}

fn is_group(word: &str, special: &Special) -> bool {
    word.starts_with(special.groups.as_str())
        && !special.except_groups.iter().any(|g| g == word)
        && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::{Special, named_in};

    #[test]
    fn comments_name_types() {
        let special = Special {
            groups: "toy_".into(),
            title: "Toy".into(),
            except_groups: vec!["toy_uint".into()],
            comments: [("status".into(), vec!["toy_status".into()])].into(),
            ..Special::default()
        };
        for (comment, types) in [
            ("toy_info", &["toy_info"][..]),
            ("toy_type - bitfield", &["toy_type"]),
            ("toy_flags and toy_svm_flags - bitfield", &["toy_flags", "toy_svm_flags"]),
            ("toy_info_khr or toy_properties_khr", &["toy_info_khr", "toy_properties_khr"]),
            ("Additional toy_properties", &["toy_properties"]),
            ("Toy 1.0 toy_info enums that were deprecated in Toy 1.2", &["toy_info"]),
            ("Toy 1.0 APIs that were deprecated in Toy 1.2", &[]),
            ("toy_order - defined in toy.h for Toy 2.0 and newer", &["toy_order"]),
            ("toy_uint host_policy", &[]),
            ("status", &["toy_status"]),
            ("toy_vendor_motion_estimation.??", &[]),
            ("Error codes", &[]),
        ] {
            assert_eq!(named_in(comment, &special), types, "{comment}");
        }
    }
}
