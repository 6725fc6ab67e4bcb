//! The memory in which twins record: one pool for each context.
//!
//! Nothing of the program's is waited for: work of ours goes through a stream of its own, and what is copied out is what has been
//! written by then.

use hetrace_interpose::commands::pages;
use hetrace_interpose::inside::pool::{CHUNK, FULL, HOST_FULL, Layout};
use hetrace_interpose::inside::pools::{self, Uncopied, header};
use hetrace_interpose::inside::{PoolFile, pool_bytes, ring, rings, spills, strategy};

use super::Code;
use super::own::{Own, Refused, ok};
use crate::device::driver;
use crate::device::record::Note;
use crate::generated::prelude::{P, null_mut};

/// The variable that has a pool's address.
const BASE: &std::ffi::CStr = c"__hetrace_inside";

/// Returns the address of a context's pool, made if need be; none if it has none.
pub fn of(context: P) -> Option<u64> {
    pools::of(context, |bytes| make(context, bytes))
}

/// Makes a context's pool. Returns its address, and where the host sees that it is full.
fn make(context: P, bytes: u64) -> Option<(u64, *mut u8)> {
    let made = if spills() { spilled(context, bytes) } else { on_device(context, bytes) };
    if let Err((error, what)) = made {
        let note = Note::new().text(b"--inside: no pool for a context, so its kernels are as they were: ");
        note.text(what).text(b" (CUDA error ").number(error.unsigned_abs().into()).text(b")").leave();
    }
    made.ok()
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

/// Number of `CUdevice_attribute`.
const MULTIPROCESSORS: i32 = 16;

/// Returns how what is recorded lies in a pool of the context that is current.
fn layout() -> Layout {
    let (strategy, mut device, mut count) = (strategy(), 0, 1);
    // SAFETY: room for the answers, of which the second is asked for if there is a first one.
    let known = strategy.is_per_multiprocessor()
        && unsafe {
            driver::cuCtxGetDevice(&mut device) == 0
                && driver::cuDeviceGetAttribute(&mut count, MULTIPROCESSORS, device) == 0
        };
    Layout::new(strategy, if known { count.unsigned_abs() } else { 1 })
}

/// Returns how much of a context's memory is its pool: half of one that is emptied, as behind it is what is kept.
fn part(bytes: u64) -> u64 {
    if rings() { ((bytes / 2) & !(CHUNK - 1)).max(CHUNK) } else { bytes }
}

/// Returns a pool's address, and where the host sees that it is full.
fn on_device(context: P, bytes: u64) -> Result<(u64, *mut u8), Refused> {
    let _entered = enter(context)?;
    let (own, mut raw) = (Own::new()?, 0);
    // SAFETY: room for the answer.
    let error = unsafe { driver::cuMemAlloc_v2(&mut raw, (bytes + CHUNK) as usize) };
    ok(error, b"memory of the device; see --inside-buffer")?;
    let (address, bytes) = (raw.next_multiple_of(CHUNK), part(bytes));
    let mut header = header(layout(), bytes);
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
    let header = header(layout(), bytes);
    // SAFETY: the file has at least as many bytes as are copied.
    unsafe { file.at.copy_from_nonoverlapping(header.as_ptr(), header.len().min(file.length)) };
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
    pools::end(is_it, take);
}

/// Keeps what is in a context's pool behind it, and empties it; nothing is in flight that may write there. Returns whether that
/// was done.
pub fn empty(context: P) -> bool {
    let Some(address) = pools::there(context) else { return false };
    let bytes = part(pool_bytes());
    let done = enter(context).and_then(|_entered| {
        let own = Own::new()?;
        let mut host = [0; 8];
        // SAFETY: 8 bytes of a pool's header, and room for them; the pool, and as much behind it, is ours.
        unsafe {
            own.read(host.as_mut_ptr(), address + HOST_FULL as u64, host.len(), b"reading its header")?;
            own.copy(address + bytes, address, bytes as usize, b"keeping it")?;
            own.zero(address, bytes as usize, b"zeroing it")?;
        }
        let mut header = header(layout(), bytes);
        if let Some(place) = header.get_mut(HOST_FULL..HOST_FULL + 8) {
            place.copy_from_slice(&host);
        }
        // SAFETY: the header lies at the begin of the pool.
        unsafe { own.write(address, &header, b"its header") }
    });
    match done {
        Ok(()) => pools::emptied(context),
        Err((error, what)) => {
            let note =
                Note::new().text(b"--inside: a pool could not be emptied, and stays full: ").text(what);
            note.text(b" (CUDA error ").number(error.unsigned_abs().into()).text(b")").leave();
        }
    }
    done.is_ok()
}

/// Takes what is in a pool.
fn take(context: P, address: u64, bytes: u64) {
    let bytes = part(bytes);
    // What was kept came first.
    if rings() && ring::keeps(context) {
        take_at(context, address + bytes, bytes);
    }
    take_at(context, address, bytes);
    ring::end(context);
}

fn take_at(context: P, address: u64, bytes: u64) {
    // What spills is in its file.
    if !spills()
        && let Err((error, what)) = copy_out(context, address, bytes)
    {
        let note = Note::new().text(b"--inside: what the kernels of a context recorded is lost: ").text(what);
        let note = note.text(b" (CUDA error ").number(error.unsigned_abs().into());
        note.text(b"); --inside-on-full spill keeps it").leave();
    }
}

fn copy_out(context: P, address: u64, bytes: u64) -> Result<(), Refused> {
    let _entered = enter(context)?;
    let own = Own::new()?;
    // SAFETY: `read` gets room for as many bytes as it says, of a pool of ours that has them.
    let read = |to: *mut u8, length| unsafe { own.read(to, address, length, b"copying it") };
    pools::copy_out(bytes, read).map_err(|why| match why {
        Uncopied::Room => (0, &b"no room in the session's folder"[..]),
        Uncopied::Read(refused) => refused,
    })
}
