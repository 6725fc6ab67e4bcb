//! What a collector says: records of commands, and how far all is known.

use std::ffi::CStr;

use hetrace_ring::abi::{CommandRecord, PendingRecord, option, special};
use hetrace_ring::clock::ticks;

use super::{Depth, Enqueued, Times};
use crate::call::count_commands;
use crate::put::Put;
use crate::record::{record_here, record_with_text};
use crate::room::{await_room, free_bytes, has_room};
use crate::session;

/// Where a collector's findings go.
pub(super) trait Report {
    /// Returns how many bytes of records the next ones may have until this is called again, of which
    /// the last record may begin in the last byte; 0 if there is no room for another.
    fn room(&mut self) -> usize;
    /// Records a command. Returns whether that worked.
    fn command(&mut self, command: &Enqueued, times: &Times, name: &CStr) -> bool;
    /// So many commands that were counted as enqueued are not in flight any more.
    fn counted(&mut self, commands: u64);
    /// Says what was lost and what is left. Returns whether that worked.
    fn pending(&mut self, pending: &PendingRecord) -> bool;
}

/// Bytes that a ring must have free before a command is recorded. With less a ring is exchanged for
/// a larger one while it still has room, so this keeps no ring from growing.
const ROOM: usize = hetrace_ring::record::MAX_RECORD;
/// With as much more there is one look for all records that it has room for.
const AT_ONCE: usize = 16 << 10;
/// Bytes of a command's record without the name, and of what a backend may record when it is asked:
/// how clocks compare.
pub(super) const MOST_BUT_NAME: usize = size_of::<CommandRecord>() + 128;

/// The ring of this thread.
#[derive(Debug)]
pub(super) struct Ring {
    /// Whether a record without room waits by itself.
    waits: bool,
    /// The process ends: this is worth a wait.
    last: bool,
}

impl Ring {
    pub(super) fn new(depth: Depth) -> Self {
        Ring { waits: session().is_some_and(|s| s.option(option::BLOCK)), last: depth == Depth::Last }
    }
}

impl Report for Ring {
    fn room(&mut self) -> usize {
        if self.waits {
            return AT_ONCE;
        }
        // Once the launcher did not get there in time, it is not waited for again.
        if !has_room(ROOM) {
            self.last = self.last && await_room(ROOM);
            return usize::from(self.last);
        }
        free_bytes().saturating_sub(ROOM).clamp(1, AT_ONCE)
    }

    #[inline(always)]
    fn command(&mut self, command: &Enqueued, times: &Times, name: &CStr) -> bool {
        // SAFETY: `Finished` reads nothing but what it has references to.
        unsafe { record_here(special::COMMAND, Finished { command, times, name }) }
    }

    fn counted(&mut self, commands: u64) {
        count_commands(0, commands);
    }

    fn pending(&mut self, pending: &PendingRecord) -> bool {
        record_with_text(special::PENDING, pending, c"")
    }
}

/// The body of a command's record, which is made where it is to stand.
#[derive(Clone, Copy)]
struct Finished<'c> {
    command: &'c Enqueued,
    times: &'c Times,
    name: &'c CStr,
}

impl Put for Finished<'_> {
    #[inline(always)]
    fn size(&self) -> usize {
        size_of::<CommandRecord>() + self.name.count_bytes() + 1
    }

    #[inline(always)]
    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        let text = self.name.to_bytes_with_nul();
        // SAFETY: contract of `put`: room for `size` bytes, which are a record's and the text's with
        // its NUL. Records are packed, so the store is unaligned.
        unsafe {
            at.cast::<CommandRecord>().write_unaligned(record(self.command, self.times));
            let at = at.add(size_of::<CommandRecord>());
            at.copy_from_nonoverlapping(text.as_ptr(), text.len());
            at.add(text.len())
        }
    }
}

/// The record of a command that has ended.
#[inline(always)]
pub(super) fn record(command: &Enqueued, times: &Times) -> CommandRecord {
    let [from, to] = command.memory;
    CommandRecord {
        cause_tid: command.cause_tid,
        kind: command.kind,
        dimensions: command.dimensions,
        from,
        to,
        cause: command.cause,
        returned: if times.apart { 0 } else { command.returned },
        observed: if times.apart { 0 } else { ticks() },
        queue: command.queue,
        device: command.device,
        function: command.function,
        bytes: command.bytes,
        queued: times.queued,
        submitted: times.submitted,
        start: times.start,
        end: times.end,
        status: times.status,
        times_error: times.error,
        geometry: command.geometry,
        flags: command.flags,
        shared: command.shared,
        weight: command.weight.into(),
        graph: command.graph,
        node: command.node.into(),
        ..CommandRecord::default()
    }
}

/// The text at an address; empty if that is NULL.
///
/// # Safety
/// NULL, or a NUL-terminated text that stays for as long as it is used.
pub unsafe fn text<'t>(at: *const u8) -> &'t CStr {
    // SAFETY: a text, by the contract.
    if at.is_null() { c"" } else { unsafe { CStr::from_ptr(at.cast()) } }
}
