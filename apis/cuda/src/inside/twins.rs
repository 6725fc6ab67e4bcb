//! Which kernels have a twin, and which launches are launches of it.
//!
//! A launch finds its twin in a table without locks. The table is filled when the program asks for a kernel: before it
//! can set an attribute of it, or launch it.
//!
//! What threads have between them here are entries that one fills in and then makes known in a [`Table`], and counters: loom
//! explores the interleavings of the tables.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hetrace_interpose::commands::{Mapped, Zeroed};
use hetrace_interpose::hash;
use hetrace_interpose::inside::{Chosen, chosen as choice};
use hetrace_interpose::ring::abi::inside::TWIN;
use hetrace_interpose::table::Table;

use super::{CUresult, Code, find, pool};
use crate::device::driver;
use crate::device::record::{Note, text};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// Handles with a twin that are distinguished.
const MOST: usize = 8192;
/// Kernels whose launches are counted, by name.
const KERNELS: usize = 4096;
/// Longest name of a kernel that gets a twin.
const NAME: usize = 4000;

/// A handle that the program launches by.
struct Twin {
    /// That handle; 0 once it has ended.
    own: AtomicU64,
    /// The twin's.
    twin: AtomicU64,
    /// Its module or library.
    owner: AtomicU64,
    /// The context that it belongs to; 0: a kernel of a library, which is of all.
    context: AtomicU64,
    /// Its count in `COUNTS`.
    count: AtomicU32,
}

/// Launches of a kernel, by whatever handle.
struct Count {
    launches: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
    every: AtomicU32,
    /// Launches that were chosen after their context's pool was full: they ran as they were.
    late: AtomicU64,
    /// Its name, which stays, and the bytes of that; 0: it could not be kept.
    name: AtomicU64,
    length: AtomicU64,
}

// SAFETY: it is made of atomics.
unsafe impl Zeroed for Twin {}
// SAFETY: all its members are atomics, for which zeros are values.
unsafe impl Zeroed for Count {}

static TWINS: Mapped<Twin, MOST> = Mapped::new();
static USED: AtomicUsize = AtomicUsize::new(0);
/// Handle → its place in `TWINS`, counted from 1; 0: it has none any more.
static HANDLES: Table<16384> = Table::new();
/// Twin → the handle that the program launches by.
static OWN: Table<16384> = Table::new();
static COUNTS: Mapped<Count, KERNELS> = Mapped::new();
static COUNTED: AtomicUsize = AtomicUsize::new(0);
/// Hash of a name → its place in `COUNTS`, counted from 1.
static NAMES: Table<8192> = Table::new();
/// Module or library → how many twins are in it.
static CODE: Table<4096> = Table::new();
/// Module that was got from a library → that.
static LIBRARIES: Table<1024> = Table::new();
/// Library and context, mixed → whether its twins can record there: 1 yes, 2 no.
static READY: Table<1024> = Table::new();
/// Goes up when one of these may have ended.
static EPOCH: AtomicU32 = AtomicU32::new(1);
/// Whether there is any twin.
static ANY: AtomicBool = AtomicBool::new(false);

fn once(said: &AtomicBool, what: &[u8]) {
    if !said.swap(true, Ordering::Relaxed) {
        Note::new().text(b"--inside: ").text(what).leave();
    }
}

/// Code with twins was loaded.
pub fn loaded(code: P, kind: Code, twins: u32) {
    if !CODE.set(code as u64, u64::from(twins)) {
        static FULL: AtomicBool = AtomicBool::new(false);
        once(&FULL, b"too many modules; the kernels of some do not record");
        return;
    }
    EPOCH.fetch_add(1, Ordering::AcqRel);
    ANY.store(true, Ordering::Release);
    if kind == Code::Module && !base(code, kind, driver::current()) {
        CODE.remove(code as u64);
    }
}

/// Writes the address of a context's pool into code. Returns whether its twins record now.
fn base(code: P, kind: Code, context: P) -> bool {
    pool::of(context).is_some_and(|address| pool::write_base(code, kind, context, address))
}

/// How many twins code has; none if it was loaded as it was.
fn twins_in(code: P) -> Option<u64> {
    CODE.get(code as u64).filter(|twins| *twins > 0)
}

