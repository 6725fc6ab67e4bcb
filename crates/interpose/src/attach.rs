//! A thread's first recorded call, and its end. Slow paths: system calls are
//! made here, but nothing is allocated from the program's heap and no lock is
//! taken, so that even a signal handler may come first.

use std::fs::File;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use hetrace_ring::abi::{ABI_VERSION, PAGE, RING_MAGIC, RING_PREFIX, RingHeader, state};
use hetrace_ring::writer::{Writer, wake};
use hetrace_ring::{clock, map_mirrored};

use crate::errno::ErrnoGuard;
use crate::errors;
use crate::grow::{GROWN, grow};
use crate::process::{KEY, PATH, Session, session};
use crate::tls;

/// Rings of this process, so that those of ended threads are used again.
const MAX_RINGS: usize = 4096;
static RINGS: [AtomicPtr<u8>; MAX_RINGS] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_RINGS];
static RING_COUNT: AtomicU32 = AtomicU32::new(0);
/// Process that `RINGS` belongs to: a forked child starts with none.
static OWNER: AtomicU32 = AtomicU32::new(0);
/// After a few failures threads stop trying, and their calls are counted.
static FAILURES: AtomicU32 = AtomicU32::new(0);
const MAX_FAILURES: u32 = 16;

/// Blocks all signals of this thread, and puts the mask back.
pub(crate) struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    pub(crate) fn new() -> Self {
        // SAFETY: all bit patterns of a set are valid; the calls fill it in.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut old: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            SignalsBlocked(old)
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: a mask this thread had before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// Gives this thread a writer with a ring. `None` if that can't be done now.
#[cold]
#[inline(never)]
pub(crate) fn attach() -> Option<&'static mut Writer> {
    let session = session()?;
    let _errno = ErrnoGuard::new();
    let _signals = SignalsBlocked::new();
    let existing = tls::get();
    // SAFETY: null, or this thread's own writer, which lives until its end.
    if let Some(writer) = unsafe { existing.as_mut() }
        && writer.attached()
    {
        return Some(writer); // A signal handler was quicker.
    }
    if FAILURES.load(Ordering::Relaxed) >= MAX_FAILURES {
        session.control().calls_without_ring.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    let data = session.control().ring_bytes as usize;
    match claim(session, 0).or_else(|| make(session, data)) {
        Some(base) => {
            finish(session, existing, base)?.grow = Some(grow);
            errors::tell_once();
            // SAFETY: set by `finish`.
            unsafe { tls::get().as_mut() }
        }
        None => {
            FAILURES.fetch_add(1, Ordering::Relaxed);
            session.control().rings_failed.fetch_add(1, Ordering::Relaxed);
            session.control().calls_without_ring.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

pub(crate) fn pid() -> u32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() as u32 }
}

/// Says that this process is the one that the rings will belong to. Called
/// before there are other threads, so that only a forked child, which has one
/// thread at first, finds the owner to be another.
pub(crate) fn own() {
    OWNER.store(pid(), Ordering::Relaxed);
}

/// A ring of this process, of at least so many data bytes, whose thread ended and
/// which the drainer has emptied.
pub(crate) fn claim(session: &Session, least: u64) -> Option<*mut u8> {
    let me = pid();
    if OWNER.swap(me, Ordering::Relaxed) != me {
        RING_COUNT.store(0, Ordering::Relaxed); // A forked child has no rings yet.
        FAILURES.store(0, Ordering::Relaxed);
        GROWN.store(0, Ordering::Relaxed);
    }
    let count = (RING_COUNT.load(Ordering::Acquire) as usize).min(MAX_RINGS);
    for slot in RINGS.iter().take(count) {
        let base = slot.load(Ordering::Acquire);
        // SAFETY: null, or the header of a ring that is never unmapped.
        let Some(header) = (unsafe { base.cast::<RingHeader>().as_ref() }) else { continue };
        // Pairs with the Release store in `Ring::recycle`.
        let free = header.pid == me
            && header.api == session.api
            && header.data_bytes >= least
            && header
                .state
                .compare_exchange(state::FREE, state::CLAIMED, Ordering::Acquire, Ordering::Relaxed)
                .is_ok();
        if free {
            return Some(base);
        }
    }
    None
}

/// A new ring file, with all its memory there: a full file system must show
/// here as a failure, not later as SIGBUS in the program.
pub(crate) fn make(session: &Session, data: usize) -> Option<*mut u8> {
    let number = RING_COUNT.load(Ordering::Relaxed);
    if !data.is_power_of_two() || data < PAGE {
        return None;
    }
    let (file, number) = create(session, number)?;
    use std::os::fd::AsRawFd;
    // SAFETY: an open descriptor.
    if unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, (PAGE + data) as libc::off_t) } != 0 {
        return None;
    }
    let mapping = map_mirrored(&file, data).ok()?;
    // Touch the page tables now and not in the program's calls; old kernels
    // do not know the request, and then the first touches cost a little more.
    // SAFETY: a range of our own mapping.
    unsafe { libc::madvise(mapping.base().cast(), mapping.length(), MADV_POPULATE_WRITE) };
    let base = mapping.leak();
    // SAFETY: the mapping begins with a page for the header, zeroed, which
    // nobody else uses before `magic` is there.
    let header = unsafe { &mut *base.cast::<RingHeader>() };
    header.version = ABI_VERSION;
    header.api = session.api;
    header.number = number;
    header.data_bytes = data as u64;
    header.pid = pid();
    // SAFETY: no preconditions.
    header.parent = unsafe { libc::getppid() as u32 };
    header.process_start = process_start();
    read_file(c"/proc/self/cmdline", &mut header.command[..511]);
    header.state.store(state::CLAIMED, Ordering::Relaxed);
    let slot = RING_COUNT.fetch_add(1, Ordering::AcqRel) as usize;
    if let Some(slot) = RINGS.get(slot) {
        slot.store(base, Ordering::Release);
    }
    Some(base)
}

