//! Packets on their way out.

use std::io;

use super::part::Parts;
use super::proto::Message;

/// Numbers of the fields, as Perfetto's `.proto` files have them.
pub(super) mod field {
    pub const TRACE_PACKET: u32 = 1;

    pub mod packet {
        pub const CLOCK_SNAPSHOT: u32 = 6;
        pub const TIMESTAMP: u32 = 8;
        pub const SEQUENCE_ID: u32 = 10;
        pub const TRACK_EVENT: u32 = 11;
        pub const INTERNED_DATA: u32 = 12;
        pub const SEQUENCE_FLAGS: u32 = 13;
        pub const DEFAULTS: u32 = 59;
        pub const TRACK_DESCRIPTOR: u32 = 60;
    }

    pub mod defaults {
        pub const TIMESTAMP_CLOCK_ID: u32 = 58;
    }

    pub mod clocks {
        pub const CLOCK: u32 = 1;
        pub const PRIMARY: u32 = 2;
        pub const ID: u32 = 1;
        pub const TIMESTAMP: u32 = 2;
    }

    pub mod interned {
        pub const CATEGORY: u32 = 1;
        pub const EVENT_NAME: u32 = 2;
        pub const ANNOTATION_NAME: u32 = 3;
        pub const IID: u32 = 1;
        pub const TEXT: u32 = 2;
    }

    pub mod track {
        pub const UUID: u32 = 1;
        pub const NAME: u32 = 2;
        pub const PROCESS: u32 = 3;
        pub const THREAD: u32 = 4;
        pub const PARENT: u32 = 5;
        pub const COUNTER: u32 = 8;
        pub const CHILD_ORDERING: u32 = 11;
        pub const RANK: u32 = 12;
        /// Children are shown by their ranks.
        pub const EXPLICIT: u64 = 3;
        pub const PROCESS_PID: u32 = 1;
        pub const PROCESS_CMDLINE: u32 = 2;
        pub const PROCESS_NAME: u32 = 6;
        pub const THREAD_PID: u32 = 1;
        pub const THREAD_TID: u32 = 2;
        pub const THREAD_NAME: u32 = 5;
    }

    pub mod counter {
        pub const UNIT: u32 = 3;
        pub const UNIT_NAME: u32 = 6;
        pub const COUNT: u64 = 2;
        pub const BYTES: u64 = 3;
    }

    pub mod event {
        pub const CATEGORY: u32 = 3;
        pub const ANNOTATION: u32 = 4;
        pub const TYPE: u32 = 9;
        pub const NAME: u32 = 10;
        pub const TRACK: u32 = 11;
        /// Names that are not interned.
        pub const CATEGORY_ITSELF: u32 = 22;
        pub const NAME_ITSELF: u32 = 23;
        pub const COUNTER_VALUE: u32 = 30;
        pub const DOUBLE_COUNTER_VALUE: u32 = 44;
        pub const FLOW: u32 = 47;
        /// A flow that ends here.
        pub const LAST_OF_FLOW: u32 = 48;
        pub const BEGIN: u64 = 1;
        pub const END: u64 = 2;
        pub const INSTANT: u64 = 3;
        pub const COUNTER: u64 = 4;
    }

    pub mod annotation {
        pub const NAME: u32 = 1;
        pub const UINT: u32 = 3;
        pub const INT: u32 = 4;
        pub const DOUBLE: u32 = 5;
        pub const STRING: u32 = 6;
        pub const POINTER: u32 = 7;
        pub const NAME_ITSELF: u32 = 10;
        pub const ARRAY: u32 = 12;
    }
}

use field::{clocks, defaults, packet};

const CLOCK_REALTIME: u64 = 1;
const CLOCK_MONOTONIC: u64 = 3;
/// All packets are of one sequence, whose names are interned once.
const SEQUENCE: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
/// Bytes gathered before they are written.
const CHUNK: usize = 64 * 1024;

/// Gathers packets of one file after the other.
#[derive(Debug, Default)]
pub(super) struct Packets {
    chunk: Message,
    /// Bytes of this file that are written already.
    written: u64,
}

impl Packets {
    /// Begins a file whose first event is at `first`; `epoch` is what has to be
    /// added for the time since the Unix epoch.
    pub fn begin_file(&mut self, first: u64, epoch: Option<i64>) {
        self.chunk.clear();
        self.written = 0;
        self.chunk.message(field::TRACE_PACKET, |p| {
            p.varint(packet::SEQUENCE_ID, SEQUENCE);
            p.varint(packet::SEQUENCE_FLAGS, STATE_CLEARED);
            p.message(packet::DEFAULTS, |d| {
                d.varint(defaults::TIMESTAMP_CLOCK_ID, CLOCK_MONOTONIC);
            });
            p.message(packet::CLOCK_SNAPSHOT, |s| {
                let wall = epoch.and_then(|e| first.checked_add_signed(e));
                let clocks = [(CLOCK_MONOTONIC, Some(first)), (CLOCK_REALTIME, wall)];
                for (id, time) in clocks {
                    let Some(time) = time else { continue };
                    s.message(clocks::CLOCK, |c| {
                        c.varint(clocks::ID, id);
                        c.varint(clocks::TIMESTAMP, time);
                    });
                }
                s.varint(clocks::PRIMARY, CLOCK_MONOTONIC);
            });
        });
    }

    /// Adds a packet.
    #[inline]
    pub fn add(&mut self, out: &mut dyn Parts, write: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.chunk.message(field::TRACE_PACKET, |p| {
            p.append(&HEAD);
            write(p);
        });
        if self.chunk.bytes().len() >= CHUNK {
            return self.flush(out);
        }
        Ok(())
    }

    /// Writes what has been gathered.
    pub fn flush(&mut self, out: &mut dyn Parts) -> io::Result<()> {
        out.write_all(self.chunk.bytes())?;
        self.written += self.chunk.bytes().len() as u64;
        self.chunk.clear();
        Ok(())
    }

    /// Bytes of this file.
    pub fn bytes(&self) -> u64 {
        self.written + self.chunk.bytes().len() as u64
    }
}

/// Sequence and flags, which all packets but the first have.
const HEAD: [u8; 4] = [
    (packet::SEQUENCE_ID << 3) as u8,
    SEQUENCE as u8,
    (packet::SEQUENCE_FLAGS << 3) as u8,
    NEEDS_STATE as u8,
];
