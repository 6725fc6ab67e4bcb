//! A trace's folder to one file, and back.
//!
//! ```text
//! NAME.tar   | NAME/hetrace/packed | NAME/metadata.zst | NAME/hetrace/... | NAME/STREAM.zst | ...
//! STREAM.zst | frame | frame | ...           each of whole packets, with its size and a checksum
//! ```
//! The list of files comes first, so that a truncated file shows what is missing; then
//! what is needed to understand the rest; then the streams. With events of the operating system it is two of these, one
//! after the other: NAME/hetrace/... and NAME/kernel/... Of a series it is that of each part, NAME/0001/..., NAME/0002/...,
//! with all lists in front. Models and stored contents, which its parts share, are there once, and as hard links then.

mod frames;
mod unpack;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hetrace_ctf::archive::{END, List, Listed, header, header_up_to, link, padding};
use hetrace_ctf::read::{Content, Files, PACKED, PacketReader, Part, Trace};
use hetrace_format::files::FRESH_MANIFEST;

use crate::output::{Output, remove_whole};
use crate::{Error, Watch, report};
use frames::{FRAME, Squeezer, borders};
pub use unpack::{Unpacked, unpack};

/// Smaller files are not worth being compressed, unless they are streams.
const SMALL: u64 = 512;

/// How to pack.
#[derive(Clone, Copy, Debug)]
pub struct PackOptions {
    /// Level of zstd, 1 to 22.
    pub level: i32,
    /// Remove the folder when the file is complete and was compared with it.
    pub remove: bool,
}

impl Default for PackOptions {
    fn default() -> Self {
        Self { level: 3, remove: false }
    }
}

/// What was packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// How many files.
    pub files: usize,
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// What was not packed: no file, or beside the traces of a folder of several.
    pub left_out: Vec<String>,
}

/// Packs a trace into a file that must not exist: of a series all parts.
///
/// # Errors
/// When `trace` is none, when something cannot be read or written, or when `watch` says
/// to stop; then there is no file.
pub fn pack(trace: &Path, file: &Path, options: &PackOptions, watch: Watch<'_>) -> Result<Packed, Error> {
    let files = Files::open(trace)?;
    if files.is_packed() {
        return Err(Error::IsPacked { path: trace.into() });
    }
    // A folder of several traces is packed as a whole; what else has one inside is not looked at.
    let traces = files.traces();
    let is_one = traces.iter().all(|(place, _)| place.as_os_str().is_empty());
    let whole = if is_one { files.path() } else { trace };
    let top = file.file_stem().and_then(|name| name.to_str()).unwrap_or("trace");
    let modified = fs::metadata(files.path().join("metadata")).and_then(|m| m.modified());
    let modified = modified.unwrap_or_else(|_| SystemTime::now());
    let output = Output::new(file)?;
    let mut packer = Packer {
        out: output.file()?,
        at: 0,
        path: output.scratch().to_owned(),
        mtime: modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs(),
        squeezer: Squeezer::new(options.level),
        shared: HashMap::new(),
        watch,
    };
    let mut left_out = beside(whole, &traces)?;
    let mut lists = Vec::new();
    for (place, files) in &traces {
        let (list, left) = list(files)?;
        let top = [top].into_iter().chain(place.iter().filter_map(|name| name.to_str())).collect::<Vec<_>>();
        left_out.extend(left.into_iter().map(|name| place.join(name).display().to_string()));
        lists.push((top.join("/"), list));
    }
    for (top, list) in &lists {
        packer.plain(&format!("{top}/{}", List::NAME), list.to_text().as_bytes())?;
    }
    for ((_, files), (top, list)) in traces.iter().zip(&lists) {
        packer.trace(top, files, list)?;
    }
    packer.write(&END)?;
    let after = packer.at;
    // Of the traces here, the one recorded last is the newest, whenever it was packed.
    packer.out.set_modified(modified).map_err(Error::io(&packer.path))?;
    drop(packer);
    output.finish()?;
    if options.remove {
        let packed = Files::open(file)?;
        for (((_, files), (_, archive)), (_, list)) in traces.iter().zip(packed.traces()).zip(&lists) {
            compare(files, &archive, list, watch)?;
        }
        let fresh = beside(whole, &Files::open(trace)?.traces())?;
        if let Some(name) = left_out.into_iter().chain(fresh).next() {
            return Err(Error::LeftOut { path: whole.into(), name });
        }
        remove_whole(whole)?;
        left_out = Vec::new();
    }
    let listed = || lists.iter().flat_map(|(_, list)| &list.files);
    Ok(Packed { files: listed().count(), before: listed().map(|f| f.size).sum(), after, left_out })
}

