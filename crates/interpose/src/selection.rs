//! Whether this process is one of those that a session of the service records.
//!
//! A control file that stands for dormant programs is shared by all processes of a user, and so is its mask. A session
//! for some of them marks every function as counted, so that a call comes here, and each process decides for itself, once
//! per session. A forked child that had no time to decide before has its parent's decision.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use hetrace_ring::abi::Window;

use crate::cancel::NoCancel;
use crate::errno::ErrnoGuard;
use crate::process::session;
use crate::{glob, own, who};

/// The session that was decided about last, in the upper half, and 1 if this process belongs to it. No session has
/// number 0.
static DECIDED: AtomicU64 = AtomicU64::new(0);

/// Whether calls of this process are recorded while the mask says so.
#[inline]
pub(crate) fn is_recorded() -> bool {
    let Some(session) = session() else { return false };
    let window = session.window();
    window.selects.load(Ordering::Relaxed) == 0 || is_selected(window)
}

/// Whether this process is one of those that the session is for.
pub(crate) fn is_selected(window: &Window) -> bool {
    // Pairs with the Release store of the mask, which brought us here: what is read below is of that session, or of
    // a later one.
    let _ = window.switch.mask.load(Ordering::Acquire);
    let generation = window.generation.load(Ordering::Acquire);
    let decided = DECIDED.load(Ordering::Relaxed);
    if decided >> 32 == u64::from(generation) {
        return decided & 1 != 0;
    }
    decide(window, generation)
}

#[cold]
#[inline(never)]
fn decide(window: &Window, generation: u32) -> bool {
    let _whole = NoCancel::new();
    let _errno = ErrnoGuard::new();
    let selected = has_pid(window) && has_name(window) && has_group(window);
    // Two threads that decide at once find the same.
    DECIDED.store(u64::from(generation) << 32 | u64::from(selected), Ordering::Relaxed);
    selected
}

fn has_pid(window: &Window) -> bool {
    let mut wanted =
        window.pids.iter().map(|pid| pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0).peekable();
    wanted.peek().is_none() || wanted.any(|pid| pid == own::pid())
}

/// A file that can't be read is no match: nobody is recorded who was not meant.
fn has_name(window: &Window) -> bool {
    let is_any = window.comm[0].load(Ordering::Relaxed) == 0;
    is_any || file(c"/proc/self/comm", |name| glob::matches(&window.comm, name))
}

/// `0::/a/b` of version 2, or `7:memory:/a/b` of version 1: any of the process's groups will do.
fn has_group(window: &Window) -> bool {
    let path =
        |line: &[u8]| line.splitn(3, |b| *b == b':').nth(2).is_some_and(|p| glob::matches(&window.cgroup, p));
    let is_any = window.cgroup[0].load(Ordering::Relaxed) == 0;
    is_any || file(c"/proc/self/cgroup", |text| text.split(|b| *b == b'\n').any(path))
}

fn file(path: &CStr, matches: impl Fn(&[u8]) -> bool) -> bool {
    let mut buffer = [0u8; 4096];
    let length = who::read_file(path, &mut buffer);
    let text = buffer.get(..length).unwrap_or_default();
    matches(text.strip_suffix(b"\n").unwrap_or(text))
}
