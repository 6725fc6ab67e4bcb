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
const DT_SYMTAB: u64 = 6;
const DT_SONAME: u64 = 14;
/// Most program headers, bytes of a dynamic section, bytes of a name, names of
/// needed libraries: far more than any linker makes.
const MOST_HEADERS: u64 = 512;
const MOST_DYNAMIC: u64 = 1 << 16;
const MOST_NAME: usize = 4096;
const MOST_NEEDED: usize = 4096;
/// Most bytes of names that are searched for a function.
const MOST_NAMES: u64 = 16 << 20;
/// Most bytes of symbols.
const MOST_SYMBOLS: u64 = 16 << 20;
/// A symbol that stands before all others of its name.
const STB_GLOBAL: u8 = 1;
/// Bytes of a symbol of a 64-bit file.
const SYMBOL: usize = 24;

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

/// Returns whether a 64-bit file defines a function that others find there, and that is no mere default.
pub fn defines(file: &File, function: &str) -> bool {
    exported(file, function).unwrap_or(false)
}

fn exported(file: &File, function: &str) -> Option<bool> {
    let head = bytes(file, 0, 64);
    if head.get(..4)? != b"\x7fELF" || head.get(4)? != &2 {
        return None;
    }
    let reader = Reader { file, wide: true, little: head.get(5)? == &1 };
    let segments = reader.segments(&head)?;
    let entries = reader.entries(segments.iter().find(|s| s.kind == PT_DYNAMIC)?);
    let of = |tag: u64| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
    let (names, symbols) = (of(DT_STRTAB)?, of(DT_SYMTAB)?);
    let most = of(DT_STRSZ)?.min(MOST_NAMES) as usize;
    let texts = bytes(file, in_file(&segments, names)?, most);
    // Linkers let one name be the end of a longer one.
    let name = [function.as_bytes(), b"\0"].concat();
    let places: Vec<u64> = memchr::memmem::find_iter(&texts, &name).map(|at| at as u64).collect();
    if places.is_empty() {
        return None;
    }
    // Names come behind symbols, with smaller tables between: what is read of these as a symbol has no such name.
    let most = names.checked_sub(symbols)?.min(MOST_SYMBOLS) as usize;
    let table = bytes(file, in_file(&segments, symbols)?, most);
    Some(table.chunks_exact(SYMBOL).any(|symbol| {
        let (named, section) = (reader.number(symbol, 0, 4), reader.number(symbol, 6, 2));
        named.is_some_and(|named| places.contains(&named))
            && section.is_some_and(|s| s != 0)
            && symbol.get(4).is_some_and(|i| i >> 4 == STB_GLOBAL)
    }))
}

/// Returns where an address of the loaded file lies in it.
fn in_file(segments: &[Segment], address: u64) -> Option<u64> {
    let holds =
        |s: &&Segment| s.kind == PT_LOAD && address.checked_sub(s.address).is_some_and(|into| into < s.bytes);
    let segment = segments.iter().find(holds)?;
    segment.offset.checked_add(address - segment.address)
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

    /// Returns tags and values of the dynamic section.
    fn entries(&self, section: &Segment) -> Vec<(u64, u64)> {
        let word = self.word();
        let table = bytes(self.file, section.offset, section.bytes.min(MOST_DYNAMIC) as usize);
        let entries = table.chunks_exact(2 * word).map_while(|entry| {
            let tag = self.number(entry, 0, word)?;
            (tag != 0).then(|| self.number(entry, word, word).map(|value| (tag, value)))?
        });
        entries.collect()
    }

    fn dynamic(&self, section: &Segment, segments: &[Segment], elf: &mut Elf) {
        let entries = self.entries(section);
        let of = |tag: u64| entries.iter().find(|e| e.0 == tag).map(|e| e.1);
        let Some(names) = of(DT_STRTAB).and_then(|address| in_file(segments, address)) else { return };
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
    fn a_function_that_a_file_defines_is_found() {
        let libc = crate::ldcache::find("libc.so.6").expect("a C library");
        let libc = File::open(libc).expect("a C library");
        assert!(defines(&libc, "printf") && !defines(&libc, "no_such_function"));
        // A default, before which any other comes; and what is needed and not defined.
        assert!(!defines(&libc, "write"), "it is weak");
        let here = File::open("/proc/self/exe").expect("this program");
        assert!(!defines(&here, "write") && !defines(&here, "getenv"));
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
            let mut file = tempfile::tempfile().expect("scratch");
            file.write_all(&broken).expect("scratch");
            defines(&file, "main");
        }
    }
}
