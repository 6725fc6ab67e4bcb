//! Launches of twins that get their number, as OpenCL C has nothing that distinguishes them.
//!
//! The number is an argument of the twin, so of two threads that launch one kernel at once each must set it and launch alone. A
//! [`Claim`] for each twin, or a few of them, sees to that; who does not get it within a few tries launches the kernel as it is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hetrace_interpose::ErrnoGuard;
use hetrace_interpose::commands::Claim;
use hetrace_interpose::inside::twins::once;

use super::CL_KERNEL_NUM_ARGS;
use crate::capture::query::word;
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// Numbers of launches, from 1.
static NEXT: AtomicU64 = AtomicU64::new(1);
/// By a twin's handle, mixed.
static CLAIMS: [Claim; 256] = [const { Claim::new() }; 256];
/// How often it is tried.
const TRIES: usize = 100;

/// Launches a twin of a kernel. Returns none if another thread launches it all the time.
pub fn launch(kernel: P, twin: P, launch: &impl Fn(P) -> i32) -> Option<i32> {
    let place = (twin as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    let claim = CLAIMS.get(place as usize)?;
    for _ in 0..TRIES {
        let done = claim.holding(|| {
            let code = set(kernel, twin);
            if code == 0 { launch(twin) } else { code }
        });
        if done.is_some() {
            return done;
        }
        let _errno = ErrnoGuard::new();
        // SAFETY: no preconditions.
        unsafe { libc::sched_yield() };
    }
    static SAID: AtomicBool = AtomicBool::new(false);
    once(&SAID, b"threads launched one OpenCL kernel at once; some of these launches were as they were");
    None
}

/// Gives a twin the number of its next launch: its last argument, behind the pool.
fn set(kernel: P, twin: P) -> i32 {
    let _errno = ErrnoGuard::new();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let arguments = word::<u32>(|size, at| {
        // SAFETY: room as said; the program launches the kernel, so it lives.
        unsafe { real::clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, size, at, null_mut()) }
    });
    // SAFETY: our own kernel, whose arguments nobody else sets now, and a number that is read now.
    arguments.map_or(-1, |own| unsafe { real::clSetKernelArg(twin, own + 1, 8, (&raw const number).cast()) })
}
