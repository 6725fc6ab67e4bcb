//! `--capture-buffers`: which memory objects live, and which of them are
//! arguments of which kernels.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};

use hetrace_interpose::ring::abi::{BufferChoice, option};
use hetrace_interpose::table::Table;
use hetrace_interpose::{glob, note, session};

use super::wanted;
use crate::generated::prelude::P;

/// What is known of a memory object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Buffer = 1,
    Image = 2,
    Pipe = 3,
}

/// An argument of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
    /// A live memory object.
    Object(P, Kind),
    /// An address of shared virtual memory.
    Shared(u64),
    /// A value: no object that we know.
    Value(u64),
    /// Of another size than a handle's, or not set by a function we follow.
    Other,
}

/// Not looked yet, off, on.
static STATE: AtomicU8 = AtomicU8::new(0);

/// Whether buffers of any launch are stored.
#[inline(always)]
pub fn active() -> bool {
    match STATE.load(Ordering::Relaxed) {
        1 => false,
        2 => true,
        _ => look(),
    }
}

#[cold]
fn look() -> bool {
    let on = wanted(option::BUFFERS);
    // Before the session is joined nothing is decided.
    if session().is_some() {
        STATE.store(if on { 2 } else { 1 }, Ordering::Relaxed);
    }
    on
}

/// Object → kind in the upper byte, and the program's references.
static OBJECTS: Table<65536> = Table::new();
const KIND: u32 = 56;
/// Kernel and argument → the value that was set.
static VALUES: Table<65536> = Table::new();
/// Kernel and argument → the address of shared memory that was set.
static SHARED: Table<16384> = Table::new();
/// User events without a status: what waits for them waits for the program.
static OPEN_EVENTS: AtomicI64 = AtomicI64::new(0);

/// An object was made, or not.
#[inline]
pub fn made(object: P, kind: Kind) {
    if active() && !object.is_null() && !OBJECTS.set(object as u64, (kind as u64) << KIND | 1) {
        full();
    }
}

#[cold]
fn full() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        note(b"--capture-buffers: too many memory objects or arguments; some are not captured");
    }
}

/// The program's references become one more.
#[inline]
pub fn retained(object: P) {
    if active() {
        OBJECTS.update(object as u64, |word| word + 1);
    }
}

/// The program gives one reference back; with the last one the handle is
/// nobody's, whatever references the driver has. Called before the real one:
/// after it another thread may have the handle for a new object. Of threads that
/// release at once the last one finds that.
#[inline]
pub fn released(object: P) {
    const COUNT: u64 = (1 << KIND) - 1;
    if active()
        && let Some(word) = OBJECTS.update(object as u64, |word| word - u64::from(word & COUNT > 0))
        && word & COUNT <= 1
    {
        OBJECTS.remove(object as u64);
    }
}

fn kind(object: u64) -> Option<Kind> {
    match OBJECTS.get(object)? >> KIND {
        1 => Some(Kind::Buffer),
        2 => Some(Kind::Image),
        3 => Some(Kind::Pipe),
        _ => None,
    }
}

/// Handles are addresses of 47 bits, so an index has room above; no key is 0.
fn key(kernel: P, index: u32) -> u64 {
    kernel as u64 ^ u64::from(index.wrapping_add(1) & 0x7fff) << 48
}

/// An argument was set.
///
/// # Safety
/// `value` is NULL or readable for `size` bytes.
pub unsafe fn set(kernel: P, index: u32, size: u64, value: *const u8) {
    let key = key(kernel, index);
    SHARED.remove(key);
    if size != 8 {
        VALUES.remove(key);
        return;
    }
    // SAFETY: `value` is not NULL, so readable for `size` bytes, which are 8 here.
    // NULL is a buffer that is none.
    let value = if value.is_null() { 0 } else { unsafe { value.cast::<u64>().read_unaligned() } };
    if !VALUES.set(key, value) {
        full();
    }
}

/// An argument is an address of shared virtual memory now.
pub fn set_shared(kernel: P, index: u32, address: u64) {
    let key = key(kernel, index);
    VALUES.remove(key);
    if !SHARED.set(key, address) {
        full();
    }
}

/// What an argument is.
pub fn argument(kernel: P, index: u32) -> Argument {
    let key = key(kernel, index);
    if let Some(address) = SHARED.get(key) {
        return Argument::Shared(address);
    }
    match VALUES.get(key) {
        Some(value) => match kind(value) {
            Some(kind) => Argument::Object(value as P, kind),
            None => Argument::Value(value),
        },
        None => Argument::Other,
    }
}

/// A kernel was made: its handle may have belonged to another, and a clone has
/// the arguments of its source.
pub fn kernel_made(kernel: P, source: P, arguments: u32) {
    for index in 0..arguments {
        let key = key(kernel, index);
        VALUES.remove(key);
        SHARED.remove(key);
        if source.is_null() {
            continue;
        }
        match argument(source, index) {
            Argument::Object(object, _) => drop(VALUES.set(key, object as u64)),
            Argument::Value(value) => drop(VALUES.set(key, value)),
            Argument::Shared(address) => drop(SHARED.set(key, address)),
            Argument::Other => {}
        }
    }
}

