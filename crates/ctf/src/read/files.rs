//! The files of a trace: in a folder, or packed into one file.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::OpenError;
use super::frames;
use super::map::Bytes;
use super::series::{Part, Series};
use super::trace::DataFile;
use crate::archive::{self, List};

/// How the names of compressed files end.
pub const PACKED: &str = ".zst";

/// The file that makes a folder a trace.
pub(super) const METADATA: &str = "metadata";

/// The folder that traces of hetrace have inside; in a folder of two traces that of the program's.
pub(super) const OWN: &str = "hetrace";

/// The folder beside it with events of the operating system, in a folder of both.
pub(super) const KERNEL: &str = "kernel";

/// The largest file besides streams that is decompressed.
const MAX_FILE: u64 = 256 << 20;

/// How deep below a folder, and in how many folders, a trace is looked for.
const MAX_DEPTH: usize = 8;
const MAX_FOLDERS: usize = 4096;

/// How many links to links are followed.
const MAX_LINKS: usize = 40;

/// Where a trace lies.
///
/// That is a folder with a file `metadata`; or a tar archive of one, whose members are
/// read in place; or a folder with one trace somewhere inside, as LTTng's sessions are; or the folder of a series
/// ([`Part`]).
/// Any file may be there as `NAME.zst` instead.
#[derive(Debug)]
pub struct Files {
    path: PathBuf,
    place: Place,
    /// The trace of the operating system beside it.
    kernel: Option<Box<Files>>,
    /// Of a series: its parts, the last of which is at `path`.
    series: Vec<(PathBuf, Part)>,
    problems: Vec<String>,
}

#[derive(Debug)]
enum Place {
    Folder,
    Archive {
        whole: Arc<Bytes>,
        /// By their paths below the trace's folder.
        members: BTreeMap<String, std::ops::Range<usize>>,
    },
}

