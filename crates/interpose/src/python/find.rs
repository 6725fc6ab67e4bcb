//! Finding the interpreter of the process: by the symbols that CPython exports, whether it is in the program itself or
//! in a library.

use std::ffi::{CStr, c_void};

use super::frames::Interpreter;
use super::layout::{Layout, Refused};
use crate::elf::{self, Object};

/// `PyGILState_GetThisThreadState`: reads a variable of the thread, and needs no lock.
pub(super) type ThisThreadState = unsafe extern "C" fn() -> *mut c_void;

/// An interpreter, and the function that says the state of this thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub interpreter: Interpreter,
    pub state: ThisThreadState,
}

/// A version of CPython.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    pub minor: u32,
    /// As `PY_VERSION_HEX`; 0 where only the text is there.
    pub hex: u32,
}

/// Looks for an interpreter. None if there is none, or an error if it is one that is not read.
pub(super) fn find() -> Option<Result<Found, (Option<Version>, Refused)>> {
    let mut object = None;
    elf::each_object(|candidate| {
        if candidate.definition(c"_PyRuntime").is_some() {
            object = Some(*candidate);
        }
        object.is_none()
    });
    let object = object?;
    // What is read later must stay where it is.
    Some(read(&object).inspect(|_| object.keep()))
}

fn read(object: &Object) -> Result<Found, (Option<Version>, Refused)> {
    let address = |name: &CStr| object.definition(name).ok_or((None, Refused::Version));
    let runtime = address(c"_PyRuntime")? as usize;
    let version = version_of(object).ok_or((None, Refused::Version))?;
    let because = |refused| (Some(version), refused);
    let layout = Layout::of(version.minor, version.hex, runtime).map_err(because)?;
    let [code, text, bytes] =
        [c"PyCode_Type", c"PyUnicode_Type", c"PyBytes_Type"].map(|name| address(name).map(|at| at as usize));
    let state = address(c"PyGILState_GetThisThreadState")?;
    // SAFETY: the function of this name, which has been one since long before the versions that there are layouts of.
    let state = unsafe { std::mem::transmute::<*mut c_void, ThisThreadState>(state) };
    Ok(Found { interpreter: Interpreter { layout, runtime, code: code?, text: text?, bytes: bytes? }, state })
}

/// Since 3.11 the version is a variable, before that the first word of a text.
fn version_of(object: &Object) -> Option<Version> {
    if let Some(number) = object.definition(c"Py_Version") {
        // SAFETY: an `unsigned long`, which never changes.
        let number = unsafe { number.cast::<u64>().read() };
        return version_of_number(u32::try_from(number).ok()?);
    }
    let text = object.definition(c"Py_GetVersion")?;
    type Text = unsafe extern "C" fn() -> *const libc::c_char;
    // SAFETY: the function of this name, in all versions that have no variable.
    let text = unsafe { std::mem::transmute::<*mut c_void, Text>(text) };
    // SAFETY: it returns a text that stays, and needs nothing to be initialized.
    version_of_text(unsafe { CStr::from_ptr(text()) }.to_bytes())
}

/// Versions that were not released have structures of their own.
fn version_of_number(hex: u32) -> Option<Version> {
    let [micro_and_level, _, minor, major] = hex.to_le_bytes();
    let released = matches!(micro_and_level >> 4, 0xc | 0xf);
    (major == 3 && released).then_some(Version { minor: minor.into(), hex })
}

/// Such as `3.9.18 (main, …`.
fn version_of_text(text: &[u8]) -> Option<Version> {
    let word = text.split(|byte| *byte == b' ').next()?;
    let word = word.strip_suffix(b"+").unwrap_or(word);
    if word.iter().any(|byte| !byte.is_ascii_digit() && *byte != b'.') {
        return None;
    }
    let minor = word.strip_prefix(b"3.")?.split(|byte| *byte == b'.').next()?;
    let minor = minor.iter().fold(0, |number: u32, digit| number * 10 % 1000 + u32::from(digit - b'0'));
    Some(Version { minor, hex: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_that_were_released() {
        let minor = |version: Option<Version>| version.map(|version| version.minor);
        assert_eq!(minor(version_of_text(b"3.9.18 (main, Nov 1 2026)")), Some(9));
        assert_eq!(minor(version_of_text(b"3.10.13+ (heads/x)")), Some(10));
        assert_eq!(minor(version_of_text(b"3.10.0a3 (main)")), None);
        assert_eq!(minor(version_of_text(b"2.7.18 (main)")), None);
        assert_eq!(minor(version_of_number(0x030d_00f0)), Some(13));
        assert_eq!(minor(version_of_number(0x030e_00c2)), Some(14), "a release candidate");
        assert_eq!(minor(version_of_number(0x030e_00a1)), None);
        assert_eq!(minor(version_of_number(0x0409_00f0)), None);
    }
}
