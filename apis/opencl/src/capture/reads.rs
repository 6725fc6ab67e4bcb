//! `--capture-buffers`: contents on their way from the device.
//!
//! A content is read by a command of its own. Whoever launched waits for it,
//! but not when that could mean waiting for the program itself: then it is
//! left here, and stored when the program synchronizes.

use std::sync::atomic::{AtomicBool, Ordering};

use hetrace_interpose::commands::waiting::Waiting;
use hetrace_interpose::ring::abi::{ObjectRecord, object};
use hetrace_interpose::{ErrnoGuard, pid};

use super::query::{Memory, word};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;
use hetrace_interpose::objects::{Cause, record_object, store};

const CL_EVENT_COMMAND_EXECUTION_STATUS: u32 = 0x11D3;

/// The launch that a content belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    pub cause: Cause,
    pub kernel: P,
    pub name: &'static [u8],
    /// Counted from 0 for each name.
    pub number: u64,
}

/// Before or after the launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Before,
    After,
}

impl When {
    fn name(self) -> &'static [u8] {
        match self {
            When::Before => b"before",
            When::After => b"after",
        }
    }
}

/// A content that is being read.
#[derive(Debug, Clone, Copy)]
pub struct Read {
    pub launch: Launch,
    pub when: When,
    pub index: u32,
    pub buffer: P,
    /// Bytes of the whole buffer.
    pub size: u64,
    /// Where the content goes, and how much of it.
    pub at: *mut u8,
    pub bytes: usize,
    /// The reading command.
    pub event: P,
    /// Commands that overtook it may have changed it: not to be believed.
    pub void: bool,
    /// The launch waited until it was read.
    pub waited: bool,
}

impl Read {
    /// Status of the reading command: positive while it is in flight.
    pub fn status(&self) -> i32 {
        let status = word::<i32>(|size, at| {
            // SAFETY: room as said; the event is live, we own a reference.
            unsafe {
                real::clGetEventInfo(self.event, CL_EVENT_COMMAND_EXECUTION_STATUS, size, at, null_mut())
            }
        });
        status.unwrap_or(-1)
    }

    /// Stores the content of a finished command, and gives everything back.
    pub fn finish(self, status: i32) {
        // SAFETY: leaked for this command, which has ended.
        let memory = unsafe { Memory::again(self.at, self.bytes) };
        // SAFETY: the reference is ours.
        unsafe { real::clReleaseEvent(self.event) };
        if status < 0 {
            return not_captured(self.launch, self.index, self.buffer, b"read failed", status);
        }
        if self.void {
            let why = b"the kernel may have run before the read";
            return not_captured(self.launch, self.index, self.buffer, why, 0);
        }
        let record = ObjectRecord {
            what: object::BUFFER,
            object: self.launch.kernel as u64,
            other: self.buffer as u64,
            number: self.launch.number,
            length: self.size,
            stored: self.bytes as u64,
            hash: store(memory.bytes()),
            index: self.index,
            code: i32::from(self.waited),
            ..ObjectRecord::default()
        };
        record_object(self.launch.cause, record, &[self.launch.name, self.when.name()]);
    }
}

/// Says that an argument of a launch is not stored, and why.
pub fn not_captured(launch: Launch, index: u32, value: P, why: &[u8], code: i32) {
    let record = ObjectRecord {
        what: object::NOT_CAPTURED,
        object: launch.kernel as u64,
        other: value as u64,
        number: launch.number,
        index,
        code,
        ..ObjectRecord::default()
    };
    record_object(launch.cause, record, &[launch.name, why]);
}

// SAFETY: `launch.cause` is numbers; the handles are those of the API, which any thread may ask by them; `at` is memory of
// our own that nobody but the reading command touches before the one that has this value takes it up.
unsafe impl Send for Read {}

/// The contents that are waited for.
static READS: Waiting<Read, 256> = Waiting::new();
/// Most bytes that may wait, so that a program which waits for nothing does
/// not run out of memory.
const MOST: u64 = 256 << 20;

/// Whether so much more may wait.
pub fn room(bytes: u64) -> bool {
    let there = READS.bytes(pid());
    there == 0 || there.saturating_add(bytes) <= MOST
}

/// Leaves a content to be stored later.
pub fn defer(read: Read) {
    static AT_EXIT: AtomicBool = AtomicBool::new(false);
    if !AT_EXIT.swap(true, Ordering::Relaxed) {
        // SAFETY: a function that lives as long as this library.
        unsafe { libc::atexit(at_exit) };
    }
    if !READS.leave(pid(), read.bytes as u64, read) {
        // Its memory stays: the command will still write there.
        not_captured(read.launch, read.index, read.buffer, b"too many reads in flight", 0);
    }
}

/// Stores the contents whose commands have ended since.
#[inline]
pub fn harvest() {
    if READS.may_have_some() {
        look(|read| {
            let status = read.status();
            if status <= 0 {
                read.finish(status);
            }
            status <= 0
        });
    }
}

/// Offers each content to `done`, which says whether it is done with it.
#[cold]
fn look(done: impl FnMut(Read) -> bool) {
    let _errno = ErrnoGuard::new();
    READS.each(pid(), done);
}

extern "C" fn at_exit() {
    harvest();
    if READS.may_have_some() {
        look(|read| {
            not_captured(read.launch, read.index, read.buffer, b"in flight when the program ended", 0);
            true
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: usize) -> Read {
        let cause = Cause::here(1);
        let launch = Launch { cause, kernel: null_mut(), name: b"k", number: 0 };
        let (at, event) = (null_mut(), null_mut());
        let (size, buffer) = (bytes as u64, null_mut());
        Read {
            launch,
            when: When::After,
            index: 2,
            buffer,
            size,
            at,
            bytes,
            event,
            void: false,
            waited: true,
        }
    }

    /// All that depends on what waits: one step after the other.
    #[test]
    fn contents_wait_until_their_commands_have_ended() {
        const PAGE: usize = 4096;
        assert!(room(MOST + 1), "one alone may be as large as it likes");
        defer(read(MOST as usize - 10 * PAGE));
        assert!(room(10 * PAGE as u64) && !room(10 * PAGE as u64 + 1));
        defer(read(5));
        assert!(!room(10 * PAGE as u64), "5 bytes take a page");
        let seen = || {
            let mut seen = Vec::new();
            look(|read| {
                seen.push(read.bytes);
                true
            });
            seen
        };
        assert_eq!(seen(), [MOST as usize - 10 * PAGE, 5]);
        assert!(seen().is_empty() && room(MOST + 1));
    }
}
