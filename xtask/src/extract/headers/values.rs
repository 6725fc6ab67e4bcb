//! Values with names: which constants belong together, and which are bits.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use clang::{Entity, EntityKind};
use hetrace_model::EnumGroup;

use super::super::description::Headers;
use super::entity;

/// In front of the names of our own enumerators.
const OURS: &str = "hetrace__";

/// The macros, and values of enumerations without a name, that the groups of `extract.toml` take, with the group's index.
pub fn constants(api: &Headers, unit: Entity<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for name in unit.get_children().into_iter().flat_map(constant_names) {
        for (index, group) in api.constants.iter().enumerate() {
            let fits = group.names.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == **pattern,
            });
            if fits && !group.except.contains(&name) && !found.contains(&(index, name.clone())) {
                found.push((index, name.clone()));
            }
        }
    }
    found
}

/// What is a value and of no type: the name of a macro, or those in an enumeration without a name.
fn constant_names(entity: Entity<'_>) -> Vec<String> {
    match entity.get_kind() {
        EntityKind::MacroDefinition if !entity.is_builtin_macro() && !entity.is_function_like_macro() => {
            entity.get_name().into_iter().collect()
        }
        // Newer versions of libclang put `(unnamed ...)` in place of no name.
        EntityKind::EnumDecl
            if entity.get_name().is_none_or(|name| name.contains('(') || name.is_empty()) =>
        {
            entity.get_children().iter().filter_map(Entity::get_name).collect()
        }
        _ => Vec::new(),
    }
}

/// Gives groups the values of others, behind their own.
///
/// # Errors
/// When there is no group of a name.
pub fn also(enums: &mut [EnumGroup], also: &BTreeMap<String, Vec<String>>) -> Result<()> {
    for (name, others) in also {
        for other in others {
            let values = enums.iter().find(|g| g.name == *other).map(|g| g.values.clone());
            let group = enums.iter_mut().find(|g| g.name == *name);
            let (Some(values), Some(group)) = (values, group) else {
                bail!("`headers.also`: no group of values is called `{name}`, or none `{other}`");
            };
            let new = |(value, _): &(String, i64)| !group.values.iter().any(|(known, _)| known == value);
            let more: Vec<_> = values.into_iter().filter(new).collect();
            group.values.extend(more);
        }
    }
    Ok(())
}

/// C code that makes enumerators of macros, so that the compiler says their values.
pub fn program(constants: &[(usize, String)]) -> String {
    let line = |(index, name): &(usize, String)| {
        // The second makes it an enumeration of 64 bits: 0x80000000 is a positive number.
        format!(
            "enum hetrace_{index}_{name} {{ {OURS}{index}__{name} = (long long)({name}), hetrace_wide_{index}_{name} = 1LL << 62 }};\n"
        )
    };
    constants.iter().map(line).collect()
}

/// The groups out of [`program`].
pub fn groups(api: &Headers, unit: Entity<'_>) -> Vec<EnumGroup> {
    let mut values: Vec<Vec<(String, i64)>> = vec![vec![]; api.constants.len()];
    let ours = unit.get_children().into_iter().filter(|e| e.get_kind() == EntityKind::EnumDecl);
    for enumerator in ours.flat_map(|e| e.get_children()) {
        let Some(name) = enumerator.get_name() else { continue };
        let Some((index, name)) = name.strip_prefix(OURS).and_then(|n| n.split_once("__")) else { continue };
        if let (Ok(index), Ok((_, value))) = (index.parse::<usize>(), entity::enumerator(enumerator, true)) {
            values[index].push((name.to_owned(), value));
        }
    }
    let named = api.constants.iter().zip(values).filter(|(_, values)| !values.is_empty());
    named.map(|(group, values)| EnumGroup { name: group.group.clone(), bits: group.bits, values }).collect()
}

/// Whether values are combined with `|`: the name says so, or they are powers
/// of two and combinations of them, up to 4 at least, with gaps between.
pub fn are_bits(api: &Headers, group: &str, values: &[(String, i64)]) -> bool {
    if api.bits.iter().any(|b| b == group) {
        return true;
    }
    if api.not_bits.iter().any(|b| b == group) {
        return false;
    }
    let lower = group.to_ascii_lowercase();
    if ["_flags", "flags", "_flags_t", "flags_t"].iter().any(|end| lower.ends_with(end)) {
        return true;
    }
    let last = |name: &str| name.ends_with("_MAX") || name.ends_with("_FORCE_UINT");
    let mut numbers: Vec<i64> = values.iter().filter(|(n, _)| !last(n)).map(|(_, v)| *v).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.retain(|n| *n != 0);
    let single = |n: &i64| n.count_ones() == 1;
    let all = numbers.iter().filter(|n| single(n)).fold(0, |all, n| all | n);
    let run = numbers.windows(2).all(|w| w[1] == w[0] + 1);
    let singles = numbers.iter().filter(|n| single(n)).count();
    singles >= 2
        && !run
        && singles * 2 > numbers.len()
        && numbers.last().is_some_and(|n| *n >= 4)
        && numbers.iter().all(|n| *n > 0 && n & !all == 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hetrace_model::EnumGroup;

    use super::super::tests::toy;
    use super::are_bits;

    #[test]
    fn groups_take_the_values_of_others() {
        let group = |name: &str, values: &[(&str, i64)]| EnumGroup {
            name: name.into(),
            bits: false,
            values: values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
        };
        let mut enums = [group("toy_status", &[("OK", 0)]), group("toy_more", &[("OK", 0), ("WORSE", 40)])];
        let take = |name: &str, other: &str| BTreeMap::from([(name.to_owned(), vec![other.to_owned()])]);
        super::also(&mut enums, &take("toy_status", "toy_more")).unwrap();
        assert_eq!(enums[0], group("toy_status", &[("OK", 0), ("WORSE", 40)]));
        let none = super::also(&mut enums, &take("toy_status", "toy_none")).unwrap_err().to_string();
        assert!(none.contains("`toy_none`"), "{none}");
    }

    #[test]
    fn bits_are_distinguished_from_numbers() {
        let bits = |numbers: &[i64]| {
            let values: Vec<_> = numbers.iter().map(|n| (format!("TOY_{n}"), *n)).collect();
            are_bits(&toy(), "toy", &values)
        };
        assert!(bits(&[0, 1, 2, 4, 7]));
        assert!(!bits(&[0, 1, 2, 3, 4]) && !bits(&[0, 1, 2]) && !bits(&[1, 2, 5]));
        assert!(are_bits(&toy(), "toyCreate_flags", &[("A".into(), 1)]));
    }
}
