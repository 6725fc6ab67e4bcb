//! The way in for loaders without layers: this library is preloaded, and its
//! symbols stand before the loader's.
//!
//! A program reaches a wrapper in one of two ways: it was linked to the name,
//! or it asked `dlsym` for it. Either way the wrapper must go on to the very
//! function that the program would have reached without us:
//!
//! * The global scope holds a loader (the program is linked to one): every
//!   library would have been bound to that, so it is the real one for all.
//! * It holds none (bindings of Python, plug-ins): each caller would have found
//!   the loader among the libraries that it needs itself. The first is taken
//!   for all, as long as nobody calls who would have found another. Every use
//!   of a loader begins with a function that takes no object of it
//!   ([`FORWARDERS`]), and these look at their caller each time. Once there are
//!   two, all functions do ([`choose`]).
//! * What `dlsym` finds is exchanged for a wrapper if it belongs to the loader
//!   that the wrappers lead to. Those of a second one are left alone, with a
//!   note.
//!
//! Drivers export the names of the API too, and some call themselves by them
//! or fill their dispatch tables with them, so that they would be bound to us:
//! their references are put right ([`restore`]) when the loader asks for their
//! entry points.
//!
//! What can't be done:
//! * A library that is opened with `RTLD_DEEPBIND` and linked to a loader is
//!   bound to that directly, and stays untraced.
//! * A plug-in that is opened later and refers to the API weakly finds it
//!   though there may be no loader; for what is loaded at the start
//!   [`started`] puts that right.
//! * With a second loader, a pointer that the first one's `dlsym` gave is
//!   taken to belong to the loader of whoever calls it.
//! * `dlsym` is hooked on x86-64 only.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hetrace_interpose::dlsym::{Asked, DLSYM, DLVSYM, Lookup, caller};
pub use hetrace_interpose::is_ours;
use hetrace_interpose::library::{Answer, asked_for, global_scope, restore, without_unanswered};
use hetrace_interpose::table::Table;
use hetrace_interpose::{
    ErrnoGuard, Object, each_object, generation, look_up_next, note, session, with_guard,
};

use crate::generated::prelude::{P, REAL, missing};
use crate::generated::tables::{LOADER, NAMES};
use crate::layer;

/// A library that has this function is a loader or a driver.
const SIGNATURE: &CStr = c"clGetPlatformIDs";
/// A library that has this one is a driver.
const DRIVER: &CStr = c"clIcdGetPlatformIDsKHR";

/// Where the loader begins to which the wrappers lead; 0 if none is known.
static PRIMARY: AtomicUsize = AtomicUsize::new(0);
/// The global scope holds it.
static GLOBAL: AtomicBool = AtomicBool::new(false);
/// There is a second one, and every function asks for its caller.
static MANY: AtomicBool = AtomicBool::new(false);

/// The real function behind a preloaded symbol.
pub fn find(name: &CStr) -> Option<*mut c_void> {
    let _errno = ErrnoGuard::new();
    let number = number(name)?;
    if let Some(forwarder) = forwarder(number) {
        return Some(forwarder);
    }
    let loader = loader_of_caller()?;
    if MANY.load(Ordering::Acquire) {
        return thunk(number);
    }
    real_in(&loader, number)
}

fn number(name: &CStr) -> Option<usize> {
    NAMES.iter().position(|n| *n == name)
}

fn wrapper(number: usize) -> Option<P> {
    LOADER.iter().find(|(n, _)| *n == number).map(|(_, w)| w.0.cast_mut())
}

/// The function of a loader: below us if it calls us as its layer.
fn real_in(loader: &Object, number: usize) -> Option<P> {
    layer::below(loader, number).or_else(|| loader.definition(NAMES.get(number)?)).filter(|a| !is_ours(*a))
}

/// Takes a loader for the one that wrappers lead to. Answers whether it is.
pub fn is_primary(loader: &Object) -> bool {
    match PRIMARY.compare_exchange(0, loader.start(), Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(there) => there == loader.start(),
    }
}

