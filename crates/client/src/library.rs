//! How hetrace's library is found: as `include/hetrace.h` does it.

use core::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use core::ptr::{null, without_provenance};
use core::sync::atomic::{AtomicPtr, Ordering};

unsafe extern "C" {
    fn secure_getenv(name: *const c_char) -> *mut c_char;
    fn getauxval(kind: c_ulong) -> c_ulong;
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn __errno_location() -> *mut c_int;
}

const RTLD_NOW: c_int = 2;
/// Where the dynamic loader is; 0 in a program that has none.
const AT_BASE: c_ulong = 7;

/// What hetrace's library has. New functions come at the end.
#[repr(C)]
struct Table {
    size: usize,
    push: unsafe extern "C" fn(*const c_char),
    pop: unsafe extern "C" fn(),
    start: unsafe extern "C" fn(*const c_char) -> u64,
    end: unsafe extern "C" fn(u64),
    mark: unsafe extern "C" fn(*const c_char, u64),
    name_thread: unsafe extern "C" fn(*const c_char),
    capture_start: unsafe extern "C" fn(),
    capture_stop: unsafe extern "C" fn(),
    snapshot: unsafe extern "C" fn(),
}

/// NULL: not known yet. [`off`]: not traced. Else the functions.
static KNOWN: AtomicPtr<Table> = AtomicPtr::new(core::ptr::null_mut());

/// Stands for a process that is not traced; nobody reads there.
const fn off() -> *const Table {
    without_provenance(1)
}

/// The functions of a traced process.
#[derive(Clone, Copy)]
pub(crate) struct Functions(&'static Table);

/// Returns the functions if this process is traced.
#[inline]
pub(crate) fn on() -> Option<Functions> {
    let mut known = KNOWN.load(Ordering::Acquire).cast_const();
    if known.addr() == off().addr() {
        return None;
    }
    if known.is_null() {
        known = find();
        if known.addr() == off().addr() {
            return None;
        }
    }
    // SAFETY: `find` stores nothing but `off` and tables of the library, which is never unloaded.
    unsafe { known.as_ref() }.map(Functions)
}

/// Finds out whether this process is traced. Threads that do so at once find the same.
#[cold]
#[inline(never)]
fn find() -> *const Table {
    // SAFETY: the C library's address of this thread's `errno`, which is always valid.
    let errno = unsafe { __errno_location() };
    // SAFETY: it stays valid for as long as this thread lives, and no other thread uses it.
    let saved = unsafe { *errno };
    let table = load();
    // SAFETY: `ask` returns NULL or a table that lives as long as the library, which is never unloaded; its
    // size comes first in all versions.
    let fits = !table.is_null() && unsafe { (*table).size } >= size_of::<Table>();
    let found = if fits { table } else { off() };
    KNOWN.store(found.cast_mut(), Ordering::Release);
    // SAFETY: the same thread as where `saved` was read, so still its own `errno`.
    unsafe { *errno = saved };
    found
}

/// Loads the library that the launcher has named, and asks it for its functions; NULL if there is none.
fn load() -> *const Table {
    // SAFETY: names that end with NUL; a library is opened only in a process that has a dynamic loader, and what its
    // function of that name returns is as the type says.
    unsafe {
        let path = secure_getenv(c"HETRACE_MARKS".as_ptr());
        if path.is_null() || *path.cast::<u8>() != b'/' || getauxval(AT_BASE) == 0 {
            return null();
        }
        let library = dlopen(path, RTLD_NOW);
        if library.is_null() {
            return null();
        }
        let ask = dlsym(library, c"hetrace_marks".as_ptr());
        if ask.is_null() {
            return null();
        }
        let ask = core::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const Table>(ask);
        ask()
    }
}

impl Functions {
    pub fn push(self, name: &CStr) {
        // SAFETY: a function of the library; the text ends with NUL.
        unsafe { (self.0.push)(name.as_ptr()) }
    }

    pub fn pop(self) {
        // SAFETY: a function of the library, without preconditions.
        unsafe { (self.0.pop)() }
    }

    pub fn start(self, name: &CStr) -> u64 {
        // SAFETY: a function of the library; the text ends with NUL.
        unsafe { (self.0.start)(name.as_ptr()) }
    }

    pub fn end(self, id: u64) {
        // SAFETY: a function of the library, without preconditions.
        unsafe { (self.0.end)(id) }
    }

    pub fn mark(self, name: &CStr, value: u64) {
        // SAFETY: a function of the library; the text ends with NUL.
        unsafe { (self.0.mark)(name.as_ptr(), value) }
    }

    pub fn name_thread(self, name: &CStr) {
        // SAFETY: a function of the library; the text ends with NUL.
        unsafe { (self.0.name_thread)(name.as_ptr()) }
    }

    pub fn capture_start(self) {
        // SAFETY: a function of the library, without preconditions.
        unsafe { (self.0.capture_start)() }
    }

    pub fn capture_stop(self) {
        // SAFETY: a function of the library, without preconditions.
        unsafe { (self.0.capture_stop)() }
    }

    pub fn snapshot(self) {
        // SAFETY: a function of the library, without preconditions.
        unsafe { (self.0.snapshot)() }
    }
}
