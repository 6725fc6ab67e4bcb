//! What an installation has below its prefix.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};

use super::{checked, licences, text_of};
use crate::repo;

/// A file.
pub struct Entry {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Whether it is a program.
    pub program: bool,
}

/// Files by their path below the prefix.
pub type Tree = BTreeMap<String, Entry>;

/// Where shells look for completions, below a prefix.
pub const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/hetrace"),
    ("zsh", "share/zsh/site-functions/_hetrace"),
    ("fish", "share/fish/vendor_completions.d/hetrace.fish"),
];

/// The unit of the service, for systemd's managers of users.
pub const UNIT: &str = "lib/systemd/user/hetrace.service";

/// Where a binary lies below the prefix.
pub fn place(name: &str) -> String {
    let folder = if name.ends_with(".so") { "lib/hetrace" } else { "bin" };
    format!("{folder}/{name}")
}

/// Collects all files of an installation; `binaries` are the command and the libraries.
pub fn collect(binaries: &[PathBuf]) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut add = |path: String, bytes: Vec<u8>, program| {
        tree.insert(path, Entry { bytes, program });
    };
    for file in binaries {
        let name = file.file_name().and_then(|n| n.to_str()).context("a file without name")?;
        add(place(name), fs::read(file)?, !name.ends_with(".so"));
    }
    let hetrace = &binaries[0];
    for (shell, path) in COMPLETIONS {
        add(
            path.to_owned(),
            text_of(Command::new(hetrace).args(["completions", shell]))?.into_bytes(),
            false,
        );
    }
    let pages = tempfile::tempdir()?;
    checked(Command::new(hetrace).args(["man", "--write"]).arg(pages.path()))?;
    for page in fs::read_dir(pages.path())? {
        let page = page?;
        let name = page.file_name().to_string_lossy().into_owned();
        add(format!("share/man/man1/{name}.gz"), gzip(&fs::read(page.path())?)?, false);
    }
    let root = repo::root();
    add("include/hetrace.h".to_owned(), read(&root.join("include/hetrace.h"))?, false);
    for text in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        add(format!("share/doc/hetrace/{text}"), read(&root.join(text))?, false);
    }
    add("share/doc/hetrace/THIRD-PARTY.txt".to_owned(), licences::text()?.into_bytes(), false);
    Ok(tree)
}

/// The files of an installation in `/usr`, as distributions' packages have it: also the unit of the service.
pub fn of_distribution(tree: &Tree) -> Result<Vec<(String, &[u8], bool)>> {
    let mut files: Vec<_> = tree.iter().map(|(p, e)| (format!("usr/{p}"), &*e.bytes, e.program)).collect();
    files.push((format!("usr/{UNIT}"), UNIT_TEXT.as_bytes(), false));
    files.sort();
    Ok(files)
}

/// The unit, for the program where packages install it.
static UNIT_TEXT: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let text = include_str!("../../../packaging/systemd/hetrace.service");
    let unit = text.lines().filter(|line| !line.starts_with("# Made by"));
    unit.map(|line| line.replace("@HETRACE@", "/usr/bin/hetrace") + "\n").collect()
});

/// Compresses, the same bytes each time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    out.write_all(bytes)?;
    Ok(out.finish()?)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}
