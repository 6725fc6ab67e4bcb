//! Binds this library's own references to the C library directly.
//!
//! The dynamic loader binds them to the first definition in the global scope, and
//! that may be an interceptor: those of ThreadSanitizer and MemorySanitizer jump
//! to NULL until their runtime has started, which itself asks our `dlsym` on the
//! way, and later take our rings and stacks for the program's, whose accesses they
//! check. Other preloaded tools change paths, user ids or the clock. None of that
//! is meant for us, so before anything else is called each reference to a function
//! that `libc.so.6` defines is bound to that very definition, in the version that
//! was linked.
//!
//! What stays as bound: memory of the heap, which may be the program's, and
//! threads, of which a sanitizer must know.
//!
//! Nothing here may call the C library, not even by a loop that the compiler would
//! make a `strlen` or `memcpy` of: names are read by volatile reads.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::raw_elf::{self as raw, Reference, Tables};

/// What is left as the dynamic loader has bound it.
const LEFT: &[&[u8]] = &[
    b"malloc",
    b"calloc",
    b"realloc",
    b"free",
    b"posix_memalign",
    b"aligned_alloc",
    b"pthread_create",
    b"pthread_join",
    b"pthread_detach",
];

/// A loaded library, as the dynamic loader lists it: `struct link_map`.
#[repr(C)]
struct LinkMap {
    base: usize,
    name: *const c_char,
    dynamic: *const raw::Dynamic,
    next: *const LinkMap,
}

/// `struct r_debug`, which debuggers read.
#[repr(C)]
struct Debug {
    version: i32,
    first: *const LinkMap,
}

unsafe extern "C" {
    /// The dynamic loader's list of libraries.
    static _r_debug: Debug;
    /// This library's own dynamic section; the linker defines it.
    #[link_name = "_DYNAMIC"]
    static OWN: raw::Dynamic;
    /// This library's own ELF header; the linker defines it.
    #[link_name = "__ehdr_start"]
    static HEADER: libc::Elf64_Ehdr;
}

/// Runs before [`crate::start`], among the constructors of this library.
#[used]
#[unsafe(link_section = ".init_array.00010")]
static BIND: extern "C" fn() = bind;

/// Binds the references, unless that has been done. The first thing that a hook
/// does which may be called before this library is started.
#[inline]
pub(crate) extern "C" fn bind() {
    /// Not 0: it lies on a page that has been written to already.
    static OPEN: AtomicU8 = AtomicU8::new(1);
    if OPEN.load(Ordering::Relaxed) == 1 && OPEN.swap(0, Ordering::Relaxed) == 1 {
        bind_now();
    }
}

#[cold]
fn bind_now() {
    let mut own = None;
    let mut library = None;
    // SAFETY: the list is read where nobody changes it: by a constructor, which the
    // dynamic loader runs while it lets nobody else load, or before that, by the one
    // thread that the program has when its libraries are started.
    let mut at = unsafe { _r_debug.first };
    // SAFETY: NULL or an entry of the list.
    while let Some(entry) = unsafe { at.as_ref() } {
        if std::ptr::eq(entry.dynamic, &raw const OWN) {
            own = Tables::of(entry.base, entry.dynamic);
        } else if library.is_none() {
            library = Tables::of(entry.base, entry.dynamic).filter(is_c_library);
        }
        if own.is_some() && library.is_some() {
            break;
        }
        at = entry.next;
    }
    if let (Some(own), Some(library)) = (own, library) {
        rebind(&own, &library);
    }
}

/// Whether it is the C library that we are bound to: one loaded into a namespace
/// of its own is bound to another, which is not in the list.
fn is_c_library(tables: &Tables) -> bool {
    let place = libc::__errno_location as *const () as *const c_void;
    tables.soname().is_some_and(|name| raw::equals(name, b"libc.so.6"))
        && tables.definition(b"__errno_location", None).is_some_and(|d| std::ptr::eq(d, place))
}

/// What this library itself exports under a name.
pub fn own_definition(name: &CStr) -> Option<*mut c_void> {
    let base = (&raw const HEADER) as usize;
    Tables::of(base, &raw const OWN)?.definition(name.to_bytes(), None)
}

