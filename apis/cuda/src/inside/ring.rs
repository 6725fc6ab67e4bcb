//! `--inside-on-full ring`: a launch of a twin has an event behind it, so that it is known when its context's pool can be
//! emptied.
//!
//! [`hetrace_interpose::inside::ring`] says what threads hand over.

use std::sync::atomic::AtomicBool;

use hetrace_interpose::inside::ring::{self, Begun};
use hetrace_interpose::inside::twins::once;

use super::pool;
use crate::device::streams::{State, state};
use crate::device::{self, driver};
use crate::generated::prelude::{P, null_mut};

/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIMES: u32 = 2;

/// Begins a launch of a kernel's twin in a context, into a stream, [the one that is
/// meant](crate::device::streams::meant). Returns none where it would not be known when the twin has ended.
pub fn begin(context: P, kernel: u32, stream: P) -> Option<Begun> {
    if state(stream) != State::Free {
        without_graphs();
        return None;
    }
    let make = || {
        let _pushed = driver::Pushed::new(context)?;
        let mut event = null_mut();
        // SAFETY: room for the answer; the context is current.
        (unsafe { driver::cuEventCreate(&mut event, WITHOUT_TIMES) } == 0).then_some(event)
    };
    ring::begin(context, kernel, make, has_ended)
}

/// Puts the event of a launch that was made behind it, in its stream.
pub fn launched(begun: Begun, stream: P) {
    let event = begun.event();
    // SAFETY: an event of ours, of the context that the stream belongs to.
    let marked = device::own(|| unsafe { driver::cuEventRecord(event, stream) }) == 0;
    begun.launched(marked);
}

/// Says that what becomes part of a graph does not record.
pub fn without_graphs() {
    static SAID: AtomicBool = AtomicBool::new(false);
    once(
        &SAID,
        b"with --inside-on-full ring kernels in graphs run as they were: when they have ended is not known",
    );
}

/// Whether all before an event has ended; none if that can't be known.
fn has_ended(event: P) -> Option<bool> {
    let _relaxed = driver::Relaxed::new();
    // SAFETY: an event of ours, of a context that lives.
    match unsafe { driver::cuEventQuery(event) } {
        0 => Some(true),
        driver::NOT_READY => Some(false),
        _ => None,
    }
}

/// Makes room in a context's pool that is full, if nothing is in flight that may write there. Returns whether there is some.
pub fn turn(context: P) -> bool {
    ring::turn(context, has_ended, || pool::empty(context))
}
