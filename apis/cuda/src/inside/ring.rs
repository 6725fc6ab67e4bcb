//! `--inside-on-full ring`: a launch of a twin has an event behind it, so that it is known when its context's pool can be
//! emptied.
//!
//! [`hetrace_interpose::inside::ring`] says what threads hand over.

use std::sync::atomic::AtomicBool;

use hetrace_interpose::inside::ring::{self, Begun};
use hetrace_interpose::inside::twins::once;

use super::twins::Chosen;
use super::{CUresult, pool, twins};
use crate::device::streams::{State, state};
use crate::device::{self, driver};
use crate::generated::prelude::{P, null_mut};

/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIMES: u32 = 2;

/// Launches a twin into a stream, [the one that is meant](crate::device::streams::meant); or the kernel, where it would not be
/// known when the twin has ended.
#[cold]
pub fn launch(kernel: P, twin: &Chosen, stream: P, launch: impl Fn(P) -> CUresult) -> CUresult {
    let Some(begun) = begin(twin, stream) else {
        twin.is_late();
        return launch(kernel);
    };
    let error = launch(twin.handle);
    if error == 0 {
        let event = begun.event();
        // SAFETY: an event of ours, of the context that the stream belongs to.
        let marked = device::own(|| unsafe { driver::cuEventRecord(event, stream) }) == 0;
        begun.launched(marked);
        return 0;
    }
    drop(begun);
    twins::refused(kernel, error, launch)
}

fn begin(twin: &Chosen, stream: P) -> Option<Begun> {
    if state(stream) != State::Free {
        without_graphs();
        return None;
    }
    let make = || {
        let _pushed = driver::Pushed::new(twin.context)?;
        let mut event = null_mut();
        // SAFETY: room for the answer; the context is current.
        (unsafe { driver::cuEventCreate(&mut event, WITHOUT_TIMES) } == 0).then_some(event)
    };
    ring::begin(twin.context, twin.count, make, has_ended)
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
