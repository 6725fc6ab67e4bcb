//! `--kernel-args`: what each launch passes to its kernel. The driver reports the offsets and
//! sizes of a kernel's parameters (from 12.4 on), not their types.
//!
//! Layouts are found in [`Table`]s, of which loom explores the interleavings; the age of handles is a number that stands for
//! itself.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use hetrace_interpose::commands::{Mapped, Zeroed};
use hetrace_interpose::put::Put;
use hetrace_interpose::ring::abi::{ObjectRecord, object, option, special};
use hetrace_interpose::table::Table;
use hetrace_interpose::{note, record_extra, session, thread_id, with_guard};

use crate::generated::prelude::P;
use crate::generated::real;

/// Kernels whose parameters are remembered; those of more are not recorded.
const KERNELS: usize = 4096;
/// Parameters of a kernel that are recorded.
const PARAMETERS: usize = 128;
/// Bytes of values that fit into a record beside the rest.
const VALUES: usize = 2600;
/// Longest name that is recorded with them.
const NAME: usize = 500;

/// Where a kernel's parameters lie. Written once, before anyone finds it: what is
/// copied out of a launch's arguments is never more than this kernel has.
struct Layout {
    /// How many there are.
    count: AtomicU32,
    /// Bytes of its name.
    length: AtomicU32,
    name: [AtomicU8; NAME],
    /// Offset in the lower half, size in the upper.
    places: [AtomicU32; PARAMETERS],
}

// SAFETY: it is made of atomics.
unsafe impl Zeroed for Layout {}

static LAYOUTS: Mapped<Layout, KERNELS> = Mapped::new();
static USED: AtomicUsize = AtomicUsize::new(0);
/// `CUfunction` or `CUkernel` → its place in `LAYOUTS`, counted from 1; `ABSENT` if the
/// driver does not report it.
static HANDLES: Table<16384> = Table::new();
/// As above, by what is known of the kernel: one that was loaded again is no other.
static KNOWN: Table<8192> = Table::new();
const ABSENT: u64 = u64::MAX;

/// Code is about to be unloaded: handles may come again as others.
pub fn forget() {
    // The table has no way to be emptied; a changed key makes old entries unreachable.
    AGE.fetch_add(1, Ordering::AcqRel);
}

static AGE: AtomicU32 = AtomicU32::new(0);

fn once(said: &AtomicBool, text: &[u8]) {
    if !said.swap(true, Ordering::Relaxed) {
        note(text);
    }
}

/// The layout with this number, counted from 1. A table shows a handle a moment
/// before its number: 0.
fn numbered(number: u64) -> Option<&'static Layout> {
    LAYOUTS.all().get(usize::try_from(number).ok()?.checked_sub(1)?)
}

fn layout(function: P) -> Option<&'static Layout> {
    // Addresses have no use for their upper bits.
    let key = function as u64 ^ u64::from(AGE.load(Ordering::Acquire)) << 48;
    match HANDLES.get(key) {
        Some(number) => numbered(number),
        None => with_guard(|| ask(function, key)).flatten(),
    }
}

/// A kernel's parameters, as the driver reports them.
struct Parameters<'a> {
    name: &'a [u8],
    places: [u32; PARAMETERS],
    count: usize,
}

impl Parameters<'_> {
    fn places(&self) -> &[u32] {
        self.places.get(..self.count).unwrap_or_default()
    }

    fn hash(&self) -> u64 {
        let places = self.places().iter().flat_map(|p| p.to_le_bytes());
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.name.iter().copied().chain(places).fold(0xcbf2_9ce4_8422_2325, add)
    }

    fn is(&self, layout: &Layout) -> bool {
        layout.count.load(Ordering::Relaxed) as usize == self.count
            && layout.length.load(Ordering::Relaxed) as usize == self.name.len()
            && layout.name.iter().zip(self.name).all(|(a, b)| a.load(Ordering::Relaxed) == *b)
            && layout.places.iter().zip(self.places()).all(|(a, b)| a.load(Ordering::Relaxed) == *b)
    }

    /// Its number; a new one if no kernel was like it.
    fn number(&self) -> Option<u64> {
        let hash = self.hash();
        if let Some(number) = KNOWN.get(hash)
            && numbered(number).is_some_and(|layout| self.is(layout))
        {
            return Some(number);
        }
        if USED.load(Ordering::Relaxed) >= KERNELS {
            return None;
        }
        let place = USED.fetch_add(1, Ordering::AcqRel);
        let layout = LAYOUTS.or_map().get(place)?;
        for (to, from) in layout.name.iter().zip(self.name) {
            to.store(*from, Ordering::Relaxed);
        }
        for (to, from) in layout.places.iter().zip(self.places()) {
            to.store(*from, Ordering::Relaxed);
        }
        layout.length.store(self.name.len() as u32, Ordering::Relaxed);
        layout.count.store(self.count as u32, Ordering::Relaxed);
        // The tables publish what was written.
        KNOWN.set(hash, place as u64 + 1);
        Some(place as u64 + 1)
    }
}

