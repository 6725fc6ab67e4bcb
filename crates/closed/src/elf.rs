//! What the headers and the dynamic section of a program say. Damaged or unusual ones say nothing.

use crate::file::File;
use crate::scan;

/// The runtime of C and C++. It opens nothing at the program's wish but by the functions that are looked for, and parts
/// of its own (names of hosts and users, character sets).
const RUNTIME: &[&[u8]] = &[
    b"libc.so.6",
    b"libm.so.6",
    b"libpthread.so.0",
    b"librt.so.1",
    b"libdl.so.2",
    b"libgcc_s.so.1",
    b"libstdc++.so.6",
    LOADER,
];
/// The dynamic loader of the C library that our libraries need.
const LOADER: &[u8] =
    if cfg!(target_arch = "x86_64") { b"ld-linux-x86-64.so.2" } else { b"ld-linux-aarch64.so.1" };
/// `e_machine` of programs that our libraries can be loaded into.
const MACHINE: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
/// Entries by which a file has libraries looked for in folders of its own, or brings further ones.
const UNCLEAR: &[u64] = &[15, 29, 0x6fff_fefb, 0x6fff_fefc, 0x7fff_fffd, 0x7fff_ffff];

/// Bytes of a program header and of an entry of the dynamic section; most of each, which is more than linkers make
/// for a program that needs so little.
const HEADER: usize = 56;
const MOST_HEADERS: usize = 20;
const ENTRY: usize = 16;
const MOST_ENTRIES: usize = 48;
/// Most bytes of names. A program with more of them is one for plug-ins.
const MOST_NAMES: u64 = 64 << 10;
/// Most bytes of the loader's path and of a needed library's name.
const MOST_PATH: usize = 128;
const MOST_NAME: usize = 32;

/// Returns whether it is a closed program. `None` if it is not understood.
pub(crate) fn is_closed(file: &File) -> Option<bool> {
    let mut room = [0; HEADER * MOST_HEADERS];
    let headers = headers(file, &mut room)?;
    let of = |kind: u32| headers.chunks_exact(HEADER).find(|h| u32_at(h, 0) == Some(kind));
    if !has_our_loader(file, of(PT_INTERP)?)? {
        return None;
    }
    let mut room = [0; ENTRY * MOST_ENTRIES];
    let dynamic = of(PT_DYNAMIC)?;
    let bytes = usize::try_from(u64_at(dynamic, 32)?).ok()?;
    let dynamic_at = u64_at(dynamic, 8)?;
    let section = room.get_mut(..bytes)?;
    file.fill(dynamic_at, section)?;
    let names = Names::of(section, headers)?;
    for entry in section.chunks_exact(ENTRY) {
        match (u64_at(entry, 0)?, u64_at(entry, 8)?) {
            (DT_NULL, _) => return scan::opens(file, names.at, names.bytes).map(|opens| !opens),
            (DT_NEEDED, name) if !names.is_runtime(file, name)? => return Some(false),
            (tag, _) if UNCLEAR.contains(&tag) => return Some(false),
            _ => {}
        }
    }
    None
}

/// Returns the program headers of a program for this machine.
fn headers<'r>(file: &File, room: &'r mut [u8]) -> Option<&'r [u8]> {
    let mut head = [0; 64];
    file.fill(0, &mut head)?;
    let is_ours = head.starts_with(b"\x7fELF\x02\x01") && u16_at(&head, 18)? == MACHINE;
    if !is_ours || usize::from(u16_at(&head, 54)?) != HEADER {
        return None;
    }
    let room = room.get_mut(..usize::from(u16_at(&head, 56)?) * HEADER)?;
    file.fill(u64_at(&head, 32)?, room)?;
    Some(room)
}

fn has_our_loader(file: &File, header: &[u8]) -> Option<bool> {
    let mut path = [0; MOST_PATH];
    let path = path.get_mut(..usize::try_from(u64_at(header, 32)?).ok()?)?;
    file.fill(u64_at(header, 8)?, path)?;
    let name = path.strip_suffix(b"\0")?.rsplit(|b| *b == b'/').next()?;
    Some(name == LOADER)
}

/// Where the table of names lies in the file.
struct Names {
    at: u64,
    bytes: u64,
}

impl Names {
    fn of(section: &[u8], headers: &[u8]) -> Option<Names> {
        let of = |tag: u64| {
            let entry = section.chunks_exact(ENTRY).find(|e| u64_at(e, 0) == Some(tag))?;
            u64_at(entry, 8)
        };
        let (address, bytes) = (of(DT_STRTAB)?, of(DT_STRSZ)?);
        let place = headers.chunks_exact(HEADER).find_map(|h| {
            let into = address.checked_sub(u64_at(h, 16)?)?;
            let holds = u32_at(h, 0)? == PT_LOAD && into < u64_at(h, 32)?;
            holds.then(|| u64_at(h, 8)?.checked_add(into))?
        });
        (bytes <= MOST_NAMES).then_some(Names { at: place?, bytes })
    }

    fn is_runtime(&self, file: &File, name: u64) -> Option<bool> {
        let mut text = [0; MOST_NAME];
        let read = file.read(self.at.checked_add(name)?, &mut text)?;
        let text = text.get(..read)?.split(|b| *b == 0).next()?;
        Some(RUNTIME.contains(&text))
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_le_bytes(*b))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}