impl Files {
    /// Finds the files of a trace.
    ///
    /// # Errors
    /// When there is no trace, or more than one, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let io = |source| OpenError::Io { path: path.into(), source };
        if !fs::metadata(path).map_err(io)?.is_dir() {
            let bytes = Bytes::map(path).map_err(io)?;
            let bytes = bytes.ok_or_else(|| OpenError::NoTrace { path: path.into() })?;
            return Self::of_archive(path, bytes);
        }
        if let Some((program, kernel)) = session(path) {
            let kernel = Some(Box::new(Self::folder(kernel)));
            return Ok(Self { kernel, ..Self::folder(program) });
        }
        let series = if has_metadata(path) { Series::default() } else { Series::of(path) };
        if let Some(files) = Self::of_parts(series.parts) {
            let kernel = Self::of_parts(series.kernel).map(Box::new);
            return Ok(Self { kernel, problems: series.problems, ..files });
        }
        let mut found = Vec::new();
        inside(path, MAX_DEPTH, &mut MAX_FOLDERS.clone(), &mut found);
        // What was merged of several hosts has the trace of each host's operating system beside it.
        let is_kernel = |folder: &PathBuf| {
            let name = folder.strip_prefix(path).ok().and_then(Path::to_str).unwrap_or_default();
            name.strip_prefix(KERNEL).is_some_and(|rest| rest.starts_with('-'))
        };
        if found.len() > 1 && has_metadata(&path.join(OWN)) {
            found.retain(|folder| !is_kernel(folder));
        }
        match found.len() {
            0 => Err(OpenError::NoTrace { path: path.into() }),
            1 => Ok(Self::folder(found.remove(0))),
            _ => {
                let ours = found.iter().all(|folder| folder.join(OWN).is_dir());
                Err(OpenError::SeveralTraces { path: path.into(), found, ours })
            }
        }
    }

    /// Those of the trace in a folder.
    fn folder(path: PathBuf) -> Self {
        Self { path, place: Place::Folder, kernel: None, series: Vec::new(), problems: Vec::new() }
    }

    /// Those of a series; none if it has no parts.
    fn of_parts(series: Vec<(PathBuf, Part)>) -> Option<Self> {
        let path = series.last()?.0.clone();
        Some(Self { series, ..Self::folder(path) })
    }

    /// The same for an archive in memory; `path` is for messages.
    ///
    /// # Errors
    /// When it is no archive, or has no trace, or more than one.
    pub fn from_archive(path: &Path, bytes: Vec<u8>) -> Result<Self, OpenError> {
        Self::of_archive(path, Bytes::Owned(bytes))
    }

    fn of_archive(path: &Path, bytes: Bytes) -> Result<Self, OpenError> {
        if !archive::is_archive(&bytes) {
            return Err(OpenError::NoTrace { path: path.into() });
        }
        let (found, damages) = archive::members(&bytes);
        let mut problems: Vec<_> =
            damages.iter().map(|damage| format!("{}: {damage}", path.display())).collect();
        let (root, kernel) = root(path, &found)?;
        let below = |root: &str| -> BTreeMap<String, std::ops::Range<usize>> {
            let inside = found.iter().filter_map(|m| Some((m.name.strip_prefix(root)?, m.range.clone())));
            inside
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, range)| (name.to_owned(), range))
                .collect()
        };
        let (members, kernel) = (below(&root), kernel.map(|root| below(&root)));
        for members in [Some(&members), kernel.as_ref()].into_iter().flatten() {
            let list = members.get(List::NAME).and_then(|range| List::parse(&bytes[range.clone()]));
            let files = list.iter().flat_map(|list| &list.files);
            let missing = files.filter(|file| !members.contains_key(&file.member()));
            let text = |file: &archive::Listed| {
                format!("{}: {} ({} bytes) is missing", path.display(), file.name, file.size)
            };
            problems.extend(missing.map(text));
        }
        let whole = Arc::new(bytes);
        let place = |members| Place::Archive { whole: Arc::clone(&whole), members };
        let files = |members| Self { place: place(members), ..Self::folder(path.into()) };
        Ok(Self { kernel: kernel.map(|members| Box::new(files(members))), problems, ..files(members) })
    }

    /// Returns where it is: the file, or the folder with `metadata` in it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the trace of the operating system that was recorded with this one.
    pub fn kernel(&self) -> Option<&Files> {
        self.kernel.as_deref()
    }

    /// Returns the folders of the parts, the first one first, if it is a series: streams are those of all of them, and
    /// all else is the last one's. None of another trace.
    pub fn parts(&self) -> impl Iterator<Item = &Path> {
        self.series.iter().map(|(path, _)| path.as_path())
    }

    /// Returns whether it is packed into one file.
    pub fn is_packed(&self) -> bool {
        matches!(self.place, Place::Archive { .. })
    }

    /// Returns what is wrong with the packed file, a sentence each.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Names of the files right in a folder of the trace, sorted, without `.zst`;
    /// none if there is no such folder.
    pub fn list(&self, folder: &str) -> Vec<String> {
        let plain = |name: &str| name.strip_suffix(PACKED).unwrap_or(name).to_owned();
        let mut names: Vec<String> = match &self.place {
            Place::Folder => {
                let entries = fs::read_dir(self.path.join(folder)).into_iter().flatten().flatten();
                let files = entries.filter(|entry| entry.path().is_file());
                files.map(|entry| plain(&entry.file_name().to_string_lossy())).collect()
            }
            Place::Archive { members, .. } => {
                let prefix = format!("{folder}/");
                let inside = members.keys().filter_map(|name| name.strip_prefix(&prefix));
                inside.filter(|name| !name.contains('/')).map(plain).collect()
            }
        };
        names.sort();
        names.dedup();
        names
    }

    /// Returns the paths of all files below the trace's folder, as they are, sorted; and what else
    /// is there that is neither file nor folder.
    ///
    /// # Errors
    /// When a folder cannot be read, or a name is not UTF-8.
    pub fn all(&self) -> io::Result<(Vec<String>, Vec<String>)> {
        let (mut files, mut others) = (Vec::new(), Vec::new());
        match &self.place {
            Place::Folder => walk(&self.path, "", MAX_DEPTH, &mut files, &mut others)?,
            Place::Archive { members, .. } => files.extend(members.keys().cloned()),
        }
        files.sort();
        others.sort();
        Ok((files, others))
    }

    /// Returns the content of a file as it is, mapped; none if it is not there.
    ///
    /// # Errors
    /// When it cannot be opened or mapped.
    pub fn content(&self, name: &str) -> io::Result<Option<Content>> {
        Ok(match &self.place {
            Place::Folder => match Bytes::map(&self.path.join(name)) {
                Ok(bytes) => Some(Content(bytes.unwrap_or(Bytes::Owned(Vec::new())))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            },
            Place::Archive { whole, members } => members
                .get(name)
                .map(|range| Content(Bytes::Part { whole: whole.clone(), range: range.clone() })),
        })
    }

    /// Returns the size of a file, decompressed; none if it is not there, and no number if a compressed
    /// one does not say it.
    pub fn size(&self, name: &str) -> Option<Option<u64>> {
        if let Some(size) = self.stored_size(name) {
            return Some(Some(size));
        }
        let packed = format!("{name}{PACKED}");
        self.stored_size(&packed)?;
        let content = self.content(&packed).ok().flatten();
        Some(content.and_then(|content| frames::starts(&content).len))
    }

    fn stored_size(&self, name: &str) -> Option<u64> {
        match &self.place {
            Place::Folder => {
                fs::metadata(self.path.join(name)).ok().filter(fs::Metadata::is_file).map(|m| m.len())
            }
            Place::Archive { members, .. } => members.get(name).map(|range| range.len() as u64),
        }
    }

    /// Returns whether a path, which need not exist, is of the trace's own file or lies in its folder,
    /// also by way of links: what is written there would damage the trace.
    pub fn contains(&self, path: &Path) -> bool {
        if self.kernel().is_some_and(|kernel| kernel.contains(path)) {
            return true;
        }
        let Ok(own) = self.path.canonicalize() else { return false };
        let mut parts = self.parts().filter_map(|part| part.canonicalize().ok());
        let is_inside = |path: PathBuf| path.starts_with(&own) || parts.any(|part| path.starts_with(part));
        landing(path).is_some_and(is_inside)
    }

    /// Returns the content of a file, decompressed; none if it is not there. For small files: of
    /// compressed ones at most 256 MiB.
    ///
    /// # Errors
    /// When it cannot be read or decompressed.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        if let Some(bytes) = self.raw(name)? {
            return Ok(Some(bytes));
        }
        let Some(bytes) = self.raw(&format!("{name}{PACKED}"))? else { return Ok(None) };
        let mut plain = Vec::new();
        zstd::Decoder::new(&bytes[..])?.take(MAX_FILE + 1).read_to_end(&mut plain)?;
        if plain.len() as u64 > MAX_FILE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "more than 256 MiB"));
        }
        Ok(Some(plain))
    }

    fn raw(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match &self.place {
            Place::Folder => match fs::read(self.path.join(name)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
            Place::Archive { whole, members } => {
                Ok(members.get(name).map(|range| whole[range.clone()].to_vec()))
            }
        }
    }

    /// Returns the content of `metadata`.
    pub(super) fn metadata(&self) -> Result<Vec<u8>, OpenError> {
        let io = |source| OpenError::Io { path: self.path.join(METADATA), source };
        self.read(METADATA).map_err(io)?.ok_or_else(|| OpenError::NoTrace { path: self.path.clone() })
    }

    /// Returns the data streams, in the order of their names without `.zst`, so that it is the
    /// same for a packed trace.
    pub(super) fn streams(&self) -> Result<Vec<DataFile>, OpenError> {
        let mut files = match &self.place {
            Place::Folder if self.series.is_empty() => in_folder(&self.path)?,
            Place::Folder => of_series(&self.series)?,
            Place::Archive { whole, members } => {
                let streams = members
                    .iter()
                    .filter(|(name, range)| !name.contains('/') && is_stream(name) && !range.is_empty());
                let file = |(name, range): (&String, &std::ops::Range<usize>)| {
                    let data = Bytes::Part { whole: whole.clone(), range: range.clone() };
                    DataFile::new(name.clone(), data)
                };
                streams.map(file).collect()
            }
        };
        files.sort_by(|a, b| order(&a.name).cmp(&order(&b.name)));
        Ok(files)
    }
}

