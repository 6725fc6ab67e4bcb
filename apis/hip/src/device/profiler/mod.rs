//! Times of commands from rocprofiler-sdk, AMD's collector: what devices did, without a command of ours before and after
//! each of the program's.
//!
//! ```text
//!  program thread                          rocprofiler-sdk              whoever collects
//!  hipLaunchKernel: open a slot, push its id
//!    └► real function ─► dispatch, with the id of the thread
//!  pop the id                              record ─► slot ([`slots`]) ◄── poll
//! ```
//!
//! It must be configured before HIP starts the devices, so this happens as our library starts ([`start`]). We ask for
//! that ourselves (`rocprofiler_force_configure`): a tool of the user's, which it finds by `ROCP_TOOL_LIBRARIES` or by its
//! `rocprofiler_configure`, is configured beside us. Only a tool that forces it too finds it taken.
//! The library is never linked to, and stays loaded once it is.

mod api;
mod library;
mod records;
mod slots;

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::commands::{Note, Once, Progress, Times};
use hetrace_interpose::ring::abi::option;
use hetrace_interpose::ring::clock::ticks;
use hetrace_interpose::{ErrnoGuard, budget, pid, session, task};

use api::{API, Client, Header, LOCKED, LOSSLESS, Tool};
use slots::SLOTS;

/// What [`STATE`] says.
mod state {
    pub const NEVER: u32 = 0;
    pub const ACTIVE: u32 = 1;
    pub const OVER: u32 = 2;
}

/// Bytes of the buffer, and after how many it is handed over without being asked.
const BUFFER_BYTES: usize = 1 << 20;
const WATERMARK: usize = BUFFER_BYTES / 2;
/// So long after the first command something must have been delivered, in nanoseconds.
const PATIENCE: u64 = 2_000_000_000;
/// Milliseconds that the end of the program waits for what has run.
const LAST_MS: u32 = 100;

static STATE: AtomicU32 = AtomicU32::new(state::NEVER);
/// Process that started: devices do not live on in a forked child.
static OWNER: AtomicU32 = AtomicU32::new(0);
static WHY: AtomicU32 = AtomicU32::new(Why::Late as u32);
static CONTEXT: AtomicU64 = AtomicU64::new(0);
static BUFFER: AtomicU64 = AtomicU64::new(0);
/// Commands that were enqueued, and those of which something came.
static ENQUEUED: AtomicU64 = AtomicU64::new(0);
static DELIVERED: AtomicU64 = AtomicU64::new(0);
/// When the first was enqueued, in nanoseconds; 0: none was.
static FIRST: AtomicU64 = AtomicU64::new(0);

/// Why commands are timed by events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Why {
    NotFound,
    Incomplete,
    Locked,
    Refused,
    Late,
    Requested,
    Limited,
    Silent,
    Over,
}

/// In the order of [`Why`].
const REASONS: [&[u8]; 9] = [
    b"events, because there is no librocprofiler-sdk (HETRACE_ROCPROFILER=path names one)",
    b"events, because this librocprofiler-sdk lacks functions that are needed",
    b"events, because rocprofiler-sdk was configured before, by another tool or as devices were in use already",
    b"events, because rocprofiler-sdk refuses to trace kernels and copies",
    b"events, because HIP was in use before the session began",
    b"events, as requested",
    b"events, as there is a limit to what recording may take",
    b"events from here on, because rocprofiler-sdk delivers nothing",
    b"events from here on, because rocprofiler-sdk has ended",
];

/// Whether commands of this process are timed so.
#[inline]
pub fn is_on() -> bool {
    STATE.load(Ordering::Acquire) == state::ACTIVE && OWNER.load(Ordering::Relaxed) == pid()
}

