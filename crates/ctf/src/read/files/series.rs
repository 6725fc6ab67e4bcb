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

use super::super::data::Repeated;
use super::{Files, KERNEL, OWN, has_metadata};

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

    /// The same of files that are open.
    pub fn of_files(files: &Files) -> Option<Self> {
        let size = files.size(Self::FILE)?;
        let text =
            size.is_none_or(|size| size <= LARGEST).then(|| files.read(Self::FILE).ok().flatten())??;
        Self::parse(&text)
    }

    /// Returns what the trace in a folder is a part of, if it is one.
    pub fn of(folder: &Path) -> Option<Self> {
        let path = folder.join(Self::FILE);
        let found = fs::metadata(&path).ok().filter(|found| found.is_file() && found.len() <= LARGEST);
        Self::parse(&found.and_then(|_| fs::read(&path).ok())?)
    }
}

/// One of the traces of a series.
#[derive(Clone, Debug)]
pub struct Member {
    /// What it is a part of.
    pub part: Part,
    /// Its files, with the trace of the operating system beside it if there is one.
    pub files: Files,
    /// Where it is in the folder of the series: in that of the part, or in one inside, beside the operating system's.
    pub place: PathBuf,
}

impl Member {
    /// Returns the name of the part's folder.
    pub fn name(&self) -> String {
        Part::name(self.part.number)
    }

    /// Returns the folder of the series, if it is not packed.
    pub(super) fn folder(&self) -> Option<&Path> {
        let path = self.files.path();
        path.ends_with(&self.place).then(|| path.ancestors().nth(self.place.components().count()))?
    }

    /// Returns whether its part is a folder of two traces, or was to be one.
    pub fn is_of_two(&self) -> bool {
        self.place.components().count() > 1
    }
}

/// A series: its parts, the first one first.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Of the program's traces.
    pub parts: Vec<Member>,
    /// Of those of the operating system's events beside them, if there are some.
    pub kernel: Vec<Member>,
    /// What is wrong with it, a sentence each.
    pub problems: Vec<String>,
}

impl Series {
    /// Finds the series in a folder; one without parts if there is none.
    pub fn of(folder: &Path) -> Self {
        let mut series = Self::default();
        for number in numbers(folder) {
            let trace = |place: &Path| {
                let folder = folder.join(place);
                has_metadata(&folder).then(|| Files::folder(folder))
            };
            series.add(number, trace, |place| folder.join(place));
        }
        series
    }

    /// The same for an archive with the folder of the series at `root`, and traces at `roots`, of which `below` gives the
    /// files.
    pub fn in_archive(path: &Path, root: &str, roots: &[String], below: impl Fn(&str) -> Files) -> Self {
        let first = |of: &String| of.strip_prefix(root)?.split('/').next().and_then(Part::number);
        let mut numbers: Vec<u32> = roots.iter().filter_map(first).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut series = Self::default();
        for number in numbers {
            let trace = |place: &Path| {
                let of = format!("{root}{}/", place.display());
                roots.contains(&of).then(|| below(&of))
            };
            series.add(number, trace, |place| path.join(place));
        }
        series
    }

    /// Adds a part, of which `trace` gives what there is at a place; `shown` is what that is called in messages.
    fn add(&mut self, number: u32, trace: impl Fn(&Path) -> Option<Files>, shown: impl Fn(&Path) -> PathBuf) {
        let folder = PathBuf::from(Part::name(number));
        let (inner, beside) = (folder.join(OWN), folder.join(KERNEL));
        let of = |place: &Path| {
            let files = trace(place)?;
            let part = Part::of_files(&files).filter(|part| part.number == number)?;
            Some(Member { part, files, place: place.to_owned() })
        };
        let program = if trace(&folder).is_some() { of(&folder) } else { of(&inner) };
        let Some(program) = program else { return };
        let Some(kernel) = of(&beside) else {
            if trace(&beside).is_some() {
                let shown = shown(&beside);
                self.problems.push(format!(
                    "{}: left out: {} is missing or damaged",
                    shown.display(),
                    Part::FILE
                ));
            }
            return self.parts.push(program);
        };
        self.parts.push(Member { files: program.files.beside(kernel.files.clone()), ..program });
        self.kernel.push(kernel);
    }
}

/// Returns the numbers that folders in a folder have as names, in their order.
pub(in crate::read) fn numbers(folder: &Path) -> Vec<u32> {
    let number = |entry: fs::DirEntry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        Part::number(entry.file_name().to_str()?).filter(|_| is_folder)
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// Returns the folder in an archive that the traces there are a series in, if they may be one.
pub(super) fn series_root(roots: &[String]) -> Option<String> {
    let root_of = |root: &String| {
        let root = root.strip_suffix('/')?;
        let folder = [OWN, KERNEL].iter().find_map(|inner| root.strip_suffix(inner)?.strip_suffix('/'));
        let folder = folder.unwrap_or(root);
        let start = folder.rfind('/').map_or(0, |at| at + 1);
        Part::number(folder.get(start..)?).map(|_| folder[..start].to_owned())
    };
    let first = root_of(roots.first()?)?;
    // A part that was packed alone is no series.
    let is_alone =
        first.is_empty() && roots.iter().all(|root| root.split('/').next() == roots[0].split('/').next());
    (!is_alone && roots.iter().all(|root| root_of(root).as_deref() == Some(&*first))).then_some(first)
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
