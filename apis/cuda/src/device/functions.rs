//! Functions that devices run: their names and what they need, recorded once.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use hetrace_interpose::commands::sample::Counted;
use hetrace_interpose::published::Published;
use hetrace_interpose::ring::abi::{FunctionRecord, special};
use hetrace_interpose::table::Table;

use super::driver;
use super::record::{Note, arena, send, text};
use crate::generated::prelude::{P, null_mut};

/// Functions that are distinguished; more have no name of their own.
const MOST: usize = 16384;
/// How far a function may stand from its place.
const REACH: usize = 256;
/// Longest name kept, so that its record fits.
const NAME: usize = 1800;

/// A function that was met.
#[repr(C)]
#[derive(Debug)]
pub struct Function {
    pub id: u64,
    hash: u64,
    needs: Needs,
    /// Its launches, where not all are timed.
    pub counted: Counted,
    /// Bytes of the name that stands behind, without its NUL.
    length: u32,
}

/// What a function needs, as the API reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Needs {
    pub registers: u32,
    /// Bytes of shared memory that the code itself asks for.
    pub shared: u32,
    /// Bytes of local memory of each thread.
    pub local: u32,
    /// Bytes of constant memory.
    pub constant: u32,
    /// Most threads in a block.
    pub max_threads: u32,
}

/// By hash of name and needs.
static FUNCTIONS: [Published<Function>; MOST] = [const { Published::new() }; MOST];
static COUNT: AtomicU32 = AtomicU32::new(0);
/// `CUfunction` or `CUkernel` → the function, and the age in the upper 16 bits.
static HANDLES: Table<32768> = Table::new();
/// `CUfunction` or `CUkernel` → the name it was asked for by, and its kind, for
/// drivers that do not report names.
static NAMES: Table<32768> = Table::new();
/// Goes up when code is unloaded, since handles may come again as others.
static AGE: AtomicU32 = AtomicU32::new(1);

const ADDRESS: u64 = (1 << 48) - 1;
/// Set in `NAMES` for a `CUkernel`.
const KERNEL: u64 = 1 << 63;

impl Function {
    pub fn name(&self) -> &CStr {
        // SAFETY: the name was put behind when this was made, with a NUL.
        unsafe { text(std::ptr::from_ref(self).add(1).cast()) }
    }
}

/// All functions met so far, each with its id.
pub fn all() -> impl Iterator<Item = (u64, &'static Counted)> {
    // SAFETY: null, or made below and never freed.
    let met = FUNCTIONS.iter().filter_map(|f| unsafe { f.get().as_ref() });
    met.map(|function| (function.id, &function.counted))
}

/// How often handles may have come to mean other functions, or what is known of them has to be recorded again.
#[inline(always)]
pub fn age() -> u32 {
    AGE.load(Ordering::Relaxed)
}

/// What a launch runs, by its handle.
#[inline]
pub fn of(handle: P) -> Option<&'static Function> {
    let age = u64::from(AGE.load(Ordering::Relaxed) as u16) << 48;
    match HANDLES.get(handle as u64) {
        // SAFETY: an address that `ask` put there, of what is never freed.
        Some(word) if word & !ADDRESS == age => unsafe { ((word & ADDRESS) as *const Function).as_ref() },
        _ => ask(handle, age),
    }
}

#[cold]
fn ask(handle: P, age: u64) -> Option<&'static Function> {
    let known = NAMES.get(handle as u64);
    let mut name: *const c_char = std::ptr::null();
    let mut is_kernel = known.is_some_and(|k| k & KERNEL != 0);
    // SAFETY: a handle that the program launches by, and room for the answer.
    // Both kinds of handles are launched by the same functions, and the driver
    // refuses a name to the wrong kind.
    unsafe {
        if is_kernel {
            driver::cuKernelGetName(&mut name, handle);
        } else if driver::cuFuncGetName(&mut name, handle) != 0 && known.is_none() {
            is_kernel = driver::cuKernelGetName(&mut name, handle) == 0;
        }
    }
    if name.is_null() {
        name = (known.unwrap_or(0) & ADDRESS) as *const c_char;
    }
    // SAFETY: the driver's own text, or one of the arena.
    let name = unsafe { text(name) };
    let function = intern(name, needs(handle, is_kernel))?;
    if !HANDLES.set(handle as u64, std::ptr::from_ref(function) as u64 | age) {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            Note::new()
                .text(b"device times: too many kernels to cache; some are queried at each launch")
                .leave();
        }
    }
    Some(function)
}

