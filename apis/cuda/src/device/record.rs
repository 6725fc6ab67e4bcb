//! Small things that all of the device code needs: records with a text behind
//! them, notes put together from parts, and memory that is never given back.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

pub use hetrace_interpose::record_with_text as send;

/// The text behind a pointer of the driver's; empty if there is none.
///
/// # Safety
/// NULL, or a NUL-terminated text that stays for as long as it is used.
pub unsafe fn text<'t>(at: *const c_char) -> &'t CStr {
    // SAFETY: promised by the caller.
    if at.is_null() { c"" } else { unsafe { CStr::from_ptr(at) } }
}

/// A note in the making.
#[derive(Debug)]
pub struct Note {
    bytes: [u8; 256],
    length: usize,
}

impl Note {
    pub fn new() -> Note {
        Note { bytes: [0; 256], length: 0 }
    }

    #[must_use]
    pub fn text(mut self, text: &[u8]) -> Note {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
        self
    }

    #[must_use]
    pub fn number(self, number: u64) -> Note {
        let mut digits = [0u8; 20];
        let (mut rest, mut from) = (number, digits.len());
        for (i, place) in digits.iter_mut().enumerate().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
            from = i;
            if rest == 0 {
                break;
            }
        }
        self.text(digits.get(from..).unwrap_or_default())
    }

    /// Leaves it for the report.
    pub fn leave(self) {
        hetrace_interpose::note(self.bytes.get(..self.length).unwrap_or_default());
    }
}

const ARENA_BYTES: usize = 4 << 20;
static ARENA: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);

/// Fresh zeroed memory that costs nothing until it is used; NULL if there is none.
pub fn pages(length: usize) -> *mut u8 {
    // SAFETY: a fresh range at an address of the kernel's choice.
    let fresh = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if fresh == libc::MAP_FAILED { std::ptr::null_mut() } else { fresh.cast() }
}

/// Zeroed bytes at a multiple of 8, never given back. `None` when they are used
/// up: then something is merely not known.
pub fn arena(bytes: usize) -> Option<*mut u8> {
    let mut base = ARENA.load(Ordering::Acquire);
    if base.is_null() {
        let fresh = pages(ARENA_BYTES);
        if fresh.is_null() {
            return None;
        }
        base = match ARENA.compare_exchange(std::ptr::null_mut(), fresh, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => fresh,
            Err(there) => {
                // SAFETY: another thread was quicker; ours is not used.
                unsafe { libc::munmap(fresh.cast(), ARENA_BYTES) };
                there
            }
        };
    }
    let bytes = bytes.checked_next_multiple_of(8)?;
    let at = USED.fetch_add(bytes, Ordering::Relaxed);
    if at.checked_add(bytes)? > ARENA_BYTES {
        USED.fetch_sub(bytes, Ordering::Relaxed);
        return None;
    }
    // SAFETY: inside the arena, and this caller's alone.
    Some(unsafe { base.add(at) })
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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
        Some(found) => note.text(found.bytes.get(..found.length).unwrap_or_default()),
        None => note,
    }
}
