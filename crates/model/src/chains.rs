//! Structs that are linked by their first members.
//!
//! Some APIs let a struct be followed by further ones: each begins with a tag that says what it is, and with the
//! address of the next. What may follow a struct is recorded behind it, as one field with the memory of one struct
//! after the other; of one whose tag is not in the model its first two members.

use std::collections::BTreeMap;

use crate::extracted::{Extracted, Kind, Member, Type};
use crate::function::Function;
use crate::param::Follow;
use crate::semantics::{Chain, Semantics};

/// Value and type by the enumeration that distinguishes them.
pub(crate) type Chains = BTreeMap<String, Vec<(u32, String)>>;

/// Bytes that every struct of a chain has: its tag and the address of the next.
pub const CHAIN_HEAD: u32 = 16;
/// Where the address of the next one lies.
const NEXT: u32 = 8;

/// Finds the struct of each value of each enumeration that is a tag.
pub(crate) fn resolve(
    extracted: &Extracted,
    semantics: &Semantics,
    report: &mut impl FnMut(&str, String),
) -> Chains {
    let mut chains = Chains::new();
    let Some(chain) = &semantics.chain else { return chains };
    for t in extracted.types.iter().filter(|t| tag(extracted, chain, t).is_some()) {
        let Some(group) = tag(extracted, chain, t) else { continue };
        chains.entry(group.to_owned()).or_default();
    }
    if chains.is_empty() {
        report("chain", format!("no struct begins with `{}` and `{}`", chain.tag, chain.next));
    }
    for (group, structs) in &mut chains {
        let values = extracted.enums.iter().filter(|g| g.name == *group).flat_map(|g| &g.values);
        for (name, value) in values {
            let ty = chain.type_of(name);
            let fits =
                extracted.types.iter().any(|t| t.name == ty && tag(extracted, chain, t) == Some(group));
            match u32::try_from(*value) {
                // Of two names for a value the first is the one.
                Ok(value) if fits && !structs.iter().any(|(known, _)| *known == value) => {
                    structs.push((value, ty));
                }
                _ if !fits && chain.types.contains_key(name) => {
                    report("chain", format!("`{ty}` is no struct with the tag `{name}`"));
                }
                _ => {}
            }
        }
        structs.sort_unstable();
    }
    let known =
        |name: &String| extracted.enums.iter().flat_map(|g| &g.values).any(|(value, _)| value == name);
    for name in chain.types.keys().filter(|name| !known(name)) {
        report("chain", format!("no value `{name}`"));
    }
    chains
}

/// Returns the enumeration of a struct's tag, if it may be in a chain.
fn tag<'e>(extracted: &'e Extracted, chain: &Chain, t: &Type) -> Option<&'e str> {
    let [tag, next, ..] = t.members.as_slice() else { return None };
    let fits = t.kind == Kind::Struct
        && (tag.name == chain.tag && tag.offset == 0 && tag.pointers == 0)
        && (next.name == chain.next && next.offset == NEXT && next.pointers == 1);
    let ty = extracted.types.iter().find(|ty| fits && ty.name == tag.ty && ty.size == 4)?;
    ty.values.as_deref()
}

/// What is recorded behind a member that is said to be a chain.
pub(crate) fn of_member(
    extracted: &Extracted,
    chains: &Chains,
    t: &Type,
    m: &Member,
) -> Result<Follow, String> {
    let first = t.members.first().filter(|_| m.offset == NEXT && m.pointers == 1);
    let ty = first.and_then(|tag| extracted.types.iter().find(|ty| ty.name == tag.ty));
    let tags = ty.and_then(|ty| ty.values.clone()).filter(|tags| chains.contains_key(tags));
    tags.map(|tags| Follow::Chain { tags }).ok_or_else(|| "not the second member behind a tag".to_owned())
}

