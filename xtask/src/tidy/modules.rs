//! Which module of a crate names which: reports do not know each other, and no modules side by side, at the root of
//! a crate or deeper down, know each other in a circle. A module and what is inside of it may.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context, Result};

use super::paths::{Path, said};

/// The crate whose modules stand side by side without knowing each other, and the module that all of them may know.
const APART: (&str, &[&str]) = ("crates/report", &["text"]);
/// In an API's crate, what `xtask codegen` makes: wrappers call what is written by hand, which calls the real functions by
/// what is made. So it stands on both sides, and is passed over.
const MADE: &str = "generated";

/// Returns what is against the rules, in any crate.
pub fn faults(root: &FilePath) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for folder in crates(root)? {
        let mut sources = BTreeMap::new();
        read(&root.join(&folder).join("src"), &[], &mut sources)?;
        if folder.starts_with("apis") {
            sources.retain(|module, _| module.first().is_none_or(|first| first != MADE));
        }
        let graph = Graph::new(&sources);
        let circles = graph.siblings.keys().flat_map(|around| graph.circles(around));
        let apart = FilePath::new(APART.0) == folder;
        let found = circles.chain(if apart { graph.apart(APART.1) } else { Vec::new() });
        faults.extend(found.map(|fault| format!("{}/src: {fault}", folder.display())));
    }
    Ok(faults)
}