const MADV_POPULATE_WRITE: libc::c_int = 23;

/// A new file, and the number in its name.
fn create(session: &Session, mut number: u32) -> Option<(File, u32)> {
    // Several threads may try the same number; the file system decides.
    for _ in 0..10_000 {
        let mut name = Text::new();
        name.push(RING_PREFIX.as_bytes());
        name.number(u64::from(pid()));
        name.push(b"-");
        name.number(u64::from(session.api));
        name.push(b"-");
        name.number(u64::from(number));
        let mut buffer = [0; PATH + 64];
        let path = session.path(&mut buffer, name.bytes())?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: a NUL-terminated path.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
        if fd >= 0 {
            // SAFETY: just opened, and owned by nobody else.
            return Some((unsafe { File::from_raw_fd(fd) }, number));
        }
        // SAFETY: the C library's own place for this thread's errno.
        if unsafe { *libc::__errno_location() } != libc::EEXIST {
            return None;
        }
        number = number.wrapping_add(1);
    }
    None
}

/// Opens the ring, and gives it to the thread's writer.
#[expect(clippy::mut_from_ref, reason = "the writer is a page of its own, no part of the session")]
fn finish(session: &'static Session, existing: *mut Writer, base: *mut u8) -> Option<&'static mut Writer> {
    let writer = if existing.is_null() { new_writer()? } else { existing };
    open(session, base, 0);
    // SAFETY: this thread's own writer, in a page of its own.
    let writer = unsafe { &mut *writer };
    // SAFETY: ring and control file stay mapped for ever, and the ring was
    // claimed by this thread alone.
    unsafe { writer.attach(base, session.control_pointer()) };
    tls::set(writer);
    let key = KEY.load(Ordering::Relaxed);
    if key != u32::MAX {
        // SAFETY: a key of ours; the value is what the destructor expects.
        unsafe { libc::pthread_setspecific(key, (&raw const *writer).cast()) };
    }
    Some(writer)
}

/// Writes this thread's identity into a ring that it claimed, and shows the ring
/// to the drainer. `follows` is as [`RingHeader::follows`].
pub(crate) fn open(session: &Session, base: *mut u8, follows: u32) {
    // SAFETY: a mirrored mapping of a ring that this thread claimed.
    let header = unsafe { &*base.cast::<RingHeader>() };
    header.follows.store(follows, Ordering::Relaxed);
    // SAFETY: no preconditions.
    header.tid.store(unsafe { libc::syscall(libc::SYS_gettid) } as u32, Ordering::Relaxed);
    let mut comm = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes.
    unsafe { libc::prctl(libc::PR_GET_NAME, comm.as_mut_ptr()) };
    for (to, from) in header.comm.iter().zip(comm) {
        to.store(from, Ordering::Relaxed);
    }
    header.claimed_at.store(clock::ticks(), Ordering::Relaxed);
    header.incarnation.fetch_add(1, Ordering::Relaxed);
    // Pairs with the Acquire loads of the drainer: the identity is complete.
    header.state.store(state::ACTIVE, Ordering::Release);
    header.magic.store(RING_MAGIC, Ordering::Release);
    let control = session.control();
    control.rings_made.fetch_add(1, Ordering::Release);
    wake(&control.wake);
}

/// A page that a forked child finds empty.
fn new_writer() -> Option<*mut Writer> {
    // SAFETY: a fresh page at an address of the kernel's choice.
    let page = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the page mapped above.
    if unsafe { libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) } != 0 {
        // Without it a child could write into its parent's ring: rather none.
        // SAFETY: as above; nobody uses it.
        unsafe { libc::munmap(page, PAGE) };
        return None;
    }
    Some(page.cast())
}