fn rebind(own: &Tables, library: &Tables) {
    // What lies in the library is the definition that was linked. Usually that is so of all, and nothing is written.
    let bound = library.base()..library.end();
    let mut elsewhere = 0;
    own.each_reference(|reference| {
        // SAFETY: a word of this library that holds an address.
        let now = unsafe { reference.place.read_volatile() } as usize;
        elsewhere += usize::from(!bound.contains(&now) && meant(&reference, own, library).is_some());
    });
    if elsewhere == 0 {
        return;
    }
    let relro = relro(own);
    // The pages that the dynamic loader has protected since they were filled.
    if relro.1 > relro.0 && !protect(relro, libc::PROT_READ | libc::PROT_WRITE) {
        return;
    }
    own.each_reference(|reference| {
        if let Some(address) = meant(&reference, own, library) {
            // SAFETY: a word of this library that holds the address of this very
            // function; code that reads it at the same time gets either.
            unsafe { reference.place.write_volatile(address) };
        }
    });
    if relro.1 > relro.0 {
        protect(relro, libc::PROT_READ);
    }
}

/// What a reference is to be bound to: the C library's definition, if it has one and the reference is not left.
fn meant(reference: &Reference, own: &Tables, library: &Tables) -> Option<*mut c_void> {
    // SAFETY: a NUL-terminated name of this library's table.
    let name = unsafe { raw::bytes(reference.name) };
    if LEFT.iter().any(|left| raw::same(left, name)) {
        return None;
    }
    library.definition(name, own.version_needed(reference.symbol))
}

/// The pages of this library that are read-only after relocation.
fn relro(own: &Tables) -> (usize, usize) {
    // SAFETY: this library's own header, which is mapped with its first segment.
    let header = unsafe { &HEADER };
    let first = (&raw const HEADER).cast::<u8>().wrapping_add(header.e_phoff as usize);
    for i in 0..usize::from(header.e_phnum) {
        // SAFETY: the header says how many there are; they are mapped beside it.
        let segment = unsafe { &*first.cast::<libc::Elf64_Phdr>().add(i) };
        if segment.p_type == libc::PT_GNU_RELRO {
            let start = own.base().wrapping_add(segment.p_vaddr as usize);
            let end = start.wrapping_add(segment.p_memsz as usize);
            let page = hetrace_ring::abi::PAGE;
            return (start & !(page - 1), end & !(page - 1));
        }
    }
    (0, 0)
}

/// `mprotect`, by the system call itself: the function is one of those to bind.
fn protect((start, end): (usize, usize), protection: libc::c_int) -> bool {
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: changes the protection of this library's own pages; the call
    // changes no registers but these.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_mprotect as isize => result,
            in("rdi") start,
            in("rsi") end - start,
            in("rdx") protection,
            out("rcx") _,
            out("r11") _,
            options(nostack)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: changes the protection of this library's own pages.
    unsafe {
        result = libc::mprotect(start as *mut c_void, end - start, protection) as isize;
    }
    result == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_defines_what_it_is_asked_for() {
        bind();
        // SAFETY: the loader's list, whose first entry is set before any program runs.
        let mut at = unsafe { _r_debug.first };
        let mut seen = 0;
        // SAFETY: NULL or an entry of the list.
        while let Some(entry) = unsafe { at.as_ref() } {
            if let Some(library) = Tables::of(entry.base, entry.dynamic).filter(is_c_library) {
                // In that library: the runtime of a sanitizer, in the program, has a `strlen` of its own.
                // SAFETY: NUL-terminated names; the library is loaded, and stays.
                let known = unsafe {
                    let handle = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
                    libc::dlsym(handle, c"strlen".as_ptr())
                };
                assert_eq!(library.definition(b"strlen", None), Some(known), "chosen for the processor");
                assert!(library.definition(b"no_such_function", None).is_none());
                assert!(library.definition(b"getpid", Some(1)).is_none(), "no such version");
                seen += 1;
            }
            at = entry.next;
        }
        assert_eq!(seen, 1);
    }

    #[test]
    fn functions_of_the_heap_and_of_threads_are_left() {
        assert!(LEFT.contains(&b"free".as_slice()) && LEFT.contains(&b"pthread_create".as_slice()));
    }
}
