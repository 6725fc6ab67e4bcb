//! What pointer members of structs point at.
//!
//! A struct that a parameter points at is recorded as it lies in memory; what
//! its own pointers point at is recorded behind it, as fields named
//! `param_member`. The same holds for structs inside it.

use std::collections::{BTreeMap, BTreeSet};

use crate::chains::Chains;
use crate::extracted::{Extracted, Kind, Member, Type};
use crate::function::Function;
use crate::param::Follow;
use crate::semantics::Semantics;
use crate::spec::ParamSpec;

/// Descriptions of pointer members, by struct and member.
pub(crate) type Members = BTreeMap<String, BTreeMap<String, Follow>>;

/// Returns whether a member holds an address that may be looked behind.
fn is_pointer(extracted: &Extracted, m: &Member) -> bool {
    let callback = || extracted.types.iter().any(|t| t.name == m.ty && t.kind == Kind::Callback);
    m.pointers > 0 || callback()
}

/// Reads the descriptions of all structs.
pub(crate) fn resolve(
    extracted: &Extracted,
    semantics: &Semantics,
    chains: &Chains,
    report: &mut impl FnMut(&str, String),
) -> Members {
    let mut members = Members::new();
    let defaults = semantics.types.get("*");
    for (name, known) in semantics.types.iter().filter(|(name, _)| *name != "*") {
        match extracted.types.iter().find(|t| t.name == *name) {
            None => report(name, "described, but not a type of this API".to_owned()),
            Some(t) => {
                for member in known.keys().filter(|k| !t.members.iter().any(|m| m.name == **k)) {
                    report(name, format!("no member `{member}`"));
                }
            }
        }
    }
    for t in extracted.types.iter().filter(|t| t.kind == Kind::Struct) {
        let known = semantics.types.get(&t.name);
        for m in t.members.iter().filter(|m| is_pointer(extracted, m)) {
            let ctype = format!("{} {}", m.ty, "*".repeat(m.pointers.into()));
            let text = known.and_then(|k| k.get(&m.name)).or_else(|| {
                let defaults = defaults?;
                defaults.get(&m.name).or_else(|| defaults.get(ctype.trim_end()))
            });
            let Some(text) = text else { continue };
            match follow(extracted, chains, t, m, text) {
                Ok(follow) => {
                    members.entry(t.name.clone()).or_default().insert(m.name.clone(), follow);
                }
                Err(what) => report(&format!("{}.{}", t.name, m.name), what),
            }
        }
    }
    for (name, union) in &semantics.unions {
        let ty = extracted.types.iter().find(|t| t.name == *name && t.kind == Kind::Union);
        let Some(ty) = ty else {
            report(name, "not a union of this API".to_owned());
            continue;
        };
        for (member, values) in &union.members {
            if !ty.members.iter().any(|m| m.name == *member) {
                report(name, format!("no member `{member}`"));
            }
            for value in values {
                if !extracted.enums.iter().any(|g| g.values.iter().any(|(n, _)| n == value)) {
                    report(name, format!("no value `{value}`"));
                }
            }
        }
    }
    members
}

fn follow(
    extracted: &Extracted,
    chains: &Chains,
    t: &Type,
    m: &Member,
    text: &str,
) -> Result<Follow, String> {
    if text == "chain" {
        return crate::chains::of_member(extracted, chains, t, m);
    }
    let bare = text == "callback" || text.starts_with("none:");
    let spec = if bare { ParamSpec::parse(text) } else { ParamSpec::parse(&format!("in {text}")) };
    let follow = spec.map_err(|e| e.to_string())?.follow;
    for name in follow.names() {
        if !t.members.iter().any(|m| m.name == name && m.pointers == 0 && m.count == 1) {
            return Err(format!("mentions `{name}`, not a member with a value"));
        }
    }
    match &follow {
        Follow::List { .. }
        | Follow::Info { .. }
        | Follow::Value
        | Follow::Chain { .. }
        | Follow::Bytes { kind: Some(_), .. } => Err("not a form for members".to_owned()),
        Follow::Strings { lengths: Some(_), .. } => {
            Err("lengths of texts in a struct are not read".to_owned())
        }
        Follow::Pointee | Follow::Array { .. } if m.pointers == 1 => {
            let size = extracted.types.iter().find(|t| t.name == m.ty).map_or(0, |t| t.size);
            if size == 0 { Err(format!("`{}` has no known size", m.ty)) } else { Ok(follow) }
        }
        _ => Ok(follow),
    }
}

