//! Small things that all of the device code needs: records with a text behind
//! them, and notes about libraries.

use std::ffi::{CStr, c_char};

pub use hetrace_interpose::commands::{Note, arena};
pub use hetrace_interpose::record_with_text as send;

/// The text behind a pointer of the driver's; empty if there is none.
///
/// # Safety
/// NULL, or a NUL-terminated text that stays for as long as it is used.
pub unsafe fn text<'t>(at: *const c_char) -> &'t CStr {
    // SAFETY: a text, by the contract.
    unsafe { hetrace_interpose::commands::text(at.cast()) }
}

/// What [`loaded`] looks for, and where it puts what it finds.
struct Wanted<'n> {
    part: &'n [u8],
    note: Option<Note>,
}

/// Adds to a note the path of the library loaded last whose path has this part.
pub fn loaded(part: &[u8], note: Note) -> Note {
    unsafe extern "C" fn step(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        data: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the dynamic loader's own description, and the variable below.
        let (name, wanted) = unsafe { ((*info).dlpi_name, &mut *data.cast::<Wanted<'_>>()) };
        // SAFETY: NULL, or the NUL-terminated path of a loaded library.
        let path = unsafe { text(name) }.to_bytes();
        if path.windows(wanted.part.len()).any(|w| w == wanted.part) {
            wanted.note = Some(Note::new().text(b" (").text(path).text(b")"));
        }
        0
    }
    let mut wanted = Wanted { part, note: None };
    // SAFETY: `step` is called only while `wanted` lives.
    unsafe { libc::dl_iterate_phdr(Some(step), (&raw mut wanted).cast()) };
    match wanted.note {
        Some(found) => note.text(found.bytes()),
        None => note,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_named_with_its_path() {
        let note = loaded(b"libc.so", Note::new().text(b"by"));
        let text = String::from_utf8_lossy(note.bytes()).into_owned();
        assert!(text.starts_with("by (/") && text.ends_with(')') && text.contains("libc.so"), "{text}");
        assert_eq!(loaded(b"no such library", Note::new().text(b"by")).bytes(), b"by");
    }

    #[test]
    fn no_text_is_an_empty_one() {
        // SAFETY: NULL, and a text.
        unsafe {
            assert_eq!(text(std::ptr::null()), c"");
            assert_eq!(text(c"cuda".as_ptr()), c"cuda");
        }
    }
}
