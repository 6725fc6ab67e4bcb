//! A trace's folder to one file, and back.
//!
//! ```text
//! NAME.tar   | NAME/hetrace/packed | NAME/metadata.zst | NAME/hetrace/... | NAME/STREAM.zst | ...
//! STREAM.zst | frame | frame | ...           each of whole packets, with its size and a checksum
//! ```
//! The list of files comes first, so that a truncated file shows what is missing; then
//! what is needed to understand the rest; then the streams. With events of the operating system it is two of these, one
//! after the other: NAME/hetrace/... and NAME/kernel/...

mod frames;
mod unpack;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hetrace_ctf::archive::{END, List, Listed, header, header_up_to, padding};
use hetrace_ctf::read::{Content, Files, PACKED, PacketReader, Trace};
use hetrace_format::files::{KERNEL, PROGRAM};

use crate::output::Output;
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
    /// What could not be packed as it is no file.
    pub left_out: Vec<String>,
}

/// Packs a trace into a file that must not exist.
///
/// # Errors
/// When `trace` is none, when something cannot be read or written, or when `watch` says
/// to stop; then there is no file.
pub fn pack(trace: &Path, file: &Path, options: &PackOptions, watch: Watch<'_>) -> Result<Packed, Error> {
    let files = unpacked(trace)?;
    let folder = files.path();
    let top = file.file_stem().and_then(|name| name.to_str()).map(str::to_owned);
    let top = top.unwrap_or_else(|| "trace".to_owned());
    let modified = std::fs::metadata(folder.join("metadata")).and_then(|m| m.modified());
    let modified = modified.unwrap_or_else(|_| SystemTime::now());
    let output = Output::new(file)?;
    let mut packer = Packer {
        out: output.file()?,
        at: 0,
        path: output.scratch().to_owned(),
        top: top.clone(),
        mtime: modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs(),
        squeezer: Squeezer::new(options.level),
        watch,
    };
    let mut lists = Vec::new();
    // With events of the operating system it is a folder of two traces.
    for (files, name) in both(&files) {
        packer.top = [top.as_str()].into_iter().chain(name).collect::<Vec<_>>().join("/");
        lists.push(packer.trace(files)?);
    }
    packer.write(&END)?;
    let after = packer.at;
    // Of the traces here, the one recorded last is the newest, whenever it was packed.
    packer.out.set_modified(modified).map_err(Error::io(&packer.path))?;
    drop(packer);
    output.finish()?;
    let left_out: Vec<String> = lists.iter().flat_map(|(_, left_out)| left_out.iter().cloned()).collect();
    let listed = || lists.iter().flat_map(|(list, _)| &list.files);
    if options.remove {
        let packed = Files::open(file)?;
        let packed = both(&packed).map(|(files, _)| files);
        for (((files, _), archive), (list, _)) in both(&files).zip(packed).zip(&lists) {
            compare(files, archive, list, watch)?;
        }
        if let Some(name) = left_out.first().cloned() {
            return Err(Error::Changed { path: folder.into(), name });
        }
        let whole = files.kernel().and(folder.parent()).unwrap_or(folder);
        std::fs::remove_dir_all(whole).map_err(Error::io(whole))?;
    }
    Ok(Packed { files: listed().count(), before: listed().map(|f| f.size).sum(), after, left_out })
}

/// Returns the traces of a folder, and what these are called in it if there are two.
fn both(files: &Files) -> impl Iterator<Item = (&Files, Option<&'static str>)> {
    let kernel = files.kernel();
    let program = (files, kernel.map(|_| PROGRAM));
    std::iter::once(program).chain(kernel.map(|kernel| (kernel, Some(KERNEL))))
}

/// Opens a trace that can be packed.
fn unpacked(trace: &Path) -> Result<Files, Error> {
    let files = Files::open(trace)?;
    if files.is_packed() {
        return Err(Error::IsPacked { path: trace.into() });
    }
    let is_series = files.parts().next().is_some();
    if is_series { Err(Error::IsSeries { path: trace.into() }) } else { Ok(files) }
}

/// Returns what is needed to understand the rest comes first.
fn in_order(mut names: Vec<String>) -> Vec<String> {
    names.retain(|name| name != List::NAME);
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

fn list(contents: &[(String, Content)]) -> List {
    let names: HashSet<&str> = contents.iter().map(|(name, _)| name.as_str()).collect();
    let taken = |name: &str| names.contains(name);
    let listed = |(name, content): &(String, Content)| {
        let size = content.len() as u64;
        let is_stream = !name.contains('/') && !name.starts_with('.');
        let worth = size >= SMALL || is_stream && size > 0;
        let compressed = worth && !name.ends_with(PACKED) && !taken(&format!("{name}{PACKED}"));
        Listed { name: name.clone(), size, compressed }
    };
    List { files: contents.iter().map(listed).collect() }
}

/// An archive in the making.
struct Packer<'w> {
    out: File,
    at: u64,
    path: std::path::PathBuf,
    /// The folder that everything is in.
    top: String,
    mtime: u64,
    squeezer: Squeezer,
    watch: Watch<'w>,
}

impl Packer<'_> {
    /// Packs a trace. Returns what is in it, and what is not.
    fn trace(&mut self, files: &Files) -> Result<(List, Vec<String>), Error> {
        let folder = files.path();
        let (names, left_out) = files.all().map_err(Error::io(folder))?;
        let mut contents = Vec::new();
        for name in in_order(names) {
            if name.contains('\n') {
                return Err(Error::Name { path: folder.into(), name });
            }
            let content = files.content(&name).map_err(Error::io(&folder.join(&name)))?;
            contents.extend(content.map(|content| (name, content)));
        }
        let list = list(&contents);
        // Without metadata that can be understood, nobody knows where packets begin.
        let readable = Trace::from_files(files).ok();
        self.plain(List::NAME, list.to_text().as_bytes())?;
        let streams: HashMap<&str, usize> = readable
            .iter()
            .flat_map(|trace| (0..trace.stream_count()).filter_map(|i| Some((trace.stream_name(i)?, i))))
            .collect();
        for (listed, (_, content)) in list.files.iter().zip(&contents) {
            if !listed.compressed {
                self.plain(&listed.name, content)?;
                continue;
            }
            let index = streams.get(listed.name.as_str());
            let stream = readable.as_ref().zip(index).and_then(|(trace, index)| trace.stream(*index));
            let borders = borders(content.len(), stream.map(PacketReader::new));
            self.squeezed(listed, content, &borders)?;
        }
        Ok((list, left_out))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(Error::io(&self.path))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn name(&self, name: &str) -> String {
        format!("{}/{name}", self.top)
    }

    fn plain(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        let size = content.len() as u64;
        self.write(&header(&self.name(name), size, self.mtime))?;
        for part in content.chunks(FRAME) {
            report(self.watch, part.len() as u64)?;
            self.write(part)?;
        }
        self.write(&END[..padding(size)])
    }

    fn squeezed(&mut self, listed: &Listed, content: &Content, borders: &[usize]) -> Result<(), Error> {
        let name = self.name(&listed.member());
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
