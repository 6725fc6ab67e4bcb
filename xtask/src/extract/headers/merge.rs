//! All versions of an API as one.

use std::collections::HashSet;

use hetrace_model::{EnumGroup, Extracted, ExtractedFunction, Kind, Registry, Type, glob_matches};

use super::super::Extraction;
use super::super::description::Headers;
use super::layouts::Layouts;
use super::snapshot::{Named, Snapshot, add_values};
use super::{ctype, history};

/// Merges versions, oldest first.
pub fn merge(api: &str, headers: &Headers, versions: Vec<Snapshot>) -> Extraction {
    let mut layouts = Layouts::new(&versions);
    let (functions, mut notes) = functions(headers, &versions, &mut layouts);
    let (mut enums, moved) = enums(&versions);
    notes.extend(moved);
    let mut types: Vec<Type> =
        used(headers, layouts.finish(), &functions).into_iter().map(|t| t.ty).collect();
    if let Some([flags, flag]) = &headers.flag_types {
        name_flags(&mut types, &mut enums, flags, flag);
    }
    notes.extend(types.iter().filter_map(changed));
    let mut remarks: Vec<String> = versions.iter().flat_map(|v| v.notes.clone()).collect();
    remarks.sort();
    remarks.dedup();
    notes.extend(remarks);
    let extracted = Extracted { api: api.to_owned(), registry: Registry::default(), types, enums, functions };
    Extraction { extracted, notes }
}

/// What became of a type's layout.
fn changed(ty: &Type) -> Option<String> {
    if let Some((name, until)) = ty.name.split_once('@') {
        return Some(format!("`{name}` had another layout until {until}: `{}`", ty.name));
    }
    let sizes: Vec<String> = ty.size_before.iter().map(|(v, size)| format!("{size} before {v}")).collect();
    (!sizes.is_empty()).then(|| format!("`{}` has {} bytes; {}", ty.name, ty.size, sizes.join(", ")))
}

/// One function in one version.
struct Seen<'a> {
    version: usize,
    function: &'a ExtractedFunction,
    signature: Vec<String>,
}

fn functions(
    api: &Headers,
    versions: &[Snapshot],
    layouts: &mut Layouts<'_>,
) -> (Vec<ExtractedFunction>, Vec<String>) {
    let mut known = HashSet::new();
    let all = versions.iter().rev().flat_map(|v| v.functions.iter().map(|f| f.name.as_str()));
    let names: Vec<&str> = all.filter(|n| known.insert(*n)).collect();
    let mut points: Vec<_> = versions.iter().flat_map(|v| v.entry_points.clone()).collect();
    points.dedup();
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    for name in &names {
        let mut seen: Vec<Seen<'_>> = Vec::new();
        for (version, snapshot) in versions.iter().enumerate() {
            if let Some(function) = snapshot.functions.iter().find(|f| f.name == *name) {
                let signature = signature(api, layouts, version, function);
                seen.push(Seen { version, function, signature });
            }
        }
        let since = history::since(name, &names, &points, api);
        let same = variants(versions, &seen, layouts, since);
        let label = |v: &ExtractedFunction| v.before.clone();
        for before in same.iter().filter_map(label) {
            notes.push(format!("`{name}` had another signature before {before}"));
        }
        out.extend(same);
    }
    for f in &mut out {
        f.base = history::base(&f.name, &api.suffixes);
    }
    (out, notes)
}

