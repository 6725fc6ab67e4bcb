//! What a collector says: records of commands, and how far all is known.

use std::ffi::CStr;

use hetrace_ring::abi::{CommandRecord, PendingRecord, option, special};
use hetrace_ring::clock::ticks;

use super::{Depth, Enqueued, Times};
use crate::call::{count_commands, record_with_text};
use crate::room::{await_room, has_room};
use crate::session;

/// Where a collector's findings go.
pub(super) trait Report {
    /// Whether the record of one more command has a place.
    fn has_room(&mut self) -> bool;
    /// Records a command. Returns whether that worked.
    fn command(&mut self, command: &CommandRecord, name: &CStr) -> bool;
    /// A command that was counted as enqueued is not in flight any more.
    fn counted(&mut self);
    /// Says what was lost and what is left. Returns whether that worked.
    fn pending(&mut self, pending: &PendingRecord) -> bool;
}

/// Bytes that a ring must have free before a command is recorded. With less a ring is exchanged for
/// a larger one while it still has room, so this keeps no ring from growing.
const ROOM: usize = hetrace_ring::record::MAX_RECORD;

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
    fn has_room(&mut self) -> bool {
        if self.waits || has_room(ROOM) {
            return true;
        }
        // Once the launcher did not get there in time, it is not waited for again.
        self.last = self.last && await_room(ROOM);
        self.last
    }

    fn command(&mut self, command: &CommandRecord, name: &CStr) -> bool {
        record_with_text(special::COMMAND, command, name)
    }

    fn counted(&mut self) {
        count_commands(0, 1);
    }

    fn pending(&mut self, pending: &PendingRecord) -> bool {
        record_with_text(special::PENDING, pending, c"")
    }
}

/// The record of a command that has ended.
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
