//! Opening events of the kernel.

use std::ffi::CStr;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys as sys;
use sys::bindings::{self, perf_event_attr};

/// Whose events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All that happens on a CPU. The first of a group does not record until [`enable`] starts the group.
    Machine,
    /// Those of the program that this thread of the process starts next, and of all that it starts: they
    /// begin with its `execve`.
    Child(Pid),
    /// Those of a thread that runs already, and of all that it starts from now on.
    Thread(Pid),
}

/// The thread that starts the program.
pub type Pid = rustix::thread::Pid;

/// Opens a tracepoint on a CPU, by the number that its `format` file has. Events of a group are enabled and
/// disabled with their `leader`, by one interrupt of the CPU instead of one each; without a leader it leads.
///
/// # Errors
/// When the system refuses.
pub fn tracepoint(
    id: u16,
    of: Of,
    cpu: u32,
    watermark: u32,
    leader: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    let mut attr = attributes(watermark);
    attr.type_ = bindings::PERF_TYPE_TRACEPOINT;
    attr.config = id.into();
    // Each passing, not one of so many.
    attr.__bindgen_anon_1.sample_period = 1;
    attr.sample_type |= u64::from(bindings::PERF_SAMPLE_RAW);
    open(attr, of, Some(cpu), leader)
}

/// Opens an event of the calling thread that records nothing. The first event of a thread in the whole
/// system makes the kernel wait for all CPUs (10 ms and more); others wait with it, so a thread that opens
/// this one takes the wait off whoever opens such events a little later.
///
/// # Errors
/// When the system refuses.
pub fn nothing() -> io::Result<OwnedFd> {
    let mut attr = perf_event_attr { size: size_of::<perf_event_attr>() as u32, ..Default::default() };
    attr.type_ = bindings::PERF_TYPE_SOFTWARE;
    attr.config = bindings::PERF_COUNT_SW_DUMMY.into();
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    open(attr, Of::Child(rustix::thread::gettid()), None, None)
}

/// Opens an event of the calling thread on a CPU that records nothing, for a ring buffer that others' records go to:
/// it lives as long as that thread does.
///
/// # Errors
/// When the system refuses.
pub fn anchor(cpu: u32, watermark: u32) -> io::Result<OwnedFd> {
    let mut attr = attributes(watermark);
    attr.type_ = bindings::PERF_TYPE_SOFTWARE;
    attr.config = bindings::PERF_COUNT_SW_DUMMY.into();
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    open(attr, Of::Child(rustix::thread::gettid()), Some(cpu), None)
}

/// Opens the records of switches, names, beginnings and ends of threads. It needs no privilege for
/// one's own threads.
///
/// # Errors
/// When the system refuses.
pub fn switches(of: Of, cpu: u32, watermark: u32) -> io::Result<OwnedFd> {
    let mut attr = attributes(watermark);
    attr.type_ = bindings::PERF_TYPE_SOFTWARE;
    attr.config = bindings::PERF_COUNT_SW_DUMMY.into();
    attr.set_context_switch(1);
    attr.set_task(1);
    attr.set_comm(1);
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    open(attr, of, Some(cpu), None)
}

/// What a sample of a processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampled {
    /// Samples a second of each thread, while it has a CPU.
    pub hz: u32,
    /// Also while the kernel works for the thread.
    pub kernel: bool,
    /// Build ids of what is mapped (Linux 5.12).
    pub build_ids: bool,
    /// Bytes of the stack that are copied, from the stack pointer on.
    pub stack: u32,
    /// Registers that are copied: bits, as the kernel numbers them.
    pub registers: u64,
}

/// Opens samples of the program's own threads, with the registers and the stack of each, and the records of what is
/// mapped to be executed, of names, beginnings and ends of threads: all that it takes to unwind the stacks. It goes by the
/// kernel's clock, which all machines have, virtual ones too, and which passes for a thread only while it has a CPU.
///
/// # Errors
/// When the system refuses.
pub fn samples(sampled: Sampled, of: Of, cpu: u32, watermark: u32) -> io::Result<OwnedFd> {
    let mut attr = attributes(watermark);
    attr.type_ = bindings::PERF_TYPE_SOFTWARE;
    attr.config = bindings::PERF_COUNT_SW_CPU_CLOCK.into();
    attr.set_freq(1);
    attr.__bindgen_anon_1.sample_freq = sampled.hz.into();
    attr.sample_type |= u64::from(bindings::PERF_SAMPLE_REGS_USER | bindings::PERF_SAMPLE_STACK_USER);
    attr.sample_regs_user = sampled.registers;
    attr.sample_stack_user = sampled.stack;
    attr.set_exclude_kernel((!sampled.kernel).into());
    attr.set_exclude_hv(1);
    attr.set_mmap(1);
    attr.set_mmap2(1);
    attr.set_build_id(sampled.build_ids.into());
    attr.set_task(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    open(attr, of, Some(cpu), None)
}

/// Where a user probe is.
#[derive(Debug, Clone, Copy)]
pub struct UserPlace<'a> {
    /// By what number the kernel opens user probes.
    pub kind: u32,
    /// The program or library.
    pub file: &'a CStr,
    /// See [`crate::user::UserProbe`].
    pub offset: u64,
    /// See there.
    pub semaphore: u64,
}

