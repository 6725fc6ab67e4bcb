//! No crate knows an API or a vendor by name.
//!
//! What single APIs need is data of their folders (`extract.toml`, `semantics.toml`), what single
//! vendors need is a folder of `crates/vendor`. So the names of these folders, and the names of
//! the functions of all APIs, stand in no code and in no text of the crates that serve them all.
//! Comments may give examples.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::repo;

/// Where it holds.
const FOLDERS: &[&str] = &[
    "crates/cli/src",
    "crates/client/src",
    "crates/codegen/src",
    "crates/ctf/src",
    "crates/edit/src",
    "crates/export/src",
    "crates/format/src",
    "crates/interpose/src",
    "crates/model/src",
    "crates/os/src",
    "crates/report/src",
    "crates/ring/src",
    "crates/session/src",
    "crates/trace/src",
    "xtask/src/extract",
];

/// Names that may stand in a file, and why.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("crates/export/src/otf2/map/paradigms.rs", "cuda", "OTF2's own list of programming models"),
    ("crates/export/src/otf2/map/paradigms.rs", "hip", "OTF2's own list of programming models"),
    ("crates/export/src/otf2/map/paradigms.rs", "opencl", "OTF2's own list of programming models"),
    ("crates/os/src/catalog.rs", "nvidia", "a driver's own name of its tracepoints"),
    ("crates/trace/src/demangle.rs", "cuda", "a kernel's name as a program has it"),
];

/// Folders of vendors whose names are everyday words.
const WORDS: &[&str] = &["host"];

/// What must not be named.
#[derive(Debug, Default)]
pub struct Names {
    /// Of folders, in lower case.
    folders: BTreeSet<String>,
    /// Of functions, as they are.
    functions: BTreeSet<String>,
    /// Places in [`ALLOWED`] that were needed.
    used: BTreeSet<usize>,
}

impl Names {
    /// Reads what APIs and vendors there are.
    pub fn read() -> Result<Self> {
        let mut names = Names::default();
        for api in repo::apis()? {
            let path = repo::api_json(&api);
            let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let read: Value = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
            let functions = read["functions"].as_array().context("functions")?.iter();
            names.functions.extend(functions.filter_map(|f| f["name"].as_str()).map(str::to_owned));
            names.folders.insert(api);
        }
        for entry in std::fs::read_dir(repo::root().join("crates/vendor/src"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type()?.is_dir() && !WORDS.contains(&name.as_str()) {
                names.folders.insert(name);
            }
        }
        Ok(names)
    }

    /// Adds what is against the rule in one source file.
    pub fn check(&mut self, name: &Path, text: &str, faults: &mut Vec<String>) {
        let rust = name.extension().is_some_and(|e| e == "rs");
        if !rust || !FOLDERS.iter().any(|folder| name.starts_with(folder)) {
            return;
        }
        for (number, line) in (1..).zip(without_comments(text).lines()) {
            for found in self.named(line) {
                let allowed =
                    ALLOWED.iter().position(|(file, what, _)| name == Path::new(file) && *what == found);
                match allowed {
                    Some(place) => _ = self.used.insert(place),
                    None => faults.push(format!(
                        "{}:{number}: `{found}` is named; make it data of its folder",
                        name.display()
                    )),
                }
            }
        }
    }

    /// Adds exceptions that nothing needs.
    pub fn finish(&self, faults: &mut Vec<String>) {
        let idle = ALLOWED.iter().enumerate().filter(|(place, _)| !self.used.contains(place));
        faults.extend(idle.map(|(_, (file, name, _))| {
            format!("xtask/src/tidy/names.rs: {file} does not name `{name}`; take the exception away")
        }));
    }

    /// The names in a line of code.
    fn named(&self, line: &str) -> BTreeSet<String> {
        let identifiers = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let mut found = BTreeSet::new();
        for identifier in identifiers.filter(|i| !i.is_empty()) {
            if self.functions.contains(identifier) {
                found.insert(identifier.to_owned());
            }
            for word in identifier.split('_') {
                let hit = self.folders.iter().find(|folder| has(word, folder));
                found.extend(hit.cloned());
            }
        }
        found
    }
}

/// Whether a word is a name or is made of it: `cuda`, `CUDA`, `cudaMalloc`, `LoadCuda`.
fn has(word: &str, name: &str) -> bool {
    if !word.is_ascii() {
        return false;
    }
    let lower = word.to_ascii_lowercase();
    let bytes = word.as_bytes();
    let is = |at: usize, kind: fn(&u8) -> bool| bytes.get(at).is_some_and(kind);
    // Nor ends one there, as in `ZERO`; one does in `CUDAMalloc`.
    let inside = |at: usize| {
        is(at - 1, u8::is_ascii_uppercase)
            && is(at, u8::is_ascii_uppercase)
            && !is(at + 1, u8::is_ascii_lowercase)
    };
    let ends = |at: usize| !is(at, u8::is_ascii_lowercase) && !inside(at);
    lower.match_indices(name).any(|(at, _)| {
        // Inside of capitals begins no word, as in `LITTLE`; one does in `GPUCuda`.
        let apart = !is(at.wrapping_sub(1), u8::is_ascii_uppercase) || is(at + 1, u8::is_ascii_lowercase);
        let begins = at == 0 || (is(at, u8::is_ascii_uppercase) && apart);
        begins && ends(at + name.len())
    })
}

/// The text with blanks in place of comments; texts in quotes stay.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (kept, length) = match c {
            '/' if rest.starts_with("//") => (false, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (false, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '"' => (true, quoted(rest)),
            'r' if rest.starts_with("r#\"") && !out.ends_with(|p: char| p.is_alphanumeric() || p == '_') => {
                (true, rest.find("\"#").map_or(rest.len(), |end| end + 2))
            }
            '\'' if rest.starts_with("'\"'") => (true, 3),
            '\'' if rest.starts_with("'\\") => (true, rest[2..].find('\'').map_or(rest.len(), |end| end + 3)),
            c => (true, c.len_utf8()),
        };
        let (part, after) = rest.split_at(length);
        match kept {
            true => out.push_str(part),
            false => out.extend(part.chars().filter(|c| *c == '\n')),
        }
        rest = after;
    }
    out
}