/// Destructor of the thread's key: its ring may be used by another thread once
/// the drainer has emptied it. A later call of this thread attaches again.
pub(crate) unsafe extern "C" fn thread_ended(writer: *mut libc::c_void) {
    let _errno = ErrnoGuard::new();
    let _signals = SignalsBlocked::new();
    let page = writer;
    // SAFETY: the writer this thread stored, which only it uses.
    let Some(writer) = (unsafe { writer.cast::<Writer>().as_mut() }) else { return };
    writer.flush();
    if let Some(header) = writer.header() {
        // Pairs with the Acquire load of the drainer: all records are there.
        header.state.store(state::ENDED, Ordering::Release);
    }
    writer.detach();
    if std::ptr::eq(tls::get(), writer) {
        tls::set(std::ptr::null_mut());
    }
    // SAFETY: the page of this writer, to which no pointer is left.
    unsafe { libc::munmap(page, PAGE) };
}

/// Field 22 of `/proc/self/stat`, counted behind the name, which may hold
/// anything.
fn process_start() -> u64 {
    let mut buffer = [0u8; 1024];
    let length = read_file(c"/proc/self/stat", &mut buffer);
    let text = buffer.get(..length).unwrap_or_default();
    let Some(name_end) = text.iter().rposition(|b| *b == b')') else { return 0 };
    let field = text.get(name_end + 2..).unwrap_or_default().split(|b| *b == b' ').nth(19);
    let digits = field.unwrap_or_default().iter().take_while(|b| b.is_ascii_digit());
    digits.fold(0u64, |n, d| n.wrapping_mul(10).wrapping_add(u64::from(d - b'0')))
}

fn read_file(path: &std::ffi::CStr, buffer: &mut [u8]) -> usize {
    // SAFETY: a NUL-terminated path.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if fd < 0 {
        return 0;
    }
    // SAFETY: an open descriptor and a buffer of this length.
    let read = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
    read.max(0) as usize
}

/// A short text on the stack.
struct Text {
    bytes: [u8; 64],
    length: usize,
}

impl Text {
    fn new() -> Self {
        Text { bytes: [0; 64], length: 0 }
    }

    fn push(&mut self, text: &[u8]) {
        for byte in text {
            if let Some(place) = self.bytes.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
    }

    fn number(&mut self, number: u64) {
        let mut divisor = 1u64;
        while number / divisor >= 10 {
            divisor *= 10;
        }
        while divisor > 0 {
            self.push(&[b'0' + (number / divisor % 10) as u8]);
            divisor /= 10;
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}
