//! How a process joins a session: when the library starts, once.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};

use hetrace_ring::abi::{
    ABI_VERSION, CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, COUNTS_OFFSET, Control, PAGE, REFUSED_PREFIX,
    REPORTED_BYTES, REPORTED_FILE, Reported, SESSION_VARIABLE, WINDOW_OFFSET, flags_offset, option, window,
};
use hetrace_ring::{Mapping, map_file};

use crate::cancel::NoCancel;
use crate::elf::{Object, each_object};
use crate::errno::ErrnoGuard;
use crate::process::{KEY, PATH, Session, session, set_session, settle};
use crate::put::Caps;
use crate::text::Text;
use crate::{arena, attach, early, flags, forked, own};

/// Joins the session that the environment names, if there is one that can be
/// trusted. Called when the library is loaded, or before if other libraries
/// start earlier and call it; without a session the library stays dormant.
pub fn start(api: &str) {
    start_unused(api);
    used();
}

/// The same for a library that is preloaded: its API may be nowhere in the process, which then costs no memory.
/// [`used`] is to be called when the API is there; at the latest the first call makes the arena.
pub fn start_unused(api: &str) {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::AcqRel) {
        return;
    }
    let _whole = NoCancel::new();
    let _errno = ErrnoGuard::new();
    find(api);
    early::over();
}

/// The API is in the process: makes the arena, before the program has a say in what may be opened: its limits and filters
/// come later. One that begins dormant leaves nothing behind if it is never recorded.
pub fn used() {
    if let Some(session) = session()
        && !session.option(option::STANDBY)
        && let Some(process) = own::process()
    {
        arena::start(session, process);
    }
}

/// What a library of ours has of its session, for others in the process that start later: where the environment may be
/// another and nothing may be opened any more.
#[repr(C)]
#[derive(Debug)]
pub struct Joined {
    /// Of all this, and of what lies behind the pointers.
    version: u32,
    folder_length: AtomicU32,
    folder: AtomicPtr<u8>,
    control: AtomicPtr<Control>,
    reported: AtomicPtr<Reported>,
}

/// This library's.
pub static JOINED: Joined = Joined {
    version: ABI_VERSION,
    folder_length: AtomicU32::new(0),
    folder: AtomicPtr::new(std::ptr::null_mut()),
    control: AtomicPtr::new(std::ptr::null_mut()),
    reported: AtomicPtr::new(std::ptr::null_mut()),
};

impl Joined {
    fn set(&self, session: &Session) {
        self.folder_length.store(session.folder_length as u32, Ordering::Relaxed);
        self.folder.store(session.folder.as_ptr().cast_mut(), Ordering::Relaxed);
        self.control.store(session.control.cast_mut(), Ordering::Release);
        self.reported.store(session.reported.cast_mut(), Ordering::Release);
    }

    fn folder(&self) -> &[u8] {
        // SAFETY: set before the library said that it had joined, to a text of this length that stays.
        unsafe {
            std::slice::from_raw_parts(
                self.folder.load(Ordering::Relaxed),
                self.folder_length.load(Ordering::Relaxed) as usize,
            )
        }
    }
}

/// What each of our libraries that are preloaded exports: a pointer to its [`JOINED`].
const JOINED_NAME: &CStr = c"hetrace_joined";

/// What a library of ours has of its session, if it has joined one and is of this one's version.
pub(crate) fn joined_by(object: &Object) -> Option<&'static Joined> {
    let place = object.definition(JOINED_NAME)?.cast::<AtomicPtr<Joined>>();
    // SAFETY: what `library!` exports under this name in each of our libraries, which are preloaded, and so never go: a
    // pointer to a static.
    let joined = unsafe { place.as_ref()?.load(Ordering::Relaxed).as_ref()? };
    let is_joined = !joined.reported.load(Ordering::Acquire).is_null();
    (is_joined && joined.version == ABI_VERSION).then_some(joined)
}

/// What another library of ours in the process has of its session.
fn neighbour() -> Option<&'static Joined> {
    let mut found = None;
    each_object(|object| {
        found = joined_by(object);
        found.is_none()
    });
    found
}

/// 0 if this library has not joined the session when it was loaded, because another one had. (Not 0 at first: so it lies
/// on a page that has been written to already.)
static HURRIES: AtomicU8 = AtomicU8::new(1);

/// Leaves the session to another of our libraries until this one is started.
pub(crate) fn wait() {
    HURRIES.store(0, Ordering::Release);
}

fn find(api: &str) {
    // A setuid program must not trust its caller's environment.
    // SAFETY: no preconditions.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return;
    }
    if HURRIES.load(Ordering::Acquire) == 0
        && let Some(neighbour) = neighbour()
    {
        if let Some(session) = Session::of(neighbour.folder()) {
            join(session, api, Some(neighbour));
        }
        return;
    }
    let mut name = [0u8; 32];
    let variable = SESSION_VARIABLE.as_bytes();
    name[..variable.len()].copy_from_slice(variable);
    // SAFETY: a NUL-terminated name; the library loader runs us before other
    // threads can change the environment, or under its lock.
    let value = unsafe { libc::getenv(name.as_ptr().cast()) };
    if value.is_null() {
        return;
    }
    // SAFETY: getenv returns a NUL-terminated text.
    if let Some(session) = Session::of(unsafe { CStr::from_ptr(value) }.to_bytes()) {
        join(session, api, None);
    }
}