/// Returns the count of a kernel's launches; none if it was not chosen.
fn count(name: &[u8]) -> Option<u32> {
    let chosen = choice(name)?;
    let hash = hash::add(0, name);
    if let Some(place) = NAMES.get(hash).filter(|place| *place > 0) {
        return u32::try_from(place - 1).ok();
    }
    let place = COUNTED.fetch_add(1, Ordering::AcqRel);
    let count = COUNTS.or_map().get(place)?;
    let Chosen { first, last, every } = chosen;
    count.first.store(first, Ordering::Relaxed);
    count.last.store(last, Ordering::Relaxed);
    count.every.store(every, Ordering::Relaxed);
    let mut kept: Vec<u8> = Vec::new();
    if kept.try_reserve_exact(name.len()).is_ok() {
        kept.extend(name);
        let kept: &'static [u8] = kept.leak();
        count.length.store(kept.len() as u64, Ordering::Relaxed);
        count.name.store(kept.as_ptr() as u64, Ordering::Release);
    }
    // Another thread may have been asked for a kernel of this name meanwhile: then its place counts for both.
    NAMES.first(hash, place as u64 + 1).map(|place| (place - 1) as u32)
}

/// Notes that a handle has a twin.
fn pair(own: P, twin: P, owner: P, context: P, count: u32) {
    let place = USED.fetch_add(1, Ordering::AcqRel);
    let Some(entry) = TWINS.or_map().get(place) else {
        static FULL: AtomicBool = AtomicBool::new(false);
        return once(&FULL, b"too many kernels; some do not record");
    };
    entry.own.store(own as u64, Ordering::Relaxed);
    entry.twin.store(twin as u64, Ordering::Relaxed);
    entry.owner.store(owner as u64, Ordering::Relaxed);
    entry.context.store(context as u64, Ordering::Relaxed);
    entry.count.store(count, Ordering::Relaxed);
    // The table publishes what was written (Release in `Table::set`, Acquire in `Table::get`).
    HANDLES.set(own as u64, place as u64 + 1);
    OWN.set(twin as u64, own as u64);
}

/// Returns the program's handle of a twin; none if it is not one.
pub fn of_twin(twin: P) -> Option<P> {
    let own = OWN.get(twin as u64).filter(|_| ANY.load(Ordering::Acquire))?;
    of(own as P).filter(|entry| entry.twin.load(Ordering::Relaxed) == twin as u64).map(|_| own as P)
}

/// The twin of a handle.
#[inline]
fn of(handle: P) -> Option<&'static Twin> {
    let place = HANDLES.get(handle as u64)?.checked_sub(1)?;
    let twin = TWINS.all().get(usize::try_from(place).ok()?)?;
    (twin.own.load(Ordering::Relaxed) == handle as u64).then_some(twin)
}

/// Returns the twin that is to be launched in place of a kernel; none if this launch is not chosen.
#[inline]
pub fn chosen(kernel: P, stream: P) -> Option<P> {
    if !ANY.load(Ordering::Acquire) {
        return None;
    }
    let context = || {
        let mut context = null_mut();
        let is_own = stream <= driver::PER_THREAD;
        // SAFETY: the program's stream, and room for the answer.
        if !is_own && unsafe { driver::cuStreamGetCtx(stream, &mut context) } == 0 {
            context
        } else {
            driver::current()
        }
    };
    choose(kernel, context)
}

/// As [`chosen`], for a node of a graph that runs in `context`; NULL: the current one.
pub fn chosen_of_node(kernel: P, context: P) -> Option<P> {
    let is_any = ANY.load(Ordering::Acquire) && !kernel.is_null();
    is_any.then(|| choose(kernel, || if context.is_null() { driver::current() } else { context })).flatten()
}

