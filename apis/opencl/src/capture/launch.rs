//! `--capture-buffers`: contents of buffers before and after a launch.

use hetrace_interpose::ErrnoGuard;
use hetrace_interpose::ring::clock;
use hetrace_interpose::session;
use std::sync::atomic::Ordering;

use super::kernels;
use super::objects::{self, Argument, Kind};
use super::query::{Memory, word};
use super::reads::{self, Launch, Read, When, not_captured};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;
use hetrace_interpose::objects::Cause;

const CL_QUEUE_PROPERTIES: u32 = 0x1093;
const CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE: u64 = 1;
const CL_MEM_FLAGS: u32 = 0x1101;
const CL_MEM_SIZE: u32 = 0x1102;
/// `CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS`
const UNREADABLE: u64 = 1 << 7 | 1 << 9;
const CL_KERNEL_ARG_ADDRESS_GLOBAL: u32 = 0x119B;
const CL_KERNEL_ARG_ADDRESS_CONSTANT: u32 = 0x119D;

/// Most buffers of one launch.
const BUFFERS: usize = 64;
/// How long a launch waits for its buffers before it leaves them to later.
const PATIENCE: u64 = 10_000_000_000;

/// Enqueues a kernel by `call`, and stores what its buffers have before and
/// after if the user chose this launch.
///
/// # Safety
/// The arguments are those of a call that launches a kernel.
#[inline]
pub unsafe fn launch(
    time: u64,
    queue: P,
    kernel: P,
    waits: (u32, *const P),
    event: *mut P,
    call: impl FnOnce(*mut P) -> i32,
) -> i32 {
    if !objects::active() {
        return call(event);
    }
    // SAFETY: the arguments are those of a launch, and `call` makes that call: what `followed` wants.
    unsafe { followed(time, queue, kernel, waits, event, call) }
}

/// As [`launch`], when buffers of some launches are to be stored.
///
/// # Safety
/// `queue`, `kernel`, `waits` and `event` are those that `call` passes to the API, with what it gets in the place
/// of `event`; `waits` is a number and as many live events.
#[cold]
unsafe fn followed(
    time: u64,
    queue: P,
    kernel: P,
    waits: (u32, *const P),
    event: *mut P,
    call: impl FnOnce(*mut P) -> i32,
) -> i32 {
    let errno = ErrnoGuard::new();
    reads::harvest();
    let name = kernels::name(kernel);
    let Some(number) = objects::choose(name) else {
        drop(errno);
        return call(event);
    };
    let launch = Launch { cause: Cause::here(time), kernel, name, number };
    let capture = Capture {
        launch,
        queue,
        arguments: kernels::arguments(kernel),
        described: kernels::Described::new(kernel),
        in_order: in_order(queue),
        cap: session().map_or(0, |s| s.control().buffer_cap.load(Ordering::Relaxed)),
    };
    // In any order, a launch that waits for the program would come before a
    // reading that is not waited for.
    if capture.in_order || !objects::may_wait_for_program() {
        capture.read(When::Before, waits);
    } else {
        let why = b"before: out-of-order queue with incomplete user events";
        not_captured(launch, 0, null_mut(), why, 0);
    }
    drop(errno);
    let mut own = null_mut();
    let place = if event.is_null() { &raw mut own } else { event };
    let result = call(place);
    let _errno = ErrnoGuard::new();
    // SAFETY: a place of ours or the program's, filled in by a successful call.
    let enqueued = if result == 0 { unsafe { *place } } else { null_mut() };
    if !enqueued.is_null() {
        capture.read(When::After, (1, &raw const enqueued));
        if event.is_null() {
            // SAFETY: the reference is ours.
            unsafe { real::clReleaseEvent(enqueued) };
        }
    }
    result
}

fn in_order(queue: P) -> bool {
    let properties: Option<u64> = word(|size, at| {
        // SAFETY: room as said; for a wrong queue it returns an error.
        unsafe { real::clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, size, at, null_mut()) }
    });
    properties.is_some_and(|p| p & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE == 0)
}

/// One launch whose buffers are stored.
struct Capture {
    launch: Launch,
    queue: P,
    arguments: u32,
    /// Address spaces of arguments can be asked for.
    described: Option<kernels::Described>,
    in_order: bool,
    /// Most bytes of one buffer.
    cap: u64,
}

