//! The process's part in a session: found once, when the library starts.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd};
use std::slice::from_raw_parts;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};

use hetrace_ring::abi::{
    ABI_VERSION, ARENA_NOTES_OFFSET, BLOB_PREFIX, CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, COUNTS_OFFSET,
    Control, Counts, NOTE_PAGES, PAGE, REFUSED_PREFIX, REPORTED_BYTES, REPORTED_FILE, REPORTED_NOTES_OFFSET,
    Reported, SESSION_VARIABLE, WINDOW_OFFSET, Window, flags_offset, option, window,
};
use hetrace_ring::note::{Byte, note as leave};
use hetrace_ring::{Mapping, map_file};

use crate::cancel::NoCancel;
use crate::elf::{Object, each_object};
use crate::errno::ErrnoGuard;
use crate::put::Caps;
use crate::text::Text;
use crate::{arena, early, flags, forked, own};

/// Longest path of a session's folder.
pub(crate) const PATH: usize = 200;

/// A session this process records into.
#[derive(Debug)]
pub struct Session {
    folder: [u8; PATH],
    folder_length: usize,
    /// Number of this API in the session.
    pub api: u32,
    /// What the launcher says: mapped for reading only.
    control: *const Control,
    /// What the session's programs write together.
    reported: *const Reported,
}

static SESSION: AtomicPtr<Session> = AtomicPtr::new(std::ptr::null_mut());

/// Where the session lies: not in the program's heap, which may be locked by
/// whoever makes the first call.
struct Place(UnsafeCell<MaybeUninit<Session>>);

// SAFETY: written by `join` alone, once, before `SESSION` points there.
unsafe impl Sync for Place {}

static PLACE: Place = Place(UnsafeCell::new(MaybeUninit::uninit()));
/// Key whose destructor reports that a thread ended; `u32::MAX` if there is none.
pub(crate) static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// The session, if the process is in one.
#[inline]
pub fn session() -> Option<&'static Session> {
    // SAFETY: set once, to memory that is never freed.
    unsafe { SESSION.load(Ordering::Acquire).as_ref() }
}

impl Session {
    /// The session of a folder, before anything of it is there. `None` if its path is too long.
    fn of(folder: &[u8]) -> Option<Session> {
        let (control, reported) = (std::ptr::null(), std::ptr::null());
        let mut session =
            Session { folder: [0; PATH], folder_length: folder.len(), api: 0, control, reported };
        session.folder.get_mut(..folder.len())?.copy_from_slice(folder);
        Some(session)
    }