/// The newest signature, then the older ones, newest first.
fn variants(
    versions: &[Snapshot],
    seen: &[Seen<'_>],
    layouts: &mut Layouts<'_>,
    known_since: Option<String>,
) -> Vec<ExtractedFunction> {
    let label = |version: usize| versions[version].label.clone();
    let mut out: Vec<ExtractedFunction> = Vec::new();
    let runs: Vec<&[Seen<'_>]> = seen.chunk_by(|a, b| a.signature == b.signature).collect();
    for (i, run) in runs.iter().enumerate().rev() {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let mut f = last.function.clone();
        f.since = match &known_since {
            Some(since) if i == 0 => since.clone(),
            _ => label(first.version),
        };
        f.deprecated = run.iter().find_map(|s| s.function.deprecated.clone());
        f.before = runs.get(i + 1).map(|next| label(next[0].version));
        let newest = last.version + 1 == versions.len();
        f.until = (f.before.is_none() && !newest).then(|| label(last.version));
        f.returns = renamed(layouts, last.version, &f.returns);
        for param in &mut f.params {
            param.ctype = renamed(layouts, last.version, &param.ctype);
        }
        out.push(f);
    }
    out
}

/// A C text that names the layout its version has.
fn renamed(layouts: &mut Layouts<'_>, version: usize, text: &str) -> String {
    let base = ctype::base(text);
    let name = layouts.name(version, base);
    if name == base || text.contains('(') { text.to_owned() } else { text.replacen(base, &name, 1) }
}

/// What matters to whoever passes on a call: sizes, pointers, layouts. Names,
/// `const` and signs do not.
fn signature(api: &Headers, layouts: &mut Layouts<'_>, version: usize, f: &ExtractedFunction) -> Vec<String> {
    let params = f.params.iter().map(|p| p.ctype.as_str());
    params.chain([f.returns.as_str()]).map(|text| class(api, layouts, version, text)).collect()
}

fn class(api: &Headers, layouts: &mut Layouts<'_>, version: usize, text: &str) -> String {
    if text.contains('(') {
        return "*".to_owned();
    }
    let stars = "*".repeat(text.matches('*').count());
    let base = ctype::base(text);
    if api.is_opaque(base) {
        return stars;
    }
    let Some(named) = layouts.named(version, base) else { return format!("{base}{stars}") };
    match named.ty.kind {
        Kind::Opaque if base == "void" => stars,
        // One that a version only declares is the one that another defines.
        Kind::Struct | Kind::Union | Kind::Opaque => {
            let name = layouts.name(version, base);
            let layout = name.split_once('@').map_or("", |(_, layout)| layout);
            format!("{}@{layout}{stars}", named.canonical)
        }
        Kind::Handle | Kind::Callback => format!("*{stars}"),
        Kind::Float => format!("f{}{stars}", named.ty.size),
        Kind::Uint | Kind::Int => format!("{}{stars}", named.ty.size),
    }
}

/// Integer types of flags get the names of the bits, which are an enumeration named alike.
fn name_flags(types: &mut [Type], enums: &mut [EnumGroup], flags: &str, flag: &str) {
    for ty in types.iter_mut().filter(|t| t.kind == Kind::Uint && t.values.is_none()) {
        let named = ty.name.strip_suffix(flags).map(|stem| format!("{stem}{flag}"));
        if let Some(group) = enums.iter_mut().find(|group| Some(&group.name) == named.as_ref()) {
            group.bits = true;
            ty.values = Some(group.name.clone());
        }
    }
}

/// The newest version's groups with what older ones add, and remarks on what they name otherwise.
fn enums(versions: &[Snapshot]) -> (Vec<EnumGroup>, Vec<String>) {
    let mut out: Vec<EnumGroup> = Vec::new();
    let mut notes = Vec::new();
    for version in versions.iter().rev() {
        for group in &version.enums {
            match out.iter_mut().find(|g| g.name == group.name) {
                Some(known) => {
                    notes.extend(moved(known, group, &version.label));
                    add_values(known, group);
                }
                None => out.push(group.clone()),
            }
        }
    }
    (out, notes)
}

/// Gives values that had another name in an older version both: `toyBlue or toyRed@1.0` says that in versions up to
/// 1.0 the value was `toyRed`, which is another value now. A trace does not say of each call which version it was.
fn moved(known: &mut EnumGroup, old: &EnumGroup, label: &str) -> Vec<String> {
    // What stands for several bits grows with them, and means the same.
    if known.bits {
        return Vec::new();
    }
    // The largest marks the end of the list, and is no value.
    let end = known.values.iter().map(|(_, v)| *v).max();
    let mut notes = Vec::new();
    for (name, value) in &old.values {
        let now = known.values.iter().find(|(n, _)| plain(n) == name).map(|(_, v)| *v);
        let Some(now) = now.filter(|now| now != value && Some(*now) != end) else { continue };
        notes.push(format!("`{name}` was {value} until {label} and is {now}"));
        let before = format!("{name}@{label}");
        match known.values.iter_mut().find(|(_, v)| v == value) {
            Some((both, _)) if both.contains(&format!("{name}@")) => {}
            Some((both, _)) => *both = format!("{both} or {before}"),
            None => known.values.push((before, *value)),
        }
    }
    notes
}

/// The name that a value has now.
fn plain(name: &str) -> &str {
    name.split_once(" or ").map_or(name, |(now, _)| now)
}

/// What prototypes reach, and the API's own structs and enumerations: values of
/// queries use more of them than parameters do. Of several names of one type
/// that nothing uses, one is enough; and some are said to be left out.
fn used(api: &Headers, all: Vec<Named>, functions: &[ExtractedFunction]) -> Vec<Named> {
    let texts = functions.iter().flat_map(|f| f.params.iter().map(|p| &p.ctype).chain([&f.returns]));
    let mut wanted: Vec<String> = texts.map(|t| ctype::base(t).to_owned()).collect();
    wanted.push("void".to_owned());
    let own =
        |t: &&Named| t.own && t.canonical == t.ty.name && (!t.ty.members.is_empty() || t.ty.values.is_some());
    let kept = |t: &&Named| !api.except_types.iter().any(|glob| glob_matches(glob, &t.ty.name));
    wanted.extend(all.iter().filter(own).filter(kept).map(|t| t.ty.name.clone()));
    let mut reached: HashSet<String> = HashSet::new();
    while let Some(name) = wanted.pop() {
        if reached.insert(name.clone())
            && let Some(named) = all.iter().find(|t| t.ty.name == name)
        {
            wanted.extend(named.ty.members.iter().map(|m| m.ty.clone()));
        }
    }
    all.into_iter().filter(|t| reached.contains(&t.ty.name)).collect()
}
