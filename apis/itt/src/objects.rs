//! What programs get for what they create: ITT's own structs, which its header reads.
//!
//! A domain or text of the same name is the same object, as ITT promises. Objects are never freed: programs keep
//! them in static variables.
//!
//! Lists only grow: an object is written, then an exchange puts it in front, so who finds it finds it whole. No model runs that.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use hetrace_interpose::commands::{Note, arena};

/// A pointer of any kind.
type P = *mut c_void;

/// `__itt_domain`, as ITT's header has it.
#[repr(C)]
#[derive(Debug)]
pub struct Domain {
    /// The header calls nothing of a domain whose flags are 0.
    flags: i32,
    pub name: *const c_char,
    wide: P,
    extra: (i32, P),
    pub next: *mut Domain,
}

/// `__itt_string_handle`, as ITT's header has it.
#[repr(C)]
#[derive(Debug)]
pub struct Text {
    pub text: *const c_char,
    wide: P,
    extra: (i32, P),
    pub next: *mut Text,
}

/// What stands for a counter: as ITT's static part makes it, which programs may have a counter from. Programs know
/// its address only.
#[repr(C)]
#[derive(Debug)]
pub struct Counter {
    pub name: *const c_char,
    wide: P,
    /// The domain's name.
    pub of: *const c_char,
    wide_of: P,
    /// An `__itt_metadata_type`.
    pub value_type: u32,
    index: libc::c_long,
    extra: (i32, P),
    pub next: *mut Counter,
}

/// `__itt_histogram`.
#[repr(C)]
#[derive(Debug)]
pub struct Histogram {
    domain: P,
    name: *const c_char,
    wide: P,
    /// An `__itt_metadata_type` of columns' places, and one of their heights.
    types: [u32; 2],
    extra: (i32, P),
    next: *mut Histogram,
}

/// `__itt_track`, and with nothing around it `__itt_track_group`.
#[repr(C)]
#[derive(Debug)]
pub struct Track {
    name: P,
    /// Its group; of a group its first track.
    group: P,
    kind: u32,
    extra: (i32, P),
    next: *mut Track,
}

/// An object that is in a list.
trait Listed: Sized {
    fn name(&self) -> *const c_char;
    fn next(&self) -> *mut Self;
    fn set_next(&mut self, next: *mut Self);
}

impl Listed for Domain {
    fn name(&self) -> *const c_char {
        self.name
    }
    fn next(&self) -> *mut Self {
        self.next
    }
    fn set_next(&mut self, next: *mut Self) {
        self.next = next;
    }
}

impl Listed for Text {
    fn name(&self) -> *const c_char {
        self.text
    }
    fn next(&self) -> *mut Self {
        self.next
    }
    fn set_next(&mut self, next: *mut Self) {
        self.next = next;
    }
}

/// Lists, so that a program with many thousand texts does not go through all of them for each.
const LISTS: usize = 1024;

/// Objects of a kind, by a hash of their names.
struct Objects<T>([AtomicPtr<T>; LISTS]);

static DOMAINS: Objects<Domain> = Objects([const { AtomicPtr::new(null_mut()) }; LISTS]);
static TEXTS: Objects<Text> = Objects([const { AtomicPtr::new(null_mut()) }; LISTS]);

/// What programs get for a domain that there is no memory for: older headers read its flags without looking for NULL.
struct Full(UnsafeCell<Domain>);
// SAFETY: nobody writes it; it is in no list.
unsafe impl Sync for Full {}
static FULL: Full = Full(UnsafeCell::new(Domain {
    flags: 1,
    name: c"(one of too many domains)".as_ptr(),
    wide: null_mut(),
    extra: (0, null_mut()),
    next: null_mut(),
}));

/// Returns the domain of a name; one that stands for all others if there is no memory.
///
/// # Safety
/// `name` is NULL or NUL-terminated.
pub unsafe fn domain(name: *const c_char) -> P {
    let new = |name| Domain { flags: 1, name, wide: null_mut(), extra: (0, null_mut()), next: null_mut() };
    // SAFETY: NULL, or the program's own name, which ends with a NUL.
    let domain: P = unsafe { DOMAINS.get(name, new) }.cast();
    if domain.is_null() { FULL.0.get().cast() } else { domain }
}

