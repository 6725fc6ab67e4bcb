//! The memory in which twins record: one pool for each context.
//!
//! One thread at a time makes or ends pools ([`Claim`]). Others find a pool by its context, which is [`Published`] when
//! the rest is written, and taken away when nothing may record there any more; loom explores the interleavings of both.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hetrace_pool::{CHUNK, Layout, places};

use super::twins::once;
use super::{PoolFile, pool_bytes};
use crate::commands::Claim;
use crate::prelude::P;
use crate::published::Published;

/// Contexts that have a pool at the same time; kernels of more do not record.
pub(super) const MOST: usize = 64;
static POOLS: [Pool; MOST] = [const { Pool::new() }; MOST];
/// Whether a thread makes or ends pools.
static BUSY: Claim = Claim::new();

/// A context's pool.
struct Pool {
    context: Published<c_void>,
    /// Where it is, as its API has it; 0: it could not be made.
    address: AtomicU64,
    bytes: AtomicU64,
    /// Memory of the host that is not 0 once the pool is full; NULL: that is not known here.
    full: Published<AtomicU32>,
}

impl Pool {
    const fn new() -> Pool {
        let (address, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Pool { context: Published::new(), address, bytes, full: Published::new() }
    }
}

/// Makes or ends pools, alone. Returns none where another thread is at it for ten seconds: in a child that was forked
/// meanwhile, for ever.
pub fn alone<R>(work: impl FnOnce() -> R) -> Option<R> {
    let mut work = Some(work);
    for _ in 0..10_000 {
        if let Some(result) = BUSY.holding(|| work.take().map(|work| work())) {
            return result;
        }
        // SAFETY: no preconditions.
        unsafe { libc::usleep(1000) };
    }
    None
}

fn known(context: P) -> Option<&'static Pool> {
    POOLS.iter().find(|pool| pool.context.get() == context)
}

/// Returns where a context's pool is; none if it has none. The first time `make` makes it, of so many bytes; it returns where
/// that is, not 0, and NULL or memory of the host, which stays, of which a word is not 0 once the pool is full.
pub fn of(context: P, make: impl FnOnce(u64) -> Option<(u64, *mut u8)>) -> Option<u64> {
    if context.is_null() {
        return None;
    }
    let address = |pool: &Pool| Some(pool.address.load(Ordering::Acquire)).filter(|address| *address > 0);
    if let Some(pool) = known(context) {
        return address(pool);
    }
    alone(|| known(context).map_or_else(|| made(context, make), address)).flatten()
}

/// Returns the number of a context's pool, less than [`MOST`]; none if it has none.
pub(super) fn place(context: P) -> Option<usize> {
    POOLS.iter().position(|pool| !context.is_null() && pool.context.get() == context)
}

/// Makes a context's pool, alone.
fn made(context: P, make: impl FnOnce(u64) -> Option<(u64, *mut u8)>) -> Option<u64> {
    let Some(place) = known(null_mut()) else {
        static SAID: AtomicBool = AtomicBool::new(false);
        once(&SAID, b"too many contexts at once; kernels of some do not record");
        return None;
    };
    let bytes = pool_bytes();
    let made = make(bytes);
    place.bytes.store(bytes, Ordering::Relaxed);
    place.full.set(made.map_or(null_mut(), |(_, full)| full).cast());
    place.address.store(made.map_or(0, |(address, _)| address), Ordering::Relaxed);
    place.context.set(context);
    made.map(|(address, _)| address)
}

/// Returns where a context's pool is, if it has one already.
pub fn there(context: P) -> Option<u64> {
    let pool = known(context).filter(|_| !context.is_null())?;
    Some(pool.address.load(Ordering::Acquire)).filter(|address| *address > 0)
}

/// Returns whether nothing can be recorded any more in a context: its twins would only look, and go on as they are.
pub fn is_full(context: P) -> bool {
    let flag = known(context).map_or(null_mut(), |pool| pool.full.get());
    // SAFETY: NULL, or memory that stays, by the contract of `make` in `of`.
    !context.is_null() && unsafe { flag.as_ref() }.is_some_and(|full| full.load(Ordering::Relaxed) != 0)
}

