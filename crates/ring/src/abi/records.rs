//! Records that are no calls: what devices did and what is known of objects.
//!
//! All of them are plain integers in the order of `docs/shm-abi.md`, without
//! gaps, and behind most of them stands a NUL-terminated text.

/// Numbers of records that are not calls. They are at home in a ring only: the
/// drainer turns them into streams of their own.
pub mod special {
    /// A finished command: [`super::CommandRecord`] and its name.
    pub const COMMAND: u16 = 1;
    /// The relation of a device's clock to the host's: [`super::ClockRecord`].
    pub const CLOCK: u16 = 2;
    /// A queue was made: [`super::QueueRecord`] and the device's name.
    pub const QUEUE: u16 = 3;
    /// How far this thread's commands are known: [`super::PendingRecord`].
    pub const PENDING: u16 = 4;
    /// What is known of an object: [`super::ObjectRecord`] and its parts.
    pub const OBJECT: u16 = 5;
    /// A call of a function that the model does not have:
    /// [`super::UnknownRecord`] and the function's name. The only one that goes
    /// into the stream of its own thread.
    pub const UNKNOWN: u16 = 6;
    /// Which call causes what: [`super::LinkRecord`]. The record's own time is
    /// that of the entry record of the call.
    pub const LINK: u16 = 7;
    /// A function that devices run: [`super::FunctionRecord`] and its name.
    pub const FUNCTION: u16 = 8;
    /// A device: [`super::DeviceRecord`] and its name.
    pub const DEVICE: u16 = 9;
    /// A property of a device: [`super::PropertyRecord`] and its name.
    pub const PROPERTY: u16 = 10;
    /// What an API says of an error code: [`super::ErrorTextRecord`] and the
    /// text. It goes into the stream of its own thread, as the unknown call.
    pub const ERROR_TEXT: u16 = 11;
    /// How often a function was launched: [`super::CountRecord`].
    pub const COUNT: u16 = 12;
    /// Who records from here on: [`super::ThreadRecord`]. The first record of every thread in
    /// a ring.
    pub const THREAD: u16 = 13;
    /// A record that was never finished: a signal handler interrupted it and did not return.
    /// Its bytes mean nothing.
    pub const ABANDONED: u16 = 14;
    /// What the tracer itself did inside of the call that ends next, where that is more than in most:
    /// [`super::OwnWorkRecord`]. It goes into the stream of its own thread, as the unknown call.
    pub const OWN_WORK: u16 = 15;
    /// From here on this thread records otherwise, to keep within its budget:
    /// [`super::BudgetStepRecord`]. It goes into the stream of its own thread, as the unknown call.
    pub const BUDGET_STEP: u16 = 16;
    /// The full counter value of the next record that has its low bits: 8 bytes. For records of long ago, of which
    /// these bits alone say too little.
    pub const EARLIER: u16 = 17;
    /// The Python stack of the call whose entry is the next record: [`super::PyStackRecord`]. It goes into the stream of
    /// its own thread, as the unknown call.
    pub const PY_STACK: u16 = 18;
    /// What a Python stack is: [`super::PyFrameRecord`], and the names of a file and of a function.
    pub const PY_FRAME: u16 = 19;
    /// The native stack of the call whose entry follows: [`super::StackRecord`]. It goes into the stream of its own
    /// thread, as the unknown call.
    pub const STACK: u16 = 20;
    /// What a native stack is: [`super::FrameRecord`].
    pub const FRAME: u16 = 21;
    /// A program or library with frames, or with code that calls are made by: [`super::ModuleRecord`], its build id, and its path.
    pub const MODULE: u16 = 22;
}

/// Ids of Python stacks, and how long names are.
pub mod py_stack {
    /// The thread runs no Python code.
    pub const NONE: u64 = 0;
    /// It may, but nobody knows which.
    pub const UNKNOWN: u64 = 1;
    /// The least id that a stack has.
    pub const FIRST: u64 = 2;
    /// Bytes of the name of a file, at most.
    pub const LONGEST_FILE: usize = 1024;
    /// Bytes of the name of a function, at most.
    pub const LONGEST_NAME: usize = 512;
}