/// The coverage gate for structs: every pointer in a struct that is followed
/// is described or waived.
pub(crate) fn cover(
    extracted: &Extracted,
    functions: &[Function],
    members: &Members,
    report: &mut impl FnMut(&str, String),
) {
    let mut seen = BTreeSet::new();
    for f in functions {
        for p in &f.params {
            if p.pointers == 1 && matches!(p.follow, Follow::Pointee | Follow::Array { .. }) {
                walk(extracted, &p.base, members, &mut seen, report);
            }
        }
    }
}

fn walk<'e>(
    extracted: &'e Extracted,
    name: &'e str,
    members: &Members,
    seen: &mut BTreeSet<&'e str>,
    report: &mut impl FnMut(&str, String),
) {
    let Some(t) = extracted.types.iter().find(|t| t.name == name && t.kind == Kind::Struct) else { return };
    if !seen.insert(&t.name) {
        return;
    }
    for m in &t.members {
        if is_pointer(extracted, m) {
            let known = members.get(&t.name).is_some_and(|k| k.contains_key(&m.name));
            if !known {
                report(&format!("{}.{}", t.name, m.name), "a pointer without a description".to_owned());
            }
        } else {
            walk(extracted, &m.ty, members, seen, report);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Problem, Semantics, layout, resolve};

    fn inputs(extra: &str) -> (crate::Extracted, Semantics) {
        let extracted = serde_json::json!({
            "api": "toy", "registry": {"file": "toy.h", "sha256": ""},
            "types": [
                {"name": "int", "kind": "int", "size": 4},
                {"name": "inner", "kind": "struct", "size": 16, "members": [
                    {"name": "values", "type": "int", "pointers": 1, "offset": 0},
                    {"name": "count", "type": "int", "offset": 8}]},
                {"name": "config", "kind": "struct", "size": 24, "members": [
                    {"name": "size", "type": "int", "offset": 0},
                    {"name": "in", "type": "inner", "offset": 8}]},
            ],
            "enums": [{"name": "toy_error", "values": [["OK", 0]]}],
            "functions": [{"name": "toyRun", "returns": "int",
                           "params": [{"name": "config", "type": "const config *"}]}],
        });
        let semantics = format!(
            "api = \"toy\"\nerrors = \"toy_error\"\n{extra}\n[interpose]\n[function.toyRun]\nparams.config = \"in value\"\n"
        );
        (serde_json::from_value(extracted).unwrap(), toml::from_str(&semantics).unwrap())
    }

    fn problems(extra: &str) -> String {
        let (e, s) = inputs(extra);
        resolve(&e, &s)
            .err()
            .map_or(String::new(), |p| p.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn the_gate_looks_into_structs() {
        assert_eq!(problems(""), "inner.values: a pointer without a description");
        assert_eq!(problems("[type.inner]\nvalues = \"array(count)\""), "");
        assert_eq!(problems("[type.\"*\"]\n\"int *\" = \"none: a test\""), "");
        for (extra, says) in [
            ("[type.inner]\nvalues = \"array(size)\"", "mentions `size`"),
            ("[type.inner]\nvalue = \"array(count)\"", "no member `value`"),
            ("[type.nobody]\nvalues = \"value\"", "not a type"),
            ("[union.config]\ntag = [\"a\"]\nmembers = {}", "not a union"),
        ] {
            assert!(problems(extra).contains(says), "{extra}: {}", problems(extra));
        }
    }

    #[test]
    fn what_members_point_at_becomes_fields() {
        let (e, s) = inputs("[type.inner]\nvalues = \"array(count)\"");
        let model = resolve(&e, &s).unwrap();
        let events = layout::function_events(&model, 0);
        let names: Vec<&str> = events[0].fields.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["config", "config_in_values"]);
        assert_eq!(
            events[0].fields[1].source,
            layout::Source::Member { param: 0, path: vec![1, 0] },
            "the first member of the struct that is the second member"
        );
    }
}
