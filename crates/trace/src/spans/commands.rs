//! Commands on devices.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor};
use hetrace_format::command::Decoder;
pub use hetrace_format::command::{CommandKind, Direction, Geometry, MemoryKind, Sizes, Times};

use crate::trace::{CommandFields, Device, Kernel, Names, Queue};

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

    /// Of an event; `start` is its time.
    pub(super) fn read(
        fields: &'e CommandFields,
        names: &'e Names,
        event: &Event<'e, 'e>,
        start: u64,
        pid: i64,
    ) -> Self {
        let picked = event.payload().and_then(|data| Self::picked(fields, names, data, start, pid));
        picked.unwrap_or_else(|| {
            let mut reader =
                Reader { fields, decoder: Decoder::new(fields.kind), at: 0, element: 0, depth: 0 };
            // What is damaged has been reported by the walk; the rest of it is 0.
            let _ = event.visit(Scope::EventFields, &mut reader);
            Self::new(reader.decoder, fields, names, start, pid)
        })
    }

    /// The same of the payload alone, if there is a quick way to read it.
    pub(super) fn picked(
        fields: &'e CommandFields,
        names: &'e Names,
        payload: &'e [u8],
        start: u64,
        pid: i64,
    ) -> Option<Self> {
        let (picker, mut decoder) = (fields.picker.as_ref()?, Decoder::new(fields.kind));
        let whole = picker.pick(payload, |position, element, value| {
            if let Some(Some(field)) = fields.parts.get(position) {
                decoder.set(*field, element, value.scalar());
            }
        });
        whole.then(|| Self::new(decoder, fields, names, start, pid))
    }

    /// What all fields together say.
    fn new(decoder: Decoder, fields: &CommandFields, names: &'e Names, start: u64, pid: i64) -> Self {
        let hetrace_format::command::Command {
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
        } = decoder.command(start, fields.untimed);
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

/// Takes the fields of a command as they come, where there is no quick way.
struct Reader<'f> {
    fields: &'f CommandFields,
    decoder: Decoder,
    /// Position of the field, and of the element in it.
    at: usize,
    element: usize,
    depth: u32,
}

impl<'e> FieldVisitor<'e> for Reader<'_> {
    fn scalar(&mut self, _: FieldRef<'e>, value: Scalar<'e>) {
        if self.depth == 0 {
            self.element = 0;
        }
        if let Some(Some(field)) = self.fields.parts.get(self.at) {
            self.decoder.set(*field, self.element, value);
        }
        self.element += 1;
        self.at += usize::from(self.depth == 0);
    }

    fn begin_struct(&mut self, _: FieldRef<'e>) {
        self.depth += 1;
    }

    fn end_struct(&mut self, _: FieldRef<'e>) {
        self.leave();
    }

    fn begin_array(&mut self, _: FieldRef<'e>, _: u64) {
        self.depth += 1;
        self.element = 0;
    }

    fn end_array(&mut self, _: FieldRef<'e>) {
        self.leave();
    }

    fn begin_variant(&mut self, _: FieldRef<'e>, _: &'e str) {
        self.depth += 1;
    }

    fn end_variant(&mut self, _: FieldRef<'e>) {
        self.leave();
    }
}

impl Reader<'_> {
    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.at += usize::from(self.depth == 0);
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