/// As above; it stays loaded, because addresses in it are kept.
fn keep_primary(loader: &Object) -> bool {
    static KEPT: AtomicBool = AtomicBool::new(false);
    let primary = is_primary(loader);
    if primary && !KEPT.swap(true, Ordering::Relaxed) {
        loader.keep();
    }
    primary
}

/// The loader of the global scope, if it has one behind us.
fn global() -> Option<Object> {
    if !GLOBAL.load(Ordering::Acquire) {
        let behind = look_up_next(SIGNATURE);
        if behind.is_null() || is_ours(behind) {
            return None;
        }
        // Only the first one counts: who was bound before stays bound.
        if !keep_primary(&Object::holding(behind)?) {
            return None;
        }
        GLOBAL.store(true, Ordering::Release);
    }
    primary()
}

fn primary() -> Option<Object> {
    match PRIMARY.load(Ordering::Acquire) {
        0 => None,
        start => Object::holding(start as *const c_void),
    }
}

/// Any loader that is loaded, for callers that need none themselves.
fn any() -> Option<Object> {
    let mut found = None;
    each_object(|object| {
        let is_loader =
            object.definition(SIGNATURE).is_some_and(|a| !is_ours(a)) && object.definition(DRIVER).is_none();
        if is_loader {
            found = Some(*object);
        }
        found.is_none()
    });
    found
}

/// The loader that a library would have found without us, by what it needs.
fn needed_by(object: &Object) -> Option<Object> {
    object.provider(SIGNATURE).filter(|l| !l.contains(find as *const c_void))
}

/// The loader that whoever called the wrapper would have reached. Changes to
/// asking each time when it is another one than before.
#[inline(never)]
fn loader_of_caller() -> Option<Object> {
    if let Some(global) = global() {
        return Some(global);
    }
    let from = caller();
    if let Some(known) = known_caller(from) {
        return Some(known);
    }
    let calling = Object::holding(from);
    if let Some(own) = calling.filter(|c| c.definition(SIGNATURE).is_some()) {
        return Some(own); // A driver or a loader that calls itself.
    }
    let loader = calling.and_then(|c| needed_by(&c)).or_else(primary).or_else(any)?;
    if !keep_primary(&loader) {
        ask_each_time();
    }
    remember_caller(from, &loader);
    Some(loader)
}

/// Return address → where its loader begins, as long as no library comes or
/// goes.
static CALLERS: Table<1024> = Table::new();
static CALLERS_OF: AtomicU64 = AtomicU64::new(0);

fn known_caller(from: *const c_void) -> Option<Object> {
    // Addresses have no use for their upper bits.
    let key = from as u64 ^ generation() << 48;
    CALLERS.get(key).and_then(|start| Object::holding(start as usize as *const c_void))
}

fn remember_caller(from: *const c_void, loader: &Object) {
    if CALLERS_OF.fetch_add(1, Ordering::Relaxed) < 768 {
        CALLERS.set(from as u64 ^ generation() << 48, loader.start() as u64);
    }
}

/// From now on every wrapper goes on to where its caller would have gone.
fn ask_each_time() {
    if MANY.swap(true, Ordering::AcqRel) {
        return;
    }
    note(b"several OpenCL loaders in one process: calls go to the one each library needs");
    for (number, _) in LOADER {
        if let (None, Some(thunk), Some(real)) = (forwarder(number), thunk(number), REAL.get(number)) {
            real.replace(thunk);
        }
    }
}

/// What a wrapper goes on with when there are several loaders.
extern "C" fn choose(number: usize, _: *const *const c_void) -> P {
    let _errno = ErrnoGuard::new();
    let found = loader_of_caller().and_then(|l| real_in(&l, number));
    found.or_else(|| primary().and_then(|l| real_in(&l, number))).unwrap_or(lacking as *const c_void as P)
}

/// Stands for what a loader lacks: NULL for who expects an object.
extern "C" fn lacking() -> usize {
    0
}

hetrace_interpose::choosing_thunks!(choosing, crate::generated::tables::NAMES.len(), super::choose);

