//! The buffer in which the twins of a context record.
//!
//! Nothing of the program's is waited for: what is copied out is what has been written by then.
//!
//! What is known of a pool is complete when [`pools`] has its place, and is taken away by one thread, alone. Counts of references
//! stand for themselves.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hetrace_interpose::commands::Note;
use hetrace_interpose::inside::pool::Layout;
use hetrace_interpose::inside::pools::{self, Uncopied, header};
use hetrace_interpose::inside::{spills, twins};

use super::error;
use super::own::{Own, Refused};
use crate::capture::query::word;
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

const CL_CONTEXT_REFERENCE_COUNT: u32 = 0x1080;
const CL_QUEUE_DEVICE: u32 = 0x1091;
const CL_MEM_READ_WRITE: u64 = 1;

/// A pool. It stays where it is: a thread may look at one that has just ended.
#[derive(Debug)]
pub struct Pool {
    /// The buffer.
    pub buffer: P,
    device: P,
    /// References of the context that are ours.
    references: AtomicU32,
}

/// Returns the pool of a context, made if need be on this device; none if it has none, or has it on another device.
pub fn of(context: P, device: P) -> Option<&'static Pool> {
    pools::of(context, |bytes| make(context, device, bytes)).map(at).filter(|pool| {
        let own = pool.device == device;
        if !own {
            static SAID: AtomicBool = AtomicBool::new(false);
            twins::once(
                &SAID,
                b"an OpenCL context records on one device; kernels of programs for others are as they were",
            );
        }
        own
    })
}

/// The pool at an address that [`make`] has returned.
fn at(address: u64) -> &'static Pool {
    // SAFETY: leaked by `make`, and never freed.
    unsafe { &*(address as *const Pool) }
}

fn there(context: P) -> Option<&'static Pool> {
    pools::there(context).map(at)
}

/// Makes a pool. Returns where it is; where the host sees that it is full there is nothing in OpenCL, so twins look
/// themselves.
fn make(context: P, device: P, bytes: u64) -> Option<(u64, *mut u8)> {
    if spills() {
        let what = b"--inside-on-full spill: kernels of OpenCL can't write into files; their pools are copied at the end";
        Note::new().text(what).leave();
    }
    let before = count(context);
    match buffer(context, device, bytes) {
        Ok(buffer) => {
            let references = AtomicU32::new(more(before, count(context), 1));
            let pool: &'static Pool = Box::leak(Box::new(Pool { buffer, device, references }));
            Some((std::ptr::from_ref(pool) as u64, null_mut()))
        }
        Err((code, what)) => {
            let note =
                Note::new().text(b"--inside: no pool for a context, so its kernels are as they were: ");
            error(note.text(what), code).leave();
            None
        }
    }
}

fn buffer(context: P, device: P, bytes: u64) -> Result<P, Refused> {
    let own = Own::new(context, device)?;
    let mut code = 0;
    // SAFETY: the program's context, and room for the answer.
    let buffer = unsafe { real::clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, null_mut(), &mut code) };
    if buffer.is_null() {
        return Err((code, b"a buffer; see --inside-buffer"));
    }
    let done = own.zero(buffer, bytes).and_then(|()| own.write(buffer, &header(Layout::default(), bytes)));
    done.map(|()| buffer).inspect_err(|_| {
        // SAFETY: made above, and nobody else knows it.
        unsafe { real::clReleaseMemObject(buffer) };
    })
}

/// Returns how many references a context has.
fn count(context: P) -> u32 {
    word::<u32>(|size, at| {
        // SAFETY: room as said; for a wrong context it returns an error.
        unsafe { real::clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, size, at, null_mut()) }
    })
    .unwrap_or(0)
}

/// Returns how many references came to a context by what made at most so many: some drivers count objects in it, others do
/// not.
fn more(before: u32, after: u32, most: u32) -> u32 {
    after.saturating_sub(before).min(most)
}

impl Pool {
    /// Runs what makes an object of ours in a context.
    pub fn making<T>(&self, context: P, work: impl FnOnce() -> Option<T>) -> Option<T> {
        let before = count(context);
        let made = work();
        if made.is_some() {
            self.references.fetch_add(more(before, count(context), 1), Ordering::Relaxed);
        }
        made
    }
}

/// Returns how many of a context's references are ours.
pub fn references(context: P) -> u32 {
    there(context).map_or(0, |pool| pool.references.load(Ordering::Relaxed))
}

/// Returns whether a queue is of the device on which its context records.
pub fn is_of(context: P, queue: P) -> bool {
    let device = word::<u64>(|size, at| {
        // SAFETY: room as said; for a wrong queue it returns an error.
        unsafe { real::clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, size, at, null_mut()) }
    });
    there(context).is_some_and(|pool| device == Some(pool.device as u64))
}

/// Returns whether the program gives its last reference of a context back that records.
pub fn is_last(context: P) -> bool {
    there(context).is_some_and(|pool| count(context) <= pool.references.load(Ordering::Relaxed) + 1)
}

/// Copies what the kernels of a context have recorded.
pub fn save(context: P, address: u64, bytes: u64) {
    if let Err((code, what)) = copy_out(context, at(address), bytes) {
        let note = Note::new().text(b"--inside: what the kernels of a context recorded is lost: ");
        error(note.text(what), code).leave();
    }
}

/// Gives the buffer of a pool back whose twins are not launched any more. The driver keeps it for commands in flight.
pub fn release(address: u64) {
    // SAFETY: made by `buffer`, and released once: by who has ended the pool.
    unsafe { real::clReleaseMemObject(at(address).buffer) };
}

fn copy_out(context: P, pool: &Pool, bytes: u64) -> Result<(), Refused> {
    let own = Own::new(context, pool.device)?;
    // SAFETY: `read` gets room for as many bytes as it says, which the pool's buffer has.
    let read = |to: *mut u8, length| unsafe { own.read(to, pool.buffer, length) };
    pools::copy_out(bytes, read).map_err(|why| match why {
        Uncopied::Room => (0, &b"no room in the session's folder"[..]),
        Uncopied::Read(refused) => refused,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_an_object_may_add_is_ours() {
        assert_eq!([(3, 4), (3, 3), (3, 9), (4, 3), (0, 0)].map(|(a, b)| more(a, b, 1)), [1, 0, 1, 0, 0]);
    }
}
