//! The memory in which twins record: one pool for each context.
//!
//! Nothing of the program's is waited for: work of ours goes through a stream of its own, and what is copied out is what has been
//! written by then.
//!
//! One thread at a time makes or ends pools ([`Claim`]). Others find a pool by its context, which is [`Published`] when
//! the rest is written, and taken away when nothing may record there any more; loom explores the interleavings of both.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use hetrace_interpose::commands::{Claim, pages};
use hetrace_interpose::inside::pool::{CHUNK, FULL, HOST_FULL, MOST as MOST_PLACES, empty, used};
use hetrace_interpose::inside::{PoolFile, pool_bytes, spills};
use hetrace_interpose::published::Published;

use super::Code;
use super::own::{Own, Refused, ok};
use crate::device::driver;
use crate::device::record::Note;
use crate::generated::prelude::{P, c_void, null_mut};

/// Contexts that have a pool at the same time; kernels of more do not record.
const MOST: usize = 64;
static POOLS: [Pool; MOST] = [const { Pool::new() }; MOST];
/// Whether a thread makes or ends pools.
static BUSY: Claim = Claim::new();
/// The variable that has a pool's address.
const BASE: &std::ffi::CStr = c"__hetrace_inside";

/// A context's pool.
struct Pool {
    context: Published<c_void>,
    /// Its address on the device; 0: it could not be made.
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
fn alone<R>(work: impl FnOnce() -> R) -> Option<R> {
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

/// Returns the address of a context's pool, made if need be; none if it has none.
pub fn of(context: P) -> Option<u64> {
    if context.is_null() {
        return None;
    }
    let address = |pool: &Pool| Some(pool.address.load(Ordering::Acquire)).filter(|address| *address > 0);
    if let Some(pool) = known(context) {
        return address(pool);
    }
    alone(|| known(context).map_or_else(|| make(context), address)).flatten()
}

/// Makes a context's pool, alone. Returns its address.
fn make(context: P) -> Option<u64> {
    let Some(place) = known(null_mut()) else {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            Note::new().text(b"--inside: too many contexts at once; kernels of some do not record").leave();
        }
        return None;
    };
    let bytes = pool_bytes();
    let made = if spills() { spilled(context, bytes) } else { on_device(context, bytes) };
    let (made, full) = made.map_or_else(|refused| (Err(refused), null_mut()), |(at, full)| (Ok(at), full));
    if let Err((error, what)) = made {
        let note = Note::new().text(b"--inside: no pool for a context, so its kernels are as they were: ");
        note.text(what).text(b" (CUDA error ").number(error.unsigned_abs().into()).text(b")").leave();
    }
    place.bytes.store(bytes, Ordering::Relaxed);
    place.full.set(full.cast());
    place.address.store(made.unwrap_or(0), Ordering::Relaxed);
    place.context.set(context);
    made.ok()
}

/// Returns whether nothing can be recorded any more in a context: its twins would only look, and go on as they are.
pub fn is_full(context: P) -> bool {
    let flag = known(context).map_or(null_mut(), |pool| pool.full.get());
    // SAFETY: NULL, or pages of ours that are never unmapped.
    !context.is_null() && unsafe { flag.as_ref() }.is_some_and(|full| full.load(Ordering::Relaxed) != 0)
}

/// Returns how many chunks there are in a pool of so many bytes, beside its header.
fn chunks_in(bytes: u64) -> u64 {
    (bytes / CHUNK - 1).min(MOST_PLACES)
}

/// Makes a context current, and lifts the bans of captures, as long as both live.
fn enter(context: P) -> Result<(driver::Pushed, driver::Relaxed), Refused> {
    let pushed = driver::Pushed::new(context).ok_or((201, &b"the context"[..]))?;
    Ok((pushed, driver::Relaxed::new()))
}

/// Memory of the host that the device can write: where it is for each of them. It stays mapped as long as the program runs,
/// since a kernel may write there as long as the context lives.
fn mapped(at: *mut u8, length: usize) -> Result<u64, Refused> {
    let mut address = 0;
    // SAFETY: pages of this process that stay; CU_MEMHOSTREGISTER_PORTABLE and …_DEVICEMAP.
    let error = unsafe { driver::cuMemHostRegister_v2(at.cast(), length, 3) };
    ok(error, b"mapping memory of the host")?;
    // SAFETY: registered above, and room for the answer.
    let error = unsafe { driver::cuMemHostGetDevicePointer_v2(&mut address, at.cast(), 0) };
    ok(error, b"its address on the device")?;
    Ok(address)
}

/// Returns a pool's address, and where the host sees that it is full.
fn on_device(context: P, bytes: u64) -> Result<(u64, *mut u8), Refused> {
    let _entered = enter(context)?;
    let (own, mut raw) = (Own::new()?, 0);
    // SAFETY: room for the answer.
    let error = unsafe { driver::cuMemAlloc_v2(&mut raw, (bytes + CHUNK) as usize) };
    ok(error, b"memory of the device; see --inside-buffer")?;
    let address = raw.next_multiple_of(CHUNK);
    let mut header = empty(chunks_in(bytes));
    let mut full = pages(CHUNK as usize);
    // Without it twins are launched, and look themselves.
    match (!full.is_null()).then(|| mapped(full, CHUNK as usize)) {
        Some(Ok(at)) => {
            if let Some(place) = header.get_mut(HOST_FULL..HOST_FULL + 8) {
                place.copy_from_slice(&at.to_le_bytes());
            }
        }
        _ => full = null_mut(),
    }
    // SAFETY: `bytes` from `address` on lie in what was allocated.
    let zeroed = unsafe { own.zero(address, bytes as usize, b"zeroing it") };
    // SAFETY: the header lies at the begin of that.
    let done = zeroed.and_then(|()| unsafe { own.write(address, &header, b"its header") });
    done.map(|()| (address, full)).inspect_err(|_| {
        // SAFETY: allocated above, and nobody else knows it.
        unsafe { driver::cuMemFree_v2(raw) };
    })
}

fn spilled(context: P, bytes: u64) -> Result<(u64, *mut u8), Refused> {
    let _entered = enter(context)?;
    let file = PoolFile::make(bytes as usize, true)
        .ok_or((0, &b"no room in the session's folder; see --inside-buffer"[..]))?;
    // SAFETY: the file has as many bytes.
    unsafe { file.at.copy_from_nonoverlapping(empty(chunks_in(bytes)).as_ptr(), CHUNK as usize) };
    // SAFETY: within the file's first page, which stays mapped.
    Ok((mapped(file.at, file.length)?, unsafe { file.at.add(FULL) }))
}

/// Writes the address of a context's pool into code. Returns whether that was done.
pub fn write_base(code: P, kind: Code, context: P, address: u64) -> bool {
    let done = enter(context).and_then(|_entered| {
        let (mut at, mut size) = (0, 0);
        // SAFETY: code that is loaded, a text, and room for the answers.
        let error = unsafe {
            match kind {
                Code::Module => driver::cuModuleGetGlobal_v2(&mut at, &mut size, code, BASE.as_ptr()),
                Code::Library => driver::cuLibraryGetGlobal(&mut at, &mut size, code, BASE.as_ptr()),
            }
        };
        ok(error, b"its variable")?;
        ok(if size < 8 { 1 } else { 0 }, b"its variable's size")?;
        let own = Own::new()?;
        // SAFETY: 8 bytes there, as just seen.
        unsafe { own.write(at, &address.to_ne_bytes(), b"writing it") }
    });
    if let Err((error, what)) = done {
        let note =
            Note::new().text(b"--inside: code does not know its pool, so its kernels are as they were: ");
        note.text(what).text(b" (CUDA error ").number(error.unsigned_abs().into()).text(b")").leave();
    }
    done.is_ok()
}

/// Takes what the kernels of contexts have recorded that are about to end.
pub fn end(is_it: impl Fn(P) -> bool) {
    let ends = |of: P| !of.is_null() && is_it(of);
    alone(|| POOLS.iter().filter(|pool| ends(pool.context.get())).for_each(take));
}

/// Takes a pool, and gives its place to another.
fn take(pool: &Pool) {
    let context = pool.context.get();
    let (address, bytes) = (pool.address.swap(0, Ordering::AcqRel), pool.bytes.load(Ordering::Relaxed));
    // What spills is in its file.
    if address != 0
        && !spills()
        && let Err((error, what)) = copy_out(context, address, bytes)
    {
        let note = Note::new().text(b"--inside: what the kernels of a context recorded is lost: ").text(what);
        let note = note.text(b" (CUDA error ").number(error.unsigned_abs().into());
        note.text(b"); --inside-on-full spill keeps it").leave();
    }
    pool.full.set(null_mut());
    pool.context.set(null_mut());
}

fn copy_out(context: P, address: u64, bytes: u64) -> Result<(), Refused> {
    let _entered = enter(context)?;
    let own = Own::new()?;
    let mut header = [0u8; CHUNK as usize];
    // SAFETY: the header of a pool of ours, and room for it.
    unsafe { own.read(header.as_mut_ptr(), address, header.len(), b"its header")? };
    let used = used(&header, chunks_in(bytes)) + 1;
    let length = (used * CHUNK) as usize;
    let file = PoolFile::make(length, false).ok_or((0, &b"no room in the session's folder"[..]))?;
    // SAFETY: as many bytes of the pool, and of the file.
    let done = unsafe { own.read(file.at, address, length, b"copying it") };
    match done {
        Ok(()) => file.complete(),
        Err(_) => file.forget(),
    }
    done
}