fn choose(kernel: P, context: impl FnOnce() -> P) -> Option<P> {
    let twin = of(kernel)?;
    let count = COUNTS.all().get(twin.count.load(Ordering::Relaxed) as usize)?;
    let number = count.launches.fetch_add(1, Ordering::Relaxed);
    let [first, last] = [&count.first, &count.last].map(|number| number.load(Ordering::Relaxed));
    if !(Chosen { first, last, every: count.every.load(Ordering::Relaxed) }).records(number) {
        return None;
    }
    let of = match twin.context.load(Ordering::Relaxed) {
        // A library's: in each context there is another variable.
        0 => {
            let context = context();
            ready(twin.owner.load(Ordering::Relaxed) as P, context).then_some(context)?
        }
        context => context as P,
    };
    if pool::is_full(of) {
        count.late.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    Some(twin.twin.load(Ordering::Relaxed) as P)
}

/// Calls `each` with kernels of which launches were chosen and ran as they were, as there was no room any more, and how many
/// these were. A name that could not be kept is empty.
pub fn without_room(mut each: impl FnMut(&[u8], u64)) {
    let used = COUNTED.load(Ordering::Acquire).min(KERNELS);
    for count in COUNTS.all().iter().take(used) {
        let (late, at) = (count.late.load(Ordering::Relaxed), count.name.load(Ordering::Acquire));
        if late == 0 {
            continue;
        }
        let name: &[u8] = match at {
            0 => &[],
            // SAFETY: the leaked name of `count`, whose length was stored before its address (Release, Acquire).
            _ => unsafe {
                std::slice::from_raw_parts(at as *const u8, count.length.load(Ordering::Relaxed) as usize)
            },
        };
        each(name, late);
    }
}

/// Returns whether a library's twins can record in a context.
fn ready(library: P, context: P) -> bool {
    let epoch = u64::from(EPOCH.load(Ordering::Acquire));
    let key =
        (library as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (context as u64).rotate_left(17) ^ epoch << 48;
    match READY.get(key) {
        Some(1) => true,
        Some(2) => false,
        _ => {
            let can = base(library, Code::Library, context);
            READY.set(key, if can { 1 } else { 2 });
            can
        }
    }
}

/// Calls `then` with the name of a kernel's twin.
fn twin_name<T>(name: &[u8], then: impl FnOnce(&CStr) -> Option<T>) -> Option<T> {
    let mut buffer = [0u8; NAME + 64];
    let end = name.len() + TWIN.len();
    buffer.get_mut(..name.len()).filter(|_| name.len() <= NAME)?.copy_from_slice(name);
    buffer.get_mut(name.len()..end)?.copy_from_slice(TWIN.as_bytes());
    CStr::from_bytes_with_nul(buffer.get(..=end)?).ok().and_then(then)
}

/// # Safety
/// `name` is NULL or a text.
unsafe fn made(handle: P, owner: P, kind: Code, name: *const i8) {
    if !ANY.load(Ordering::Acquire) {
        return;
    }
    // It may have been another's.
    HANDLES.remove(handle as u64);
    if twins_in(owner).is_none() {
        return;
    }
    // SAFETY: NULL, or the program's own text.
    let name = unsafe { text(name.cast()) }.to_bytes();
    let Some(count) = count(name) else { return };
    let Some(twin) = twin_name(name, |name| find(owner, kind, name)) else { return };
    let context = if kind == Code::Library { null_mut() } else { driver::current() };
    if kind == Code::Module && !context.is_null() {
        // A module of a library has its variable in each context; the module's own was set when it was loaded.
        if LIBRARIES.get(owner as u64).is_some_and(|library| library > 0) && !base(owner, kind, context) {
            return;
        }
    }
    pair(handle, twin, owner, context, count);
}

/// The program was given a function of a module.
///
/// # Safety
/// `name` is NULL or a text.
pub unsafe fn function_made(function: P, module: P, name: *const i8) {
    // SAFETY: NULL, or the name that the program has passed to the call, a text.
    unsafe { made(function, module, Code::Module, name) };
}

/// The program was given a kernel of a library.
///
/// # Safety
/// `name` is NULL or a text.
pub unsafe fn kernel_made(kernel: P, library: P, name: *const i8) {
    // SAFETY: NULL, or the name that the program has passed to the call, a text.
    unsafe { made(kernel, library, Code::Library, name) };
}

/// The program was given the function of a kernel, in the current context.
pub fn function_of_kernel(function: P, kernel: P) {
    if !ANY.load(Ordering::Acquire) || function == kernel {
        return;
    }
    HANDLES.remove(function as u64);
    let Some(entry) = of(kernel) else { return };
    let owner = entry.owner.load(Ordering::Relaxed) as P;
    let (context, mut twin) = (driver::current(), null_mut());
    // SAFETY: the twin of a kernel that lives, and room for the answer.
    let error = unsafe { real::cuKernelGetFunction(&mut twin, entry.twin.load(Ordering::Relaxed) as P) };
    if error == 0 && !twin.is_null() && ready(owner, context) {
        pair(function, twin, owner, context, entry.count.load(Ordering::Relaxed));
    }
}

/// The program was given the module of a library.
pub fn library_module(module: P, library: P) {
    if let Some(twins) = twins_in(library) {
        CODE.set(module as u64, twins);
        LIBRARIES.set(module as u64, library as u64);
    }
}

/// The program sets something of a function or kernel: its twin gets it, too.
pub fn configured(handle: P, set: impl Fn(P) -> CUresult) -> CUresult {
    let error = set(handle);
    if error == 0 && ANY.load(Ordering::Acquire) {
        configured_on(handle, set);
    }
    error
}

/// The program has set something: its twin gets it, too. One that can't have it is not launched.
fn configured_on(handle: P, set: impl Fn(P) -> CUresult) {
    if let Some(entry) = of(handle) {
        let error = set(entry.twin.load(Ordering::Relaxed) as P);
        if error != 0 {
            give_up(handle, error);
        }
    }
}

/// The twin of a handle can't be what the kernel is.
#[cold]
pub fn give_up(handle: P, error: CUresult) {
    HANDLES.remove(handle as u64);
    let mut name = std::ptr::null();
    // SAFETY: a handle that the program launches by, and room for the answer; the driver refuses the wrong kind.
    unsafe {
        if driver::cuFuncGetName(&mut name, handle) != 0 {
            driver::cuKernelGetName(&mut name, handle);
        }
    }
    // SAFETY: NULL, or the driver's own text.
    let name = unsafe { text(name) }.to_bytes();
    let note = Note::new().text(b"--inside: ").text(name.get(..100).unwrap_or(name));
    note.text(b" is as it was from here on: its twin can't be launched or configured as it is (CUDA error ")
        .number(error.into())
        .text(b")")
        .leave();
}

/// Takes the twins off a number of kernels.
///
/// # Safety
/// `count` is NULL or was filled in.
pub unsafe fn count_without(count: *mut u32, code: P) {
    if let Some(twins) = twins_in(code).filter(|_| !count.is_null()) {
        // SAFETY: not NULL, so the program's place for the number, which the call has filled in.
        unsafe { *count = (*count).saturating_sub(twins as u32) };
    }
}

/// Lists kernels of code without their twins. Returns none where there are none, and the program's own call is to be made.
///
/// # Safety
/// `list` has room for `count` handles.
pub unsafe fn without_twins(
    list: *mut P,
    count: u32,
    code: P,
    enumerate: impl FnOnce(*mut P, u32) -> CUresult,
    name_of: impl Fn(P) -> *const i8,
) -> Option<(CUresult, u32)> {
    let twins = twins_in(code).filter(|_| !list.is_null())?;
    let all = count as usize + twins as usize;
    let mut found: Vec<P> = Vec::new();
    found.try_reserve_exact(all).ok()?;
    found.resize(all, null_mut());
    let error = enumerate(found.as_mut_ptr(), all as u32);
    if error != 0 {
        return Some((error, 0));
    }
    // SAFETY: NULL, or the driver's own text.
    let is_twin = |handle: P| unsafe { text(name_of(handle).cast()) }.to_bytes().ends_with(TWIN.as_bytes());
    let mut listed = 0;
    for handle in
        found.into_iter().filter(|handle| !handle.is_null() && !is_twin(*handle)).take(count as usize)
    {
        // SAFETY: contract: at most `count`.
        unsafe { list.add(listed as usize).write(handle) };
        listed += 1;
    }
    Some((0, listed))
}

/// Forgets handles that are about to end.
fn forget(ends: impl Fn(&Twin) -> bool) {
    let used = USED.load(Ordering::Acquire);
    for twin in
        TWINS.all().iter().take(used).filter(|twin| twin.own.load(Ordering::Relaxed) != 0 && ends(twin))
    {
        let own = twin.own.swap(0, Ordering::AcqRel);
        HANDLES.remove(own);
        OWN.remove(twin.twin.load(Ordering::Relaxed));
    }
    EPOCH.fetch_add(1, Ordering::AcqRel);
}

/// Code is about to be unloaded.
pub fn unloaded(code: P) {
    if ANY.load(Ordering::Acquire) && CODE.get(code as u64).is_some() {
        CODE.remove(code as u64);
        LIBRARIES.remove(code as u64);
        forget(|twin| twin.owner.load(Ordering::Relaxed) == code as u64);
    }
}

/// A context has ended, or is about to: its modules end with it. NULL: any of them.
pub fn context_ended(context: P) {
    if ANY.load(Ordering::Acquire) {
        forget(|twin| match twin.context.load(Ordering::Relaxed) {
            0 => false,
            of => context.is_null() || of == context as u64,
        });
    }
}