/// Returns the handle of a text; NULL if there is no memory.
///
/// # Safety
/// `text` is NULL or NUL-terminated.
pub unsafe fn text(text: *const c_char) -> P {
    let new = |text| Text { text, wide: null_mut(), extra: (0, null_mut()), next: null_mut() };
    // SAFETY: NULL, or the program's own text, which ends with a NUL.
    unsafe { TEXTS.get(text, new) }.cast()
}

/// Returns a text of so many bytes, NUL-terminated; NULL if there is none, or no memory.
///
/// # Safety
/// `text` is NULL or has so many bytes, or ends before with a NUL.
pub unsafe fn text_of(text: *const c_char, length: usize) -> *const c_char {
    if text.is_null() {
        return null();
    }
    // SAFETY: not NULL, and the text has so many bytes or ends before: nothing is read behind the length or a NUL.
    let length = unsafe { libc::strnlen(text, length) };
    let Some(at) = length.checked_add(1).and_then(room) else { return null() };
    // SAFETY: so many bytes are there, and room for one more, a NUL: fresh memory is zero.
    unsafe { at.copy_from_nonoverlapping(text.cast(), length) };
    at.cast_const().cast()
}

/// Returns a new counter; NULL if there is no memory.
pub fn counter(value_type: u32) -> P {
    let (text, none) = (null(), null_mut());
    let counter = Counter {
        name: text,
        wide: none,
        of: text,
        wide_of: none,
        value_type,
        index: 0,
        extra: (0, none),
        next: null_mut(),
    };
    place(counter).cast()
}

/// Returns what the values of a counter are: an `__itt_metadata_type`.
///
/// # Safety
/// `counter` is NULL or a counter that the program got from us or from a static part of ITT.
pub unsafe fn value_type(counter: P) -> u32 {
    // SAFETY: contract: NULL, or a counter, which is never freed and never changes.
    unsafe { counter.cast::<Counter>().as_ref() }.map_or(0, |c| c.value_type)
}

/// A histogram of the program's; NULL if there is no room.
///
/// # Safety
/// `name` is NULL or NUL-terminated.
pub unsafe fn histogram(domain: P, name: *const c_char, types: [u32; 2]) -> P {
    // SAFETY: contract: not NULL, so NUL-terminated.
    let name = if name.is_null() { name } else { keep(unsafe { CStr::from_ptr(name) }) };
    let none = null_mut();
    place(Histogram { domain, name, wide: none, types, extra: (0, none), next: null_mut() }).cast()
}

/// The types of a histogram's columns: their places and their heights.
///
/// # Safety
/// `histogram` is NULL or what [`histogram`] made.
pub unsafe fn types(histogram: P) -> [u32; 2] {
    // SAFETY: contract: NULL, or a histogram, which is never freed and never changes.
    unsafe { histogram.cast::<Histogram>().as_ref() }.map_or([0; 2], |h| h.types)
}

/// A track of a group, or a group; NULL if there is no room.
pub fn track(name: P, group: P, kind: u32) -> P {
    place(Track { name, group, kind, extra: (0, null_mut()), next: null_mut() }).cast()
}

/// Returns something that no other object of the process is; NULL if there is no memory.
pub fn unique() -> P {
    // As large as any of ITT's structs.
    place([0_u64; 8]).cast()
}

/// Returns room that stays for ever. That there is none any more is left for the report, once.
fn room(bytes: usize) -> Option<*mut u8> {
    static SAID: AtomicBool = AtomicBool::new(false);
    let room = arena(bytes);
    if room.is_none() && !SAID.swap(true, Ordering::Relaxed) {
        Note::new().text(b"ITT: too many domains and texts: ranges of further ones have no name").leave();
    }
    room
}

