//! The texts in an image of code: what a program hands to its driver.
//!
//! ```text
//!  fat binary   u32 0xBA55ED50, u16 version, u16 bytes of this header, u64 bytes of entries
//!    entry      0 u16 kind: 1 text, 2 ELF     4 u32 bytes of header     8 u32 bytes behind it
//!               16 u32 compressed bytes      28 u32 architecture       40 u64 flags: 0x2000 LZ4, 0x8000 ZSTD
//!               56 u64 bytes when expanded
//!  ELF          section .nv_debug_ptx_txt: the text, its lines ended by NULs
//!  text         ended by NULs
//! ```
//! Nothing in an image is believed: sizes are checked, and what can't be read has a reason.

use std::fmt;

/// First word of a fat binary.
const FAT: u32 = 0xBA55_ED50;
const FAT_HEADER: usize = 16;
const ENTRY: usize = 64;
const KIND_TEXT: u16 = 1;
const KIND_ELF: u16 = 2;
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;
/// No text is longer; one that says so is broken.
const LONGEST: u64 = 512 << 20;
/// Section of an ELF file with the text that it was made from.
const SECTION: &[u8] = b".nv_debug_ptx_txt";
/// What names of sections begin with of which each kernel of an ELF file has one: its parameters.
const PARAMETERS: &[u8] = b".nv.constant0.";

/// Why an image has no text that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadImage {
    /// It is none of the kinds that are known.
    Unknown,
    /// It ends within what its header promises.
    Short,
    /// What is compressed can't be expanded.
    Compressed,
    /// A text is not UTF-8.
    Encoding,
    /// There is machine code only.
    NoText,
    /// Texts are for other devices only: the least of their architectures.
    Newer(u32),
}

impl fmt::Display for BadImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadImage::Unknown => f.write_str("not a kind of image that is known"),
            BadImage::Short => f.write_str("the image is cut short"),
            BadImage::Compressed => f.write_str("its compressed text can't be expanded"),
            BadImage::Encoding => f.write_str("its text is not UTF-8"),
            BadImage::NoText => f.write_str(
                "no PTX in it (compile with -gencode arch=compute_N,code=compute_N, or -lineinfo)",
            ),
            BadImage::Newer(least) => write!(f, "its PTX is for sm_{least}, which this device can't run"),
        }
    }
}

impl std::error::Error for BadImage {}

/// Returns the text that a driver would compile for a device of compute capability `device` (90 is 9.0).
///
/// # Errors
/// Why there is none.
pub fn text(image: &[u8], device: u32) -> Result<String, BadImage> {
    let texts = texts(image)?;
    let least = texts.iter().filter_map(|text| target(text)).map(|(sm, _)| sm).min();
    let usable = texts.into_iter().filter_map(|text| target(&text).map(|target| (target, text)));
    let usable = usable.filter(|((sm, only), _)| match only {
        Only::Newer => *sm <= device,
        Only::Family => *sm <= device && sm / 10 == device / 10,
        Only::This => *sm == device,
    });
    let best = usable.max_by_key(|((sm, only), _)| (*sm, *only));
    best.map(|(_, text)| text).ok_or(least.map_or(BadImage::NoText, BadImage::Newer))
}

/// Which devices take a text besides those of its own architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Only {
    /// All that are newer.
    Newer,
    /// Newer ones with the same major number (`sm_100f`).
    Family,
    /// None (`sm_90a`).
    This,
}

/// Returns what a text's `.target` says.
fn target(text: &str) -> Option<(u32, Only)> {
    let line = text.lines().map(str::trim_start).find_map(|line| line.strip_prefix(".target"))?;
    let name = line.trim_start().strip_prefix("sm_")?;
    let end = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
    let only = match name.as_bytes().get(end) {
        Some(b'a') => Only::This,
        Some(b'f') => Only::Family,
        _ => Only::Newer,
    };
    Some((name.get(..end)?.parse().ok()?, only))
}

