//! Which file a name without a slash means, as `execvp` finds it.

use core::ffi::{CStr, c_char};

/// Room for a path.
const MOST: usize = 1024;

/// A file that was found.
pub(crate) struct Candidate {
    path: [u8; MOST],
}

impl Candidate {
    /// Its path.
    pub(crate) fn path(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.path).ok()
    }
}

/// Returns the first file of the name that may be executed. `None` if it can't be said for certain without the current
/// folder, in which a file action may make the file be looked for elsewhere.
///
/// # Safety
/// A text that ends with a zero.
pub(crate) unsafe fn find(name: *const c_char) -> Option<Candidate> {
    // SAFETY: the program's own name of a file, which ends with a zero.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let mut candidate = Candidate { path: [0; MOST] };
    if name.contains(&b'/') {
        let is_absolute = name.first() == Some(&b'/');
        return (is_absolute && fill(&mut candidate.path, &[name])).then_some(candidate);
    }
    // SAFETY: a NUL-terminated name.
    let list = unsafe { libc::getenv(c"PATH".as_ptr()) };
    if list.is_null() || name.is_empty() {
        return None;
    }
    // SAFETY: what it gives ends with a zero.
    for folder in unsafe { CStr::from_ptr(list) }.to_bytes().split(|b| *b == b':') {
        if folder.first() != Some(&b'/') || !fill(&mut candidate.path, &[folder, b"/", name]) {
            return None;
        }
        let path = candidate.path.as_ptr().cast();
        // SAFETY: `fill` ends it with a zero.
        if unsafe { libc::access(path, libc::X_OK) } == 0 {
            return Some(candidate);
        }
    }
    None
}

/// Writes parts and a zero behind each other. Returns whether they have room.
fn fill(room: &mut [u8; MOST], parts: &[&[u8]]) -> bool {
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    if length >= MOST {
        return false;
    }
    let bytes = parts.iter().copied().flatten().chain(&[0]);
    room.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    true
}