/// Puts an object where it stays for ever; NULL if there is no room.
fn place<T>(object: T) -> *mut T {
    const { assert!(align_of::<T>() <= 8) };
    let Some(at) = room(size_of::<T>()) else { return null_mut() };
    let at = at.cast::<T>();
    // SAFETY: room for it that nobody else has, aligned to 8 bytes.
    unsafe { at.write(object) };
    at
}

/// Copies a text to where it stays for ever; NULL if there is no room.
fn keep(text: &CStr) -> *const c_char {
    let bytes = text.to_bytes_with_nul();
    let Some(at) = room(bytes.len()) else { return null() };
    // SAFETY: room for so many bytes that nobody else has.
    unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    at.cast_const().cast()
}

impl<T: Listed> Objects<T> {
    /// # Safety
    /// `name` is NULL or NUL-terminated.
    unsafe fn get(&self, name: *const c_char, new: impl FnOnce(*const c_char) -> T) -> *mut T {
        // SAFETY: not NULL, so it is NUL-terminated.
        let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = name.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325, add);
        let Some(list) = self.0.get((hash >> 32) as usize % LISTS) else { return null_mut() };
        let mut first = list.load(Ordering::Acquire);
        if let Some(there) = find(first, name) {
            return there;
        }
        let kept = keep(name);
        if kept.is_null() {
            return null_mut();
        }
        let made = place(new(kept));
        if made.is_null() {
            return null_mut();
        }
        loop {
            // SAFETY: just made, and known to nobody else until it is in the list.
            unsafe { (*made).set_next(first) };
            // Pairs with the Acquire load above: who finds the object finds it whole.
            match list.compare_exchange(first, made, Ordering::Release, Ordering::Acquire) {
                Ok(_) => return made,
                // Another thread has added one: perhaps this very name.
                Err(now) => first = now,
            }
            if let Some(there) = find(first, name) {
                return there; // What was made for nothing stays unused.
            }
        }
    }
}

/// Looks a name up in a list.
fn find<T: Listed>(mut at: *mut T, name: &CStr) -> Option<*mut T> {
    // SAFETY: NULL, or an object of a list: never freed, and not written any more.
    while let Some(object) = unsafe { at.as_ref() } {
        // SAFETY: a kept name, NUL-terminated.
        if unsafe { CStr::from_ptr(object.name()) } == name {
            return Some(at);
        }
        at = object.next();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn equal_names_are_one_object() {
        // SAFETY: NULL or NUL-terminated texts.
        unsafe {
            let (a, b) = (domain(c"a".as_ptr()), domain(c"b".as_ptr()));
            assert!(!a.is_null() && a != b && domain(c"a".as_ptr()) == a);
            let read = &*a.cast::<Domain>();
            assert_eq!((read.flags, CStr::from_ptr(read.name)), (1, c"a"));
            let text_a = text(c"a".as_ptr());
            assert!(text_a != a && text(c"a".as_ptr()) == text_a);
            assert_eq!(CStr::from_ptr((*text_a.cast::<Text>()).text), c"a");
            assert_eq!(text(null()), text(c"".as_ptr()));
        }
        assert_eq!((size_of::<Domain>(), size_of::<Text>(), size_of::<Counter>()), (48, 40, 72));
        assert_eq!((offset_of!(Counter, value_type), offset_of!(Counter, next)), (32, 64));
        assert_eq!((offset_of!(Histogram, types), offset_of!(Histogram, next)), (24, 48));
        assert_eq!((offset_of!(Track, kind), offset_of!(Track, next)), (16, 40));
    }

    #[test]
    fn threads_get_the_same_object() {
        let all: Vec<usize> = std::thread::scope(|scope| {
            // SAFETY: a NUL-terminated text.
            let get = || unsafe { text(c"of several threads".as_ptr()) } as usize;
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(get)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(all.iter().all(|t| *t == all[0] && *t != 0));
    }

    #[test]
    fn counters_know_their_type() {
        let (a, b) = (counter(8), counter(1));
        // SAFETY: counters, or NULL.
        assert_eq!(unsafe { (value_type(a), value_type(b), value_type(null_mut())) }, (8, 1, 0));
        assert_ne!(a, b);
    }
}
