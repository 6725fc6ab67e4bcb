//! The system call `bpf`: maps, programs and where they are attached.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::code::Code;

/// Commands of the system call (`enum bpf_cmd`).
mod command {
    pub const MAP_CREATE: libc::c_long = 0;
    pub const PROG_LOAD: libc::c_long = 5;
    pub const GET_INFO: libc::c_long = 15;
    pub const RAW_TRACEPOINT_OPEN: libc::c_long = 17;
}

/// Kinds of maps (`enum bpf_map_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Map {
    /// Values by place, in memory that can be mapped.
    Array = 2,
    /// Values by place, for each CPU its own.
    PerCpu = 6,
    /// A ring buffer.
    Ring = 27,
    /// Memory that is there where it is touched; its entries are pages.
    Arena = 33,
}

/// Kinds of programs (`enum bpf_prog_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Runs at a tracepoint of perf's, with the tracepoint's record; what it returns says whether perf
    /// records it.
    Tracepoint = 5,
    /// Runs at a tracepoint, with the arguments that the kernel passes to it.
    RawTracepoint = 17,
    /// The same, at the tracepoint whose type was named when it was loaded: the kernel knows what the arguments are, and
    /// lets the program load from what they point at.
    Typed = 26,
}

/// How programs of [`Kind::Typed`] are attached (`BPF_TRACE_RAW_TP`).
const AT_TRACEPOINT: u32 = 23;

/// Flag of an array: it can be mapped (`BPF_F_MMAPABLE`).
const MAPPABLE: u32 = 1 << 10;
/// What the functions of the kernel that record ask for.
const LICENSE: &CStr = c"Dual MIT/GPL";

#[repr(C)]
struct MapAttr {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct ProgramAttr {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    /// Of no concern here.
    version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach: u32,
    types: u32,
    functions_size: u32,
    functions: u64,
    functions_number: u32,
    lines_size: u32,
    lines: u64,
    lines_number: u32,
    /// The type of what it is attached to, in the kernel's own description.
    attach_type: u32,
}

#[repr(C)]
struct AttachAttr {
    name: u64,
    program: u32,
    padding: u32,
}

#[repr(C)]
struct InfoAttr {
    descriptor: u32,
    length: u32,
    info: u64,
}

/// Words of `struct bpf_prog_info`, and which of them counts the runs that were left out (since 5.12).
const INFO: usize = 29;
const MISSES: usize = 26;

/// Returns how often the kernel did not run a program because another one was interrupted on the CPU.
///
/// # Errors
/// When the system refuses.
pub fn misses(program: BorrowedFd<'_>) -> io::Result<u64> {
    let mut info = [0u64; INFO];
    let attr = InfoAttr {
        descriptor: program.as_raw_fd().cast_unsigned(),
        length: size_of_val(&info) as u32,
        info: info.as_mut_ptr() as u64,
    };
    // SAFETY: the kernel writes at most `length` bytes to `info`, which has as many and lives until it returns. All
    // else in it is zero, so that it writes nothing elsewhere.
    unsafe { call(command::GET_INFO, &attr) }?;
    Ok(info[MISSES])
}

/// Makes a map. Sizes of keys and values are in bytes, that of a ring buffer is its number of entries.
///
/// # Errors
/// When the system refuses.
pub fn map(kind: Map, key: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    let flags = match kind {
        Map::Array | Map::Arena => MAPPABLE,
        Map::Ring | Map::PerCpu => 0,
    };
    let attr = MapAttr { kind: kind as u32, key, value, entries, flags };
    // SAFETY: the kernel reads the structure, which has numbers only.
    unsafe { made(command::MAP_CREATE, &attr) }
}

/// Loads a program.
///
/// # Errors
/// When the system refuses, or the kernel finds the program unsafe.
pub fn program(kind: Kind, code: Code) -> io::Result<OwnedFd> {
    load(code, ProgramAttr { kind: kind as u32, ..ProgramAttr::default() })
}

/// Loads a program for the tracepoint whose type in the kernel's description has this number.
///
/// # Errors
/// When the system refuses, or the kernel finds the program unsafe.
pub fn typed_program(of: u32, code: Code) -> io::Result<OwnedFd> {
    let kind = Kind::Typed as u32;
    load(code, ProgramAttr { kind, attach: AT_TRACEPOINT, attach_type: of, ..ProgramAttr::default() })
}

fn load(code: Code, attr: ProgramAttr) -> io::Result<OwnedFd> {
    let code = code.finish().ok_or(io::ErrorKind::InvalidData)?;
    let attr = ProgramAttr {
        instructions: u32::try_from(code.len()).map_err(io::Error::other)?,
        code: code.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        ..attr
    };
    // SAFETY: the kernel reads as many instructions as there are, and the license up to its NUL. It runs the
    // program only if it has found that it ends and touches nothing but its maps, its stack and its context.
    unsafe { made(command::PROG_LOAD, &attr) }
}

/// Runs a program at a tracepoint of this name until the descriptor is closed; without one at that which it was loaded
/// for.
///
/// # Errors
/// When the system refuses.
pub fn attach(program: BorrowedFd<'_>, tracepoint: Option<&CStr>) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd().cast_unsigned();
    let name = tracepoint.map_or(0, |name| name.as_ptr() as u64);
    let attr = AttachAttr { name, program, padding: 0 };
    // SAFETY: the kernel reads the name, if there is one, up to its NUL.
    unsafe { made(command::RAW_TRACEPOINT_OPEN, &attr) }
}

/// # Safety
/// As [`call`], of a command that returns a new descriptor.
unsafe fn made<T>(command: libc::c_long, attr: &T) -> io::Result<OwnedFd> {
    // SAFETY: `attr` is what this command reads, with what it refers to, and lives until the call returns.
    let fd = unsafe { call(command, attr) }?;
    // SAFETY: the system gave it to us, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// `attr` is what the command reads, and addresses in it are of what the command reads or writes there. Both live
/// until it returns, which is all that the kernel asks for.
unsafe fn call<T>(command: libc::c_long, attr: &T) -> io::Result<libc::c_int> {
    // SAFETY: the kernel reads what the command reads of `attr`, no more than its size, and what that refers to, all of
    // which live until it returns.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attr), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}