/// Body of [`special::PY_STACK`].
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PyStackRecord {
    /// The stack's id: the [`PyFrameRecord::stack`] of its innermost frame; see [`py_stack`].
    pub stack: u64,
    /// Number of the entry that follows: of another one it says nothing.
    pub entry: u64,
}

/// Body of [`special::PY_FRAME`], followed by the names of the file and of the function. Equal stacks have equal ids in
/// all threads, processes and APIs, and may be described more than once.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PyFrameRecord {
    /// The stack's id.
    pub stack: u64,
    /// That of the stack without its innermost frame; [`py_stack::NONE`] if there is no other.
    pub around: u64,
    /// The line that the innermost frame is at; 0 if it has none.
    pub line: u32,
    /// The first line of its function.
    pub first_line: u32,
    /// Bytes of the name of the file.
    pub file: u32,
    /// Bytes of the name of the function.
    pub function: u32,
}

/// Ids of native stacks.
pub mod stack {
    /// There is no frame: what is around the outermost one.
    pub const NONE: u64 = 0;
    /// Nothing is known of it.
    pub const UNKNOWN: u64 = 1;
    /// There are more frames than are recorded.
    pub const CUT: u64 = 2;
    /// How to unwind further is not known: there is no table and no frame pointer, or the stack is corrupt.
    pub const LOST: u64 = 3;
    /// The least id that a stack has.
    pub const FIRST: u64 = 16;
    /// Frames that are recorded, at most, whatever was asked for.
    pub const DEEPEST: usize = 128;
    /// Bytes of a build id that are recorded, at most.
    pub const LONGEST_BUILD_ID: usize = 64;
    /// Bytes of a path, at most.
    pub const LONGEST_PATH: usize = 1024;
}

/// Body of [`special::STACK`].
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StackRecord {
    /// The stack's id: the [`FrameRecord::stack`] of its innermost frame; see [`stack`].
    pub stack: u64,
    /// Number of the entry that follows: of another one it says nothing.
    pub entry: u64,
}

/// Body of [`special::FRAME`]. Equal stacks have equal ids in all threads, processes and APIs, wherever their modules are
/// loaded, and may be described more than once.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct FrameRecord {
    /// The stack's id.
    pub stack: u64,
    /// That of the stack without its innermost frame; or why it is not known, see [`stack`].
    pub around: u64,
    /// The [`ModuleRecord::module`] of the innermost frame's code; 0 if it is in none.
    pub module: u64,
    /// An address inside of the instruction that the frame is at, which most often is a call: as the module's file has
    /// it, or, without a module, in memory.
    pub address: u64,
}

/// Body of [`special::MODULE`], followed by the build id and the path. Equal ones have equal ids.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ModuleRecord {
    /// Its id, which is made of the build id, or without one of its path and size.
    pub module: u64,
    /// What is added to addresses of its file, in this process.
    pub base: u64,
    /// Where its memory begins, in this process.
    pub start: u64,
    /// Bytes of memory from its beginning to its end.
    pub bytes: u64,
    /// Bytes of the build id.
    pub build_id: u32,
    /// Bytes of the path.
    pub path: u32,
}

/// Body of [`special::BUDGET_STEP`].
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct BudgetStepRecord {
    /// One of so many launches of each kernel, and of so many commands of any other kind, is timed; 1: all.
    pub one_in: u32,
    /// 1 if calls are added up by function, 2 if most of these are only counted.
    pub summed: u32,
    /// What recording took since the last step, in parts per million of the time.
    pub spent_ppm: u32,
    /// What it may take.
    pub budget_ppm: u32,
}

/// Body of [`special::OWN_WORK`].
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnWorkRecord {
    /// Ticks between the call's entry and its exit in which the tracer worked.
    pub ticks: u64,
}

