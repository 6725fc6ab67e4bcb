//! Where sections lie in a library of ours, by three small reads: the launcher opens one for each API that a machine has,
//! and the program waits.
//!
//! ```text
//!  ELF header ──► section headers, 64 bytes each ──► names ──► offset and size of what was asked for
//! ```

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A 64-bit file of this machine's byte order.
const MAGIC: &[u8] = if cfg!(target_endian = "little") { b"\x7fELF\x02\x01" } else { b"\x7fELF\x02\x02" };
/// Bytes of the file's header and of a section's.
const HEADER: usize = 64;
const SECTION: usize = 64;
/// How the names of our sections begin.
const OURS: &[u8] = b".hetrace.";
/// Bytes of sections' headers and names that need no memory of their own: our libraries have some 40 sections.
const NEAR: usize = 4096;
/// Bytes of an index that are compared at a time: no API's begin has more.
const ROOM: usize = 8192;
/// Most bytes of sections' names: far more than any linker makes.
const MOST_NAMES: u64 = 1 << 20;

/// Returns where the sections of these names, which begin as ours do, lie in a file; none for those that it lacks.
///
/// # Errors
/// When it can't be read, or is no 64-bit ELF file of this machine's byte order (`InvalidData`).
pub(super) fn find<const N: usize>(file: &File, wanted: [&str; N]) -> io::Result<[Option<Range<u64>>; N]> {
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0)?;
    if !header.starts_with(MAGIC) || short(&header, 58) != SECTION {
        return Err(damaged());
    }
    let (mut near, mut far) = ([MaybeUninit::uninit(); NEAR], Vec::new());
    let table = read_at(file, long(&header, 40), short(&header, 60) * SECTION, &mut near, &mut far)?;
    let of_names = table.chunks_exact(SECTION).nth(short(&header, 62)).ok_or_else(damaged)?;
    let Range { start, end } = place(of_names)?;
    if end - start > MOST_NAMES {
        return Err(damaged());
    }
    let (mut near, mut far) = ([MaybeUninit::uninit(); NEAR], Vec::new());
    let names = read_at(file, start, (end - start) as usize, &mut near, &mut far)?;
    let mut found = [const { None }; N];
    for section in table.chunks_exact(SECTION) {
        let Some(name) = names.get(word(section, 0)..).and_then(|name| name.strip_prefix(OURS)) else {
            continue;
        };
        let is = |wanted: &str| {
            let name = wanted.as_bytes().strip_prefix(OURS).and_then(|wanted| name.strip_prefix(wanted));
            name.is_some_and(|rest| rest.first() == Some(&0))
        };
        if let Some(number) = wanted.iter().position(|wanted| is(wanted)) {
            found[number] = Some(place(section)?);
        }
    }
    Ok(found)
}

