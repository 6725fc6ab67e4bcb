//! Commands of ours on a device: a stream that waits for no other, on which one runs at a time.
//!
//! They are none of the program's. Each is counted with its bytes and, by two events around it, its time, in the process's
//! arena, from where the manifest has the sums; the collector leaves its records of them out ([`device::own`]).

use hetrace_interpose::own_device;

use crate::device::{self, driver};
use crate::generated::prelude::{P, null_mut};

/// What the driver says, and of what.
pub type Refused = (i32, &'static [u8]);

/// Of an error: nothing, or it with what was wanted.
pub fn ok(error: i32, what: &'static [u8]) -> Result<(), Refused> {
    if error == 0 { Ok(()) } else { Err((error, what)) }
}

/// A stream of our own, in the context that is current, as long as it lives.
pub struct Own {
    stream: P,
    /// Around a command; NULL where the driver has none.
    events: [P; 2],
}

impl Own {
    /// Makes one.
    ///
    /// # Errors
    /// When the driver refuses a stream. Without events nothing is known of times, and that is all.
    pub fn new() -> Result<Own, Refused> {
        let (mut stream, mut events) = (null_mut(), [null_mut(); 2]);
        // SAFETY: room for the answer; a context is current.
        ok(unsafe { driver::cuStreamCreate(&mut stream, driver::NON_BLOCKING) }, b"a stream")?;
        for event in &mut events {
            // SAFETY: room for the answer.
            if unsafe { driver::cuEventCreate(event, 0) } != 0 {
                *event = null_mut();
            }
        }
        Ok(Own { stream, events })
    }

    /// Fills `bytes` from `address` on with zeros, and waits.
    ///
    /// # Safety
    /// They are of an allocation of ours.
    pub unsafe fn zero(&self, address: u64, bytes: usize, what: &'static [u8]) -> Result<(), Refused> {
        // SAFETY: contract: memory of the device with as many bytes; the stream is ours.
        self.run(bytes, what, || unsafe { driver::cuMemsetD8Async(address, 0, bytes, self.stream) })
    }

    /// Copies to the device, and waits.
    ///
    /// # Safety
    /// There is room for as many bytes at `to`.
    pub unsafe fn write(&self, to: u64, from: &[u8], what: &'static [u8]) -> Result<(), Refused> {
        let (at, bytes) = (from.as_ptr().cast(), from.len());
        // SAFETY: contract: room at `to`; `from` outlives the command, which `run` waits for.
        self.run(bytes, what, || unsafe { driver::cuMemcpyHtoDAsync_v2(to, at, bytes, self.stream) })
    }

    /// Copies from the device, and waits.
    ///
    /// # Safety
    /// There are `bytes` at `from`, and room for them at `to`.
    pub unsafe fn read(
        &self,
        to: *mut u8,
        from: u64,
        bytes: usize,
        what: &'static [u8],
    ) -> Result<(), Refused> {
        // SAFETY: contract: as many bytes on both sides, which live until `run` has waited.
        self.run(bytes, what, || unsafe { driver::cuMemcpyDtoHAsync_v2(to.cast(), from, bytes, self.stream) })
    }

    /// Copies on the device, and waits.
    ///
    /// # Safety
    /// There are `bytes` at `from`, and room for them at `to`.
    pub unsafe fn copy(&self, to: u64, from: u64, bytes: usize, what: &'static [u8]) -> Result<(), Refused> {
        // SAFETY: contract: as many bytes on both sides, which live until `run` has waited.
        self.run(bytes, what, || unsafe { driver::cuMemcpyDtoDAsync_v2(to, from, bytes, self.stream) })
    }

    /// Enqueues a command, waits for it, and counts it.
    fn run(&self, bytes: usize, what: &'static [u8], command: impl FnOnce() -> i32) -> Result<(), Refused> {
        let begun = self.mark(0);
        ok(device::own(command), what)?;
        let timed = begun && self.mark(1);
        // SAFETY: our own stream.
        ok(unsafe { driver::cuStreamSynchronize(self.stream) }, what)?;
        own_device(bytes as u64, if timed { self.elapsed_ns() } else { 0 });
        Ok(())
    }

    /// Enqueues an event. Returns whether it is there.
    fn mark(&self, which: usize) -> bool {
        let event = self.events.get(which).copied().unwrap_or(null_mut());
        // SAFETY: an event and a stream of ours, of one context.
        !event.is_null() && unsafe { driver::cuEventRecord(event, self.stream) } == 0
    }

    /// Nanoseconds between both events; 0 if they are not known.
    fn elapsed_ns(&self) -> u64 {
        let ([begin, end], mut ms) = (self.events, 0f32);
        // SAFETY: room for the answer; both events were recorded, and the stream is done.
        let error = unsafe { driver::cuEventElapsedTime(&mut ms, begin, end) };
        if error == 0 { (f64::from(ms) * 1e6) as u64 } else { 0 }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        for event in self.events.into_iter().filter(|event| !event.is_null()) {
            // SAFETY: our own event, and nobody else knows it.
            unsafe { driver::cuEventDestroy_v2(event) };
        }
        // SAFETY: our own stream, and nobody else knows it.
        unsafe { driver::cuStreamDestroy_v2(self.stream) };
    }
}
