//! Which handles of kernels have a twin, and which launches are launches of it.
//!
//! A launch finds its twin in a table without locks, which an API fills when the program gets a handle: before it can set
//! something of the kernel, or launch it.
//!
//! What threads have between them here are entries that one fills in and then makes known in a [`Table`], and counters: loom
//! explores the interleavings of the tables.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hetrace_ring::abi::inside::{LATE, OVER, TWIN};

use super::{Chosen, chosen as choice};
use crate::commands::{Mapped, Note, Zeroed};
use crate::hash;
use crate::prelude::P;
use crate::table::Table;

/// Handles with a twin that are distinguished.
const MOST: usize = 8192;
/// Kernels whose launches are counted, by name.
pub(super) const KERNELS: usize = 4096;
/// Longest name of a kernel that gets a twin.
const NAME: usize = 4000;

/// A handle that the program launches by.
#[derive(Debug)]
pub struct Twin {
    own: AtomicU64,
    twin: AtomicU64,
    owner: AtomicU64,
    context: AtomicU64,
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
    /// Launches whose records were overwritten.
    over: AtomicU64,
    /// Its name, which stays, and the bytes of that; 0: it could not be kept.
    name: AtomicU64,
    length: AtomicU64,
}

// SAFETY: all its members are atomics, for which zeros are values.
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
/// Whether there may be any twin.
static ANY: AtomicBool = AtomicBool::new(false);

/// Leaves a note the first time.
pub fn once(said: &AtomicBool, what: &[u8]) {
    if !said.swap(true, Ordering::Relaxed) {
        Note::new().text(b"--inside: ").text(what).leave();
    }
}

/// Code with twins is there.
pub fn expect() {
    ANY.store(true, Ordering::Release);
}

/// Returns whether there may be a twin of anything.
#[inline]
pub fn is_any() -> bool {
    ANY.load(Ordering::Acquire)
}

impl Twin {
    /// Returns the twin's handle.
    pub fn handle(&self) -> P {
        self.twin.load(Ordering::Relaxed) as P
    }

    /// Returns what has it: a module, a library.
    pub fn owner(&self) -> P {
        self.owner.load(Ordering::Relaxed) as P
    }

    /// Returns the context that it belongs to; NULL: to all.
    pub fn context(&self) -> P {
        self.context.load(Ordering::Relaxed) as P
    }

