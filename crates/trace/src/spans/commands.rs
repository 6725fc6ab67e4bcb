//! Commands on devices.

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Event;
use hetrace_format::command;
pub use hetrace_format::command::{CommandKind, Direction, Geometry, MemoryKind, Sizes, Times};

use crate::trace::{Device, Kernel, Names, Queue};

/// A command on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Command<'e> {
    /// What it does.
    pub kind: CommandKind,
    /// The function's name as the API reports it, or empty.
    pub name: &'e str,
    /// The function, if it has one that is known.
    pub function: Option<&'e Kernel>,
    /// The process.
    pub pid: i64,
    /// Handle of its queue.
    pub queue: u64,
    /// Its queue, which is not that of the same handle before.
    pub on_queue: Option<&'e Queue>,
    /// Handle of its context.
    pub context: u64,
    /// Handle of its device.
    pub device: u64,
    /// Its device.
    pub on_device: Option<&'e Device>,
    /// The other device, of a copy between two.
    pub peer: Option<&'e Device>,
    /// The thread that enqueued it; 0 if it is not known.
    pub cause_tid: i64,
    /// When the call that enqueued it began: exactly the time of its entry; 0
    /// if it is not known.
    pub cause: u64,
    /// Its times; none if they could not be known.
    pub times: Option<Times>,
    /// Why they could not, as the API says.
    pub times_error: i64,
    /// Bytes moved.
    pub bytes: u64,
    /// Where they came from.
    pub from: MemoryKind,
    /// Where they went.
    pub to: MemoryKind,
    /// Negative if it failed.
    pub status: i64,
    /// How it was launched.
    pub geometry: Geometry,
    /// Bytes of local memory that the launch asked for.
    pub shared: u64,
    /// The graph it was launched with; 0 if none.
    pub graph: u64,
    /// Its node of the graph.
    pub node: u64,
    /// How many launches it stands for.
    pub weight: u64,
}

impl<'e> Command<'e> {
    /// Returns the handle by which calls name its queue; 0 for the default one, whichever value
    /// stands for it.
    pub fn named_queue(&self) -> u64 {
        if self.on_queue.is_some_and(|q| q.default) { 0 } else { self.queue }
    }

    /// What people look for: the function's name, else the kind.
    pub fn title(&self) -> &'e str {
        if self.name.is_empty() { self.kind.name() } else { self.name }
    }

    /// Where it moves bytes; none if it moves nothing, or if it is not known where.
    pub fn direction(&self) -> Option<Direction> {
        Direction::of(self.kind, self.from, self.to, self.peer.is_some())
    }

    /// Whether the device reports an error.
    pub fn failed(&self) -> bool {
        self.status < 0
    }

    /// The name of its device, or empty.
    pub fn device_name(&self) -> &'e str {
        self.on_device.map_or("", |d| &d.name)
    }

    /// A number that the command shares with the call that caused it and,
    /// barring accidents of one in 2^64, with nothing else.
    pub fn cause_id(&self) -> u64 {
        cause_id(self.pid, self.cause_tid, self.cause)
    }

    /// The same with what `names` has, for those who keep it longer than its event.
    pub fn of<'t>(&self, names: &'t Names) -> Command<'t> {
        let function = self.function.and_then(|f| names.kernel(f.id));
        let on_device = self.on_device.and_then(|d| names.device(d.id));
        Command {
            name: function.map_or("", |f| &f.name),
            function,
            on_queue: self.on_queue.and_then(|q| names.queue(q.id)),
            on_device,
            peer: self.peer.and_then(|d| names.device(d.id)),
            ..*self
        }
    }

    /// With what the numbers in it stand for; `pid` is the process whose event it is.
    #[inline(always)]
    pub(super) fn new(command: &command::Command, names: &'e Names, pid: i64) -> Self {
        let command::Command {
            kind,
            queue,
            cause_tid,
            cause,
            times,
            seen: _,
            times_error,
            function,
            bytes,
            from,
            to,
            peer,
            status,
            shared,
            geometry,
            graph,
            node,
            weight,
        } = *command;
        let on_queue = names.queue(queue);
        let on_device = on_queue.and_then(|q| names.device(q.device));
        let function = names.kernel(function);
        Command {
            kind,
            name: function.map_or("", |f| &f.name),
            function,
            pid,
            queue: on_queue.map_or(0, |q| q.handle),
            on_queue,
            context: on_queue.map_or(0, |q| q.context),
            device: on_device.map_or(0, |d| d.handle),
            on_device,
            peer: names.device(peer),
            cause_tid: cause_tid.into(),
            cause: cause.unwrap_or(0),
            times,
            times_error: times_error.into(),
            bytes,
            from,
            to,
            status: status.into(),
            geometry,
            shared: shared.into(),
            graph: graph.into(),
            node,
            weight,
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
    /// All that is known of it.
    pub about: &'e Queue,
}

impl<'e> NewQueue<'e> {
    pub(super) fn read(names: &'e Names, event: &Event<'e, 'e>) -> Option<Self> {
        let number = event.get("queue").and_then(Scalar::as_u64)?;
        let about = names.queue(u32::try_from(number).ok()?)?;
        let device = names.device(about.device);
        Some(Self {
            pid: about.pid,
            queue: about.handle,
            context: about.context,
            device: device.map_or(0, |d| d.handle),
            name: device.map_or("", |d| &d.name),
            about,
        })
    }
}
