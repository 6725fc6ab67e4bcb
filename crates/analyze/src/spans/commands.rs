//! Commands on devices.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::Event;

use crate::trace::{CommandFields, QueueFields};

/// When a command was where, in nanoseconds on the trace's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// In the queue.
    pub queued: u64,
    /// On the device.
    pub submitted: u64,
    /// Running.
    pub start: u64,
    /// Done.
    pub end: u64,
}

impl Times {
    /// How long it ran.
    pub fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// A command on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Command<'e> {
    /// What it is: `kernel`, `read`, `write`, …
    pub kind: &'e str,
    /// The kernel's name, or empty.
    pub name: &'e str,
    /// The process.
    pub pid: i64,
    /// Handle of its queue.
    pub queue: u64,
    /// Handle of its context.
    pub context: u64,
    /// Handle of its device.
    pub device: u64,
    /// The thread that enqueued it.
    pub cause_tid: i64,
    /// When the call that enqueued it began: exactly the time of its entry.
    pub cause: u64,
    /// Its times; none if they could not be known.
    pub times: Option<Times>,
    /// Why they could not, as the API says.
    pub times_error: i64,
    /// Bytes moved.
    pub bytes: u64,
    /// Negative if it failed.
    pub status: i64,
}

impl<'e> Command<'e> {
    /// What people look for: the kernel's name, else the kind.
    pub fn title(&self) -> &'e str {
        if self.name.is_empty() { self.kind } else { self.name }
    }

    /// Whether the device reports an error.
    pub fn failed(&self) -> bool {
        self.status < 0
    }

    /// A number that the command shares with the call that caused it and,
    /// barring accidents of one in 2^64, with nothing else.
    pub fn cause_id(&self) -> u64 {
        cause_id(self.pid, self.cause_tid, self.cause)
    }

    pub(super) fn read(fields: &'e CommandFields, event: &Event<'e, 'e>, start: u64, pid: i64) -> Self {
        let get = |field: Option<usize>| event.get_at(Scope::EventFields, field?);
        let unsigned = |field| get(field).and_then(Scalar::as_u64).unwrap_or(0);
        let signed = |field| get(field).and_then(Scalar::as_i64).unwrap_or(0);
        let text = |field| get(field).and_then(Scalar::as_str);
        let or_start = |field| get(field).and_then(Scalar::as_u64).unwrap_or(start);
        Self {
            kind: text(fields.kind_field).unwrap_or(&fields.kind),
            name: text(fields.name).unwrap_or(""),
            pid,
            queue: unsigned(fields.queue),
            context: unsigned(fields.context),
            device: unsigned(fields.device),
            cause_tid: signed(fields.cause_tid),
            cause: unsigned(fields.cause),
            times: (!fields.untimed).then(|| Times {
                queued: or_start(fields.queued),
                submitted: or_start(fields.submitted),
                start,
                end: or_start(fields.end),
            }),
            times_error: signed(fields.times_error),
            bytes: unsigned(fields.bytes),
            status: signed(fields.status),
        }
    }
}

/// The number of a call by which the commands that it enqueues name it (see
/// [`Command::cause_id`]); `start` is when it began.
pub fn cause_id(pid: i64, tid: i64, start: u64) -> u64 {
    // The finalizer of MurmurHash3 over the three, one after the other.
    let mix = |mut x: u64| {
        x = (x ^ (x >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        x = (x ^ (x >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        x ^ (x >> 33)
    };
    mix(mix(mix(pid as u64) ^ tid as u64) ^ start).max(1)
}

/// A queue that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewQueue<'e> {
    /// The process.
    pub pid: i64,
    /// Its handle.
    pub queue: u64,
    /// Handle of its context.
    pub context: u64,
    /// Handle of its device.
    pub device: u64,
    /// Name of its device.
    pub name: &'e str,
}

impl<'e> NewQueue<'e> {
    pub(super) fn read(fields: &QueueFields, event: &Event<'e, 'e>, pid: i64) -> Self {
        let get = |field: Option<usize>| event.get_at(Scope::EventFields, field?);
        let unsigned = |field| get(field).and_then(Scalar::as_u64).unwrap_or(0);
        Self {
            pid,
            queue: unsigned(fields.queue),
            context: unsigned(fields.context),
            device: unsigned(fields.device),
            name: get(fields.name).and_then(Scalar::as_str).unwrap_or(""),
        }
    }
}
