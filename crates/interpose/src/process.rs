//! The process's part in a session.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use hetrace_ring::abi::{
    ARENA_NOTES_OFFSET, BLOB_PREFIX, COUNTS_OFFSET, Control, Counts, NOTE_PAGES, PAGE, REPORTED_NOTES_OFFSET,
    Reported, WINDOW_OFFSET, Window,
};
use hetrace_ring::note::{Byte, note as leave};

use crate::cancel::NoCancel;
use crate::errno::ErrnoGuard;
use crate::own;

/// Longest path of a session's folder.
pub(crate) const PATH: usize = 200;

/// A session this process records into.
#[derive(Debug)]
pub struct Session {
    pub(crate) folder: [u8; PATH],
    pub(crate) folder_length: usize,
    /// Number of this API in the session.
    pub api: u32,
    /// What the launcher says: mapped for reading only.
    pub(crate) control: *const Control,
    /// What the session's programs write together.
    pub(crate) reported: *const Reported,
}

static SESSION: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());

/// Where the session lies: not in the program's heap, which may be locked by
/// whoever makes the first call.
struct Place(UnsafeCell<MaybeUninit<Session>>);

// SAFETY: written by `settle` alone, once, before `SESSION` points there.
unsafe impl Sync for Place {}

static PLACE: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));
/// Key whose destructor reports that a thread ended; `u32::MAX` if there is none.
pub(crate) static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// The session, if the process is in one.
#[inline]
pub fn session() -> Option<&'static Session> {
    // SAFETY: set once, to memory that is never freed.
    unsafe { SESSION.load(Ordering::Acquire).as_ref() }
}

/// Puts the session to where it stays.
///
/// # Safety
/// Once, and before [`set_session`].
pub(crate) unsafe fn settle(session: Session) -> &'static Session {
    // SAFETY: nobody else writes there, as this is called once, and nobody reads there, as `SESSION` is not set.
    unsafe { (*PLACE.0.get()).write(session) }
}

/// From now on the process is in this session, or in none.
pub(crate) fn set_session(session: Option<&'static Session>) {
    let session = session.map_or(std::ptr::null_mut(), |session| std::ptr::from_ref(session).cast_mut());
    SESSION.store(session, Ordering::Release);
}

impl Session {
    /// The session of a folder, before anything of it is there. `None` if its path is too long.
    pub(crate) fn of(folder: &[u8]) -> Option<Session> {
        let (control, reported) = (std::ptr::null(), std::ptr::null());
        let mut session =
            Session { folder: [0; PATH], folder_length: folder.len(), api: 0, control, reported };
        session.folder.get_mut(..folder.len())?.copy_from_slice(folder);
        Some(session)
    }