#[cold]
fn ask(function: P, key: u64) -> Option<&'static Layout> {
    static FULL: AtomicBool = AtomicBool::new(false);
    static OLD: AtomicBool = AtomicBool::new(false);
    let (mut offset, mut size) = (0u64, 0u64);
    // A launch takes both kinds of handles; the driver refuses the wrong one.
    // SAFETY: a handle that the program launches by, and room for the answers.
    let mut get = |index: usize, is_kernel: bool| unsafe {
        let error = if is_kernel {
            real::cuKernelGetParamInfo(function, index as u64, &mut offset, &mut size)
        } else {
            real::cuFuncGetParamInfo(function, index as u64, &mut offset, &mut size)
        };
        (error, offset, size)
    };
    let mut name: *const c_char = std::ptr::null();
    // SAFETY: a handle that the program launches by; a kernel's gets an error. `name` has room for the
    // address of the text.
    let is_kernel = unsafe { real::cuFuncGetName((&raw mut name).cast(), function) } != 0;
    if is_kernel {
        // SAFETY: the program launches by this handle, and it is no function: a kernel, or the driver
        // refuses it again. `name` has room for the address of the text.
        unsafe { real::cuKernelGetName((&raw mut name).cast(), function) };
    }
    if get(0, is_kernel).0 == NOT_FOUND {
        HANDLES.set(key, ABSENT);
        once(&OLD, b"--kernel-args: this driver does not report parameter offsets (12.4 and newer do)");
        return None;
    }
    // SAFETY: NULL, or the driver's own text.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } }.to_bytes();
    let name = name.get(..NAME).unwrap_or(name);
    let mut parameters = Parameters { name, places: [0; PARAMETERS], count: 0 };
    for place in &mut parameters.places {
        let (error, offset, size) = get(parameters.count, is_kernel);
        if error != 0 || offset > 0xffff || size > 0xffff {
            break;
        }
        *place = offset as u32 | (size as u32) << 16;
        parameters.count += 1;
    }
    let Some(number) = parameters.number() else {
        HANDLES.set(key, ABSENT);
        once(&FULL, b"--kernel-args: too many kernels; arguments of some are not recorded");
        return None;
    };
    HANDLES.set(key, number);
    numbered(number)
}

/// The driver has no such function, as `missing` returns.
const NOT_FOUND: u32 = 500;

/// `CU_LAUNCH_PARAM_…`.
const END: usize = 0;
const BUFFER: usize = 1;
const SIZE: usize = 2;
/// So many of them are read of one launch, END among them: each of the others once is enough.
const OPTIONS: usize = 8;

/// Where the values of a launch lie.
#[derive(Clone, Copy)]
enum Values {
    /// An address for each.
    Each(*const *const u8),
    /// All in one piece of so many bytes.
    Packed(*const u8, usize),
}

/// Records what a launch passes.
///
/// # Safety
/// The arguments of a launch: `params` is NULL or has an address for each value of the kernel, NULL or readable
/// for the value's size; with `params` NULL, `extra` is as the driver wants it, or as [`packed`] does.
#[inline(always)]
pub unsafe fn launch(time: u64, function: P, params: *const P, extra: *const P) {
    // Where calls are not recorded, this comes by for the sake of the times.
    if session().is_some_and(|s| s.option(option::KERNEL_ARGS)) {
        // SAFETY: the arguments of one launch, unchanged, which is what `record_args` requires.
        unsafe { record_args(time, function, params, extra) };
    }
}

/// Out of the launch's way, which most sessions go without this.
///
/// # Safety
/// As [`launch`].
#[cold]
#[inline(never)]
unsafe fn record_args(time: u64, function: P, params: *const P, extra: *const P) {
    let Some(layout) = layout(function) else { return };
    let values = if params.is_null() {
        // SAFETY: `params` is NULL, so the launch passes its values by `extra`, which the driver, too, reads up
        // to END or a name that it does not know.
        let Some(all) = (unsafe { packed(extra) }) else { return };
        all
    } else {
        Values::Each(params.cast())
    };
    let length = layout.length.load(Ordering::Relaxed) as usize;
    let name = layout.name.get(..length).unwrap_or_default();
    let all = layout.count.load(Ordering::Relaxed) as usize;
    let (mut count, mut bytes) = (0, 0);
    for place in layout.places.iter().take(all).map(|p| p.load(Ordering::Relaxed)) {
        let (offset, size) = ((place & 0xffff) as usize, (place >> 16) as usize);
        let is_there = match values {
            Values::Each(_) => true,
            Values::Packed(_, room) => offset + size <= room,
        };
        if !is_there || bytes + size > VALUES {
            break;
        }
        (count, bytes) = (count + 1, bytes + size);
    }
    let record = ObjectRecord {
        object: function as u64,
        cause: time,
        cause_tid: thread_id(),
        index: all as u32,
        what: object::LAUNCH_ARGS,
        parts: [name.len() as u16, 2 * count as u16, bytes as u16, 0, 0, 0, 0, 0],
        ..ObjectRecord::default()
    };
    // SAFETY: the values are readable, as the launch requires.
    unsafe { record_extra(special::OBJECT, Body { record: &record, name, layout, values, count, bytes }) };
}

