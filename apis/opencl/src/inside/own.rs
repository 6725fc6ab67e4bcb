//! Commands of ours on a device: a queue that waits for no other.
//!
//! They are none of the program's. Each is counted with its bytes and its time in the process's arena, from where the manifest has
//! the sums, and is in no table of commands.

use hetrace_interpose::own_device;

use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

const CL_QUEUE_PROFILING_ENABLE: u64 = 2;
const CL_PROFILING_COMMAND_START: u32 = 0x1282;
const CL_PROFILING_COMMAND_END: u32 = 0x1283;
const CL_TRUE: u32 = 1;

/// An error of the API, and of what.
pub type Refused = (i32, &'static [u8]);

/// A queue of our own, as long as it lives.
#[derive(Debug)]
pub struct Own(P);

impl Own {
    /// Makes one.
    ///
    /// # Errors
    /// When the driver refuses it.
    pub fn new(context: P, device: P) -> Result<Own, Refused> {
        let mut error = 0;
        // SAFETY: the program's context and a device of it, and room for the answer.
        let queue =
            unsafe { real::clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &mut error) };
        if queue.is_null() { Err((error, b"a queue")) } else { Ok(Own(queue)) }
    }

    /// Fills a buffer of ours with zeros, and waits.
    pub fn zero(&self, buffer: P, bytes: u64) -> Result<(), Refused> {
        let zero = 0u32;
        let pattern = (&raw const zero).cast();
        self.run(bytes, b"zeroing it", |event| {
            // SAFETY: a buffer of ours with so many bytes, and a pattern of four, which the call copies.
            unsafe { real::clEnqueueFillBuffer(self.0, buffer, pattern, 4, 0, bytes, 0, null_mut(), event) }
        })
    }

    /// Copies to the begin of a buffer of ours, and waits.
    pub fn write(&self, buffer: P, from: &[u8]) -> Result<(), Refused> {
        let (bytes, at) = (from.len() as u64, from.as_ptr().cast());
        self.run(bytes, b"its header", |event| {
            // SAFETY: `from` lives until the call has waited; the buffer is larger.
            unsafe { real::clEnqueueWriteBuffer(self.0, buffer, CL_TRUE, 0, bytes, at, 0, null_mut(), event) }
        })
    }

    /// Copies from the begin of a buffer of ours, and waits.
    ///
    /// # Safety
    /// There is room for `bytes` at `to`, and the buffer has as many.
    pub unsafe fn read(&self, to: *mut u8, buffer: P, bytes: usize) -> Result<(), Refused> {
        let size = bytes as u64;
        self.run(size, b"copying it", |event| {
            // SAFETY: contract: as many bytes on both sides, until the call has waited.
            unsafe {
                real::clEnqueueReadBuffer(self.0, buffer, CL_TRUE, 0, size, to.cast(), 0, null_mut(), event)
            }
        })
    }

    /// Enqueues a command, waits for it, and counts it.
    fn run(
        &self,
        bytes: u64,
        what: &'static [u8],
        command: impl FnOnce(*mut P) -> i32,
    ) -> Result<(), Refused> {
        let mut event = null_mut();
        let mut error = command(&raw mut event);
        if error == 0 && !event.is_null() {
            // SAFETY: an event of ours.
            error = unsafe { real::clWaitForEvents(1, &raw const event) };
            if error == 0 {
                own_device(bytes, elapsed_ns(event));
            }
            // SAFETY: the event is ours, and nobody else knows it.
            unsafe { real::clReleaseEvent(event) };
        }
        if error == 0 { Ok(()) } else { Err((error, what)) }
    }
}

/// Nanoseconds that a command took that has ended; 0 if they are not known.
fn elapsed_ns(event: P) -> u64 {
    let time = |name| {
        let mut time = 0u64;
        // SAFETY: a live event of ours, and room for the answer.
        let error =
            unsafe { real::clGetEventProfilingInfo(event, name, 8, (&raw mut time).cast(), null_mut()) };
        (error == 0).then_some(time)
    };
    let times = (time(CL_PROFILING_COMMAND_START), time(CL_PROFILING_COMMAND_END));
    if let (Some(start), Some(end)) = times { end.saturating_sub(start) } else { 0 }
}

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: our own queue, and nobody else knows it.
        unsafe { real::clReleaseCommandQueue(self.0) };
    }
}