/// Returns what is in a folder of several traces and in none of them; nothing of a folder that is one.
fn beside(whole: &Path, traces: &[(PathBuf, Files)]) -> Result<Vec<String>, Error> {
    let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
    for (place, _) in traces.iter().filter(|(place, _)| !place.as_os_str().is_empty()) {
        folders.extend(place.ancestors().skip(1).map(Path::to_owned));
    }
    let is_known = |place: &Path| folders.contains(place) || traces.iter().any(|(of, _)| of == place);
    let mut others = Vec::new();
    for folder in &folders {
        let path = whole.join(folder);
        for entry in fs::read_dir(&path).map_err(Error::io(&path))? {
            let place = folder.join(entry.map_err(Error::io(&path))?.file_name());
            if !is_known(&place) {
                others.push(place.display().to_string());
            }
        }
    }
    others.sort();
    Ok(others)
}

/// Returns the files that are packed: what is needed to understand the rest comes first.
fn in_order(mut names: Vec<String>) -> Vec<String> {
    // A manifest that is not whole yet may be another file, or none, when it is read.
    names.retain(|name| name != List::NAME && name != FRESH_MANIFEST);
    let rank = |name: &String| match name.split_once('/') {
        None if name.starts_with("metadata") => 0,
        Some(("hetrace", "manifest.json")) => 1,
        Some(("hetrace", rest)) if rest.starts_with("model/") => 2,
        None => 3,
        Some(_) => 4,
    };
    names.sort_by_key(rank);
    names
}

/// Returns what is in a trace, and what in its folder is no file.
fn list(files: &Files) -> Result<(List, Vec<String>), Error> {
    let folder = files.path();
    let (names, left_out) = files.all().map_err(Error::io(folder))?;
    let names = in_order(names);
    let known: HashSet<&str> = names.iter().map(String::as_str).collect();
    let mut list = List::default();
    for name in &names {
        if name.contains('\n') {
            return Err(Error::Name { path: folder.into(), name: name.clone() });
        }
        let size = fs::metadata(folder.join(name)).map_err(Error::io(&folder.join(name)))?.len();
        let is_stream = !name.contains('/') && !name.starts_with('.');
        let worth = size >= SMALL || is_stream && size > 0;
        let compressed =
            worth && !name.ends_with(PACKED) && !known.contains(format!("{name}{PACKED}").as_str());
        list.files.push(Listed { name: name.clone(), size, compressed });
    }
    Ok((list, left_out))
}

/// An archive in the making.
struct Packer<'w> {
    out: File,
    at: u64,
    path: PathBuf,
    mtime: u64,
    squeezer: Squeezer,
    /// Files with several names, by device and number: what the first of these is called in the archive.
    shared: HashMap<(u64, u64), (String, Listed)>,
    watch: Watch<'w>,
}