/// The entry that asks for its caller. Where there is none the first loader
/// serves all: objects know their drivers.
fn thunk(number: usize) -> Option<P> {
    choosing::thunk(number).or_else(|| REAL.get(number).map(|r| r.get()).filter(|r| !r.is_null()))
}

/// Functions with which the use of a loader begins. They are called, not
/// jumped to: a loader that starts may call us as its layer, by which the same
/// call must not be recorded again.
macro_rules! forwarders {
    ($($name:ident ( $($arg:ident : $ty:ty),* ) -> $ret:ty;)*) => {
        mod forward {
            use super::*;
            $(pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
                const NUMBER: usize = index(stringify!($name));
                let known = {
                    let _errno = ErrnoGuard::new();
                    loader_of_caller().and_then(|l| real_in(&l, NUMBER))
                };
                let Some(known) = known else { return missing() };
                type Function = unsafe extern "C" fn($($ty),*) -> $ret;
                // SAFETY: the loader's function of this name, and the program's arguments.
                let call = || unsafe { std::mem::transmute::<P, Function>(known)($($arg),*) };
                if CAME_BACK.load(Ordering::Acquire) == generation() {
                    return call();
                }
                let answer = with_guard(call);
                came_back(NUMBER);
                answer
            })*
        }
        static FORWARDERS: &[(usize, crate::generated::prelude::Address)] =
            &[$((index(stringify!($name)), crate::generated::prelude::Address(forward::$name as *const c_void))),*];
    };
}

forwarders! {
    clGetPlatformIDs(room: u32, platforms: *mut P, count: *mut u32) -> i32;
    clGetPlatformInfo(platform: P, name: u32, size: u64, value: P, size_ret: *mut u64) -> i32;
    clGetDeviceIDs(platform: P, kind: u64, room: u32, devices: *mut P, count: *mut u32) -> i32;
    clCreateContext(properties: *const isize, count: u32, devices: *const P, notify: P, data: P, error: *mut i32) -> P;
    clCreateContextFromType(properties: *const isize, kind: u64, notify: P, data: P, error: *mut i32) -> P;
    clUnloadCompiler() -> i32;
    clGetExtensionFunctionAddress(name: *const i8) -> P;
    clGetExtensionFunctionAddressForPlatform(platform: P, name: *const i8) -> P;
}

fn forwarder(number: usize) -> Option<P> {
    FORWARDERS.iter().find(|(n, _)| *n == number).map(|(_, f)| f.0.cast_mut())
}

/// The number of a function, for the compiler.
const fn index(name: &str) -> usize {
    let name = name.as_bytes();
    let mut number = 0;
    while number < NAMES.len() {
        let other = NAMES[number].to_bytes();
        let mut i = 0;
        while i < name.len() && i < other.len() && name[i] == other[i] {
            i += 1;
        }
        if i == name.len() && i == other.len() {
            return number;
        }
        number += 1;
    }
    panic!("no function of the model")
}

/// The libraries that were loaded when a loader answered last: as long as they
/// are all, none can start.
static CAME_BACK: AtomicU64 = AtomicU64::new(0);

/// A loader has answered, so it has started: its drivers are loaded, and its
/// layers are active.
fn came_back(number: usize) {
    let _errno = ErrnoGuard::new();
    each_object(|object| {
        if object.definition(DRIVER).is_some() {
            restore(object, ours);
        }
        true
    });
    CAME_BACK.store(generation(), Ordering::Release);
    // With a loader in the global scope all callers go the same way for ever.
    if GLOBAL.load(Ordering::Acquire)
        && let Some(real) = primary().and_then(|l| real_in(&l, number))
        && let Some(slot) = REAL.get(number)
    {
        slot.replace(real);
    }
}

/// Whether a name is one of the API's functions.
fn ours(name: &CStr) -> bool {
    number(name).is_some()
}

