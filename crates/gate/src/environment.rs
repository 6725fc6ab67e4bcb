//! The list of libraries in an environment: all of ours, or the gate alone.

use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::ptr;

/// The variable of the dynamic loader.
const LIST: &[u8] = b"LD_PRELOAD=";
/// What the launcher has put before the entry with all libraries, and before that with the gate alone.
const ALL: &[u8] = b"HETRACE_ALL_";
const GATE: &[u8] = b"HETRACE_GATE_";

unsafe extern "C" {
    /// The process's environment.
    pub(crate) static mut environ: *mut *mut c_char;
}

/// The three variables in an environment.
pub(crate) struct Lists {
    /// Where the loader's entry stands.
    place: *mut *mut c_char,
    /// The entry with all libraries, and that with the gate alone.
    all: *mut c_char,
    gate: *mut c_char,
    /// How many entries there are, without the null pointer behind them.
    entries: usize,
}

/// Finds the variables. `None` if one of them is not there.
///
/// # Safety
/// An environment, or null.
unsafe fn lists(environment: *mut *mut c_char) -> Option<Lists> {
    let mut place = ptr::null_mut::<*mut c_char>();
    let (mut all, mut gate) = (ptr::null_mut::<c_char>(), ptr::null_mut::<c_char>());
    let mut entries = 0;
    if environment.is_null() {
        return None;
    }
    loop {
        // SAFETY: not behind the null pointer that ends it.
        let at = unsafe { environment.add(entries) };
        // SAFETY: an entry, or the null pointer that ends them.
        let entry = unsafe { *at };
        if entry.is_null() {
            break;
        }
        // SAFETY: an entry ends with a zero, and comparing ends at the first that is not equal.
        unsafe {
            if begins(entry, &[LIST]) && place.is_null() {
                place = at;
            } else if begins(entry, &[ALL, LIST]) {
                all = entry.add(ALL.len());
            } else if begins(entry, &[GATE, LIST]) {
                gate = entry.add(GATE.len());
            }
        }
        entries += 1;
    }
    let complete = ![place.cast(), all, gate].contains(&ptr::null_mut());
    complete.then_some(Lists { place, all, gate, entries })
}

/// Returns whether a text begins with these, one behind the other.
///
/// # Safety
/// A text that ends with a zero.
unsafe fn begins(text: *const c_char, parts: &[&[u8]]) -> bool {
    let mut all = parts.iter().copied().flatten().enumerate();
    // SAFETY: no byte is read behind one that differs, as the zero at the end does.
    all.all(|(at, byte)| unsafe { *text.add(at) } as u8 == *byte)
}

/// Returns whether two entries say the same.
///
/// # Safety
/// Texts that end with a zero.
unsafe fn are_equal(one: *const c_char, other: *const c_char) -> bool {
    // SAFETY: entries of an environment, which end with a zero.
    unsafe { CStr::from_ptr(one) == CStr::from_ptr(other) }
}

/// Puts the whole list in the place of the gate alone.
///
/// # Safety
/// An environment, or null, that no other thread uses.
pub(crate) unsafe fn restore(environment: *mut *mut c_char) {
    // SAFETY: null, or a list that ends with a null pointer, of texts that end with a zero; no other thread changes it.
    unsafe {
        if let Some(lists) = lists(environment)
            && are_equal(*lists.place, lists.gate)
        {
            *lists.place = lists.all;
        }
    }
}

/// Finds the variables of an environment that has our whole list and nothing else for the dynamic loader.
///
/// # Safety
/// An environment, or null.
pub(crate) unsafe fn whole(environment: *const *mut c_char) -> Option<Lists> {
    // SAFETY: null, or a list that ends with a null pointer, of texts that end with a zero.
    unsafe {
        let lists = lists(environment.cast_mut())?;
        are_equal(*lists.place, lists.all).then_some(lists)
    }
}

impl Lists {
    /// Calls `run` with the environment in which these were found, but the gate alone for the dynamic loader. `None` if
    /// there are too many variables.
    ///
    /// # Safety
    /// The environment in which they were found, as it was.
    pub(crate) unsafe fn narrowed<R>(
        &self,
        environment: *const *mut c_char,
        run: impl FnOnce(*const *mut c_char) -> R,
    ) -> Option<R> {
        // Threads may have little room, so no more of it is taken than is needed.
        // SAFETY: as the caller says.
        unsafe {
            match self.entries {
                ..128 => with_room::<128, R>(environment, self, run),
                128..1024 => with_room::<1024, R>(environment, self, run),
                _ => None,
            }
        }
    }
}

/// Copies an environment of fewer entries than `N`.
#[inline(never)]
unsafe fn with_room<const N: usize, R>(
    environment: *const *mut c_char,
    lists: &Lists,
    run: impl FnOnce(*const *mut c_char) -> R,
) -> Option<R> {
    let mut room = [MaybeUninit::<*mut c_char>::uninit(); N];
    for (at, slot) in room.iter_mut().enumerate().take(lists.entries + 1) {
        // SAFETY: one of its entries, or the null pointer behind them.
        let place = unsafe { environment.add(at) };
        let is_list = ptr::eq(place, lists.place);
        // SAFETY: an entry, or the null pointer behind them: both can be read.
        slot.write(if is_list { lists.gate } else { unsafe { *place } });
    }
    Some(run(room.as_ptr().cast()))
}