/// A context's pool has room again: nothing is in flight that may find it full.
pub fn emptied(context: P) {
    let flag = known(context).map_or(null_mut(), |pool| pool.full.get());
    // SAFETY: NULL, or memory that stays, by the contract of `make` in `of`.
    if let Some(full) = unsafe { flag.as_ref() }.filter(|_| !context.is_null()) {
        full.store(0, Ordering::Relaxed);
    }
}

/// Calls `take` with contexts that are about to end, where their pools are, and the bytes of these; they have none any more.
pub fn end(is_it: impl Fn(P) -> bool, take: impl Fn(P, u64, u64)) {
    let ends = |of: P| !of.is_null() && is_it(of);
    alone(|| {
        for pool in POOLS.iter().filter(|pool| ends(pool.context.get())) {
            let context = pool.context.get();
            let (address, bytes) =
                (pool.address.swap(0, Ordering::AcqRel), pool.bytes.load(Ordering::Relaxed));
            if address != 0 {
                take(context, address, bytes);
            }
            pool.full.set(null_mut());
            pool.context.set(null_mut());
        }
    });
}

/// Returns what a pool of so many bytes begins with.
pub fn header(layout: Layout, bytes: u64) -> Vec<u8> {
    let mut header = vec![0; layout.header_bytes().min(bytes) as usize];
    layout.begin(layout.places_in(bytes), &mut header);
    header
}

/// Why a pool could not be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uncopied<E> {
    /// There is no room in the session's folder.
    Room,
    /// It could not be read.
    Read(E),
}

/// Copies what is used of a pool of so many bytes into a file of the session. `read` reads so many bytes of it, from its begin,
/// to where there is room for them.
///
/// # Errors
/// If it could not be read, or there is no room for it; then there is no file.
pub fn copy_out<E>(bytes: u64, read: impl Fn(*mut u8, usize) -> Result<(), E>) -> Result<(), Uncopied<E>> {
    let mut header = vec![0u8; CHUNK as usize];
    read(header.as_mut_ptr(), header.len()).map_err(Uncopied::Read)?;
    let layout = Layout::of(&header);
    let begin = layout.header_bytes().min(bytes);
    if begin > CHUNK {
        header.resize(begin as usize, 0);
        read(header.as_mut_ptr(), header.len()).map_err(Uncopied::Read)?;
    }
    let places = layout.used(&header, places(&header).min(layout.places_in(bytes)));
    let length = (begin + places * CHUNK) as usize;
    let file = PoolFile::make(length, false).ok_or(Uncopied::Room)?;
    let done = read(file.at, length).map_err(Uncopied::Read);
    match done {
        Ok(()) => file.complete(),
        Err(_) => file.forget(),
    }
    done
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_context_has_one_pool_until_it_ends() {
        let (one, other) = (0x10 as P, 0x20 as P);
        assert_eq!((there(one), of(null_mut(), |_| Some((1, null_mut())))), (None, None));
        static FULL: AtomicU32 = AtomicU32::new(0);
        let flag = (&raw const FULL).cast_mut().cast();
        assert_eq!(of(one, |_| Some((7, flag))), Some(7));
        assert_eq!((of(one, |_| Some((8, flag))), there(one)), (Some(7), Some(7)));
        assert_eq!((of(other, |_| None), of(other, |_| Some((9, flag)))), (None, None), "not tried again");
        assert!(!is_full(one) && !is_full(other) && !is_full(null_mut()));
        FULL.store(1, Ordering::Relaxed);
        assert!(is_full(one) && !is_full(other));
        let taken = std::cell::RefCell::new(Vec::new());
        end(|_| true, |context, address, bytes| taken.borrow_mut().push((context, address, bytes)));
        assert_eq!(*taken.borrow(), [(one, 7, pool_bytes())]);
        assert_eq!((there(one), is_full(one)), (None, false));
    }
}
