//! The files of a trace: in a folder, or packed into one file.

mod series;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::data::{DataFile, Repeated};
use super::error::OpenError;
use super::frames;
use super::map::Bytes;
use crate::archive::{self, List, PACKED};

pub(super) use series::numbers;
pub use series::{Member, Part};
use series::{Series, series_root};

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
/// ([`Part`]), or a tar archive of that.
/// Any file may be there as `NAME.zst` instead.
#[derive(Clone, Debug)]
pub struct Files {
    path: PathBuf,
    place: Place,
    /// The trace of the operating system beside it.
    kernel: Option<Box<Files>>,
    /// Of a series: its parts, the last of which has the place of this.
    series: Vec<Member>,
    problems: Vec<String>,
}

#[derive(Clone, Debug)]
enum Place {
    Folder,
    Archive {
        whole: Arc<Bytes>,
        /// By their paths below the trace's folder.
        members: Arc<BTreeMap<String, std::ops::Range<usize>>>,
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
        if let Some(files) = Self::of_series(series) {
            return Ok(files);
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
    pub(super) fn folder(path: PathBuf) -> Self {
        Self { path, place: Place::Folder, kernel: None, series: Vec::new(), problems: Vec::new() }
    }

    /// Those of a series; none if it has no parts.
    fn of_series(series: Series) -> Option<Self> {
        let Series { parts, kernel, problems } = series;
        let files = Self::of_parts(parts)?;
        Some(Self { kernel: Self::of_parts(kernel).map(Box::new), problems, ..files })
    }

    fn of_parts(series: Vec<Member>) -> Option<Self> {
        let last = series.last()?.files.clone();
        Some(Self { series, kernel: None, ..last })
    }

    /// The same with the trace of the operating system beside it.
    pub(super) fn beside(self, kernel: Files) -> Self {
        Self { kernel: Some(Box::new(kernel)), ..self }
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
        let roots = roots(&found);
        problems.extend(missing(path, &bytes, &found, &roots));
        let whole = Arc::new(bytes);
        let below = |root: &str| {
            let inside = found.iter().filter_map(|m| Some((m.name.strip_prefix(root)?, m.range.clone())));
            let members = inside
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, range)| (name.to_owned(), range))
                .collect();
            let place = Place::Archive { whole: Arc::clone(&whole), members: Arc::new(members) };
            Self { place, ..Self::folder(path.into()) }
        };
        if let Some(root) = series_root(&roots)
            && let Some(files) = Self::of_series(Series::in_archive(path, &root, &roots, below))
        {
            problems.extend(files.problems.iter().cloned());
            return Ok(Self { problems, ..files });
        }
        let (root, kernel) = one(path, roots)?;
        let files = below(&root);
        let files = match kernel {
            Some(kernel) => files.beside(below(&kernel)),
            None => files,
        };
        Ok(Self { problems, ..files })
    }

    /// Returns where it is: the file, or the folder with `metadata` in it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the trace of the operating system that was recorded with this one.
    pub fn kernel(&self) -> Option<&Files> {
        self.kernel.as_deref()
    }

    /// Returns the parts, the first one first, if it is a series: streams are those of all of them, and all else is the
    /// last one's. None of another trace.
    pub fn parts(&self) -> impl Iterator<Item = &Member> {
        self.series.iter()
    }

    /// Returns the single traces that it is made of, each with its path below the folder that was opened: a trace is that
    /// itself, a folder of two traces has them inside, and a series in its parts.
    pub fn traces(&self) -> Vec<(PathBuf, Files)> {
        let alone =
            |files: &Self| Self { kernel: None, series: Vec::new(), problems: Vec::new(), ..files.clone() };
        if self.series.is_empty() {
            return match self.kernel() {
                None => vec![(PathBuf::new(), alone(self))],
                Some(kernel) => vec![(OWN.into(), alone(self)), (KERNEL.into(), alone(kernel))],
            };
        }
        let kernels = self.kernel.iter().flat_map(|kernel| &kernel.series);
        let mut all: Vec<_> =
            self.series.iter().chain(kernels).map(|one| (one.place.clone(), alone(&one.files))).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all
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
        // What lies beside the parts of a series goes with its folder.
        let mut parts = self.parts().filter_map(|part| part.folder()?.canonicalize().ok());
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
        let mut files = if self.series.is_empty() { self.own_streams()? } else { of_all(&self.series)? };
        files.sort_by(|a, b| order(&a.name).cmp(&order(&b.name)));
        Ok(files)
    }