/// Reads so many bytes at a place, into what is near if they fit. A file of a disk gives all that it has at once.
fn read_at<'b>(
    file: &File,
    at: u64,
    bytes: usize,
    near: &'b mut [MaybeUninit<u8>; NEAR],
    far: &'b mut Vec<u8>,
) -> io::Result<&'b [u8]> {
    // It is not zeroed before: that would take longer than all else here.
    let Some(room) = near.get_mut(..bytes) else {
        far.resize(bytes, 0);
        file.read_exact_at(far, at)?;
        return Ok(far);
    };
    match rustix::io::pread(file, room, at)? {
        (content, []) => Ok(content),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Reads a section.
///
/// # Errors
/// When the file ends before it does, or can't be read.
pub(super) fn read(mut file: &File, place: &Range<u64>) -> io::Result<Vec<u8>> {
    let bytes = place.end - place.start;
    file.seek(SeekFrom::Start(place.start))?;
    // A length that is not the file's own takes no memory.
    let room = usize::try_from(bytes).unwrap_or(0).min(MOST_NAMES as usize);
    let mut content = Vec::with_capacity(room);
    file.take(bytes).read_to_end(&mut content)?;
    if content.len() as u64 == bytes { Ok(content) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Returns the number of four bytes that a section is; none if it is none, or can't be read.
pub(super) fn number(file: &File, place: &Range<u64>) -> Option<u32> {
    let mut bytes = [0; 4];
    let fits = place.end - place.start == bytes.len() as u64;
    fits.then(|| file.read_exact_at(&mut bytes, place.start).ok())??;
    Some(u32::from_le_bytes(bytes))
}

/// Returns whether a section begins with these bytes.
pub(super) fn begins(file: &File, place: &Range<u64>, wanted: &[u8]) -> bool {
    let mut room = [MaybeUninit::<u8>::uninit(); ROOM];
    let mut at = 0;
    while let Some(wanted) = wanted.get(at..).filter(|wanted| !wanted.is_empty()) {
        let wanted = wanted.get(..ROOM).unwrap_or(wanted);
        let start = place.start.saturating_add(at as u64);
        let room = room.get_mut(..wanted.len()).unwrap_or_default();
        let is_equal = match rustix::io::pread(file, room, start) {
            Ok((bytes, _)) => start.saturating_add(bytes.len() as u64) <= place.end && bytes == wanted,
            Err(_) => false,
        };
        if !is_equal {
            return false;
        }
        at += wanted.len();
    }
    true
}

/// Where a section's content lies.
fn place(section: &[u8]) -> io::Result<Range<u64>> {
    let start = long(section, 24);
    start.checked_add(long(section, 32)).map(|end| start..end).ok_or_else(damaged)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no ELF file of this machine")
}

/// Returns a number of two bytes; what is cut off is 0.
fn short(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |b| u16::from_ne_bytes(*b).into())
}

fn word(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |b| u32::from_ne_bytes(*b) as usize)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |b| u64::from_ne_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test's own file.
    fn own() -> File {
        File::open(std::env::current_exe().expect("a path")).expect("a file")
    }

    /// A file with sections of these names, which have their names in them.
    fn with(path: &std::path::Path, sections: &[&str]) -> File {
        let mut names = b"\0".to_vec();
        let mut table = vec![[0; SECTION]];
        for name in sections {
            let mut header = [0; SECTION];
            header[..4].copy_from_slice(&(names.len() as u32).to_ne_bytes());
            header[24..32].copy_from_slice(&((HEADER + names.len()) as u64).to_ne_bytes());
            header[32..40].copy_from_slice(&(name.len() as u64).to_ne_bytes());
            table.push(header);
            names.extend([name.as_bytes(), b"\0"].concat());
        }
        let mut of_names = [0; SECTION];
        of_names[24..32].copy_from_slice(&(HEADER as u64).to_ne_bytes());
        of_names[32..40].copy_from_slice(&(names.len() as u64).to_ne_bytes());
        table.push(of_names);
        let mut header = [0; HEADER];
        header[..MAGIC.len()].copy_from_slice(MAGIC);
        header[40..48].copy_from_slice(&((HEADER + names.len()) as u64).to_ne_bytes());
        header[58..60].copy_from_slice(&(SECTION as u16).to_ne_bytes());
        header[60..62].copy_from_slice(&(table.len() as u16).to_ne_bytes());
        header[62..64].copy_from_slice(&(table.len() as u16 - 1).to_ne_bytes());
        std::fs::write(path, [&header[..], &names, &table.concat()].concat()).expect("written");
        File::open(path).expect("a file")
    }

    #[test]
    fn sections_are_found_by_their_whole_names() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let file = with(&folder.path().join("few"), &[".text", ".hetrace.abi", ".hetrace.index"]);
        let [abi, index, none, prefix] =
            find(&file, [".hetrace.abi", ".hetrace.index", ".hetrace.none", ".hetrace.ab"])
                .expect("an ELF file");
        assert_eq!(read(&file, &abi.expect("it is there")).expect("its content"), b".hetrace.abi");
        assert_eq!(read(&file, &index.expect("it is there")).expect("its content"), b".hetrace.index");
        assert_eq!((none, prefix), (None, None));
        let many: Vec<String> = (0..200).map(|number| format!(".hetrace.{number}")).collect();
        let file = with(&folder.path().join("many"), &many.iter().map(String::as_str).collect::<Vec<_>>());
        let [last] = find(&file, [".hetrace.199"]).expect("an ELF file");
        assert_eq!(read(&file, &last.expect("it is there")).expect("its content"), b".hetrace.199");
    }

    #[test]
    fn any_bytes_are_survived() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("broken");
        let mut head = [0; HEADER];
        own().read_exact_at(&mut head, 0).expect("a header");
        for at in 0..HEADER {
            std::fs::write(&path, &head[..at]).expect("a file");
            assert!(find(&File::open(&path).expect("a file"), [".hetrace.abi"]).is_err(), "{at} bytes");
            let mut broken = [head, [0xff; HEADER], [0xff; HEADER]].concat();
            broken[at] ^= 0xff;
            std::fs::write(&path, &broken).expect("a file");
            let file = File::open(&path).expect("a file");
            assert!(find(&file, [".hetrace.abi"]).is_err(), "{at}");
            assert!(read(&file, &(at as u64..u64::MAX)).is_err() && read(&file, &(0..at as u64)).is_ok());
        }
    }
}
