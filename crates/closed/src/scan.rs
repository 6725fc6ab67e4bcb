//! Names in a file's table of names, looked for without reading all of it at once.

use crate::file::File;

/// Functions by which a program opens libraries or asks them for functions. Linkers let one name be the end of a longer
/// one, so all that ends like them counts.
const OPENERS: &[&[u8]] = &[b"dlopen\0", b"dlmopen\0", b"dlsym\0", b"dlvsym\0", b"dlopen_mode\0"];
/// Bytes of the longest of them, less one: what is kept of a part for the next.
const KEPT: usize = 11;
/// Bytes that are read at once.
const PART: usize = 1024;

/// Returns whether a table of names has one of them. `None` if it can't be read.
pub(crate) fn opens(file: &File, at: u64, bytes: u64) -> Option<bool> {
    let mut part = [0; KEPT + PART];
    let mut done = 0;
    while done < bytes {
        let wanted = usize::try_from(bytes - done).ok()?.min(PART);
        file.fill(at.checked_add(done)?, part.get_mut(KEPT..KEPT + wanted)?)?;
        if has(part.get(..KEPT + wanted)?) {
            return Some(true);
        }
        let mut last = [0; KEPT];
        last.copy_from_slice(part.get(wanted..wanted + KEPT)?);
        *part.first_chunk_mut()? = last;
        done += wanted as u64;
    }
    Some(false)
}

fn has(text: &[u8]) -> bool {
    // All begin with `d`, and few bytes of names are one.
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == b'd') {
        let Some(from) = rest.get(at..) else { break };
        if OPENERS.iter().any(|name| from.starts_with(name)) {
            return true;
        }
        rest = from.get(1..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn names_are_found_wherever_parts_end() {
        let scratch = tempfile::tempdir().expect("scratch");
        let path = scratch.path().join("names");
        let name = CString::new(path.to_str().expect("text")).expect("no zero");
        for opener in OPENERS {
            for before in PART - 14..PART + 3 {
                let mut text = vec![b'd'; before];
                text.extend_from_slice(opener);
                std::fs::write(&path, &text).expect("scratch");
                let file = File::open(&name).expect("a file");
                let all = text.len() as u64;
                assert_eq!(opens(&file, 0, all), Some(true), "{before}");
                assert_eq!(opens(&file, 0, all - 1), Some(false), "{before}: without its end");
                assert_ne!(opens(&file, 0, all + 1), Some(false), "{before}: longer than the file");
            }
        }
        assert!(OPENERS.iter().all(|name| name.len() <= KEPT + 1));
    }
}
