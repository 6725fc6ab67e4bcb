//! What an executable file says of itself: read from its headers and dynamic
//! section, wherever they lie in it, so a file of gigabytes costs a few small reads.
//! Everything may be damaged or made to deceive: what does not fit is not there.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// What is known of an ELF file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elf {
    /// 64-bit.
    pub wide: bool,
    /// Little-endian.
    pub little: bool,
    /// The processor, as `e_machine` numbers it.
    pub machine: u16,
    /// The dynamic loader it asks for.
    pub interpreter: Option<String>,
    /// Under what name others need it.
    pub soname: Option<String>,
    /// The libraries it needs.
    pub needed: Vec<String>,
    /// It has a function of its own that gives AddressSanitizer's options.
    pub sets_asan_options: bool,
}

/// The function; it is among the names of a program only if that defines it.
const ASAN_OPTIONS: &[u8] = b"\0__asan_default_options\0";

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_SONAME: u64 = 14;
/// Most program headers, bytes of a dynamic section, bytes of a name, names of
/// needed libraries: far more than any linker makes.
const MOST_HEADERS: u64 = 512;
const MOST_DYNAMIC: u64 = 1 << 16;
const MOST_NAME: usize = 4096;
const MOST_NEEDED: usize = 4096;
/// Most bytes of names that are searched for a function.
const MOST_NAMES: u64 = 16 << 20;

/// Reads numbers of the file's own width and order.
struct Reader<'f> {
    file: &'f File,
    wide: bool,
    little: bool,
}

/// A part of the file that is mapped.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    bytes: u64,
}

/// Reads what a file says. `None` if it is no ELF file.
pub fn read(file: &File) -> Option<Elf> {
    let head = bytes(file, 0, 64);
    if head.get(..4)? != b"\x7fELF" {
        return None;
    }
    let reader = Reader { file, wide: head.get(4)? == &2, little: head.get(5)? == &1 };
    let mut elf = Elf { wide: reader.wide, little: reader.little, ..Elf::default() };
    elf.machine = reader.number(&head, 18, 2)? as u16;
    let segments = reader.segments(&head).unwrap_or_default();
    let of = |kind| segments.iter().find(|s| s.kind == kind);
    elf.interpreter = of(PT_INTERP).map(|s| reader.text(s.offset, s.bytes as usize));
    if let Some(dynamic) = of(PT_DYNAMIC) {
        reader.dynamic(dynamic, &segments, &mut elf);
    }
    Some(elf)
}

/// Bytes of the file: fewer where it ends.
fn bytes(file: &File, offset: u64, most: usize) -> Vec<u8> {
    let mut buffer = vec![0; most];
    let mut length = 0;
    while length < most {
        let Some(at) = offset.checked_add(length as u64) else { break };
        match file.read_at(&mut buffer[length..], at) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    buffer.truncate(length);
    buffer
}

impl Reader<'_> {
    fn number(&self, from: &[u8], at: usize, size: usize) -> Option<u64> {
        let bytes = from.get(at..at.checked_add(size)?)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if self.little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    }

    /// Returns the bytes of an address.
    fn word(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    fn segments(&self, head: &[u8]) -> Option<Vec<Segment>> {
        // (first header, its size, their number), then in each: offset, address, bytes.
        let (places, fields) =
            if self.wide { ([32, 54, 56], [8, 16, 32]) } else { ([28, 42, 44], [4, 8, 16]) };
        let first = self.number(head, places[0], self.word())?;
        let size = self.number(head, places[1], 2)? as usize;
        let count = self.number(head, places[2], 2)?.min(MOST_HEADERS) as usize;
        if size < fields[2] + self.word() {
            return None;
        }
        let table = bytes(self.file, first, size.checked_mul(count)?);
        let segment = |header: &[u8]| {
            let [offset, address, bytes] = fields.map(|at| self.number(header, at, self.word()));
            Some(Segment {
                kind: self.number(header, 0, 4)?,
                offset: offset?,
                address: address?,
                bytes: bytes?,
            })
        };
        Some(table.chunks_exact(size).filter_map(segment).collect())
    }

    /// Returns a text of at most so many bytes.
    fn text(&self, offset: u64, most: usize) -> String {
        let found = bytes(self.file, offset, most.min(MOST_NAME));
        String::from_utf8_lossy(found.split(|b| *b == 0).next().unwrap_or_default()).into_owned()
    }

    fn dynamic(&self, section: &Segment, segments: &[Segment], elf: &mut Elf) {
        let word = self.word();
        let table = bytes(self.file, section.offset, section.bytes.min(MOST_DYNAMIC) as usize);
        let entries = table.chunks_exact(2 * word).map_while(|entry| {
            let tag = self.number(entry, 0, word)?;
            (tag != 0).then(|| self.number(entry, word, word).map(|value| (tag, value)))?
        });
        let entries: Vec<(u64, u64)> = entries.collect();
        let of = |tag: u64| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
        let Some(names) = of(DT_STRTAB).and_then(|address| {
            let holds = |s: &&Segment| {
                s.kind == PT_LOAD && address.checked_sub(s.address).is_some_and(|into| into < s.bytes)
            };
            let segment = segments.iter().find(holds)?;
            segment.offset.checked_add(address - segment.address)
        }) else {
            return;
        };
        let name = |offset: u64| names.checked_add(offset).map(|at| self.text(at, MOST_NAME));
        let needed = entries.iter().filter(|e| e.0 == DT_NEEDED).take(MOST_NEEDED);
        elf.needed = needed.filter_map(|e| name(e.1)).collect();
        elf.soname = of(DT_SONAME).and_then(name);
        if elf.needed.iter().any(|n| is_asan_runtime(n)) {
            let most = of(DT_STRSZ).unwrap_or(0).min(MOST_NAMES) as usize;
            let names = bytes(self.file, names, most);
            elf.sets_asan_options = memchr::memmem::find(&names, ASAN_OPTIONS).is_some();
        }
    }
}

/// Returns whether a library is AddressSanitizer's shared runtime.
pub fn is_asan_runtime(name: &str) -> bool {
    name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn of(content: &[u8]) -> Option<Elf> {
        let mut file = tempfile::tempfile().expect("scratch");
        file.write_all(content).expect("scratch");
        read(&file)
    }

    #[test]
    fn a_program_of_this_machine_is_read() {
        let elf = read(&File::open("/proc/self/exe").expect("this program")).expect("ELF");
        assert!(elf.wide && elf.little && !elf.sets_asan_options, "{elf:?}");
        assert!(elf.interpreter.as_deref().is_some_and(|i| i.starts_with('/')), "{elf:?}");
        assert!(elf.needed.iter().any(|n| n == "libc.so.6"), "{elf:?}");
    }

    #[test]
    fn what_is_no_elf_file_is_none() {
        assert_eq!(of(b""), None);
        assert_eq!(of(b"#!/bin/sh\n"), None);
        assert_eq!(of(b"\x7fELF"), None);
    }

    #[test]
    fn survives_any_bytes() {
        let whole = std::fs::read("/bin/true").expect("a program");
        for cut in (0..4096.min(whole.len())).step_by(7) {
            of(&whole[..cut]);
            let mut broken = whole.clone();
            broken[cut] ^= 0xff;
            of(&broken);
        }
    }
}
