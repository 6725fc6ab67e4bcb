//! Values with names: which constants belong together, and which are bits.

use clang::{Entity, EntityKind};
use hetrace_model::EnumGroup;

use super::super::description::Headers;
use super::clang as units;

/// In front of the names of our own enumerators.
const OURS: &str = "hetrace__";

/// The macros that the groups of `extract.toml` take, with the group's index.
pub fn constants(api: &Headers, unit: Entity<'_>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for entity in unit.get_children() {
        let macro_like = entity.get_kind() == EntityKind::MacroDefinition && !entity.is_builtin_macro();
        let Some(name) = entity.get_name().filter(|_| macro_like && !entity.is_function_like_macro()) else {
            continue;
        };
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
        if let (Ok(index), Ok((_, value))) = (index.parse::<usize>(), units::enumerator(enumerator, true)) {
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
    use super::super::tests::toy;
    use super::are_bits;

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