/// Returns all texts of an image.
///
/// # Errors
/// Where it can't be read.
pub fn texts(image: &[u8]) -> Result<Vec<String>, BadImage> {
    if number(image, 0) == Some(FAT) {
        return of_fat_binary(image);
    }
    if image.starts_with(b"\x7fELF") {
        return Ok(of_elf(image).transpose()?.into_iter().collect());
    }
    let text = image.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = std::str::from_utf8(text).map_err(|_| BadImage::Encoding)?;
    match text.contains(".version") && text.contains(".target") {
        true => Ok(vec![text.to_owned()]),
        false => Err(BadImage::Unknown),
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Returns `length` bytes from `at` on.
fn piece(bytes: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let (at, length) = (usize::try_from(at).ok()?, usize::try_from(length).ok()?);
    bytes.get(at..at.checked_add(length)?)
}

/// Returns the names of the kernels in an image's machine code, as far as it can be read.
pub fn kernels(image: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    if number(image, 0) == Some(FAT) {
        // What can't be read has no names.
        let _ = entries(image, |entry, payload| {
            if half(entry, 0) == Some(KIND_ELF)
                && let Ok(expanded) = compressed(entry, payload)
            {
                names.extend(in_elf(expanded.as_deref().unwrap_or(payload)));
            }
        });
    } else if image.starts_with(b"\x7fELF") {
        names = in_elf(image);
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the names of the kernels of an ELF file.
fn in_elf(image: &[u8]) -> Vec<String> {
    let Some(sections) = sections(image) else { return Vec::new() };
    let kernels = sections.filter_map(|(name, _)| name.strip_prefix(PARAMETERS));
    kernels.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

fn of_fat_binary(image: &[u8]) -> Result<Vec<String>, BadImage> {
    let (mut texts, mut bad) = (Vec::new(), None);
    entries(image, |entry, payload| match of_entry(entry, payload) {
        Ok(found) => texts.extend(found),
        // One that can't be read does not spoil the others.
        Err(error) => bad = Some(error),
    })?;
    match (texts.is_empty(), bad) {
        (true, Some(error)) => Err(error),
        _ => Ok(texts),
    }
}

/// Calls `each` with the entries of a fat binary: each with all behind it, and its payload.
fn entries(image: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> Result<(), BadImage> {
    let header = half(image, 6).map(usize::from).filter(|header| *header >= FAT_HEADER);
    let size = long(image, 8).ok_or(BadImage::Short)?;
    let header = header.ok_or(BadImage::Short)? as u64;
    let mut rest = piece(image, header, size).ok_or(BadImage::Short)?;
    while rest.len() >= ENTRY {
        let head = number(rest, 4).unwrap_or(0);
        let behind = number(rest, 8).unwrap_or(0);
        let all = u64::from(head) + u64::from(behind);
        let payload = piece(rest, head.into(), behind.into()).filter(|_| head as usize >= ENTRY);
        let payload = payload.ok_or(BadImage::Short)?;
        each(rest, payload);
        rest = rest.get(usize::try_from(all).unwrap_or(usize::MAX)..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the text of an entry, which begins with its header.
fn of_entry(entry: &[u8], payload: &[u8]) -> Result<Option<String>, BadImage> {
    let kind = half(entry, 0).unwrap_or(0);
    if kind != KIND_TEXT && kind != KIND_ELF {
        return Ok(None);
    }
    let expanded;
    let bytes = match compressed(entry, payload)? {
        Some(bytes) => {
            expanded = bytes;
            &*expanded
        }
        None => payload,
    };
    if kind == KIND_ELF {
        return of_elf(bytes).transpose();
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let text = std::str::from_utf8(bytes.get(..end).unwrap_or_default());
    text.map(|text| Some(text.to_owned())).map_err(|_| BadImage::Encoding)
}

/// Returns the payload of an entry expanded; none if it is not compressed.
fn compressed(entry: &[u8], payload: &[u8]) -> Result<Option<Vec<u8>>, BadImage> {
    let flags = long(entry, 40).unwrap_or(0);
    if flags & (LZ4 | ZSTD) == 0 {
        return Ok(None);
    }
    let size = long(entry, 56).filter(|size| (1..=LONGEST).contains(size)).ok_or(BadImage::Compressed)?;
    let size = usize::try_from(size).map_err(|_| BadImage::Compressed)?;
    let length = number(entry, 16).unwrap_or(0) as usize;
    let bytes = payload.get(..length).ok_or(BadImage::Short)?;
    // As small a text can't become so large: no memory is taken for what only says so.
    if size / 1024 > bytes.len().saturating_mul(64) {
        return Err(BadImage::Compressed);
    }
    let done = match flags & ZSTD {
        0 => lz4_flex::block::decompress(bytes, size).ok(),
        _ => zstd::bulk::decompress(bytes, size).ok(),
    };
    done.map(Some).ok_or(BadImage::Compressed)
}

/// Returns the text that an ELF file of a device carries; none if it carries none.
fn of_elf(image: &[u8]) -> Option<Result<String, BadImage>> {
    let (_, text) = sections(image)?.find(|(name, _)| *name == SECTION)?;
    let lines: Vec<u8> = text?.iter().map(|byte| if *byte == 0 { b'\n' } else { *byte }).collect();
    Some(String::from_utf8(lines).map_err(|_| BadImage::Encoding))
}

/// Returns the sections of an ELF file: names, and bytes where there are some.
fn sections(image: &[u8]) -> Option<impl Iterator<Item = (&[u8], Option<&[u8]>)>> {
    // Of 64 bits, little endian: place, size and count of section headers, and which has the names.
    if image.get(4..6)? != [2, 1] {
        return None;
    }
    let (place, size) = (long(image, 0x28)?, u64::from(half(image, 0x3a)?));
    let (count, names) = (u64::from(half(image, 0x3c)?), u64::from(half(image, 0x3e)?));
    let header = move |index: u64| piece(image, place.checked_add(index.checked_mul(size)?)?, 64);
    let bytes = move |header: &[u8]| piece(image, long(header, 0x18)?, long(header, 0x20)?);
    let names = bytes(header(names)?)?;
    let section = move |header: &'_ [u8]| {
        let name = number(header, 0).and_then(|at| names.get(at as usize..))?;
        Some((name.split(|byte| *byte == 0).next()?, bytes(header)))
    };
    Some((0..count).filter_map(move |index| section(header(index)?)))
}

#[cfg(test)]
#[path = "image/tests.rs"]
mod tests;