fn is_stream(name: &str) -> bool {
    name.strip_suffix(PACKED).unwrap_or(name) != METADATA && !name.starts_with('.')
}

/// Returns the data streams of a folder.
fn in_folder(folder: &Path) -> Result<Vec<DataFile>, OpenError> {
    let io = |path: &Path, source| OpenError::Io { path: path.into(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|e| io(folder, e))? {
        let path = entry.map_err(|e| io(folder, e))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if is_stream(&name)
            && path.is_file()
            && let Some(data) = Bytes::map(&path).map_err(|e| io(&path, e))?
        {
            files.push(DataFile::new(name, data));
        }
    }
    Ok(files)
}

/// Returns the data streams of a series: those of each name one after the other, but what is repeated.
fn of_series(series: &[(PathBuf, Part)]) -> Result<Vec<DataFile>, OpenError> {
    let mut all: BTreeMap<String, DataFile> = BTreeMap::new();
    for (index, (folder, part)) in series.iter().enumerate() {
        for file in in_folder(folder)? {
            let name = file.name.strip_suffix(PACKED).unwrap_or(&file.name);
            let repeated = part.earlier.get(name).copied().filter(|_| index > 0).unwrap_or_default();
            let Some(file) = file.without(repeated) else { continue };
            match all.entry(file.name.clone()) {
                Entry::Vacant(none) => _ = none.insert(file),
                Entry::Occupied(mut known) => known.get_mut().append(file),
            }
        }
    }
    Ok(all.into_values().collect())
}

/// The bytes of a file.
#[derive(Debug)]
pub struct Content(Bytes);

impl Content {
    /// Says that these bytes will hardly be read again.
    pub fn forget(&self, range: std::ops::Range<usize>) {
        self.0.forget(range);
    }
}

impl std::ops::Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

fn walk(
    folder: &Path,
    prefix: &str,
    depth: usize,
    files: &mut Vec<String>,
    others: &mut Vec<String>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default();
        let name = name.to_str().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{}: a name that is not UTF-8", path.display()),
            )
        })?;
        let name = format!("{prefix}{name}");
        if path.is_file() {
            files.push(name);
        } else if path.is_dir() && !path.is_symlink() && depth > 0 {
            walk(&path, &format!("{name}/"), depth - 1, files, others)?;
        } else {
            others.push(name);
        }
    }
    Ok(())
}