/// Body of [`special::THREAD`].
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadRecord {
    /// Thread id, in the process's own PID namespace.
    pub tid: u32,
    /// 1 more than the number of the ring from which the thread came because that was full;
    /// 0 if it began here.
    pub follows: u32,
    /// Counter value when the ring was claimed.
    pub claimed_at: u64,
    /// [`super::RingHeader::lost`] at that moment: what is lost later is this thread's.
    pub lost: u64,
    /// [`super::RingHeader::lost_calls`] at that moment.
    pub lost_calls: u64,
}

/// What a command did; the value of [`CommandRecord::kind`].
pub const COMMAND_KINDS: &[&str] = &[
    "other", "kernel", "read", "write", "copy", "fill", "map", "unmap", "migrate", "marker", "barrier",
    "native", "free", "acquire", "release", "graph",
];

/// Where bytes of a command lie; the value of [`CommandRecord::from`] and
/// [`CommandRecord::to`].
pub const MEMORY_KINDS: &[&str] =
    &["unknown", "pageable", "pinned", "device", "array", "managed", "peer", "host"];

/// Bits of [`CommandRecord::flags`].
pub mod command_flag {
    /// `queued`, `submitted`, `start` and `end` are nanoseconds of the host's
    /// `CLOCK_MONOTONIC` already; nothing is to be converted.
    pub const HOST_CLOCK: u16 = 1 << 0;
    /// It stands for `weight` launches of its function, of which only this one
    /// is described.
    pub const SAMPLED: u16 = 1 << 1;
}

/// Body of [`special::COMMAND`], followed by the NUL-terminated name (empty
/// when `function` says it).
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CommandRecord {
    /// Thread that enqueued it; 0 if `correlation` says it.
    pub cause_tid: u32,
    /// Index into [`COMMAND_KINDS`].
    pub kind: u8,
    /// Dimensions of the geometry; 0 when there is none.
    pub dimensions: u8,
    /// Where the bytes come from: index into [`MEMORY_KINDS`].
    pub from: u8,
    /// Where they go: index into [`MEMORY_KINDS`].
    pub to: u8,
    /// Counter value of the entry record of the call that enqueued it.
    pub cause: u64,
    /// Counter value when that call returned; 0 if it is not known.
    pub returned: u64,
    /// Counter value when the command was seen to be complete.
    pub observed: u64,
    /// What joins it with the [`LinkRecord`] of the call that enqueued it, in a ring of the same
    /// process and API; 0: `cause_tid` and `cause` say it themselves.
    pub correlation: u64,
    /// The queue's handle.
    pub queue: u64,
    /// The device's handle.
    pub device: u64,
    /// [`FunctionRecord::function`] of what ran; 0: the name stands behind.
    pub function: u64,
    /// Bytes moved or set; not of kernels.
    pub bytes: u64,
    /// Nanoseconds of the device's clock (of the host's with
    /// [`command_flag::HOST_CLOCK`]): entered the queue; 0 if not known.
    pub queued: u64,
    /// Given to the device; as `queued`.
    pub submitted: u64,
    /// Started; as `queued`.
    pub start: u64,
    /// Ended; as `queued`. 0: the command has no times.
    pub end: u64,
    /// Execution status: 0 complete, negative an error.
    pub status: i32,
    /// Error of asking for the times; 0 when the times are valid.
    pub times_error: i32,
    /// Global offset, global size, local size, in work-items.
    pub geometry: [[u64; 3]; 3],
    /// Work-groups of a cluster, in each dimension; 0 when there is none.
    pub cluster: [u16; 3],
    /// Bits of [`command_flag`].
    pub flags: u16,
    /// Bytes of local memory that the launch asked for, beside the function's own.
    pub shared: u32,
    /// Number of the graph it was launched with; 0 if none.
    pub graph: u32,
    /// Number of its node in that graph; 0 if none.
    pub node: u64,
    /// The other device of a copy between two; 0 if none.
    pub peer: u64,
    /// Launches it stands for; 0 and 1 mean itself only.
    pub weight: u64,
}