/// Starts collecting if the session wants times and there is a library. Once in a process, before HIP has started.
pub fn start() {
    let Some(session) = session().filter(|s| s.option(option::DEVICE)) else { return };
    if OWNER.compare_exchange(0, pid(), Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    let _errno = ErrnoGuard::new();
    let sampled = session.option(option::SAMPLED) || budget::sampled_every() > 1;
    let result = if sampled || session.option(option::EVENTS) {
        Err(Why::Requested)
    } else if budget::is_limited() {
        Err(Why::Limited)
    } else {
        // Nothing here gives this thread a ring: HIP's library may not have been initialized yet, and would be asked for the
        // texts of its errors.
        configure_first()
    };
    match result {
        Ok(()) => STATE.store(state::ACTIVE, Ordering::Release),
        Err(why) => over(why),
    }
}

fn over(why: Why) {
    WHY.store(why as u32, Ordering::Relaxed);
    STATE.store(state::OVER, Ordering::Release);
}

/// Says by what commands are timed, once: as the first is enqueued.
pub fn say() {
    static SAID: Once = Once::new();
    if SAID.is_first(0) {
        let by: &[u8] = if is_on() { b"rocprofiler-sdk" } else { reason() };
        Note::new().text(b"device times: ").text(by).leave();
    }
}

fn reason() -> &'static [u8] {
    REASONS.get(WHY.load(Ordering::Relaxed) as usize).copied().unwrap_or_default()
}

/// It was used, and is not any more.
#[cold]
fn give_up(why: Why) {
    if STATE.load(Ordering::Relaxed) == state::ACTIVE {
        over(why);
        Note::new().text(b"device times: ").text(reason()).leave();
    }
}

fn configure_first() -> Result<(), Why> {
    if !library::load()? {
        return Err(Why::Incomplete);
    }
    // SAFETY: a function that does what a tool's does; it is called before this returns, or never.
    match unsafe { API.force_configure(configure) } {
        0 if BUFFER.load(Ordering::Relaxed) != 0 => Ok(()),
        LOCKED => Err(Why::Locked),
        _ => Err(Why::Refused),
    }
}

/// What rocprofiler-sdk calls to learn of its tool.
extern "C" fn configure(_: u32, _: *const c_char, _: u32, client: *mut Client) -> *mut Tool {
    struct Place(std::cell::UnsafeCell<Tool>);
    // SAFETY: written by nobody here; rocprofiler-sdk reads it on the thread that configures.
    unsafe impl Sync for Place {}
    static TOOL: Place = Place(std::cell::UnsafeCell::new(Tool {
        size: size_of::<Tool>(),
        initialize,
        finalize,
        data: std::ptr::null_mut(),
    }));
    if !client.is_null() {
        // SAFETY: not NULL, so the place in which a tool leaves its name while it is configured.
        unsafe { (&raw mut (*client).name).write(c"hetrace".as_ptr()) };
    }
    TOOL.0.get()
}

/// Something that is done with a context and its buffer; 0, or the error.
type Step<'s> = &'s dyn Fn(&mut u64, &mut u64) -> i32;

/// Makes the context and its buffer. 0 if that went well.
extern "C" fn initialize(_: *mut c_void, _: *mut c_void) -> i32 {
    let (mut context, mut buffer) = (0, 0);
    // SAFETY: called while tools are configured, as these functions demand; places for ids that begin as 0, a callback
    // that takes what such a buffer has, and no list of operations, which means all.
    let error = unsafe {
        let steps: [Step<'_>; 5] = [
            &|context, _| API.create_context(context),
            &|context, buffer| {
                API.create_buffer(
                    *context,
                    BUFFER_BYTES,
                    WATERMARK,
                    LOSSLESS,
                    delivered,
                    std::ptr::null_mut(),
                    buffer,
                )
            },
            &|context, buffer| API.trace(*context, records::DISPATCH, std::ptr::null(), 0, *buffer),
            &|context, buffer| API.trace(*context, records::COPY, std::ptr::null(), 0, *buffer),
            &|context, _| API.start(*context),
        ];
        steps.iter().map(|step| step(&mut context, &mut buffer)).find(|error| *error != 0)
    };
    if error.is_some() {
        return -1;
    }
    CONTEXT.store(context, Ordering::Relaxed);
    BUFFER.store(buffer, Ordering::Release);
    0
}

/// rocprofiler-sdk ends: nothing of it is called any more.
extern "C" fn finalize(_: *mut c_void) {
    if STATE.load(Ordering::Relaxed) == state::ACTIVE {
        over(Why::Over);
    }
}