    /// Returns which kernel's launches are counted for it.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    fn counted(&self) -> Option<&'static Count> {
        COUNTS.all().get(self.count() as usize)
    }

    /// Counts a launch. Returns whether it is one that records.
    pub fn records(&self) -> bool {
        let Some(count) = self.counted() else { return false };
        let number = count.launches.fetch_add(1, Ordering::Relaxed);
        let [first, last] = [&count.first, &count.last].map(|number| number.load(Ordering::Relaxed));
        Chosen { first, last, every: count.every.load(Ordering::Relaxed) }.records(number)
    }

    /// Counts a launch that was to record and runs as it was, as there is no room any more.
    pub fn is_late(&self) {
        if let Some(count) = self.counted() {
            count.late.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns the count of a kernel's launches; none if it was not chosen.
pub fn count(name: &[u8]) -> Option<u32> {
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

/// Notes that a handle has a twin. `owner` is what has both, and `context` where they belong; NULL: everywhere. Returns
/// whether there was room.
pub fn pair(own: P, twin: P, owner: P, context: P, count: u32) -> bool {
    let place = free().unwrap_or_else(|| USED.fetch_add(1, Ordering::AcqRel));
    let Some(entry) = TWINS.or_map().get(place) else {
        static FULL: AtomicBool = AtomicBool::new(false);
        once(&FULL, b"too many kernels; some do not record");
        return false;
    };
    entry.twin.store(twin as u64, Ordering::Relaxed);
    entry.owner.store(owner as u64, Ordering::Relaxed);
    entry.context.store(context as u64, Ordering::Relaxed);
    entry.count.store(count, Ordering::Relaxed);
    entry.own.store(own as u64, Ordering::Relaxed);
    // The table publishes what was written (Release in `Table::set`, Acquire in `Table::get`).
    HANDLES.set(own as u64, place as u64 + 1);
    OWN.set(twin as u64, own as u64);
    true
}

/// Returns a place that an ended handle has left, taken; where most have not been used yet none is looked for.
fn free() -> Option<usize> {
    let used = USED.load(Ordering::Acquire).min(MOST);
    if used < MOST / 2 {
        return None;
    }
    let taken =
        |entry: &Twin| entry.own.compare_exchange(0, u64::MAX, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    TWINS.all().iter().take(used).position(taken)
}

/// Returns the program's handle of a twin; none if it is not one.
pub fn of_twin(twin: P) -> Option<P> {
    let own = OWN.get(twin as u64).filter(|_| is_any())?;
    of(own as P).filter(|entry| entry.handle() == twin).map(|_| own as P)
}

/// Returns the twin of a handle.
#[inline]
pub fn of(handle: P) -> Option<&'static Twin> {
    let place = HANDLES.get(handle as u64)?.checked_sub(1)?;
    let twin = TWINS.all().get(usize::try_from(place).ok()?)?;
    (twin.own.load(Ordering::Relaxed) == handle as u64).then_some(twin)
}

/// The twin of a handle is not launched any more; the handle lives.
pub fn part(handle: P) {
    HANDLES.remove(handle as u64);
}

/// Forgets handles that are about to end. Calls `each` with their twins.
pub fn forget(ends: impl Fn(&Twin) -> bool, each: impl Fn(&Twin)) {
    let used = USED.load(Ordering::Acquire);
    let live = |twin: &&Twin| !matches!(twin.own.load(Ordering::Relaxed), 0 | u64::MAX);
    for twin in TWINS.all().iter().take(used).filter(live).filter(|twin| ends(twin)) {
        end(twin, &each);
    }
}

/// Forgets a handle that has ended. Calls `each` with its twin.
pub fn forget_one(handle: P, each: impl Fn(&Twin)) {
    if let Some(twin) = of(handle) {
        end(twin, each);
    }
}

fn end(twin: &Twin, each: impl Fn(&Twin)) {
    let own = twin.own.load(Ordering::Relaxed);
    // Of several that end it one does.
    if own != 0 && twin.own.compare_exchange(own, u64::MAX, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        HANDLES.remove(own);
        OWN.remove(twin.twin.load(Ordering::Relaxed));
        each(twin);
        twin.own.store(0, Ordering::Release);
    }
}

/// Calls `then` with the name of a kernel's twin.
pub fn twin_name<T>(name: &[u8], then: impl FnOnce(&CStr) -> Option<T>) -> Option<T> {
    let mut buffer = [0u8; NAME + 64];
    let end = name.len() + TWIN.len();
    buffer.get_mut(..name.len()).filter(|_| name.len() <= NAME)?.copy_from_slice(name);
    buffer.get_mut(name.len()..end)?.copy_from_slice(TWIN.as_bytes());
    CStr::from_bytes_with_nul(buffer.get(..=end)?).ok().and_then(then)
}

/// Launches of a kernel, by its count, have recorded what was overwritten.
pub(super) fn overwritten(kernel: usize, launches: u64) {
    if let Some(count) = COUNTS.or_map().get(kernel) {
        count.over.fetch_add(launches, Ordering::Relaxed);
    }
}

/// Returns how many that were.
#[cfg(test)]
pub(super) fn overwritten_of(kernel: usize) -> u64 {
    COUNTS.or_map().get(kernel).map_or(0, |count| count.over.load(Ordering::Relaxed))
}

/// Calls `each` with kernels of which `number` is not 0, and that. A name that could not be kept is empty.
fn with_some(number: impl Fn(&Count) -> &AtomicU64, mut each: impl FnMut(&[u8], u64)) {
    let used = COUNTED.load(Ordering::Acquire).min(KERNELS);
    for count in COUNTS.all().iter().take(used) {
        let (some, at) = (number(count).load(Ordering::Relaxed), count.name.load(Ordering::Acquire));
        if some == 0 {
            continue;
        }
        let name: &[u8] = match at {
            0 => &[],
            // SAFETY: the leaked name of `count`, whose length was stored before its address (Release, Acquire).
            _ => unsafe {
                std::slice::from_raw_parts(at as *const u8, count.length.load(Ordering::Relaxed) as usize)
            },
        };
        each(name, some);
    }
}

/// Says which kernels' launches came when there was no room any more, and of which the records were overwritten, and leaves
/// their lists: when the program ends.
pub fn say_late() {
    let (late, list) = listed(|count| &count.late);
    if late > 0 {
        let note = Note::new().text(b"--inside: ").number(late);
        note.text(b" launches ran as they were, as there was no room any more for what they would record")
            .leave();
        super::leave_list(LATE, &list);
    }
    let (over, list) = listed(|count| &count.over);
    if over > 0 {
        let note = Note::new().text(b"--inside: what ").number(over);
        note.text(b" launches recorded was overwritten by later ones").leave();
        super::leave_list(OVER, &list);
    }
}

/// Returns how many launches there are by a number of their kernels' counts, and a line for each kernel.
fn listed(number: impl Fn(&Count) -> &AtomicU64) -> (u64, Vec<u8>) {
    let (mut all, mut list) = (0u64, Vec::new());
    with_some(number, |name, some| {
        all = all.saturating_add(some);
        if name.is_empty() {
            return;
        }
        list.extend(format!("{some} ").into_bytes());
        list.extend(name);
        list.push(b'\n');
    });
    (all, list)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn handles_have_twins_until_they_end() {
        let at = |number: usize| number as P;
        assert!(of(at(16)).is_none() && !is_any());
        expect();
        // Places of handles that ended are used again.
        for round in 0..3 * MOST {
            let (own, twin) = (at(1 << 20 | round << 4), at(1 << 30 | round << 4));
            assert!(pair(own, twin, at(1), at(2), 3));
            let found = of(own).expect("its twin");
            assert_eq!(
                (found.handle(), found.owner(), found.context(), found.count()),
                (twin, at(1), at(2), 3)
            );
            assert_eq!(of_twin(twin), Some(own));
            let ended = std::cell::Cell::new(None);
            forget_one(own, |twin| ended.set(Some(twin.handle())));
            assert_eq!(ended.get(), Some(twin));
            assert!(of(own).is_none() && of_twin(twin).is_none());
        }
        let (kept, ends) = (at(0x10), at(0x20));
        assert!(pair(kept, at(0x11), at(1), at(2), 0) && pair(ends, at(0x21), at(5), at(2), 0));
        forget(|twin| twin.owner() == at(5), |_| {});
        assert!(of(kept).is_some() && of(ends).is_none());
        part(kept);
        assert!(of(kept).is_none());
    }

    #[test]
    fn twins_are_named_after_their_kernels() {
        assert_eq!(twin_name(b"k", |name| Some(name.to_owned())).as_deref(), Some(c"k__hetrace_inside"));
        assert_eq!(twin_name(&[b'k'; NAME + 1], |_| Some(())), None);
    }
}