    /// Returns those of one trace, in no order.
    fn own_streams(&self) -> Result<Vec<DataFile>, OpenError> {
        let Place::Archive { whole, members } = &self.place else { return in_folder(&self.path) };
        let streams = members
            .iter()
            .filter(|(name, range)| !name.contains('/') && is_stream(name) && !range.is_empty());
        let file = |(name, range): (&String, &std::ops::Range<usize>)| {
            let data = Bytes::Part { whole: whole.clone(), range: range.clone() };
            DataFile::new(name.clone(), data)
        };
        Ok(streams.map(file).collect())
    }

    /// Returns the files that `hetrace pack` has compressed, also if `tar` made a folder of its archive.
    fn packed(&self) -> HashSet<String> {
        let list = self.content(List::NAME).ok().flatten();
        let list = list.and_then(|list| List::parse(&list)).unwrap_or_default();
        list.files.into_iter().filter(|file| file.compressed).map(|file| file.name).collect()
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

/// Returns the data streams of a series: those of each name one after the other, but what is repeated. What a stream
/// repeats that no part before has is not.
fn of_all(series: &[Member]) -> Result<Vec<DataFile>, OpenError> {
    let mut all: BTreeMap<String, DataFile> = BTreeMap::new();
    for Member { part, files, .. } in series {
        let packed = if all.is_empty() { HashSet::new() } else { files.packed() };
        for file in files.own_streams()? {
            let name = file.name.strip_suffix(PACKED).unwrap_or(&file.name);
            let known = all.contains_key(&file.name);
            let repeated = part.earlier.get(name).copied().filter(|_| known).unwrap_or_default();
            let as_it_lies = stored(&file, repeated, &packed).ok_or_else(|| {
                let why = format!("{name} is compressed in a form that does not show what of it is repeated");
                let source = io::Error::new(io::ErrorKind::InvalidData, why);
                OpenError::Io { path: files.path.join(Part::FILE), source }
            })?;
            let Some(file) = file.without(as_it_lies) else { continue };
            match all.entry(file.name.clone()) {
                Entry::Vacant(none) => _ = none.insert(file),
                Entry::Occupied(mut known) => known.get_mut().append(file),
            }
        }
    }
    Ok(all.into_values().collect())
}

/// Returns what is repeated of a stream as it lies there: what was packed has another size than before. None if no frame
/// ends there.
fn stored(file: &DataFile, repeated: Repeated, packed: &HashSet<String>) -> Option<Repeated> {
    let was_packed = file.name.strip_suffix(PACKED).is_some_and(|plain| packed.contains(plain));
    if repeated.bytes == 0 || !was_packed {
        return Some(repeated);
    }
    Some(Repeated { bytes: file.stored_at(repeated.bytes)?, ..repeated })
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

pub(super) fn has_metadata(folder: &Path) -> bool {
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

/// Returns what names of members begin with, of each folder with `metadata`, sorted. The outermost count: a trace may hold
/// files of any name.
fn roots(members: &[archive::Member]) -> Vec<String> {
    let is_metadata = |name: &str| {
        let name = name.strip_suffix(PACKED).unwrap_or(name);
        name.strip_suffix(METADATA).filter(|root| root.is_empty() || root.ends_with('/')).map(str::to_owned)
    };
    let mut roots: Vec<_> = members.iter().filter_map(|m| is_metadata(&m.name)).collect();
    let outermost = roots.iter().map(|root| depth(root)).min();
    roots.retain(|root| Some(depth(root)) == outermost);
    roots.sort();
    roots.dedup();
    roots
}

/// Returns how many folders a folder in an archive is in, with itself.
fn depth(root: &str) -> usize {
    root.matches('/').count()
}

/// Returns what is not there of all that was packed, a sentence each: lists of it come first.
fn missing(path: &Path, bytes: &[u8], found: &[archive::Member], roots: &[String]) -> Vec<String> {
    let names: HashSet<&str> = found.iter().map(|member| member.name.as_str()).collect();
    let mut problems = Vec::new();
    for member in found {
        let root = member.name.strip_suffix(List::NAME);
        // A trace may hold what is called so, too.
        let Some(root) = root.filter(|root| roots.first().is_some_and(|one| depth(one) == depth(root)))
        else {
            continue;
        };
        let list = bytes.get(member.range.clone()).and_then(List::parse).unwrap_or_default();
        for file in list.files.iter().filter(|file| !names.contains(&*format!("{root}{}", file.member()))) {
            let of = if roots.len() > 1 { root } else { "" };
            problems.push(format!("{}: {of}{} ({} bytes) is missing", path.display(), file.name, file.size));
        }
    }
    problems
}

/// Returns the one trace that there is, and that of the operating system beside it, if there is one.
fn one(path: &Path, mut roots: Vec<String>) -> Result<(String, Option<String>), OpenError> {
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
