//! Where constructs are: which library or program each recorded address of code is in, so that it means something
//! when the process is gone.
//!
//! An address is compared with the library that the one before was in. Only the first address in a library is looked up,
//! and its library recorded.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::{ErrnoGuard, describe_code, each_object, pid, window};

use crate::generated::wrappers::ompt_code;

/// Libraries that are remembered. Addresses in further ones stay without.
const MOST: usize = 64;
/// Of code that is in no library so much is taken as one: a multiple of pages.
const ELSEWHERE: u64 = 1 << 16;
/// The longest path that is recorded.
const PATH: usize = 1024;

/// The library that was found last: a hint, of which any mixture is harmless.
static START: AtomicU64 = AtomicU64::new(0);
static END: AtomicU64 = AtomicU64::new(0);
/// The session and the process that it was recorded in: a forked child, and a session that comes later, know nothing yet.
static RECORDED_IN: AtomicU64 = AtomicU64::new(0);

/// Those that were recorded, by their first address and the one behind the last.
static KNOWN: [(AtomicU64, AtomicU64); MOST] = [const { (AtomicU64::new(0), AtomicU64::new(0)) }; MOST];
/// One thread at a time looks; others pass by, and their address is found the next time. The process of the one that does:
/// a child that is forked meanwhile has no such thread.
static LOOKING: AtomicU32 = AtomicU32::new(0);

/// The number that stands for an address.
#[inline(always)]
pub fn address(code: *const c_void) -> u64 {
    code as u64
}

/// The session and the process that this is.
#[inline]
fn here() -> u64 {
    u64::from(window::session_number()) << 32 | u64::from(pid())
}

/// An address is going to be recorded.
#[inline(always)]
pub fn seen(code: *const c_void) {
    let (at, start, end) = (code as u64, START.load(Ordering::Relaxed), END.load(Ordering::Relaxed));
    if !(start..end).contains(&at) {
        look(at);
    }
}

/// As [`seen`], of a construct with others inside: also whether the process or the session is another than before, which
/// is not asked for each of those.
#[inline]
pub fn seen_first(code: *const c_void) {
    if RECORDED_IN.load(Ordering::Relaxed) == here() { seen(code) } else { look(code as u64) }
}

#[cold]
#[inline(never)]
fn look(at: u64) {
    if at == 0 || !window::in_window() || !begin() {
        return;
    }
    let _errno = ErrnoGuard::new();
    if RECORDED_IN.swap(here(), Ordering::Relaxed) != here() {
        for (start, end) in &KNOWN {
            start.store(0, Ordering::Relaxed);
            end.store(0, Ordering::Relaxed);
        }
    }
    if let Some((start, end)) = known(at).or_else(|| found(at)) {
        START.store(start, Ordering::Relaxed);
        END.store(end, Ordering::Relaxed);
    }
    LOOKING.store(0, Ordering::Release);
}

/// Returns whether this thread may look.
fn begin() -> bool {
    let who = LOOKING.load(Ordering::Relaxed);
    who != pid() && LOOKING.compare_exchange(who, pid(), Ordering::Acquire, Ordering::Relaxed).is_ok()
}

fn known(at: u64) -> Option<(u64, u64)> {
    let all = KNOWN.iter().map(|(start, end)| (start.load(Ordering::Relaxed), end.load(Ordering::Relaxed)));
    all.into_iter().find(|(start, end)| (*start..*end).contains(&at))
}

/// Looks an address up in the process, remembers where it is, and records that.
fn found(at: u64) -> Option<(u64, u64)> {
    let free = KNOWN.iter().find(|(_, end)| end.load(Ordering::Relaxed) == 0)?;
    let (mut range, mut base) = (None, 0);
    let mut path = [0u8; PATH];
    each_object(|object| {
        if !object.contains(at as *const c_void) {
            return true;
        }
        range = Some((object.start() as u64, object.end() as u64));
        base = object.base() as u64;
        write_path(object.is_program(), object.path(), &mut path);
        false
    });
    let is_in_one = range.is_some();
    let (start, end) = range.unwrap_or((at & !(ELSEWHERE - 1), (at | (ELSEWHERE - 1)).saturating_add(1)));
    free.0.store(start, Ordering::Relaxed);
    free.1.store(end, Ordering::Relaxed);
    if is_in_one {
        // SAFETY: a text, which `write_path` has ended.
        unsafe { ompt_code::at(start, end, base, path.as_ptr().cast()) };
        // By its build id, so that the launcher names functions of this file and of no other.
        describe_code(at as usize);
    }
    Some((start, end))
}

/// Writes where a library is; of the program the dynamic loader has no name.
fn write_path(is_program: bool, name: &CStr, path: &mut [u8; PATH]) {
    let length = if is_program {
        let room = PATH - 1;
        // SAFETY: a text, and room for so many bytes.
        let read = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), room) };
        usize::try_from(read).unwrap_or(0)
    } else {
        let name = name.to_bytes();
        let length = name.len().min(PATH - 1);
        if let Some((to, from)) = path.get_mut(..length).zip(name.get(..length)) {
            to.copy_from_slice(from);
        }
        length
    };
    if let Some(end) = path.get_mut(length.min(PATH - 1)) {
        *end = 0;
    }
}