/// Opens a user probe on a CPU, for all programs: to inherit one, the kernel would read the path again, out of the memory of
/// the program that begins another. Its hits have the registers of [`crate::user::MASK`] and so many bytes of the stack. See
/// [`super::user`] for its records.
///
/// # Errors
/// When the system refuses, or there is no instruction there.
pub fn user_probe(place: &UserPlace<'_>, cpu: u32, watermark: u32, stack: u32) -> io::Result<OwnedFd> {
    let mut attr = attributes(watermark);
    attr.type_ = place.kind;
    // Where the number of listeners is stands in the upper half (`uprobe/format/ref_ctr_offset`).
    let semaphore = u32::try_from(place.semaphore).map_err(io::Error::other)?;
    attr.config = u64::from(semaphore) << 32;
    attr.__bindgen_anon_3.uprobe_path = place.file.as_ptr() as u64;
    attr.__bindgen_anon_4.probe_offset = place.offset;
    attr.__bindgen_anon_1.sample_period = 1;
    let mut wanted =
        bindings::PERF_SAMPLE_IDENTIFIER | bindings::PERF_SAMPLE_RAW | bindings::PERF_SAMPLE_REGS_USER;
    attr.sample_regs_user = crate::user::MASK;
    if stack > 0 {
        wanted |= bindings::PERF_SAMPLE_STACK_USER;
        attr.sample_stack_user = stack;
    }
    attr.sample_type |= u64::from(wanted);
    open(attr, Of::Machine, Some(cpu), None)
}

/// Returns the number that the records of an event have.
///
/// # Errors
/// When the system refuses.
pub fn number(event: impl AsFd) -> io::Result<u64> {
    let mut number = 0;
    // SAFETY: a system call that writes a number of 64 bits.
    check(unsafe { sys::ioctls::ID(event.as_fd().as_raw_fd(), &mut number) })?;
    Ok(number)
}

/// Returns how many records of an event there was no room for, with those of the events that inherited it; none if this
/// kernel does not say it (before Linux 6.0).
pub fn lost(event: impl AsFd) -> Option<u64> {
    // What it counts, and what it lost.
    let mut read = [0; 2 * size_of::<u64>()];
    let bytes = rustix::io::read(event.as_fd(), &mut read).ok()?;
    let lost = read.last_chunk().filter(|_| bytes == size_of_val(&read))?;
    Some(u64::from_ne_bytes(*lost))
}

/// What all events have in common.
fn attributes(watermark: u32) -> perf_event_attr {
    let mut attr = perf_event_attr { size: size_of::<perf_event_attr>() as u32, ..Default::default() };
    attr.sample_type = u64::from(bindings::PERF_SAMPLE_TID | bindings::PERF_SAMPLE_TIME);
    attr.set_sample_id_all(1);
    // The clock of our traces and of LTTng's.
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = watermark;
    attr
}

fn open(
    mut attr: perf_event_attr,
    of: Of,
    cpu: Option<u32>,
    leader: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    // Members of a group follow their leader.
    let leads = leader.is_none();
    attr.set_disabled((leads && !matches!(of, Of::Thread(_))).into());
    let pid = match of {
        Of::Machine => -1,
        Of::Child(starter) => {
            attr.set_inherit(1);
            attr.set_enable_on_exec(leads.into());
            starter.as_raw_nonzero().get()
        }
        Of::Thread(thread) => {
            attr.set_inherit(1);
            thread.as_raw_nonzero().get()
        }
    };
    let cpu = cpu.map_or(Ok(-1), |cpu| i32::try_from(cpu).map_err(io::Error::other))?;
    let group = leader.map_or(-1, |leader| leader.as_raw_fd());
    let flags = bindings::PERF_FLAG_FD_CLOEXEC.into();
    let mut fd = -1;
    // Before Linux 6.0 no event says what it has lost.
    for read_format in [bindings::PERF_FORMAT_LOST.into(), 0] {
        attr.read_format = read_format;
        // SAFETY: a system call that reads a structure of ours, filled in as `perf_event_open(2)` says, and
        // may write its size. What it opens counts and records, and changes no memory of anybody.
        fd = unsafe { sys::perf_event_open(&mut attr, pid, cpu, group, flags) };
        if fd >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the system gave it to us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends the records of an event to the ring buffer of another on the same CPU.
///
/// # Errors
/// When the system refuses.
pub fn redirect(event: impl AsFd, ring: impl AsFd) -> io::Result<()> {
    let (event, ring) = (event.as_fd().as_raw_fd(), ring.as_fd().as_raw_fd());
    // SAFETY: a system call on two descriptors that are open.
    check(unsafe { sys::ioctls::SET_OUTPUT(event, ring) })
}

/// Starts the group that an event leads.
///
/// # Errors
/// When the system refuses.
pub fn enable(event: impl AsFd) -> io::Result<()> {
    // SAFETY: a system call on a descriptor that is open.
    check(unsafe { sys::ioctls::ENABLE(event.as_fd().as_raw_fd(), 0) })
}

/// Stops the group that an event leads.
///
/// # Errors
/// When the system refuses.
pub fn disable(event: impl AsFd) -> io::Result<()> {
    // SAFETY: a system call on a descriptor that is open.
    check(unsafe { sys::ioctls::DISABLE(event.as_fd().as_raw_fd(), 0) })
}

/// Runs a program of the kernel's at the tracepoint of an event, on all CPUs, until the event is closed.
///
/// # Errors
/// When the system refuses.
pub fn run(event: impl AsFd, program: BorrowedFd<'_>) -> io::Result<()> {
    let program = program.as_raw_fd().cast_unsigned();
    // SAFETY: a system call on two descriptors that are open.
    check(unsafe { sys::ioctls::SET_BPF(event.as_fd().as_raw_fd(), program) })
}

/// Records a tracepoint only where an expression over its fields holds; `id == 1 || id == 3`, say.
///
/// # Errors
/// When the system refuses.
pub fn filter(event: impl AsFd, expression: &CStr) -> io::Result<()> {
    // SAFETY: a system call that reads a NUL-terminated text.
    check(unsafe { sys::ioctls::SET_FILTER(event.as_fd().as_raw_fd(), expression.as_ptr().cast_mut()) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