/// A user event was made (1) or got its status (-1).
#[inline]
pub fn user_event(change: i64) {
    if active() {
        OPEN_EVENTS.fetch_add(change, Ordering::Relaxed);
    }
}

/// Whether a command may wait for what the program does later.
pub fn may_wait_for_program() -> bool {
    OPEN_EVENTS.load(Ordering::Relaxed) > 0
}

/// Kernels whose launches are counted.
const NAMES: usize = 1024;
/// Hash of a name, launches so far.
static LAUNCHES: [(AtomicU64, AtomicU64); NAMES] = [const { (AtomicU64::new(0), AtomicU64::new(0)) }; NAMES];

/// Counts a launch of a kernel. Returns its number if it is to be stored.
pub fn choose(name: &[u8]) -> Option<u64> {
    let control = session()?.control();
    // Nobody reads what a program stores when its launcher is gone.
    if control.drainer_alive.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let fits = |choice: &&BufferChoice| glob::matches(&choice.kernel, name);
    let mut fitting = control.buffer_choices.iter().filter(fits).peekable();
    fitting.peek()?;
    let number = count(name)?;
    let within = |choice: &BufferChoice| {
        (choice.first.load(Ordering::Relaxed)..=choice.last.load(Ordering::Relaxed)).contains(&number)
    };
    fitting.any(within).then_some(number)
}

fn count(name: &[u8]) -> Option<u64> {
    let hash =
        name.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let hash = hash.max(1);
    for i in 0..NAMES {
        let (key, launches) = LAUNCHES.get((hash as usize).wrapping_add(i) % NAMES)?;
        let there = match key.compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => hash,
            Err(there) => there,
        };
        if there == hash {
            return Some(launches.fetch_add(1, Ordering::Relaxed));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects, arguments and launches are the process's; one test, so that none disturbs another.
    #[test]
    fn objects_and_arguments_are_followed() {
        STATE.store(2, Ordering::Relaxed);
        let (buffer, image, kernel, clone) = (0x1000 as P, 0x2000 as P, 0x3000 as P, 0x4000 as P);
        made(buffer, Kind::Buffer);
        made(image, Kind::Image);
        made(std::ptr::null_mut(), Kind::Pipe);
        retained(buffer);
        released(buffer);
        assert_eq!((kind(0x1000), kind(0x2000), kind(0)), (Some(Kind::Buffer), Some(Kind::Image), None));
        released(image);
        assert_eq!(kind(0x2000), None, "the last reference is gone");

        let give = |kernel: P, index: u32, value: u64| {
            // SAFETY: eight bytes that live.
            unsafe { set(kernel, index, 8, (&raw const value).cast()) };
        };
        give(kernel, 0, 0x1000);
        give(kernel, 1, 0x2000);
        set_shared(kernel, 2, 0x5000);
        // SAFETY: four bytes that live, and a NULL.
        unsafe {
            set(kernel, 3, 4, [1u8; 4].as_ptr());
            set(kernel, 4, 8, std::ptr::null());
        }
        let all = |kernel| [0, 1, 2, 3, 4].map(|index| argument(kernel, index));
        let expected = [
            Argument::Object(buffer, Kind::Buffer),
            Argument::Value(0x2000),
            Argument::Shared(0x5000),
            Argument::Other,
            Argument::Value(0),
        ];
        assert_eq!(all(kernel), expected);
        kernel_made(clone, kernel, 5);
        assert_eq!(all(clone), expected, "a clone has the arguments of its source");
        // Set again: what was there before is gone, whichever function set it.
        give(kernel, 2, 7);
        set_shared(kernel, 0, 0x6000);
        assert_eq!(argument(kernel, 2), Argument::Value(7));
        assert_eq!(argument(kernel, 0), Argument::Shared(0x6000));
        assert_eq!(all(clone), expected);
        kernel_made(kernel, std::ptr::null_mut(), 5);
        assert_eq!(all(kernel), [Argument::Other; 5], "the handle is a new kernel's");

        assert!(!may_wait_for_program());
        user_event(1);
        assert!(may_wait_for_program());
        user_event(-1);
        assert!(!may_wait_for_program());
    }

    #[test]
    fn arguments_of_all_indexes_have_keys_of_their_own() {
        let kernels = [0x7f00_dead_beef_usize, 0x7f00_dead_bef0, 0];
        let mut keys: Vec<u64> =
            kernels.iter().flat_map(|k| (0..0x7fff).map(|index| key(*k as P, index))).collect();
        keys.sort_unstable();
        keys.dedup();
        assert!(keys.len() == 3 * 0x7fff && !keys.contains(&0));
    }

    #[test]
    fn launches_are_counted_by_name() {
        assert_eq!([count(b"first"), count(b"second"), count(b"first")], [Some(0), Some(0), Some(1)]);
        // More names than there is room for are not counted, and the others go on.
        let counted = (0..2 * NAMES).filter(|i| count(format!("kernel {i}").as_bytes()).is_some()).count();
        assert_eq!(counted, NAMES - 2);
        assert_eq!(count(b"second"), Some(1));
    }
}
