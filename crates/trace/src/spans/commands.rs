//! Commands on devices.

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, FieldRef, FieldVisitor, Picked};

use crate::trace::{CommandFields, Device, Kernel, Names, Part, Queue};

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

/// A size for each dimension; empty where none was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sizes {
    all: [u64; 3],
    dimensions: u8,
}

impl Sizes {
    /// As many as there are dimensions.
    pub fn as_slice(&self) -> &[u64] {
        self.all.get(..usize::from(self.dimensions)).unwrap_or(&[])
    }

    /// Whether none was given.
    pub fn is_empty(&self) -> bool {
        self.dimensions == 0
    }

    /// Of all dimensions together, saturating; 1 if none was given.
    pub fn product(&self) -> u64 {
        self.as_slice().iter().fold(1, |all, n| all.saturating_mul(*n))
    }

    fn set(&mut self, index: usize, size: u64) {
        if let Some(place) = self.all.get_mut(index) {
            *place = size;
            self.dimensions = self.dimensions.max(index as u8 + 1);
        }
    }
}

/// How a kernel was launched, in work-items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Where the work-items begin to count.
    pub offset: Sizes,
    /// How many there are.
    pub global: Sizes,
    /// How many are in a work-group.
    pub local: Sizes,
    /// How many work-groups are in a cluster.
    pub cluster: Sizes,
}

/// A command on a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Command<'e> {
    /// What it is: `kernel`, `read`, `write`, …
    pub kind: &'e str,
    /// The function's name as the API tells it, or empty.
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
    /// Where they came from: one of `MEMORY_KINDS`, `unknown` if nobody said.
    pub from: &'e str,
    /// Where they went.
    pub to: &'e str,
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

/// What the trace has for a kind of memory that nobody told.
const UNKNOWN_MEMORY: &str = "unknown";
/// A distance that is not known or too long, in 48 bits.
const UNKNOWN_DISTANCE: i64 = -(1 << 47);

impl<'e> Command<'e> {
    /// What people look for: the function's name, else the kind.
    pub fn title(&self) -> &'e str {
        if self.name.is_empty() { self.kind } else { self.name }
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
            let mut reader = Reader::new(fields);
            // What is damaged has been told by the walk; the rest of it is 0.
            let _ = event.visit(Scope::EventFields, &mut reader);
            reader.command(fields, names, start, pid)
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
        let (picker, mut reader) = (fields.picker.as_ref()?, Reader::new(fields));
        let whole = picker.pick(payload, |position, element, value| {
            if let Some(part) = fields.parts.get(position) {
                reader.set(*part, element, Given::Picked(value));
            }
        });
        whole.then(|| reader.command(fields, names, start, pid))
    }
}

impl<'e> Reader<'e> {
    /// What all fields together say.
    #[inline]
    fn command(&self, fields: &'e CommandFields, names: &'e Names, start: u64, pid: i64) -> Command<'e> {
        let reader = self;
        let on_queue = names.queue(reader.queue);
        let on_device = on_queue.and_then(|q| names.device(q.device));
        let function = names.kernel(reader.function);
        let before = |distance: i64| start.saturating_add_signed(distance.saturating_neg());
        let or_start = |distance| if distance == UNKNOWN_DISTANCE { start } else { before(distance) };
        let after = if reader.duration == UNKNOWN_DISTANCE { 0 } else { reader.duration };
        Command {
            kind: reader.kind,
            name: function.map_or("", |f| &f.name),
            function,
            pid,
            queue: on_queue.map_or(0, |q| q.handle),
            on_queue,
            context: on_queue.map_or(0, |q| q.context),
            device: on_device.map_or(0, |d| d.handle),
            on_device,
            peer: names.device(reader.peer),
            cause_tid: reader.cause_tid,
            cause: if reader.cause_before == UNKNOWN_DISTANCE { 0 } else { before(reader.cause_before) },
            times: (!fields.untimed).then(|| Times {
                queued: or_start(reader.queued_before),
                submitted: or_start(reader.submitted_before),
                start,
                end: start.saturating_add_signed(after),
            }),
            times_error: reader.times_error,
            bytes: reader.bytes,
            from: reader.from,
            to: reader.to,
            status: reader.status,
            geometry: reader.geometry,
            shared: reader.shared,
            graph: reader.graph,
            node: reader.node,
            weight: reader.weight.max(1),
        }
    }
}