impl Packer<'_> {
    /// Packs a trace: what is in its list.
    fn trace(&mut self, top: &str, files: &Files, list: &List) -> Result<(), Error> {
        // Without metadata that can be understood, nobody knows where packets begin.
        let readable = Trace::from_files(files).ok();
        let part = Part::of_files(files).unwrap_or_default();
        let streams: HashMap<&str, usize> = readable
            .iter()
            .flat_map(|trace| (0..trace.stream_count()).filter_map(|i| Some((trace.stream_name(i)?, i))))
            .collect();
        for listed in &list.files {
            let path = files.path().join(&listed.name);
            if self.is_shared(top, listed, &path)? {
                continue;
            }
            let content = files.content(&listed.name).map_err(Error::io(&path))?;
            // Whoever records goes on: what came since is not in it.
            let size = usize::try_from(listed.size).ok();
            let content = content.filter(|content| size.is_some_and(|size| content.len() >= size));
            let Some((content, size)) = content.zip(size) else {
                return Err(Error::Changed { path: files.path().into(), name: listed.name.clone() });
            };
            if !listed.compressed {
                self.plain(&format!("{top}/{}", listed.name), content.get(..size).unwrap_or_default())?;
                continue;
            }
            let index = streams.get(listed.name.as_str());
            let stream = readable.as_ref().zip(index).and_then(|(trace, index)| trace.stream(*index));
            // Whoever reads all parts leaves out what is repeated: it has frames of its own.
            let repeated = part.earlier.get(&listed.name).map_or(0, |repeated| repeated.bytes);
            let borders =
                borders(size, usize::try_from(repeated).unwrap_or(0), stream.map(PacketReader::new));
            self.squeezed(top, listed, &content, &borders)?;
        }
        Ok(())
    }

    /// Writes a link if it is a file that is in the archive already. Returns whether that is so.
    fn is_shared(&mut self, top: &str, listed: &Listed, path: &Path) -> Result<bool, Error> {
        let found = fs::metadata(path).map_err(Error::io(path))?;
        if found.nlink() < 2 {
            return Ok(false);
        }
        let name = format!("{top}/{}", listed.member());
        let id = (found.dev(), found.ino());
        match self.shared.get(&id) {
            Some((first, of)) if (of.size, of.compressed) == (listed.size, listed.compressed) => {
                let bytes = link(&name, first, self.mtime);
                report(self.watch, listed.size)?;
                self.write(&bytes)?;
                Ok(true)
            }
            _ => {
                self.shared.insert(id, (name, listed.clone()));
                Ok(false)
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(Error::io(&self.path))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn plain(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        let size = content.len() as u64;
        self.write(&header(name, size, self.mtime))?;
        for part in content.chunks(FRAME) {
            report(self.watch, part.len() as u64)?;
            self.write(part)?;
        }
        self.write(&END[..padding(size)])
    }

    fn squeezed(
        &mut self,
        top: &str,
        listed: &Listed,
        content: &Content,
        borders: &[usize],
    ) -> Result<(), Error> {
        let name = format!("{top}/{}", listed.member());
        // Room for the most that it may become.
        let most = listed.size.saturating_mul(2).saturating_add(1 << 20);
        let header_at = self.at;
        self.write(&header_up_to(&name, 0, self.mtime, most))?;
        let begin = self.at;
        let mut done = 0;
        for group in borders.chunks(self.squeezer.at_once()) {
            let starts = [done].into_iter().chain(group.iter().copied());
            let parts: Vec<&[u8]> = starts.zip(group).map(|(from, &to)| &content[from..to]).collect();
            for frame in self.squeezer.squeeze(&parts).map_err(Error::io(&self.path))? {
                self.write(&frame)?;
            }
            let end = group.last().copied().unwrap_or(done);
            report(self.watch, (end - done) as u64)?;
            content.forget(done..end);
            done = end;
        }
        let size = self.at - begin;
        self.write(&END[..padding(size)])?;
        let header = header_up_to(&name, size, self.mtime, most);
        let again = self.out.seek(SeekFrom::Start(header_at)).and_then(|_| self.out.write_all(&header));
        again.and_then(|()| self.out.seek(SeekFrom::Start(self.at))).map_err(Error::io(&self.path))?;
        Ok(())
    }
}

/// Whether a packed file holds what the files are now.
fn compare(files: &Files, archive: &Files, list: &List, watch: Watch<'_>) -> Result<(), Error> {
    let (folder, packed) = (files.path(), archive.path());
    for listed in &list.files {
        let changed = || Error::Changed { path: folder.into(), name: listed.name.clone() };
        let path = folder.join(&listed.name);
        let now = files.content(&listed.name).map_err(Error::io(&path))?.ok_or_else(changed)?;
        let then = archive.content(&listed.member()).map_err(Error::io(packed))?.ok_or_else(changed)?;
        let mut at = 0;
        let same = |part: &[u8]| {
            let same = now.get(at..at + part.len()) == Some(part);
            at += part.len();
            report(watch, part.len() as u64).map(|()| same)
        };
        let same = match listed.compressed {
            true => frames::all_plain(&then, same)?,
            false => *then == *now,
        };
        if !same || at as u64 != if listed.compressed { listed.size } else { 0 } {
            return Err(changed());
        }
    }
    let (names, _) = files.all().map_err(Error::io(folder))?;
    let known: HashSet<&str> = list.files.iter().map(|file| file.name.as_str()).collect();
    match in_order(names).into_iter().find(|name| !known.contains(name.as_str())) {
        Some(name) => Err(Error::Changed { path: folder.into(), name }),
        None => Ok(()),
    }
}
