//! Queues, and immediate lists, which are queues too: described in each session before their first command.

use hetrace_interpose::record_with_text;
use hetrace_interpose::ring::abi::{QueueRecord, special};
use hetrace_interpose::table::Table;
use hetrace_interpose::window::session_key;

use super::{clock, waits};
use crate::generated::prelude::P;

/// Handle → the session in which it was described.
static DESCRIBED: Table<16384> = Table::new();

/// The program was given a queue. Its handle may have been another's.
pub fn made(queue: P, context: P, device: P, priority: i32) {
    waits::forget(queue);
    describe(queue, context, device, priority);
}

/// A queue is about to be destroyed.
pub fn gone(queue: P) {
    DESCRIBED.remove(queue as u64);
    waits::forget(queue);
}

/// A command goes there, by a list of this context and device: it is described if this session does not know it.
pub fn used(queue: P, context: P, device: P) {
    if DESCRIBED.get(queue as u64) != Some(session_key()) {
        describe(queue, context, device, 0);
    }
}

fn describe(queue: P, context: P, device: P, priority: i32) {
    let Some(device) = clock::of(device) else { return };
    DESCRIBED.set(queue as u64, session_key());
    let record = QueueRecord {
        queue: queue as u64,
        context: context as u64,
        device: device.key(),
        resolution: device.resolution(),
        priority,
        ..QueueRecord::default()
    };
    record_with_text(special::QUEUE, &record, c"");
}