    /// A session of which nothing is in files.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn in_memory(control: &'static Control, reported: &'static Reported) -> Session {
        Session { folder: [0; PATH], folder_length: 0, api: 0, control, reported }
    }

    /// What the launcher says.
    pub fn control(&self) -> &'static Control {
        // SAFETY: mapped for ever, and checked by `start`.
        unsafe { &*self.control }
    }

    /// What programs write that belongs to no arena.
    pub(crate) fn reported(&self) -> &'static Reported {
        // SAFETY: mapped for ever; valid for all bit patterns, and made of atomics.
        unsafe { &*self.reported }
    }

    /// The page of its capture window.
    pub(crate) fn window(&self) -> &'static Window {
        // SAFETY: the whole control file is mapped for ever, and this page lies inside of it; all of it is numbers, for
        // which all bit patterns are valid, and what changes are atomics.
        unsafe { &*self.control.byte_add(WINDOW_OFFSET).cast::<Window>() }
    }

    /// What programs count together.
    pub(crate) fn counts(&self) -> &'static Counts {
        // SAFETY: the whole file is mapped for ever, and this page lies inside of it; valid for all bit patterns, and
        // made of atomics.
        unsafe { &*self.reported.byte_add(COUNTS_OFFSET).cast::<Counts>() }
    }

    pub(crate) fn control_pointer(&self) -> *const Control {
        self.control
    }

    pub(crate) fn reported_pointer(&self) -> *const Reported {
        self.reported
    }

    /// Leaves a line for the report: in the process's own memory, if it has some.
    pub(crate) fn note(&self, text: &[u8]) {
        if let Some(process) = own::process()
            && let Some(header) = arena::header(process)
        {
            let place = process.arena.load(Ordering::Relaxed).cast_const().cast::<Byte>();
            // SAFETY: the rest of the first page of the arena, which has memory and stays mapped. All that reads or writes
            // there are notes, by atomics.
            let place = unsafe { from_raw_parts(place.add(ARENA_NOTES_OFFSET), PAGE - ARENA_NOTES_OFFSET) };
            return leave(&header.notes, place, text);
        }
        let place = self.reported.cast::<Byte>();
        // SAFETY: pages of the file, which stay mapped. All that reads or writes there are notes, by atomics.
        let place = unsafe { from_raw_parts(place.add(REPORTED_NOTES_OFFSET), NOTE_PAGES * PAGE) };
        leave(&self.reported().notes, place, text);
    }

    /// Whether an option of [`hetrace_ring::abi::option`] is on.
    pub fn option(&self, bit: u32) -> bool {
        self.control().options.load(Ordering::Relaxed) & bit != 0
    }

    /// Writes the path of a file of the session into `buffer`, with a NUL.
    pub(crate) fn path<'b>(&self, buffer: &'b mut [u8; PATH + 64], name: &[u8]) -> Option<&'b CStr> {
        let folder = self.folder.get(..self.folder_length)?;
        let end = folder.len() + 1 + name.len();
        buffer.get_mut(..folder.len())?.copy_from_slice(folder);
        *buffer.get_mut(folder.len())? = b'/';
        buffer.get_mut(folder.len() + 1..end)?.copy_from_slice(name);
        *buffer.get_mut(end)? = 0;
        CStr::from_bytes_with_nul(buffer.get(..=end)?).ok()
    }
}

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
            from_raw_parts(
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
    if unsafe { libc::pthread_key_create(&mut key, Some(crate::attach::thread_ended)) } == 0 {
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
    // SAFETY: `start` comes here once, and nobody reads it before `SESSION` is set.
    let session = unsafe { (*PLACE.0.get()).write(session) };
    JOINED.set(session);
    SESSION.store(session, Ordering::Release);
    // The flags come last: from now on wrappers record.
    if !flags::join(flags, mask) {
        SESSION.store(std::ptr::null_mut(), Ordering::Release);
    }
    Some(())
}

/// Leaves a line for the report.
pub fn note(text: &[u8]) {
    if let Some(session) = session() {
        session.note(text);
    }
}

/// As [`note`], unless it was said before.
pub(crate) fn note_once(said: &AtomicBool, text: &[u8]) {
    if !said.swap(true, Ordering::Relaxed) {
        note(text);
    }
}

/// Stores bytes once in a file named by their hash. Returns the hash. Makes
/// system calls: only for what the user asked for.
///
/// # Safety
/// `parts` point at readable memory.
pub unsafe fn store_blob(parts: &[(*const u8, usize)]) -> u64 {
    // FNV-1a: few lines, no tables, and good enough to distinguish sources.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for &(at, length) in parts {
        for i in 0..length {
            // SAFETY: contract: `length` bytes are readable, and `i` is less.
            hash = (hash ^ u64::from(unsafe { *at.add(i) })).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let Some(session) = session() else { return hash };
    let _whole = NoCancel::new();
    let _errno = ErrnoGuard::new();
    let mut name = [0u8; 32];
    let prefix = BLOB_PREFIX.len();
    name[..prefix].copy_from_slice(BLOB_PREFIX.as_bytes());
    for i in 0..16 {
        name[prefix + i] = b"0123456789abcdef"[(hash >> (60 - 4 * i) & 15) as usize];
    }
    let mut buffer = [0; PATH + 64];
    let Some(path) = session.path(&mut buffer, &name[..prefix + 16]) else { return hash };
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a NUL-terminated path.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    if fd < 0 {
        return hash; // Stored before, or no room: the launcher names what is missing.
    }
    for &(mut at, mut length) in parts {
        while length > 0 {
            // SAFETY: contract: the part is readable; what was written is taken off.
            let wrote = unsafe { libc::write(fd, at.cast(), length) };
            if wrote <= 0 {
                note(b"a stored text is incomplete: no room in the session's folder");
                break;
            }
            // SAFETY: `wrote` is at most `length`.
            at = unsafe { at.add(wrote as usize) };
            length -= wrote as usize;
        }
    }
    // SAFETY: opened above.
    unsafe { libc::close(fd) };
    hash
}