/// Returns where a path leads to, with all links followed as far as there is anything.
fn landing(path: &Path) -> Option<PathBuf> {
    let mut path = std::path::absolute(path).ok()?;
    // A link to nothing yet: a file that is made by it lies there.
    for _ in 0..MAX_LINKS {
        let Ok(to) = fs::read_link(&path) else { break };
        path = path.parent()?.join(to);
    }
    let mut rest = Vec::new();
    loop {
        if let Ok(there) = path.canonicalize() {
            return Some(rest.iter().rev().fold(there, |path: PathBuf, name| path.join(name)));
        }
        rest.push(path.file_name()?.to_owned());
        path.pop();
    }
}

/// Returns what streams are sorted by.
fn order(name: &str) -> (&str, &str) {
    (name.strip_suffix(PACKED).unwrap_or(name), name)
}

fn has_metadata(folder: &Path) -> bool {
    folder.join(METADATA).is_file() || folder.join(format!("{METADATA}{PACKED}")).is_file()
}

/// Returns the two traces of a folder that has one of a program and one of the operating system: readers
/// of the folder read the first, and may read the second with it.
pub fn session(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let both = (folder.join(OWN), folder.join(KERNEL));
    let is_session = !has_metadata(folder) && has_metadata(&both.0) && has_metadata(&both.1);
    is_session.then_some(both)
}

/// Finds the traces in a folder, sorted.
fn inside(folder: &Path, depth: usize, folders: &mut usize, found: &mut Vec<PathBuf>) {
    if has_metadata(folder) {
        found.push(folder.into());
        return;
    }
    let Some(rest) = folders.checked_sub(1).filter(|_| depth > 0) else { return };
    *folders = rest;
    let Ok(entries) = fs::read_dir(folder) else { return };
    // A link may lead back to where it is.
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let mut below: Vec<_> = entries.flatten().filter(is_folder).map(|entry| entry.path()).collect();
    below.sort();
    for folder in below {
        inside(&folder, depth - 1, folders, found);
    }
}

/// Returns what names of members begin with: that of the folder with `metadata`, and that of the trace of the operating
/// system beside it, if there is one. Of several, the outermost counts: a trace may hold files of any name.
fn root(path: &Path, members: &[archive::Member]) -> Result<(String, Option<String>), OpenError> {
    let is_metadata = |name: &str| {
        let name = name.strip_suffix(PACKED).unwrap_or(name);
        name.strip_suffix(METADATA).filter(|root| root.is_empty() || root.ends_with('/')).map(str::to_owned)
    };
    let depth = |root: &String| root.matches('/').count();
    let mut roots: Vec<_> = members.iter().filter_map(|m| is_metadata(&m.name)).collect();
    let outermost = roots.iter().map(depth).min();
    roots.retain(|root| Some(depth(root)) == outermost);
    roots.sort();
    roots.dedup();
    match roots.len() {
        0 => Err(OpenError::NoTrace { path: path.into() }),
        1 => Ok((roots.remove(0), None)),
        2 if is_session(&roots) => Ok((roots.remove(0), Some(roots.remove(0)))),
        _ => {
            let found = roots.iter().map(PathBuf::from).collect();
            Err(OpenError::SeveralTraces { path: path.into(), found, ours: false })
        }
    }
}

/// Returns whether two folders, sorted, are those of a program's trace and of the operating system's beside it.
fn is_session(roots: &[String]) -> bool {
    let above = |root: &String, name: &str| Some(root.strip_suffix(&format!("{name}/"))?.to_owned());
    match roots {
        [program, kernel] => above(program, OWN).is_some() && above(program, OWN) == above(kernel, KERNEL),
        _ => false,
    }
}
