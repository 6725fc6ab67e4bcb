//! Where sections lie in a library of ours, by three small reads: the launcher opens one for each API that a machine has,
//! and the program waits.
//!
//! ```text
//!  ELF header ──► section headers, 64 bytes each ──► names ──► offset and size of what was asked for
//! ```

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// A 64-bit file of this machine's byte order.
const MAGIC: &[u8] = if cfg!(target_endian = "little") { b"\x7fELF\x02\x01" } else { b"\x7fELF\x02\x02" };
/// Bytes of the file's header and of a section's.
const HEADER: usize = 64;
const SECTION: usize = 64;
/// Most bytes of sections' names: far more than any linker makes.
const MOST_NAMES: u64 = 1 << 20;

/// Returns where the sections of these names lie in a file; none for those that it lacks.
///
/// # Errors
/// When it can't be read, or is no 64-bit ELF file of this machine's byte order (`InvalidData`).
pub(super) fn find<const N: usize>(file: &File, wanted: [&str; N]) -> io::Result<[Option<Range<u64>>; N]> {
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0)?;
    if !header.starts_with(MAGIC) || short(&header, 58) != SECTION {
        return Err(damaged());
    }
    let mut table = vec![0; short(&header, 60) * SECTION];
    file.read_exact_at(&mut table, long(&header, 40))?;
    let of_names = table.chunks_exact(SECTION).nth(short(&header, 62)).ok_or_else(damaged)?;
    let Range { start, end } = place(of_names)?;
    if end - start > MOST_NAMES {
        return Err(damaged());
    }
    let mut names = vec![0; (end - start) as usize];
    file.read_exact_at(&mut names, start)?;
    let mut found = [const { None }; N];
    for section in table.chunks_exact(SECTION) {
        let name = names.get(word(section, 0)..).unwrap_or_default();
        let is =
            |wanted: &str| name.strip_prefix(wanted.as_bytes()).is_some_and(|rest| rest.first() == Some(&0));
        if let Some(number) = wanted.iter().position(|wanted| is(wanted)) {
            found[number] = Some(place(section)?);
        }
    }
    Ok(found)
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

    /// This test's own file has sections of these names.
    fn own() -> File {
        File::open(std::env::current_exe().expect("a path")).expect("a file")
    }

    #[test]
    fn sections_are_found_by_their_whole_names() {
        let file = own();
        let [interpreter, text, none, prefix] =
            find(&file, [".interp", ".text", ".none", ".inter"]).expect("an ELF file");
        let interpreter = read(&file, &interpreter.expect("it is there")).expect("its content");
        assert!(interpreter.ends_with(b"\0") && interpreter.starts_with(b"/"), "{interpreter:?}");
        assert!(text.is_some_and(|place| place.start < place.end));
        assert_eq!((none, prefix), (None, None));
    }

    #[test]
    fn any_bytes_are_survived() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let path = folder.path().join("broken");
        let mut head = [0; HEADER];
        own().read_exact_at(&mut head, 0).expect("a header");
        for at in 0..HEADER {
            std::fs::write(&path, &head[..at]).expect("a file");
            assert!(find(&File::open(&path).expect("a file"), [".text"]).is_err(), "{at} bytes");
            let mut broken = [head, [0xff; HEADER], [0xff; HEADER]].concat();
            broken[at] ^= 0xff;
            std::fs::write(&path, &broken).expect("a file");
            let file = File::open(&path).expect("a file");
            assert!(find(&file, [".text"]).is_err(), "{at}");
            assert!(read(&file, &(at as u64..u64::MAX)).is_err() && read(&file, &(0..at as u64)).is_ok());
        }
    }
}