/// How long the text in quotes is that begins here.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let mut names = Names {
            folders: ["toy", "acme"].map(str::to_owned).into(),
            functions: ["tyOpen".to_owned()].into(),
            ..Names::default()
        };
        let mut faults = Vec::new();
        names.check(Path::new(name), text, &mut faults);
        faults
    }

    #[test]
    fn names_are_found_in_code_and_texts() {
        for line in [
            "let toy = 1;",
            "fn load_toy() {}",
            "struct ToyModel;",
            "const TOY: u8 = 0;",
            "call(\"tyOpen\");",
            "if api == \"acme\" { /* sure */ }",
            "a(\"// \\\"\", toyOpen);",
            "let c = '\"'; toy();",
            "fn GPUToy() {}",
            "TOYOpen",
            "r#\"// a \" toy\"#",
        ] {
            let found = faults("crates/trace/src/a.rs", &format!("// why\n{line}\n"));
            assert_eq!(found.len(), 1, "{line}: {found:?}");
            assert!(found[0].starts_with("crates/trace/src/a.rs:2: `"), "{found:?}");
        }
    }

    #[test]
    fn comments_other_words_and_other_folders_are_free() {
        for line in [
            "// toy",
            "/// `tyOpen`",
            "/* toy\n acme */",
            "let toys = stoy + Toyota;",
            "a('\\''); // toy",
            "HISTOYS",
            "TOYS",
        ] {
            assert_eq!(faults("crates/trace/src/a.rs", line), [""; 0], "{line}");
        }
        assert_eq!(faults("crates/vendor/src/a.rs", "let acme = 1;"), [""; 0]);
        assert_eq!(faults("crates/trace/src/a.json", "\"toy\""), [""; 0]);
    }

    #[test]
    fn an_exception_that_nothing_needs_is_a_fault() {
        let mut faults = Vec::new();
        Names::default().finish(&mut faults);
        assert_eq!(faults.len(), ALLOWED.len());
    }
}
