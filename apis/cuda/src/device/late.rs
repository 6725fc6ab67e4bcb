//! Programs that a service begins to record while they run: their driver is initialized long since, contexts and streams
//! were made without us, and each session is a trace of its own, in which all must be named anew.
//!
//! It hands nothing over between threads: it asks whether the choice of times has been made.

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hetrace_interpose::ring::abi::option;
use hetrace_interpose::window::session_number;
use hetrace_interpose::{ErrnoGuard, session};

use super::{CHOSEN, contexts, devices, driver, functions, streams};
use crate::generated::prelude::{P, null_mut};

/// The session in which devices, queues and functions were recorded last.
static SESSION: AtomicU32 = AtomicU32::new(0);
/// The stream of a command that was looked at last.
static MET: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(null_mut());

/// Chooses where times come from, for a program that made its first context before it was recorded. Called before a
/// command. Returns whether it is to be timed.
#[cold]
#[inline(never)]
pub fn start() -> bool {
    // Where devices are not wanted there is no choice to be made: nothing may be asked of the driver with each command.
    if CHOSEN.load(Ordering::Acquire) || !session().is_some_and(|session| session.option(option::DEVICE)) {
        return false;
    }
    let _errno = ErrnoGuard::new();
    // What a collector does to start must not end a capture.
    let _relaxed = driver::Relaxed::new();
    super::start();
    if !super::is_on() {
        return false;
    }
    made_before();
    true
}

/// A context that may have been made while nothing was recorded.
fn made_before() {
    let (context, mut device) = (driver::current(), 0);
    // SAFETY: room for the answer.
    if !context.is_null() && unsafe { driver::cuCtxGetDevice(&mut device) } == 0 {
        super::context_made(context, device);
    }
}

/// A command goes to a stream: it and its context may have been made while nothing was recorded.
#[inline(always)]
pub fn met(stream: P) {
    if MET.load(Ordering::Relaxed) != stream && session_number() != 0 {
        remember(stream);
    }
}

#[cold]
#[inline(never)]
fn remember(stream: P) {
    let _errno = ErrnoGuard::new();
    MET.store(stream, Ordering::Relaxed);
    if !stream.is_null() && !streams::is_known(stream) {
        made_before();
        streams::remember(stream);
    }
}

/// Sees to it that devices, queues and functions are recorded in this session, too. Called before records that name
/// them.
#[inline]
pub fn look_at_session() {
    let session = session_number();
    if SESSION.load(Ordering::Relaxed) != session && SESSION.swap(session, Ordering::Relaxed) != session {
        devices::forget_recorded();
        functions::announce_all();
        // Caches of streams are filled anew.
        contexts::EPOCH.fetch_add(1, Ordering::Relaxed);
    }
}