/// The folders of all crates of the workspace.
fn crates(root: &FilePath) -> Result<Vec<PathBuf>> {
    let mut found = Vec::from(["xtask", "tests"].map(PathBuf::from));
    for group in ["crates", "apis"] {
        for entry in std::fs::read_dir(root.join(group)).context(group)? {
            let folder = FilePath::new(group).join(entry?.file_name());
            found.extend(root.join(&folder).join("src").is_dir().then_some(folder));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads the sources of a crate, by module.
fn read(folder: &FilePath, module: &[String], sources: &mut BTreeMap<Path, String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let inner = [module, std::slice::from_ref(&stem)].concat();
        if path.is_dir() {
            read(&path, &inner, sources)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let is_root = matches!((stem.as_str(), module), ("lib" | "main", []) | ("mod", _));
            let module = if is_root { module.to_vec() } else { inner };
            sources.insert(module, std::fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// Modules that stand side by side, each with those of the others that it names, and one place
/// where it does.
type Siblings = BTreeMap<String, BTreeMap<String, String>>;

/// The modules of a crate.
struct Graph {
    /// By the module around them.
    siblings: BTreeMap<Path, Siblings>,
}

impl Graph {
    fn new(sources: &BTreeMap<Path, String>) -> Self {
        let all: Vec<_> = sources.iter().map(|(module, source)| (module, said(module, source))).collect();
        let tests: BTreeSet<&Path> = all.iter().flat_map(|(_, said)| &said.tests).collect();
        let is_test = |module: &[String]| (1..=module.len()).any(|n| tests.contains(&module[..n].to_vec()));
        let mut names = Names { modules: BTreeSet::new(), aliases: BTreeMap::new() };
        names.modules.extend(all.iter().map(|(module, _)| (*module).clone()));
        for (_, said) in &all {
            for (module, name, path) in &said.aliases {
                names.modules.insert(module.clone());
                names.aliases.insert((module.clone(), name.clone()), path.clone());
            }
        }
        let mut siblings: BTreeMap<Path, Siblings> = BTreeMap::new();
        for (from, path) in all.iter().filter(|(module, _)| !is_test(module)).flat_map(|(_, s)| &s.named) {
            let to = names.module_of(path, 0);
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(one), Some(other)) = (from.get(common), to.get(common)) {
                let known = siblings.entry(from[..common].to_vec()).or_default();
                let place = format!("{} names {}", from.join("::"), path.join("::"));
                known.entry(one.clone()).or_default().entry(other.clone()).or_insert(place);
            }
        }
        Self { siblings }
    }

    /// Modules at the root that know others than those that all may know.
    fn apart(&self, may: &[&str]) -> Vec<String> {
        let known = self.siblings.get(&Vec::new()).into_iter().flatten();
        known
            .flat_map(|(one, others)| others.iter().map(move |(other, place)| (one, other, place)))
            .filter(|(one, other, _)| may.contains(&one.as_str()) || !may.contains(&other.as_str()))
            .map(|(one, other, place)| format!("{one} must not know {other}: {place}"))
            .collect()
    }

    /// Modules side by side in `around` that know each other, by way of others or not.
    fn circles(&self, around: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(siblings) = self.siblings.get(around) {
            let mut reported: BTreeSet<&str> = BTreeSet::new();
            for start in siblings.keys() {
                let Some(way) =
                    circle(siblings, start).filter(|way| !way.iter().any(|m| reported.contains(m)))
                else {
                    continue;
                };
                let places = way.iter().zip(way.iter().cycle().skip(1)).filter_map(|(one, other)| {
                    siblings.get(*one).and_then(|known| known.get(*other)).map(String::as_str)
                });
                found.push(format!("a circle: {}", places.collect::<Vec<_>>().join(", ")));
                reported.extend(way);
            }
        }
        found
    }
}

/// The shortest way from a module by what modules name back to it.
fn circle<'s>(siblings: &'s Siblings, start: &'s str) -> Option<Vec<&'s str>> {
    let mut ways = vec![vec![start]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let last = *way.last()?;
            for next in siblings.get(last).into_iter().flat_map(BTreeMap::keys) {
                if next == start {
                    return Some(way);
                }
                if seen.insert(next) {
                    longer.push([way.as_slice(), &[next]].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

/// What names in a crate stand for.
struct Names {
    modules: BTreeSet<Path>,
    aliases: BTreeMap<(Path, String), Path>,
}

impl Names {
    /// The module that a path leads into; that of what it stands for if it is passed on.
    fn module_of(&self, path: &[String], depth: u32) -> Path {
        let is_module = |n: &usize| self.modules.contains(&path[..*n]);
        let length = (0..=path.len()).rev().find(is_module).unwrap_or(0);
        let (module, item) = path.split_at(length);
        let alias = item.first().and_then(|name| self.aliases.get(&(module.to_vec(), name.clone())));
        match alias {
            // Names may stand for each other in what does not compile.
            Some(other) if depth < 8 && other != path => self.module_of(other, depth + 1),
            _ => module.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let path = |name: &str| name.split("::").filter(|s| !s.is_empty()).map(str::to_owned).collect();
        Graph::new(&files.iter().map(|(name, source)| (path(name), (*source).to_owned())).collect())
    }

    #[test]
    fn a_report_that_knows_another_is_found() {
        let files = [
            ("", "pub mod tally; pub mod why; mod text;"),
            ("tally", "use crate::text::Table; mod rows;"),
            ("tally::rows", "use super::Tally;"),
            ("text", ""),
        ];
        let bad = [("why", "mod deep;"), ("why::deep", "fn f(t: crate::tally::Tally) {}")];
        assert!(graph(&files).apart(&["text"]).is_empty());
        let found = graph(&[&files[..], &bad].concat()).apart(&["text"]);
        assert_eq!(found, ["why must not know tally: why::deep names tally::Tally"]);
        let back = [("text", "use crate::tally::Tally;")];
        let found = graph(&[&files[..3], &back].concat()).apart(&["text"]);
        assert_eq!(found, ["text must not know tally: text names tally::Tally"]);
    }

    #[test]
    fn a_report_that_another_passes_on_is_found() {
        let files = [
            ("", "pub mod tally; pub mod why; pub use tally::Tally;"),
            ("tally", "pub struct Tally;"),
            ("why", "use crate::Tally;"),
        ];
        assert_eq!(graph(&files).apart(&[]), ["why must not know tally: why names Tally"]);
    }

    #[test]
    fn circles_are_found_and_parents_are_none() {
        let files = [
            ("", "mod a; mod b; mod c; mod d;"),
            ("a", "mod inside; use inside::X; pub struct Y;"),
            ("a::inside", "use super::Y; pub struct X;"),
            ("b", "use crate::c::Z;"),
            ("c", "use super::d;"),
            ("d", "fn f() { crate::a::g() }"),
        ];
        assert!(graph(&files).circles(&[]).is_empty());
        let bad = [("d", "fn f() { crate::b::g() }")];
        let found = graph(&[&files[..5], &bad].concat()).circles(&[]);
        assert_eq!(found, ["a circle: b names c::Z, c names d, d names b::g"]);
        // Deeper down as well.
        let deep = [("a::inside", "use super::other::Z;"), ("a::other", "use crate::a::X;")];
        let found = graph(&[&files[..2], &deep].concat()).circles(&["a".to_owned()]);
        assert_eq!(found, ["a circle: a::inside names a::other::Z, a::other names a::X"]);
    }

    #[test]
    fn every_crate_is_looked_at() {
        let found = crates(crate::repo::root()).expect("crates");
        for folder in ["crates/ring", "crates/cli", "apis/opencl", "xtask", "tests"] {
            assert!(found.contains(&PathBuf::from(folder)), "{folder}");
        }
        assert!(found.len() > 30, "{found:?}");
    }

    #[test]
    fn tests_may_know_what_they_like() {
        let files = [
            ("a", "#[cfg(test)] mod tests; mod x { #[cfg(test)] mod t { use crate::b; } }"),
            ("a::tests", "use crate::b::X;"),
            ("b", "use crate::a::Y;"),
        ];
        assert!(graph(&files).circles(&[]).is_empty());
    }
}