impl Capture {
    /// Reads all buffers, and waits for them if that is safe.
    fn read(&self, when: When, waits: (u32, *const P)) {
        let mut reads = [None; BUFFERS];
        let mut used = 0;
        for index in 0..self.arguments {
            let buffer = match objects::argument(self.launch.kernel, index) {
                Argument::Object(buffer, Kind::Buffer) => buffer,
                other => {
                    if when == When::Before {
                        self.leave_out(index, other);
                    }
                    continue;
                }
            };
            let Some(place) = reads.get_mut(used) else {
                not_captured(self.launch, index, buffer, b"too many buffers", 0);
                continue;
            };
            match self.enqueue(when, index, buffer, waits) {
                Ok(read) => {
                    *place = Some(read);
                    used += 1;
                }
                Err((why, code)) if when == When::Before || code != 0 => {
                    not_captured(self.launch, index, buffer, why, code);
                }
                Err(_) => {}
            }
        }
        self.settle(when, &reads);
    }

    /// Says why an argument that looks like memory is not stored.
    fn leave_out(&self, index: u32, argument: Argument) {
        let in_memory = || {
            let space = self.described.and_then(|d| d.address(index));
            matches!(space, Some(CL_KERNEL_ARG_ADDRESS_GLOBAL | CL_KERNEL_ARG_ADDRESS_CONSTANT))
        };
        let (value, why): (u64, &[u8]) = match argument {
            Argument::Object(object, Kind::Image) => (object as u64, b"image"),
            Argument::Object(object, _) => (object as u64, b"pipe"),
            Argument::Shared(address) => (address, b"shared virtual memory"),
            Argument::Value(value) if value != 0 && in_memory() => {
                (value, b"memory object of unknown origin")
            }
            Argument::Other if in_memory() => (0, b"set by an unknown call"),
            Argument::Value(_) | Argument::Other => return,
        };
        not_captured(self.launch, index, value as P, why, 0);
    }

    /// Enqueues the reading of a buffer. Fails with a reason and an error.
    fn enqueue(
        &self,
        when: When,
        index: u32,
        buffer: P,
        (waits, list): (u32, *const P),
    ) -> Result<Read, (&'static [u8], i32)> {
        let ask = |name| {
            word::<u64>(|size, at| {
                // SAFETY: room as said; the object is alive.
                unsafe { real::clGetMemObjectInfo(buffer, name, size, at, null_mut()) }
            })
        };
        let size = ask(CL_MEM_SIZE).ok_or((&b"its size is not known"[..], 0))?;
        if ask(CL_MEM_FLAGS).is_some_and(|f| f & UNREADABLE != 0) {
            return Err((b"its flags forbid the host to read it", 0));
        }
        let bytes = size.min(self.cap);
        if bytes == 0 {
            return Err((b"--capture-size is 0", 0));
        }
        if !reads::room(bytes) {
            return Err((b"too many bytes waiting to be read", 0));
        }
        let memory = Memory::new(bytes as usize).ok_or((&b"no memory"[..], 0))?;
        let mut event = null_mut();
        // SAFETY: room as said, which stays until the command has ended; list
        // and count are the program's, or one event.
        let error = unsafe {
            let at = memory.at().cast();
            real::clEnqueueReadBuffer(self.queue, buffer, 0, 0, bytes, at, waits, list, &mut event)
        };
        if error != 0 || event.is_null() {
            return Err((b"read failed", error));
        }
        Ok(Read {
            launch: self.launch,
            when,
            index,
            buffer,
            size,
            at: memory.leak(),
            bytes: bytes as usize,
            event,
            void: false,
            waited: true,
        })
    }

    /// Waits for the readings, stores those that ended, leaves the others.
    fn settle(&self, when: When, reads: &[Option<Read>]) {
        let mut gated = objects::may_wait_for_program();
        if !gated && reads.iter().any(Option::is_some) {
            // SAFETY: the program's queue.
            unsafe { real::clFlush(self.queue) };
        }
        let start = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        let mut pause = 20_000;
        for read in reads.iter().flatten() {
            let mut status = read.status();
            while status > 0 && !gated {
                let time = libc::timespec { tv_sec: 0, tv_nsec: pause };
                // SAFETY: a valid duration, and no remainder is asked for.
                unsafe { libc::nanosleep(&time, null_mut()) };
                pause = (pause * 3 / 2).min(1_000_000);
                status = read.status();
                gated = clock::nanoseconds(libc::CLOCK_MONOTONIC).wrapping_sub(start) > PATIENCE;
            }
            if status <= 0 {
                read.finish(status);
            } else {
                let void = when == When::Before && !self.in_order;
                reads::defer(Read { void, waited: false, ..*read });
            }
        }
    }
}