/// Body of [`special::CLOCK`].
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ClockRecord {
    /// The device's handle.
    pub device: u64,
    /// Device clock in nanoseconds.
    pub device_time: u64,
    /// Counter value just before it was read.
    pub before: u64,
    /// Counter value just after.
    pub after: u64,
}

/// Body of [`special::QUEUE`], followed by the NUL-terminated device name, which
/// may be empty where a [`DeviceRecord`] has it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueRecord {
    /// Its key, by which commands name it: its handle, where handles are unique.
    pub queue: u64,
    /// Its context's handle.
    pub context: u64,
    /// Its device's handle.
    pub device: u64,
    /// The properties as the program asked for them.
    pub properties: u64,
    /// Resolution of the device's clock, in nanoseconds; 0 if it does not say.
    pub resolution: u64,
    /// Its priority, as the API counts; 0 is ordinary.
    pub priority: i32,
    /// The API's own small number of it; 0 if there is none.
    pub number: u32,
    /// Its handle, where `queue` is a key that the API's library made because
    /// handles are not unique (CUDA's default streams); 0: `queue` is the handle,
    /// or the handle is not known. The trace has what the program passes to calls.
    pub handle: u64,
}

/// Body of [`special::PENDING`].
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PendingRecord {
    /// Commands whose completion or times could not be learned.
    pub lost: u64,
    /// Counter value when the oldest command in flight was enqueued; 0 if
    /// there is none.
    pub oldest: u64,
}

/// Body of [`special::UNKNOWN`], followed by the NUL-terminated name.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct UnknownRecord {
    /// The registers of the first six integer arguments, whether they are any or not.
    pub arguments: [u64; 6],
}

/// Body of [`special::ERROR_TEXT`], followed by the NUL-terminated text.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorTextRecord {
    /// The code, as calls answer it.
    pub code: i64,
}

/// Body of [`special::LINK`]. It stands in the ring of the thread that makes the
/// call, and its own time is that of the call's entry record.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkRecord {
    /// The id under which the commands will be reported.
    pub correlation: u64,
}

/// Body of [`special::FUNCTION`], followed by the NUL-terminated name as the API
/// returns it, mangled or not.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct FunctionRecord {
    /// The id that commands give; never 0. A second record with the same id is another function.
    pub function: u64,
    /// Registers of each work-item; 0 if not known.
    pub registers: u32,
    /// Bytes of local memory of each work-group that the code itself asks for.
    pub shared: u32,
    /// Bytes of private memory of each work-item.
    pub local: u32,
    /// Bytes of constant memory.
    pub constant: u32,
    /// Most work-items in a work-group; 0 if not known.
    pub max_threads: u32,
    /// Not used.
    pub reserved: u32,
}

/// Body of [`special::COUNT`]: where only some launches are timed, how many
/// there were. Recorded repeatedly; the last record is valid.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CountRecord {
    /// [`FunctionRecord::function`].
    pub function: u64,
    /// Launches since the process began, nodes of graphs among them.
    pub launches: u64,
    /// Those of them that were timed.
    pub timed: u64,
    /// Bytes that they moved or set, all together; 0 for kernels.
    pub bytes: u64,
    /// Of `launches`, `timed` and `bytes`: nodes of graphs of whose launches the nodes of some are timed, and stand for the others.
    pub nodes: u64,
    /// Those that were timed.
    pub nodes_timed: u64,
    /// Their bytes.
    pub nodes_bytes: u64,
    /// Of `launches` and `bytes`: nodes of graphs that were timed as a whole, or not at all. They have no time of their own.
    pub of_graphs: u64,
    /// Their bytes.
    pub of_graphs_bytes: u64,
    /// Nanoseconds that the time of a node which is timed may be off, with all others in the same way.
    pub nodes_off: u32,
    /// Index into [`COMMAND_KINDS`].
    pub kind: u8,
    /// Where the bytes come from and go to: indexes into [`MEMORY_KINDS`].
    pub memory: [u8; 2],
    /// Not used.
    pub reserved: u8,
}