/// Takes what devices did.
///
/// # Safety
/// rocprofiler-sdk calls it, with so many headers of records that are there until this returns.
unsafe extern "C" fn delivered(
    _: u64,
    _: u64,
    headers: *const *const Header,
    count: usize,
    _: *mut c_void,
    dropped: u64,
) {
    let _errno = ErrnoGuard::new();
    super::STORE.lose(dropped);
    if headers.is_null() {
        return;
    }
    let now = now();
    // SAFETY: not NULL, so as many headers as rocprofiler-sdk says.
    for header in unsafe { std::slice::from_raw_parts(headers, count) } {
        // SAFETY: NULL, or a header of this buffer, and its record.
        let activity = unsafe {
            header.as_ref().and_then(|header| records::read(header.category, header.kind, header.payload))
        };
        if let Some(activity) = activity {
            DELIVERED.fetch_add(1, Ordering::Relaxed);
            SLOTS.deliver(&activity, now);
        }
    }
}

fn now() -> u64 {
    hetrace_interpose::ring::clock::nanoseconds(libc::CLOCK_MONOTONIC)
}

/// A command is about to be enqueued by this thread: what devices do for it will have an id. `None` if there is no room.
pub fn begin(queue: u64) -> Option<u64> {
    let id = SLOTS.open(queue)?;
    // SAFETY: plain numbers: our context, which was started, and this thread.
    let error = unsafe { API.push(CONTEXT.load(Ordering::Relaxed), task().into(), id) };
    if error != 0 {
        SLOTS.close(id);
        return None;
    }
    if FIRST.load(Ordering::Relaxed) == 0 {
        FIRST.store(now(), Ordering::Relaxed);
    }
    Some(id)
}

/// The call that enqueued it has returned. `kept`: it succeeded.
pub fn end(id: u64, kept: bool) {
    let mut was = 0;
    // SAFETY: as in `begin`, and room for the answer.
    unsafe { API.pop(CONTEXT.load(Ordering::Relaxed), task().into(), &raw mut was) };
    if kept {
        ENQUEUED.fetch_add(1, Ordering::Relaxed);
    } else {
        SLOTS.close(id);
    }
}

/// It was recorded or given up.
pub fn release(id: u64) {
    SLOTS.close(id);
}

/// What is known of a command. `alone`: the device does one thing for it. `last`: nothing comes later.
pub fn progress(id: u64, alone: bool, bytes: u64, last: bool) -> Progress {
    let Some(found) = SLOTS.find(id) else { return Progress::Gone };
    // What a kernel did may come after what later ones did; what has not come of others, the host did.
    let over = last || (found.passed && !alone) || !is_on();
    let whole = alone || (bytes != 0 && found.bytes >= bytes);
    match found.count {
        0 if over => Progress::Gone,
        0 => Progress::Waits,
        _ if whole || over => {
            Progress::Ended(Times { start: found.start, end: found.end, ..Times::default() })
        }
        _ => Progress::Waits,
    }
}

/// Has rocprofiler-sdk hand over what it has. `last`: waits a little for what has run and is on its way.
pub fn flush(last: bool) {
    if !is_on() {
        return;
    }
    for _ in 0..if last { LAST_MS } else { 1 } {
        // SAFETY: a plain number: our buffer.
        unsafe { API.flush(BUFFER.load(Ordering::Relaxed)) };
        if !last || DELIVERED.load(Ordering::Relaxed) >= ENQUEUED.load(Ordering::Relaxed) {
            break;
        }
        // SAFETY: no preconditions.
        unsafe { libc::usleep(1000) };
    }
    let first = FIRST.load(Ordering::Relaxed);
    if DELIVERED.load(Ordering::Relaxed) == 0 && first != 0 && now().saturating_sub(first) > PATIENCE {
        give_up(Why::Silent);
    }
}

/// Its time, in nanoseconds, and the counter before and after it was asked; `None` if it says none.
pub fn compare() -> Option<(u64, [u64; 2])> {
    let mut time = 0;
    let before = ticks();
    // SAFETY: room for the answer.
    let error = unsafe { API.timestamp(&raw mut time) };
    (error == 0 && time != 0).then_some((time, [before, ticks()]))
}