/// Parameters that are said to be chains of tags that there are not.
pub(crate) fn cover(function: Option<&Function>, chains: &Chains, report: &mut impl FnMut(&str, String)) {
    for (f, p) in function.iter().flat_map(|f| f.params.iter().map(move |p| (f, p))) {
        if let Follow::Chain { tags } = &p.follow
            && !chains.contains_key(tags)
        {
            report(&format!("{}.{}", f.name, p.name), format!("`{tags}` is no enumeration of tags"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::{Shape, Source, function_events};
    use crate::{Problem, Semantics, resolve};

    fn inputs(extra: &str, member: &str) -> (crate::Extracted, Semantics) {
        let head = |tag: &str| {
            let ty = if tag == "kind" { "toy_kind" } else { "int" };
            serde_json::json!([{"name": tag, "type": ty, "offset": 0},
                               {"name": "next", "type": "void", "pointers": 1, "offset": 8}])
        };
        let extracted = serde_json::json!({
            "api": "toy", "registry": {"file": "toy.h", "sha256": ""},
            "types": [
                {"name": "int", "kind": "int", "size": 4}, {"name": "void", "kind": "opaque", "size": 0},
                {"name": "toy_kind", "kind": "uint", "size": 4, "values": "toy_kind"},
                {"name": "toy_box", "kind": "struct", "size": 16, "members": head("kind")},
                {"name": "toy_lid", "kind": "struct", "size": 24, "members": head("kind")},
                {"name": "toy_other", "kind": "struct", "size": 24, "members": head("sort")},
            ],
            "enums": [{"name": "toy_error", "values": [["OK", 0]]},
                      {"name": "toy_kind", "values": [["TOY_KIND_LID", 7], ["TOY_KIND_BOX", 2], ["TOY_KIND_GONE", 3]]}],
            "functions": [{"name": "toyRun", "returns": "int", "params": [
                {"name": "box", "type": "const toy_box *"}, {"name": "more", "type": "const void *"}]}],
        });
        let semantics = format!(
            "api = \"toy\"\nerrors = \"toy_error\"\n[interpose]\n[chain]\ntag = \"kind\"\nnext = \"next\"\ninfix = \"KIND_\"\n{extra}\n[type.\"*\"]\nnext = \"{member}\"\n[function.toyRun]\nparams.box = \"in value\"\nparams.more = \"in chain(toy_kind)\"\n"
        );
        (serde_json::from_value(extracted).unwrap(), toml::from_str(&semantics).unwrap())
    }

    fn problems(extra: &str) -> String {
        let (e, s) = inputs(extra, "chain");
        resolve(&e, &s)
            .err()
            .map_or(String::new(), |p| p.iter().map(Problem::to_string).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn values_name_structs_of_a_chain() {
        let (e, mut s) = inputs("", "none: a test");
        s.types.clear();
        s.types.insert("toy_box".into(), [("next".to_owned(), "chain".to_owned())].into());
        let model = resolve(&e, &s).unwrap();
        let known: Vec<(u32, &str)> =
            model.chains["toy_kind"].iter().map(|(v, t)| (*v, t.as_str())).collect();
        assert_eq!(known, [(2, "toy_box"), (7, "toy_lid")], "by value, and none for what is no struct");
        let entry = &function_events(&model, 0)[0];
        let fields: Vec<&str> = entry.fields.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(fields, ["box", "box_next", "more"]);
        assert!(entry.fields[1..].iter().all(|f| f.shape == Shape::Bytes));
        assert_eq!(entry.fields[1].source, Source::Member { param: 0, path: vec![1] });
    }

    #[test]
    fn what_is_no_chain_is_an_error() {
        assert!(
            problems("").contains("toy_other.next: not the second member behind a tag"),
            "{}",
            problems("")
        );
        for (extra, says) in [
            (
                "types = { TOY_KIND_LID = \"toy_other\" }",
                "`toy_other` is no struct with the tag `TOY_KIND_LID`",
            ),
            ("types = { TOY_KIND_NONE = \"toy_lid\" }", "no value `TOY_KIND_NONE`"),
        ] {
            assert!(problems(extra).contains(says), "{extra}: {}", problems(extra));
        }
    }
}
