//! A packed trace to a folder.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use hetrace_ctf::archive::{List, Listed};
use hetrace_ctf::read::{Content, Files};

use super::frames::{self, FRAME, Frame};
use crate::output::Output;
use crate::{Error, Watch, report};

/// What was unpacked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// How many files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// What is missing or damaged, a sentence each.
    pub problems: Vec<String>,
}

/// Makes the folder again that a trace was packed from; it must not exist. An archive
/// that `hetrace pack` has not made is unpacked as it is.
///
/// Damage is reported, and everything else is there: of a stream the frames that
/// can be decompressed.
///
/// # Errors
/// When `packed` is no trace in an archive, something cannot be written, or `watch` says
/// to stop; then there is no folder.
pub fn unpack(packed: &Path, folder: &Path, watch: Watch<'_>) -> Result<Unpacked, Error> {
    let files = Files::open(packed)?;
    if !files.is_packed() {
        return Err(Error::NotPacked { path: packed.into() });
    }
    let output = Output::new(folder)?;
    output.folder()?;
    let mut done = Unpacked { problems: files.problems().to_vec(), ..Unpacked::default() };
    let mut shared = HashMap::new();
    for (place, files) in files.traces() {
        one(&files, &output.scratch().join(place), watch, (&mut done, &mut shared))?;
    }
    output.finish()?;
    Ok(done)
}

/// Files that are in the folder already, by where they lie in memory: of a series, the parts share some.
type Shared = HashMap<usize, (PathBuf, u64)>;

/// Unpacks a trace into a folder.
fn one(
    files: &Files,
    to: &Path,
    watch: Watch<'_>,
    (done, shared): (&mut Unpacked, &mut Shared),
) -> Result<(), Error> {
    let packed = files.path();
    let (members, _) = files.all().map_err(Error::io(packed))?;
    let list = files.content(List::NAME).map_err(Error::io(packed))?;
    let list = list.and_then(|text| List::parse(&text)).unwrap_or_default();
    let mut known: BTreeMap<String, Listed> = list.files.into_iter().map(|f| (f.member(), f)).collect();
    for member in members.into_iter().filter(|name| name != List::NAME) {
        let Some(content) = files.content(&member).map_err(Error::io(packed))? else { continue };
        let listed = known.remove(&member);
        let name = listed.as_ref().map_or(member.as_str(), |listed| &listed.name);
        if !is_inside(name) {
            return Err(Error::Name { path: packed.into(), name: name.to_owned() });
        }
        let path = to.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::io(parent))?;
        }
        let place = content.as_ptr() as usize;
        if let Some((first, size)) = shared.get(&place).filter(|_| !content.is_empty())
            && fs::hard_link(first, &path).is_ok()
        {
            report(watch, *size)?;
            done.files += 1;
            done.bytes += size;
            continue;
        }
        let mut file = BufWriter::new(File::create_new(&path).map_err(Error::io(&path))?);
        let mut size = 0;
        let mut write = |bytes: &[u8]| {
            size += bytes.len() as u64;
            report(watch, bytes.len() as u64)?;
            file.write_all(bytes).map_err(Error::io(&path))
        };
        let whole = if listed.as_ref().is_some_and(|listed| listed.compressed) {
            decompress(&content, &mut write)?
        } else {
            content.chunks(FRAME).try_for_each(&mut write)?;
            true
        };
        file.flush().map_err(Error::io(&path))?;
        let expected = listed.as_ref().map_or(size, |listed| listed.size);
        if !whole || size != expected {
            done.problems
                .push(format!("{}: {name}: only {size} of {expected} bytes could be read", packed.display()));
        }
        shared.insert(place, (path, size));
        done.files += 1;
        done.bytes += size;
    }
    Ok(())
}

/// Returns whether a path stays in the folder that it is relative to.
fn is_inside(name: &str) -> bool {
    Path::new(name).components().all(|c| matches!(c, Component::Normal(_)))
}

/// Writes the frames of a file that can be decompressed. Returns whether all were undamaged.
fn decompress(content: &Content, write: &mut impl FnMut(&[u8]) -> Result<(), Error>) -> Result<bool, Error> {
    let (mut at, mut all) = (0, true);
    for frame in frames::split(content) {
        let whole = match frame {
            Frame::Whole(frame) => {
                at += frame.len();
                frames::plain(frame, &mut *write)?
            }
            Frame::Cut(frame) => {
                frames::plain(frame, &mut *write)?;
                false
            }
            Frame::None(_) => false,
        };
        all &= whole;
        content.forget(0..at);
    }
    Ok(all)
}