/// Body of [`special::DEVICE`], followed by the NUL-terminated name. Words that
/// the API does not report are 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct DeviceRecord {
    /// The key that commands and queues give.
    pub device: u64,
    /// The API's number of it.
    pub ordinal: u32,
    /// Compute units.
    pub compute_units: u32,
    /// Highest clock, kHz.
    pub clock_khz: u32,
    /// Highest memory clock, kHz.
    pub memory_khz: u32,
    /// Width of the memory's bus, in bits.
    pub bus_bits: u32,
    /// Not used.
    pub reserved: u32,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The same for every API and process that sees the device.
    pub uuid: [u8; 16],
}

/// Body of [`special::PROPERTY`], followed by the NUL-terminated name, such as
/// `max_threads_per_multiprocessor`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct PropertyRecord {
    /// The device's key.
    pub device: u64,
    /// The value.
    pub value: u64,
}

// No gaps: the sizes are those that docs/shm-abi.md draws.
const _: () = assert!(size_of::<CommandRecord>() == 224);
const _: () = assert!(size_of::<QueueRecord>() == 56);
const _: () = assert!(size_of::<UnknownRecord>() == 48);
const _: () = assert!(size_of::<FunctionRecord>() == 32);
const _: () = assert!(size_of::<DeviceRecord>() == 56);
const _: () = assert!(size_of::<PropertyRecord>() == 16);
const _: () = assert!(size_of::<PyStackRecord>() == 16);
const _: () = assert!(size_of::<PyFrameRecord>() == 32);
const _: () = assert!(size_of::<StackRecord>() == 16);
const _: () = assert!(size_of::<FrameRecord>() == 32);
const _: () = assert!(size_of::<ModuleRecord>() == 40);

/// Texts and values behind an [`ObjectRecord`].
pub const OBJECT_PARTS: usize = 8;

/// Body of [`special::OBJECT`], followed by its parts: texts without a NUL, or
/// bytes. What the words mean depends on `what`; unused ones are 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ObjectRecord {
    /// The object's handle.
    pub object: u64,
    /// Another object that belongs to it.
    pub other: u64,
    /// Counter value of the entry record of the call that shows it.
    pub cause: u64,
    /// A count, such as a launch's number.
    pub number: u64,
    /// Bytes of the whole content.
    pub length: u64,
    /// Bytes of it that were stored.
    pub stored: u64,
    /// Name of the stored content; 0 if none is stored.
    pub hash: u64,
    /// Thread that made the call.
    pub cause_tid: u32,
    /// For an argument its index, for a property its query.
    pub index: u32,
    /// An error code or a flag.
    pub code: i32,
    /// One of [`object`].
    pub what: u32,
    /// Bytes of each part.
    pub parts: [u16; OBJECT_PARTS],
}

/// Kinds of [`ObjectRecord`].
pub mod object {
    /// A program's source.
    pub const SOURCE: u32 = 0;
    /// A program's intermediate code.
    pub const IL: u32 = 1;
    /// A program's binary for one device.
    pub const BINARY: u32 = 2;
    /// Options of a build.
    pub const BUILD_OPTIONS: u32 = 3;
    /// What a build says about one device.
    pub const BUILD_LOG: u32 = 4;
    /// A kernel was made.
    pub const KERNEL: u32 = 5;
    /// One of its arguments.
    pub const KERNEL_ARG: u32 = 6;
    /// A property of a platform or device.
    pub const PROPERTY: u32 = 7;
    /// Content of a buffer before or after a launch.
    pub const BUFFER: u32 = 8;
    /// An argument of a launch that should have been stored and is not.
    pub const NOT_CAPTURED: u32 = 9;
    /// A content that is longer than what is stored; made by the drainer.
    pub const TRUNCATED: u32 = 10;
    /// What a launch passes to its kernel: name, 16-bit sizes, values.
    pub const LAUNCH_ARGS: u32 = 11;
    /// The hash of what a call sends from memory of the host: `object` is its address, `other` the hash.
    pub const SENT: u32 = 12;
}