/// The piece that holds all values; `None` if there is none, or if the driver will refuse the list. That has
/// not looked at it yet: no more is read than it would read.
///
/// # Safety
/// `extra` is NULL or a list of names with a value behind each, readable up to the first name that is
/// `CU_LAUNCH_PARAM_END` or unknown, or for [`OPTIONS`] names. The value behind a size is NULL or readable.
unsafe fn packed(extra: *const P) -> Option<Values> {
    if extra.is_null() {
        return None;
    }
    let (mut buffer, mut room) = (std::ptr::null::<u8>(), 0);
    for i in 0..OPTIONS {
        // SAFETY: not NULL, and the names before were known and not END: the list has a name here.
        let name = unsafe { *extra.add(2 * i) } as usize;
        if name != BUFFER && name != SIZE {
            let is_whole = name == END && !buffer.is_null();
            return is_whole.then_some(Values::Packed(buffer, room));
        }
        // SAFETY: behind a name that is known and not END lies its value.
        let value = unsafe { *extra.add(2 * i + 1) };
        if name == BUFFER {
            buffer = value.cast_const().cast();
        } else if !value.is_null() {
            // SAFETY: the size is passed by its address.
            room = unsafe { value.cast::<usize>().read_unaligned() };
        }
    }
    None
}

/// The record, the kernel's name, the sizes of the values, and the values.
#[derive(Clone, Copy)]
struct Body<'a> {
    record: &'a ObjectRecord,
    name: &'a [AtomicU8],
    layout: &'a Layout,
    values: Values,
    count: usize,
    bytes: usize,
}

impl Put for Body<'_> {
    fn size(&self) -> usize {
        size_of::<ObjectRecord>() + self.name.len() + 2 * self.count + self.bytes
    }

    unsafe fn put(&self, at: *mut u8) -> *mut u8 {
        // SAFETY: contract of `put`: room for `size` bytes: the record, the name, a size for each
        // value, and `bytes` for the values, of which no more is written whatever the layout says
        // now. The values are readable, as the launch requires.
        unsafe {
            at.copy_from_nonoverlapping(std::ptr::from_ref(self.record).cast(), size_of::<ObjectRecord>());
            let mut at = at.add(size_of::<ObjectRecord>());
            at.copy_from_nonoverlapping(self.name.as_ptr().cast(), self.name.len());
            at = at.add(self.name.len());
            let places = || self.layout.places.iter().take(self.count).map(|p| p.load(Ordering::Relaxed));
            for place in places() {
                at = ((place >> 16) as u16).put(at);
            }
            let mut left = self.bytes;
            for (i, place) in places().enumerate() {
                let (offset, size) = ((place & 0xffff) as usize, ((place >> 16) as usize).min(left));
                let from = match self.values {
                    Values::Each(list) => *list.add(i),
                    Values::Packed(all, _) => all.add(offset),
                };
                if from.is_null() {
                    at.write_bytes(0, size);
                } else {
                    at.copy_from_nonoverlapping(from, size);
                }
                at = at.add(size);
                left -= size;
            }
            at.write_bytes(0, left);
            at.add(left)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &[usize]) -> Option<(*const u8, usize)> {
        // SAFETY: each list of the tests is as long as `packed` may read; sizes are addresses of `usize`.
        match unsafe { packed(list.as_ptr().cast()) } {
            Some(Values::Packed(at, room)) => Some((at, room)),
            Some(Values::Each(_)) | None => None,
        }
    }

    #[test]
    fn a_packed_list_is_read_no_further_than_it_goes() {
        let (values, size) = ([7u8; 24], 24usize);
        let (at, length) = (values.as_ptr() as usize, &raw const size as usize);
        let all = Some((values.as_ptr(), 24));
        // Nothing lies behind END.
        assert_eq!(read(&[BUFFER, at, SIZE, length, END]), all);
        assert_eq!(read(&[SIZE, length, BUFFER, at, END]), all);
        assert_eq!(read(&[BUFFER, at, END]), Some((values.as_ptr(), 0)));
        // What the driver refuses: no buffer, and a name that it does not know.
        assert_eq!(read(&[END]), None);
        assert_eq!(read(&[BUFFER, 0, SIZE, length, END]), None);
        assert_eq!(read(&[BUFFER, at, 99]), None);
        // A list that does not end.
        let endless: Vec<usize> = [SIZE, length].repeat(OPTIONS);
        assert_eq!(read(&endless), None);
        // SAFETY: NULL is no list.
        assert!(unsafe { packed(std::ptr::null()) }.is_none());
    }
}