fn needs(handle: P, is_kernel: bool) -> Needs {
    let mut device = 0;
    // SAFETY: room for the answer.
    let device = if unsafe { driver::cuCtxGetDevice(&mut device) } == 0 { device } else { 0 };
    let get = |attribute: i32| {
        let mut value = 0;
        // SAFETY: `handle` is what the program launches by, and the driver refuses one of the other kind;
        // room for the value.
        let error = unsafe {
            if is_kernel {
                driver::cuKernelGetAttribute(&mut value, attribute, handle, device)
            } else {
                driver::cuFuncGetAttribute(&mut value, attribute, handle)
            }
        };
        if error == 0 { value.unsigned_abs() } else { 0 }
    };
    // CU_FUNC_ATTRIBUTE_NUM_REGS and so on.
    Needs { registers: get(4), shared: get(1), local: get(3), constant: get(2), max_threads: get(0) }
}

/// The one record of a function with this name and these needs; its record is
/// sent when it is met first. `None` when there are too many.
pub fn intern(name: &CStr, needs: Needs) -> Option<&'static Function> {
    let bytes = name.to_bytes();
    let bytes = bytes.get(..NAME).unwrap_or(bytes);
    let add = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, add);
    for word in [needs.registers, needs.shared, needs.local] {
        hash = word.to_le_bytes().iter().fold(hash, add);
    }
    let mut made: *mut Function = null_mut();
    for i in 0..REACH {
        let slot = FUNCTIONS.get(((hash >> 32) as usize + i) % MOST)?;
        let mut there = slot.get();
        if there.is_null() {
            if made.is_null() {
                made = make(bytes, hash, needs)?;
            }
            there = slot.first(made);
            if there == made {
                // SAFETY: just made, and never freed.
                let function = unsafe { made.as_ref() }?;
                announce(function);
                return Some(function);
            }
        }
        // SAFETY: made by this function, and never freed.
        let function = unsafe { there.as_ref() }?;
        if function.hash == hash && function.name().to_bytes() == bytes {
            return Some(function);
        }
    }
    None
}

fn make(name: &[u8], hash: u64, needs: Needs) -> Option<*mut Function> {
    let at = arena(size_of::<Function>() + name.len() + 1)?.cast::<Function>();
    let id = u64::from(COUNT.fetch_add(1, Ordering::Relaxed)) + 1;
    // SAFETY: the arena gave room for both, zeroed, so the name ends.
    unsafe {
        at.write(Function { id, hash, needs, counted: Counted::new(), length: name.len() as u32 });
        at.add(1).cast::<u8>().copy_from_nonoverlapping(name.as_ptr(), name.len());
    }
    Some(at)
}

/// A new trace begins: all that were met are named there, too.
#[cold]
pub fn announce_all() {
    unloaded();
    for place in &FUNCTIONS {
        // SAFETY: null, or made by `make` and never freed.
        if let Some(function) = unsafe { place.get().as_ref() } {
            announce(function);
        }
    }
}

fn announce(function: &Function) {
    let Needs { registers, shared, local, constant, max_threads } = function.needs;
    let record = FunctionRecord {
        function: function.id,
        registers,
        shared,
        local,
        constant,
        max_threads,
        reserved: 0,
    };
    send(special::FUNCTION, &record, function.name());
}

/// The program was given a handle. It may have been another function's.
///
/// # Safety
/// `name` is NULL or a text.
pub unsafe fn remember(handle: P, name: *const c_char, is_kernel: bool) {
    HANDLES.remove(handle as u64);
    // SAFETY: `name` is NULL or a text, and `text` takes both; it is copied before this returns.
    let name = unsafe { text(name) }.to_bytes();
    let name = name.get(..NAME).unwrap_or(name);
    let kind = if is_kernel { KERNEL } else { 0 };
    if !name.is_empty()
        && let Some(place) = arena(name.len() + 1)
    {
        // SAFETY: room for the name, and a 0 behind it.
        unsafe { place.copy_from_nonoverlapping(name.as_ptr(), name.len()) };
        NAMES.set(handle as u64, place as u64 | kind);
    } else if is_kernel {
        NAMES.set(handle as u64, kind);
    }
}

/// The function of a kernel: it has the kernel's name.
pub fn remember_of_kernel(function: P, kernel: P) {
    HANDLES.remove(function as u64);
    if let Some(name) = NAMES.get(kernel as u64) {
        NAMES.set(function as u64, name & ADDRESS);
    }
}

/// Code was unloaded: any handle may come again as that of another function.
pub fn unloaded() {
    AGE.fetch_add(1, Ordering::Relaxed);
}
