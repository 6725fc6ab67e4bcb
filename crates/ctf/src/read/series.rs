//! A series of traces that are parts of one: a long recording that was begun anew in another folder from time to time.
//!
//! ```text
//! NAME/0001/                       NAME/0002/
//!   STREAM  | packet | packet |      STREAM  | earlier | packet | packet |
//!           └───────────────────────────────────┬─────────────────┘
//!                                        STREAM of the whole
//! ```
//! A part can be read by itself. So its streams begin with records of the time before that its own need, and its file
//! [`Part::FILE`] says how many bytes and packets these are. Who reads the folder of the series reads one trace: the metadata of the
//! last part, which has all that those before have, and of each stream the parts one after the other, without what is
//! repeated. With events of the operating system a part is a folder of two traces, and so are all of them together: those in
//! `hetrace/` are one, and those in `kernel/` are one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::files::{KERNEL, METADATA, OWN};

/// Digits of a part's name at least.
const DIGITS: usize = 4;
/// The largest file that is read.
const LARGEST: u64 = 64 << 20;
/// How the file begins.
const HEAD: &str = "hetrace part";

/// What a trace is a part of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Its number, from 1.
    pub number: u32,
    /// What is repeated, by the name of the stream without `.zst`.
    pub earlier: BTreeMap<String, Repeated>,
}

/// What is repeated at the beginning of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    /// Bytes, as they lie in the file.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

impl Part {
    /// Where in the trace it stands.
    pub const FILE: &'static str = "hetrace/part";

    /// Returns the name of a part's folder.
    pub fn name(number: u32) -> String {
        format!("{number:0DIGITS$}")
    }

    /// Returns the number of a part whose folder has this name; none if it is no such name.
    pub fn number(name: &str) -> Option<u32> {
        let number: u32 = name.parse().ok()?;
        (number > 0 && Self::name(number) == name).then_some(number)
    }

    /// Returns it as text.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD} {}\n", self.number);
        for (name, Repeated { bytes, packets }) in &self.earlier {
            // A name comes last: it may have spaces in it.
            let _ = writeln!(text, "{bytes} {packets} {name}");
        }
        text
    }

    /// Reads its text; none if it is none.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        let number = lines.next()?.strip_prefix(HEAD)?.trim().parse().ok()?;
        let line = |line: &str| {
            let (bytes, rest) = line.split_once(' ')?;
            let (packets, name) = rest.split_once(' ')?;
            let repeated = Repeated { bytes: bytes.parse().ok()?, packets: packets.parse().ok()? };
            Some((name.to_owned(), repeated))
        };
        Some(Self { number, earlier: lines.map(line).collect::<Option<_>>()? })
    }

    /// Returns what the trace in a folder is a part of, if it is one.
    pub fn of(folder: &Path) -> Option<Self> {
        let path = folder.join(Self::FILE);
        let found = fs::metadata(&path).ok().filter(|found| found.is_file() && found.len() <= LARGEST);
        Self::parse(&found.and_then(|_| fs::read(&path).ok())?)
    }
}

/// A series: the folders of its parts, the first one first.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Of the program's traces.
    pub parts: Vec<(PathBuf, Part)>,
    /// Of those of the operating system's events beside them, if there are some.
    pub kernel: Vec<(PathBuf, Part)>,
    /// What is wrong with it, a sentence each.
    pub problems: Vec<String>,
}

impl Series {
    /// Finds the series in a folder; one without parts if there is none.
    pub fn of(folder: &Path) -> Self {
        let Ok(entries) = fs::read_dir(folder) else { return Self::default() };
        let number = |entry: fs::DirEntry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            Some((Part::number(entry.file_name().to_str()?)?, entry.path())).filter(|_| is_folder)
        };
        let mut folders: Vec<_> = entries.flatten().filter_map(number).collect();
        folders.sort();
        let mut series = Self::default();
        for (number, path) in folders {
            let inner = path.join(OWN);
            let program = if path.join(METADATA).is_file() { path.clone() } else { inner };
            let Some(part) = part(&program, number) else { continue };
            series.parts.push((program, part));
            series.add_kernel(&path.join(KERNEL), number);
        }
        series
    }

    fn add_kernel(&mut self, folder: &Path, number: u32) {
        if let Some(part) = part(folder, number) {
            self.kernel.push((folder.to_owned(), part));
        } else if folder.join(METADATA).is_file() {
            let folder = folder.display();
            self.problems.push(format!("{folder}: left out: {} is missing or damaged", Part::FILE));
        }
    }
}

/// Returns the part with a number whose trace is in a folder; none if it is not.
fn part(folder: &Path, number: u32) -> Option<Part> {
    let is_trace = folder.join(METADATA).is_file();
    Part::of(folder).filter(|part| is_trace && part.number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_what_its_text_says() {
        let earlier = BTreeMap::from([
            ("toy-1-0".to_owned(), Repeated { bytes: 7, packets: 1 }),
            ("with a space".to_owned(), Repeated { bytes: u64::MAX, packets: 0 }),
        ]);
        let part = Part { number: 12, earlier };
        assert_eq!(Part::parse(part.to_text().as_bytes()), Some(part));
        for wrong in
            ["", "hetrace part", "hetrace part x", "hetrace part 1\n7 x", "hetrace part 1\nx 1 toy", "\u{0}"]
        {
            assert_eq!(Part::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn folders_of_parts_are_numbers() {
        assert_eq!(Part::name(7), "0007");
        for (name, number) in [("0007", Some(7)), ("12345", Some(12_345)), ("0000", None), ("7", None)] {
            assert_eq!(Part::number(name), number, "{name}");
        }
        for name in ["00007", "+007", "", "toy", "0001-2", ".0001"] {
            assert_eq!(Part::number(name), None, "{name}");
        }
    }
}