/// Puts right what the dynamic loader made of our presence.
pub fn started() {
    // SAFETY: a NUL-terminated name that only this library has.
    let own = unsafe { libc::dlsym(global_scope(), c"clGetLayerInfo".as_ptr()) };
    if session().is_none() || !std::ptr::eq(own, layer::clGetLayerInfo as *const c_void) {
        return; // Dormant, or loaded as a layer: nobody is bound to us.
    }
    let _errno = ErrnoGuard::new();
    // SAFETY: a NUL-terminated name.
    let first = unsafe { libc::dlsym(global_scope(), SIGNATURE.as_ptr()) };
    if !first.is_null() && !is_ours(first) {
        let Some(before) = Object::holding(first) else { return };
        return step_before(&before);
    }
    each_object(|object| {
        if is_ours(object.start() as *const c_void) {
            return true;
        }
        without_unanswered(object, ours, |_| false);
        true
    });
}

/// Another library stands before us in the place of the loader, as that of
/// `oclgrind ./prog` does: what is bound to it gets bound to us, and we lead
/// to it.
fn step_before(before: &Object) {
    if before.is_program() {
        note(b"the program has an OpenCL loader inside: its calls are not traced");
        return;
    }
    if !keep_primary(before) {
        return;
    }
    GLOBAL.store(true, Ordering::Release);
    each_object(|object| {
        if is_ours(object.start() as *const c_void) || object.definition(SIGNATURE).is_some() {
            return true;
        }
        object.rebind(|reference| {
            let theirs = before.definition(reference.name)?;
            // Not bound yet: it leads to the library's own jumps.
            let taken = reference.now == theirs || object.contains(reference.now);
            if !taken || reference.defines {
                return None;
            }
            number(reference.name).and_then(wrapper)
        });
        true
    });
}

hetrace_interpose::hook_dlsym!(asked_dlsym, asked_dlvsym);

unsafe extern "C" fn asked_dlsym(asked: &mut Asked) -> P {
    self::asked(&DLSYM, asked)
}

unsafe extern "C" fn asked_dlvsym(asked: &mut Asked) -> P {
    self::asked(&DLVSYM, asked)
}

fn asked(lookup: &Lookup, asked: &mut Asked) -> P {
    let begins = |name: &CStr| name.to_bytes().starts_with(b"cl");
    asked_for(lookup, asked, begins, |asked, name| match number(name) {
        Some(number) => exchange(lookup, asked, number),
        None => Answer::Theirs,
    })
}

fn exchange(lookup: &Lookup, asked: &Asked, number: usize) -> Answer {
    let calling = Object::holding(asked.caller);
    if asked.handle == libc::RTLD_NEXT {
        // The program stands before us, and would find us.
        let lacks = calling.is_some_and(|c| c.is_program()) && global().is_none();
        return if lacks { Answer::Nothing } else { Answer::Theirs };
    }
    let by_loader = calling.is_some_and(|c| c.definition(SIGNATURE).is_some());
    let handle = if asked.handle == libc::RTLD_DEFAULT { global_scope() } else { asked.handle };
    // SAFETY: the program's own question.
    let address = unsafe { lookup.ask(&Asked { handle, ..*asked }) };
    if address.is_null() {
        return Answer::Theirs;
    }
    if is_ours(address) {
        // In the global scope: as it should be, if there is something behind us.
        let there = global().is_some() || calling.and_then(|c| needed_by(&c)).is_some();
        return if there { Answer::Theirs } else { Answer::Nothing };
    }
    let Some(loader) = Object::holding(address) else { return Answer::Theirs };
    if by_loader {
        // A loader asks its driver, or an interposer what is behind it.
        restore(&loader, ours);
        return Answer::Theirs;
    }
    if loader.definition(SIGNATURE).is_none() || layer::is_below(&loader) {
        return Answer::Theirs;
    }
    let Some(wrapper) = wrapper(number) else { return Answer::Theirs };
    let real = if MANY.load(Ordering::Acquire) { None } else { REAL.get(number) };
    let leads_there = keep_primary(&loader)
        && real.is_some_and(|r| r.set(forwarder(number).unwrap_or(address)) || r.get() == address);
    if leads_there {
        return Answer::Ours(wrapper);
    }
    untraced();
    Answer::Theirs
}

fn untraced() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        note(b"a program asked a second OpenCL loader for its functions: their calls are not traced");
    }
}
