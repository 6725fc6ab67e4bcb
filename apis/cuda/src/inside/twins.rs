//! Which kernels have a twin, and which launches are launches of it.
//!
//! [`hetrace_interpose::inside::twins`] pairs handles with twins. The pair is made when the program asks for a kernel: before
//! it can set an attribute of it, or launch it.
//!
//! What threads have between them here are [`Table`]s, of which loom explores the interleavings, and a counter.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

pub use hetrace_interpose::inside::twins::of_twin;
use hetrace_interpose::inside::twins::{self, Twin, count, expect, is_any, of, once, pair, part, twin_name};
use hetrace_interpose::inside::{pools, rings};
use hetrace_interpose::ring::abi::inside::TWIN;
use hetrace_interpose::table::Table;

use super::{CUresult, Code, find, pool, ring, without};
use crate::device::driver;
use crate::device::record::{Note, text};
use crate::generated::prelude::{P, null_mut};
use crate::generated::real;

/// Module or library → how many twins are in it.
static CODE: Table<4096> = Table::new();
/// Module that was got from a library → that.
static LIBRARIES: Table<1024> = Table::new();
/// Library and context, mixed → whether its twins can record there: 1 yes, 2 no.
static READY: Table<1024> = Table::new();
/// Goes up when one of these may have ended.
static EPOCH: AtomicU32 = AtomicU32::new(1);
/// Code with twins was loaded.
pub fn loaded(code: P, kind: Code, twins: u32) {
    if !CODE.set(code as u64, u64::from(twins)) {
        static FULL: AtomicBool = AtomicBool::new(false);
        once(&FULL, b"too many modules; the kernels of some do not record");
        return;
    }
    EPOCH.fetch_add(1, Ordering::AcqRel);
    expect();
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

/// A twin that is to be launched.
#[derive(Debug)]
pub struct Chosen {
    pub handle: P,
    /// Where it records.
    pub context: P,
    /// Which kernel's launches are counted for it.
    pub count: u32,
    twin: &'static Twin,
}

impl Chosen {
    /// It runs as it was, as there is no room.
    pub fn is_late(&self) {
        self.twin.is_late();
    }
}

/// Returns the twin that is to be launched in place of a kernel; none if this launch is not chosen.
#[inline]
pub fn chosen(kernel: P, stream: P) -> Option<Chosen> {
    if !is_any() {
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
    if !is_any() || kernel.is_null() {
        return None;
    }
    if rings() {
        of(kernel).iter().for_each(|_| ring::without_graphs());
        return None;
    }
    let context = || if context.is_null() { driver::current() } else { context };
    choose(kernel, context).map(|chosen| chosen.handle)
}

fn choose(kernel: P, context: impl FnOnce() -> P) -> Option<Chosen> {
    let twin = of(kernel).filter(|twin| twin.records())?;
    let context = match twin.context() {
        // A library's: in each context there is another variable.
        all if all.is_null() => {
            let context = context();
            ready(twin.owner(), context).then_some(context)?
        }
        context => context,
    };
    if pools::is_full(context) && !(rings() && ring::turn(context)) {
        twin.is_late();
        return None;
    }
    Some(Chosen { handle: twin.handle(), context, count: twin.count(), twin })
}

/// The driver refused a twin: the kernel is launched, if the context is as it was.
#[cold]
pub fn refused(kernel: P, error: CUresult, launch: impl Fn(P) -> CUresult) -> CUresult {
    if driver::stays(error as i32) {
        return error;
    }
    let own = launch(kernel);
    if own == 0 {
        give_up(kernel, error);
    }
    own
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

/// # Safety
/// `name` is NULL or a text.
unsafe fn made(handle: P, owner: P, kind: Code, name: *const i8) {
    if without::is_any() {
        // SAFETY: NULL, or the program's own text.
        without::made(owner, unsafe { text(name.cast()) }.to_bytes());
    }
    if !is_any() {
        return;
    }
    // It may have been another's.
    part(handle);
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
    if !is_any() || function == kernel {
        return;
    }
    part(function);
    let Some(entry) = of(kernel) else { return };
    let owner = entry.owner();
    let (context, mut twin) = (driver::current(), null_mut());
    // SAFETY: the twin of a kernel that lives, and room for the answer.
    let error = unsafe { real::cuKernelGetFunction(&mut twin, entry.handle()) };
    if error == 0 && !twin.is_null() && ready(owner, context) {
        pair(function, twin, owner, context, entry.count());
    }
}

/// Returns the program's function of a twin's function; none if it is none. That of a library's twin has another handle than the
/// twin, by which it is not known: its module has both, by their names.
pub fn own_function(function: P) -> Option<P> {
    if !is_any() || function.is_null() {
        return None;
    }
    if let Some(own) = of_twin(function) {
        return Some(own);
    }
    let mut name = std::ptr::null();
    let mut module = null_mut();
    // SAFETY: a function that the driver has just named, and room for the answer.
    if unsafe { driver::cuFuncGetName(&mut name, function) } != 0 {
        return None;
    }
    // SAFETY: NULL, or the driver's own text.
    let own = unsafe { text(name) }.to_bytes().strip_suffix(TWIN.as_bytes())?;
    // SAFETY: as before.
    if unsafe { real::cuFuncGetModule(&mut module, function) } != 0 {
        return None;
    }
    find(module, Code::Module, &CString::new(own).ok()?)
}

/// The program was given the module of a library.
pub fn library_module(module: P, library: P) {
    without::library_module(module, library);
    if let Some(twins) = twins_in(library) {
        CODE.set(module as u64, twins);
        LIBRARIES.set(module as u64, library as u64);
    }
}

/// The program sets something of a function or kernel: its twin gets it, too.
pub fn configured(handle: P, set: impl Fn(P) -> CUresult) -> CUresult {
    let error = set(handle);
    if error == 0 && is_any() {
        configured_on(handle, set);
    }
    error
}

/// The program has set something: its twin gets it, too. One that can't have it is not launched.
fn configured_on(handle: P, set: impl Fn(P) -> CUresult) {
    if let Some(entry) = of(handle) {
        let error = set(entry.handle());
        if error != 0 {
            give_up(handle, error);
        }
    }
}

/// The twin of a handle can't be what the kernel is.
#[cold]
pub fn give_up(handle: P, error: CUresult) {
    part(handle);
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

fn forget(ends: impl Fn(&Twin) -> bool) {
    twins::forget(ends, |_| {});
    EPOCH.fetch_add(1, Ordering::AcqRel);
}

/// Code is about to be unloaded.
pub fn unloaded(code: P) {
    without::unloaded(code);
    if is_any() && CODE.get(code as u64).is_some() {
        CODE.remove(code as u64);
        LIBRARIES.remove(code as u64);
        forget(|twin| twin.owner() == code);
    }
}

/// A context has ended, or is about to: its modules end with it. NULL: any of them.
pub fn context_ended(context: P) {
    if is_any() {
        forget(|twin| !twin.context().is_null() && (context.is_null() || twin.context() == context));
    }
}