/// Opens a file of the session, if it is one, and this user's. Never waits: what stands there may be a FIFO.
fn open(session: &Session, name: &str, how: libc::c_int) -> Option<File> {
    let mut buffer = [0; PATH + 64];
    let path = session.path(&mut buffer, name.as_bytes())?;
    // SAFETY: a NUL-terminated path.
    let fd =
        unsafe { libc::open(path.as_ptr(), how | libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOFOLLOW) };
    if fd < 0 {
        return None;
    }
    // SAFETY: just opened, and owned by nobody else.
    let file = unsafe { File::from_raw_fd(fd) };
    // SAFETY: all bit patterns of a stat are valid.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: an open descriptor and a valid place.
    let ours = unsafe { libc::fstat(fd, &mut stat) == 0 && stat.st_uid == libc::geteuid() };
    (ours && stat.st_mode & libc::S_IFMT == libc::S_IFREG).then_some(file)
}

/// Maps what the launcher says, if it is of this library's version. What is opened for reading can't be made writable
/// afterwards: no stray write of the program's gets there.
fn map_control(session: &Session, file: &File, api: &str) -> Option<Mapping> {
    // Of any version there are at least so many bytes.
    let head = map_file(file, PAGE, false).ok()?;
    // SAFETY: a page that begins with a control page, of which magic and version are where they are in all versions.
    let control = unsafe { &*head.base().cast::<Control>() };
    if control.magic.load(Ordering::Acquire) != CONTROL_MAGIC {
        return None;
    }
    let version = crate::abi_version();
    if control.version != version {
        refuse(session, api, version);
        return None;
    }
    map_file(file, CONTROL_BYTES, false).ok()
}

/// Leaves word that this library is of another version than the launcher, and records nothing.
fn refuse(session: &Session, api: &str, version: u32) {
    let mut name = Text::<64>::new();
    name.push(REFUSED_PREFIX.as_bytes());
    name.push(api.as_bytes());
    name.push(b"-");
    name.number(u64::from(version));
    let mut buffer = [0; PATH + 64];
    if let Some(path) = session.path(&mut buffer, name.bytes()) {
        // SAFETY: a NUL-terminated path. That it is there already is as good.
        unsafe { libc::mkdir(path.as_ptr(), 0o700) };
    }
}

/// The session's memory, and the files that it is of, where these could be opened.
struct Parts {
    control: *const Control,
    reported: *const Reported,
    control_file: Option<File>,
    reported_file: Option<File>,
}

impl Parts {
    /// Opens and maps them.
    fn open(session: &Session, api: &str) -> Option<Parts> {
        let file = open(session, CONTROL_FILE, libc::O_RDONLY)?;
        let control = map_control(session, &file, api)?;
        let shared = open(session, REPORTED_FILE, libc::O_RDWR)?;
        let reported = map_file(&shared, REPORTED_BYTES, true).ok()?.leak().cast_const().cast();
        let control = control.leak().cast_const().cast();
        Some(Parts { control, reported, control_file: Some(file), reported_file: Some(shared) })
    }

    /// Those of another library of ours.
    fn of(neighbour: &Joined) -> Option<Parts> {
        if neighbour.version != crate::abi_version() {
            return None;
        }
        let (control, reported) =
            (neighbour.control.load(Ordering::Acquire), neighbour.reported.load(Ordering::Acquire));
        Some(Parts { control, reported, control_file: None, reported_file: None })
    }

    /// A page of what the launcher says.
    fn control_page(&self, offset: usize) -> flags::Page {
        match &self.control_file {
            Some(file) => flags::Page::File(file.as_raw_fd(), offset),
            None => flags::Page::Mapped(self.control.cast::<u8>().wrapping_add(offset)),
        }
    }

    /// A page of what programs write together.
    fn reported_page(&self, offset: usize) -> flags::Page {
        match &self.reported_file {
            Some(file) => flags::Page::File(file.as_raw_fd(), offset),
            None => flags::Page::Mapped(self.reported.cast::<u8>().wrapping_add(offset)),
        }
    }
}

fn join(mut session: Session, api: &str, neighbour: Option<&Joined>) -> Option<()> {
    let mut parts = Parts::open(&session, api).or_else(|| neighbour.and_then(Parts::of))?;
    session.control = parts.control;
    session.reported = parts.reported;
    let control = session.control();
    // Where programs open and close the window, the mask is theirs.
    let by_programs = session.window().trigger != window::trigger::LAUNCHER;
    if !by_programs {
        // No more descriptors at a time than are needed: there may be few.
        parts.reported_file = None;
    }
    let caps = Caps {
        seq: (control.seq_cap as usize).min(Caps::MOST.seq),
        bytes: (control.bytes_cap as usize).min(Caps::MOST.bytes),
        text: (control.text_cap as usize).min(Caps::MOST.text),
    };
    caps.set();
    let named = |n: &&[u8; 32]| n.split(|b| *b == 0).next() == Some(api.as_bytes());
    session.api = control.apis.iter().position(|n| named(&n))? as u32;
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: a valid place and a destructor that takes what `attach` stores.
    if unsafe { libc::pthread_key_create(&mut key, Some(attach::thread_ended)) } == 0 {
        KEY.store(key, Ordering::Relaxed);
    }
    if !own::prepare() {
        return None;
    }
    own::find_tid();
    forked::prepare();
    let flags = parts.control_page(flags_offset(session.api as usize));
    let mask =
        if by_programs { parts.reported_page(COUNTS_OFFSET) } else { parts.control_page(WINDOW_OFFSET) };
    // SAFETY: `start` comes here once, and nobody reads it before `set_session`.
    let session = unsafe { settle(session) };
    JOINED.set(session);
    set_session(Some(session));
    // The flags come last: from now on wrappers record.
    if !flags::join(flags, mask) {
        set_session(None);
    }
    Some(())
}