/// Takes the fields of a command as they come.
struct Reader<'e> {
    parts: &'e [Part],
    /// Position of the field, and of the element in it.
    at: usize,
    element: usize,
    depth: u32,
    kind: &'e str,
    queue: u32,
    cause_tid: i64,
    cause_before: i64,
    queued_before: i64,
    submitted_before: i64,
    duration: i64,
    function: u32,
    bytes: u64,
    from: &'e str,
    to: &'e str,
    peer: u32,
    status: i64,
    times_error: i64,
    shared: u64,
    geometry: Geometry,
    graph: u64,
    node: u64,
    weight: u64,
}

/// The value of a field, by either way to it.
#[derive(Clone, Copy)]
enum Given<'e> {
    Scalar(Scalar<'e>),
    Picked(Picked<'e>),
}

impl<'e> Given<'e> {
    #[inline(always)]
    fn as_i64(self) -> Option<i64> {
        match self {
            Self::Scalar(value) => value.as_i64(),
            Self::Picked(value) => value.as_i64(),
        }
    }

    #[inline(always)]
    fn as_u64(self) -> Option<u64> {
        match self {
            Self::Scalar(value) => value.as_u64(),
            Self::Picked(value) => value.as_u64(),
        }
    }

    #[inline(always)]
    fn as_str(self) -> Option<&'e str> {
        match self {
            Self::Scalar(value) => value.as_str(),
            Self::Picked(value) => value.as_str(),
        }
    }
}

impl<'e> Reader<'e> {
    fn new(fields: &'e CommandFields) -> Self {
        Self {
            parts: &fields.parts,
            at: 0,
            element: 0,
            depth: 0,
            kind: &fields.kind,
            queue: 0,
            cause_tid: 0,
            cause_before: UNKNOWN_DISTANCE,
            queued_before: 0,
            submitted_before: 0,
            duration: 0,
            function: 0,
            bytes: 0,
            from: UNKNOWN_MEMORY,
            to: UNKNOWN_MEMORY,
            peer: 0,
            status: 0,
            times_error: 0,
            shared: 0,
            geometry: Geometry::default(),
            graph: 0,
            node: 0,
            weight: 0,
        }
    }

    #[inline(always)]
    fn set(&mut self, part: Part, element: usize, value: Given<'e>) {
        let signed = || value.as_i64().unwrap_or(0);
        let long = || value.as_u64().unwrap_or(0);
        let word = || u32::try_from(long()).unwrap_or(0);
        match part {
            Part::Kind => self.kind = value.as_str().unwrap_or(self.kind),
            Part::Queue => self.queue = word(),
            Part::CauseTid => self.cause_tid = signed(),
            Part::CauseBefore => self.cause_before = signed(),
            Part::QueuedBefore => self.queued_before = signed(),
            Part::SubmittedBefore => self.submitted_before = signed(),
            Part::Duration => self.duration = signed(),
            Part::Function => self.function = word(),
            Part::Bytes => self.bytes = long(),
            Part::From => self.from = value.as_str().unwrap_or(UNKNOWN_MEMORY),
            Part::To => self.to = value.as_str().unwrap_or(UNKNOWN_MEMORY),
            Part::Peer => self.peer = word(),
            Part::Status => self.status = signed(),
            Part::TimesError => self.times_error = signed(),
            Part::Shared => self.shared = long(),
            Part::Offset => self.geometry.offset.set(element, long()),
            Part::Global => self.geometry.global.set(element, long()),
            Part::Local => self.geometry.local.set(element, long()),
            Part::Cluster => self.geometry.cluster.set(element, long()),
            Part::Graph => self.graph = long(),
            Part::Node => self.node = long(),
            Part::Weight => self.weight = long(),
            Part::Other => {}
        }
    }
}

impl<'e> FieldVisitor<'e> for Reader<'e> {
    fn scalar(&mut self, _: FieldRef<'e>, value: Scalar<'e>) {
        if self.depth == 0 {
            self.element = 0;
        }
        if let Some(part) = self.parts.get(self.at) {
            self.set(*part, self.element, Given::Scalar(value));
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