    /// A session of which nothing is in files.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn in_memory(control: &'static Control, reported: &'static Reported) -> Session {
        Session { folder: [0; PATH], folder_length: 0, api: 0, control, reported }
    }

    /// What the launcher says.
    pub fn control(&self) -> &'static Control {
        // SAFETY: mapped for ever, and checked by `start`.
        unsafe { &*self.control }
    }

    /// What programs write that belongs to no arena.
    pub(crate) fn reported(&self) -> &'static Reported {
        // SAFETY: mapped for ever; valid for all bit patterns, and made of atomics.
        unsafe { &*self.reported }
    }

    /// The page of its capture window.
    pub(crate) fn window(&self) -> &'static Window {
        // SAFETY: the whole control file is mapped for ever, and this page lies inside of it; all of it is numbers, for
        // which all bit patterns are valid, and what changes are atomics.
        unsafe { &*self.control.byte_add(WINDOW_OFFSET).cast::<Window>() }
    }

    /// What programs count together.
    pub(crate) fn counts(&self) -> &'static Counts {
        // SAFETY: the whole file is mapped for ever, and this page lies inside of it; valid for all bit patterns, and
        // made of atomics.
        unsafe { &*self.reported.byte_add(COUNTS_OFFSET).cast::<Counts>() }
    }

    pub(crate) fn control_pointer(&self) -> *const Control {
        self.control
    }

    pub(crate) fn reported_pointer(&self) -> *const Reported {
        self.reported
    }

    /// Leaves a line for the report: in the process's own memory, if it has some.
    pub(crate) fn note(&self, text: &[u8]) {
        if let Some(process) = own::process()
            && let Some(header) = own::header(process)
        {
            let place = process.arena.load(Ordering::Relaxed).cast_const().cast::<Byte>();
            // SAFETY: the rest of the first page of the arena, which has memory and stays mapped. All that reads or writes
            // there are notes, by atomics.
            let place = unsafe { from_raw_parts(place.add(ARENA_NOTES_OFFSET), PAGE - ARENA_NOTES_OFFSET) };
            return leave(&header.notes, place, text);
        }
        let place = self.reported.cast::<Byte>();
        // SAFETY: pages of the file, which stay mapped. All that reads or writes there are notes, by atomics.
        let place = unsafe { from_raw_parts(place.add(REPORTED_NOTES_OFFSET), NOTE_PAGES * PAGE) };
        leave(&self.reported().notes, place, text);
    }

    /// Whether an option of [`hetrace_ring::abi::option`] is on.
    pub fn option(&self, bit: u32) -> bool {
        self.control().options.load(Ordering::Relaxed) & bit != 0
    }

    /// Writes the path of a file of the session into `buffer`, with a NUL.
    pub(crate) fn path<'b>(&self, buffer: &'b mut [u8; PATH + 64], name: &[u8]) -> Option<&'b CStr> {
        let folder = self.folder.get(..self.folder_length)?;
        let end = folder.len() + 1 + name.len();
        buffer.get_mut(..folder.len())?.copy_from_slice(folder);
        *buffer.get_mut(folder.len())? = b'/';
        buffer.get_mut(folder.len() + 1..end)?.copy_from_slice(name);
        *buffer.get_mut(end)? = 0;
        CStr::from_bytes_with_nul(buffer.get(..=end)?).ok()
    }
}

/// Leaves a line for the report.
pub fn note(text: &[u8]) {
    if let Some(session) = session() {
        session.note(text);
    }
}

/// As [`note`], unless it was said before.
pub(crate) fn note_once(said: &AtomicBool, text: &[u8]) {
    if !said.swap(true, Ordering::Relaxed) {
        note(text);
    }
}

/// Stores bytes once in a file named by their hash. Returns the hash. Makes
/// system calls: only for what the user asked for.
///
/// # Safety
/// `parts` point at readable memory.
pub unsafe fn store_blob(parts: &[(*const u8, usize)]) -> u64 {
    // FNV-1a: few lines, no tables, and good enough to distinguish sources.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for &(at, length) in parts {
        for i in 0..length {
            // SAFETY: contract: `length` bytes are readable, and `i` is less.
            hash = (hash ^ u64::from(unsafe { *at.add(i) })).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let Some(session) = session() else { return hash };
    let _whole = NoCancel::new();
    let _errno = ErrnoGuard::new();
    let mut name = [0u8; 32];
    let prefix = BLOB_PREFIX.len();
    name[..prefix].copy_from_slice(BLOB_PREFIX.as_bytes());
    for i in 0..16 {
        name[prefix + i] = b"0123456789abcdef"[(hash >> (60 - 4 * i) & 15) as usize];
    }
    let mut buffer = [0; PATH + 64];
    let Some(path) = session.path(&mut buffer, &name[..prefix + 16]) else { return hash };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a NUL-terminated path.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return hash; // Stored before, or no room: the launcher names what is missing.
    }
    for &(mut at, mut length) in parts {
        while length > 0 {
            // SAFETY: contract: the part is readable; what was written is taken off.
            let wrote = unsafe { libc::write(fd, at.cast(), length) };
            if wrote <= 0 {
                note(b"a stored text is incomplete: no room in the session's folder");
                break;
            }
            // SAFETY: `wrote` is at most `length`.
            at = unsafe { at.add(wrote as usize) };
            length -= wrote as usize;
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
    hash
}
