//! What binaries need of the machine that they run on.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use super::text_of;

/// A version of the C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// What files need.
pub struct Needs {
    /// The newest version of the C library of which any symbol is.
    pub glibc: Version,
    /// The file that has it.
    pub by: PathBuf,
    /// Whether any needs the compiler's run-time library.
    pub libgcc: bool,
}

/// Returns what all these files together need.
pub fn needs(files: &[PathBuf]) -> Result<Needs> {
    let mut all = Needs { glibc: Version(0, 0), by: PathBuf::new(), libgcc: false };
    for file in files {
        let text = readelf(file, "-VW")?;
        let newest = newest(&text);
        let symbols = readelf(file, "--dyn-syms -W")?;
        if let Some(symbol) = unversioned(&symbols) {
            bail!(
                "{}: needs `{symbol}` of no known version: glibc {} may have no such function",
                file.display(),
                newest
            );
        }
        ensure!(newest > Version(0, 0), "{}: no version of glibc in it: is it a program?", file.display());
        if newest > all.glibc {
            all.glibc = newest;
            all.by = file.file_name().map(PathBuf::from).unwrap_or_default();
        }
        all.libgcc |= readelf(file, "-dW")?.contains("[libgcc_s.so.1]");
    }
    Ok(all)
}

/// Returns the id of a build, by which debuggers find its symbols.
pub fn build_id(file: &Path) -> Result<Option<String>> {
    let notes = readelf(file, "-nW")?;
    Ok(notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ").map(str::to_owned)))
}

/// The newest version of glibc in what `readelf -V` prints.
fn newest(text: &str) -> Version {
    let versions = text.split("Name: GLIBC_").skip(1).filter_map(|rest| {
        let name = rest.split_whitespace().next()?;
        // GLIBC_ABI_DT_RELR and its like have no number.
        let (major, minor) = name.split_once('.')?;
        let minor = minor.split('.').next()?;
        Some(Version(major.parse().ok()?, minor.parse().ok()?))
    });
    versions.max().unwrap_or(Version(0, 0))
}

/// A symbol that must be found and has no version, in what `readelf --dyn-syms` prints: all of glibc's have one, but
/// linkers let pass in a library what their glibc does not have.
fn unversioned(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut columns = line.split_whitespace().skip(4);
        let (bind, _, index, name) = (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
        (bind == "GLOBAL" && index == "UND" && !name.contains('@')).then_some(name)
    })
}

fn readelf(file: &Path, how: &str) -> Result<String> {
    text_of(Command::new("readelf").args(how.split(' ')).arg(file).env("LC_ALL", "C"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_counts() {
        let text = "  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 5\n  0x0020:   Name: GLIBC_2.28  Flags: none\n  \
                    0x0030:   Name: GLIBC_ABI_DT_RELR  Flags: none\n  0x0040:   Name: GLIBC_2.2.5  Flags: none\n  \
                    0x0050:   Name: GCC_4.2.0\n";
        assert_eq!(newest(text), Version(2, 28));
        assert_eq!(newest(""), Version(0, 0));
        assert!(Version(2, 9) < Version(2, 28));
    }

    #[test]
    fn what_has_no_version_may_not_be_there() {
        let head = "   Num:    Value          Size Type    Bind   Vis      Ndx Name\n     0: 0000000000000000     0 NOTYPE  LOCAL  DEFAULT  UND \n";
        let weak = "     1: 0000000000000000     0 NOTYPE  WEAK   DEFAULT  UND gettid\n";
        let known = "     2: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND free@GLIBC_2.2.5 (3)\n";
        let own = "     3: 0000000000001000     0 FUNC    GLOBAL DEFAULT   12 ours\n";
        let wrong = "     4: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND gettid\n";
        assert_eq!(unversioned(&[head, weak, known, own].concat()), None);
        assert_eq!(unversioned(&[head, known, wrong].concat()), Some("gettid"));
    }
}
