//! What the launcher publishes for a session's programs, and what they report to it, from the launcher's side.
//!
//! ```text
//!   control    the launcher writes; programs can open it for reading only: options, mask, flags
//!   reported   programs write, all of them: wake-up word, checked counts. Nothing here decides what is recorded
//! ```

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::mem::ManuallyDrop;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hetrace_ring::abi::window::{COUNTS_SEAL, reason, trigger};
use hetrace_ring::abi::{
    self, ABI_VERSION, CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, Checked, MAX_FUNCTIONS, NOTE_PAGES, PAGE,
    REFUSED_PREFIX, REPORTED_BYTES, REPORTED_FILE, REPORTED_NOTES_OFFSET, option,
};
use hetrace_ring::note;
use hetrace_ring::writer::wake;
use hetrace_ring::{MapError, Mapping, clock, map_file};

use crate::apis::Name;
use crate::options::Options;
use crate::whom::Whom;
use crate::window::{Asked, Pages, by};
use crate::{budget, keeper};

/// Collectors hand out what they have this often.
const COLLECT_EVERY_MS: u32 = 100;

/// What goes into a control file.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What programs do.
    pub options: Options,
    /// Data bytes of a ring, a power of two.
    pub ring_bytes: u32,
    /// Longest text, value and array recorded.
    pub caps: (u32, u32, u32),
    /// Commands in flight at most in each process and API; 0: as many as the library thinks right.
    pub most_in_flight: u32,
    /// How much of a thread's time recording may take, in parts per million; 0: as much as it takes.
    pub overhead_ppm: u32,
    /// Frames of a native stack that are recorded, at most.
    pub stack_depth: u32,
    /// When programs record; none: always.
    pub window: Option<Asked>,
    /// What is recorded of each API.
    pub apis: Vec<Flags>,
}

/// What is recorded of an API.
#[derive(Debug, Clone)]
pub struct Flags {
    /// The API.
    pub api: Name,
    /// The flags of its functions.
    pub functions: Cow<'static, [u8]>,
    /// Those of all functions that its model lacks.
    pub unknown: u8,
}

impl Flags {
    /// Nothing is recorded.
    pub fn none(api: Name) -> Self {
        Flags { api, functions: Cow::Borrowed(&[]), unknown: 0 }
    }
}

/// The memory of a session that is of no program alone.
#[derive(Debug)]
pub struct Control {
    /// Never unmapped: the kernel looks there for the lock when the launcher ends.
    mapping: ManuallyDrop<Mapping>,
    /// Never unmapped: see [`Control::waker`].
    reported: ManuallyDrop<Mapping>,
    /// How many functions of each API have flags.
    functions: Vec<usize>,
    /// When it was looked at how much memory there is for rings.
    looked: Cell<Option<budget::Looked>>,
    /// Bytes that rings may have at most, whatever there is.
    most: Cell<u64>,
    arenas_made: Heard,
    calls_without_arena: Heard,
    /// A program has overwritten what programs report.
    overwritten: Cell<bool>,
}

/// What a count of programs came to, as far as it can be believed.
#[derive(Debug, Default)]
struct Heard {
    last: Cell<u32>,
    all: Cell<u64>,
}

impl Heard {
    /// Counts from here on.
    fn begin(&self, count: &Checked) {
        self.last.set(count.get().unwrap_or(0));
        self.all.set(0);
    }

    /// Takes what came since. Returns whether the count was as it should be; if not it is set right.
    fn take(&self, count: &Checked) -> bool {
        let (last, now) = (self.last.get(), count.get());
        let went_on = now.is_some_and(|now| now >= last);
        match now {
            Some(now) => {
                // A program that found noise has begun anew.
                let more = if went_on { now - last } else { now };
                self.all.set(self.all.get().saturating_add(more.into()));
                self.last.set(now);
            }
            None => {
                count.set(0);
                self.last.set(0);
            }
        }
        went_on
    }
}

/// Makes a file of so many bytes in a session's folder, and maps it. The launcher writes, and programs may do what `mode`
/// says.
fn fresh(path: &Path, bytes: usize, mode: u32) -> io::Result<Mapping> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)?;
    // Under any umask.
    file.set_permissions(Permissions::from_mode(mode))?;
    // Really there: a full file system must show here, not later as SIGBUS.
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes as u64)?;
    map_file(&file, bytes, true).map_err(|e| match e {
        MapError::Os(e) => e,
        MapError::Size(_) => io::ErrorKind::InvalidData.into(),
    })
}

/// Mode of the control file: who opens it for writing says so before, by another mode.
const READ_ONLY: u32 = 0o400;
/// Mode of what programs write.
const WRITABLE: u32 = 0o600;

/// Opens a control file that another launcher or service of this user has made, for writing.
pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let open = |write| OpenOptions::new().read(true).write(write).custom_flags(flags).open(path);
    let there = open(false)?;
    let found = there.metadata()?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    there.set_permissions(Permissions::from_mode(WRITABLE))?;
    let opened = open(true);
    there.set_permissions(Permissions::from_mode(READ_ONLY))?;
    let opened = opened?;
    let same = opened.metadata()?;
    let is_same = (same.dev(), same.ino()) == (found.dev(), found.ino());
    is_same.then_some(opened).ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}

impl Control {
    /// Makes the file in the session's folder.
    ///
    /// # Errors
    /// When it can't be made or mapped, or there are too many APIs.
    pub fn make(folder: &Path, settings: &Settings) -> io::Result<Control> {
        let too_many = settings.apis.len() > abi::MAX_APIS
            || settings.apis.iter().any(|of| of.api.len() > 31 || of.functions.len() >= MAX_FUNCTIONS);
        if too_many {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "more APIs or functions than fit in the control file",
            ));
        }
        let mapping = fresh(&folder.join(CONTROL_FILE), CONTROL_BYTES, READ_ONLY)?;
        let reported = fresh(&folder.join(REPORTED_FILE), REPORTED_BYTES, WRITABLE)?;
        {
            // SAFETY: a fresh zeroed file of ours that nobody else knows yet;
            // all bit patterns of a control page are valid.
            let page = unsafe { &mut *mapping.base().cast::<abi::Control>() };
            page.version = ABI_VERSION;
            page.launcher = std::process::id();
            page.ring_bytes = settings.ring_bytes;
            (page.text_cap, page.bytes_cap, page.seq_cap) = settings.caps;
            page.api_count = settings.apis.len() as u32;
            for (place, Flags { api, .. }) in page.apis.iter_mut().zip(&settings.apis) {
                place[..api.len()].copy_from_slice(api.as_bytes());
            }
            let (options, sample_every) = settings.options.to_page();
            page.options.store(options, Ordering::Relaxed);
            page.sample_every.store(sample_every, Ordering::Relaxed);
            page.stack_depth.store(settings.stack_depth, Ordering::Relaxed);
            page.most_in_flight.store(settings.most_in_flight, Ordering::Relaxed);
            page.overhead_ppm.store(settings.overhead_ppm, Ordering::Relaxed);
            page.collect_every_ms.store(COLLECT_EVERY_MS, Ordering::Relaxed);
            page.drainer_alive.store(1, Ordering::Relaxed);
            keeper::hold(&page.keeper);
        }
        prepare_window(&mapping, &reported, settings.window.as_ref());
        for (api, Flags { functions, unknown, .. }) in settings.apis.iter().enumerate() {
            // SAFETY: the flags' pages lie inside the file, and fit the functions of an API and one more, as checked above.
            unsafe {
                let flags = mapping.base().add(abi::flags_offset(api));
                flags.copy_from_nonoverlapping(functions.as_ptr(), functions.len());
                flags.add(MAX_FUNCTIONS - 1).write(*unknown);
            }
        }
        let functions = settings.apis.iter().map(|of| of.functions.len()).collect();
        let control = Control::of(mapping, reported, functions);
        control.renew_budget(folder, 0, 1);
        // Pairs with the Acquire load of a joining process.
        control.page().magic.store(CONTROL_MAGIC, Ordering::Release);
        Ok(control)
    }

    fn of(mapping: Mapping, reported: Mapping, functions: Vec<usize>) -> Control {
        Control {
            mapping: ManuallyDrop::new(mapping),
            reported: ManuallyDrop::new(reported),
            functions,
            looked: Cell::default(),
            most: Cell::new(u64::MAX),
            arenas_made: Heard::default(),
            calls_without_arena: Heard::default(),
            overwritten: Cell::default(),
        }
    }

    /// Makes one that stands for programs that begin dormant, in a folder that nobody else knows yet. Nothing
    /// is recorded before [`Control::begin`].
    ///
    /// # Errors
    /// As [`Control::make`].
    pub fn make_standby(folder: &Path, settings: &Settings) -> io::Result<()> {
        let control = Control::make(folder, settings)?;
        control.page().options.store(option::STANDBY, Ordering::Relaxed);
        Ok(())
    }

    /// Takes over one that stands for programs that begin dormant, whether or not they are dormant now. For programs its
    /// drainer lives as long as the calling thread.
    ///
    /// # Errors
    /// When it can't be opened, or is of another build.
    pub fn adopt(folder: &Path, apis: &[Name]) -> io::Result<Control> {
        let other = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "its control file is damaged, or of another build of hetrace",
            )
        };
        let left = LeftWindow::open(folder).ok_or_else(other)?;
        let name = |place: &[u8; 32]| place.iter().take_while(|b| **b != 0).copied().collect::<Vec<u8>>();
        let page = left.page.page();
        let known =
            page.apis.iter().map(name).take(apis.len()).eq(apis.iter().map(|a| a.as_bytes().to_vec()));
        if !known || page.options.load(Ordering::Relaxed) & option::STANDBY == 0 {
            return Err(other());
        }
        page.drainer_alive.store(1, Ordering::Relaxed);
        keeper::hold(&page.keeper);
        let LeftWindow { page: LeftPage { mapping }, reported } = left;
        let control = Control::of(mapping, reported, vec![MAX_FUNCTIONS; apis.len()]);
        control.arenas_made.begin(&control.reported().arenas_made);
        control.calls_without_arena.begin(&control.reported().calls_without_arena);
        Ok(control)
    }

    /// Lets programs that began dormant know of a session: what is recorded, and of whom. The mask comes last.
    pub fn begin(&self, settings: &Settings, whom: &Whom) {
        let (options, sample_every) = settings.options.to_page();
        let page = self.page();
        page.options.store(options | option::STANDBY, Ordering::Relaxed);
        page.sample_every.store(sample_every, Ordering::Relaxed);
        page.stack_depth.store(settings.stack_depth, Ordering::Relaxed);
        page.most_in_flight.store(settings.most_in_flight, Ordering::Relaxed);
        page.overhead_ppm.store(settings.overhead_ppm, Ordering::Relaxed);
        self.arenas_made.begin(&self.reported().arenas_made);
        self.calls_without_arena.begin(&self.reported().calls_without_arena);
        self.overwritten.set(false);
        // What was asked of an earlier session, and came too late for it, is not asked of this one.
        page.snapshot_done.store(self.snapshot_asked(), Ordering::Release);
        note::forget(&self.reported().notes, self.reported_notes());
        for (api, Flags { functions, unknown, .. }) in settings.apis.iter().enumerate() {
            let store = |place: &AtomicU8, flag: u8| {
                let counted = if whom.is_everybody() || flag == 0 { 0 } else { abi::flag::COUNTED };
                place.store(flag | counted, Ordering::Relaxed);
            };
            let places = self.flags(api);
            places.iter().zip(&**functions).for_each(|(place, flag)| store(place, *flag));
            places[functions.len()..].iter().for_each(|place| place.store(0, Ordering::Relaxed));
            store(&places[MAX_FUNCTIONS - 1], *unknown);
        }
        let switch = self.switch();
        switch.flips.store(0, Ordering::Relaxed);
        switch.drained.store(0, Ordering::Relaxed);
        switch.log.iter().for_each(|flip| flip.sequence.store(0, Ordering::Relaxed));
        whom.store(self.window());
        self.renumber();
        switch.set_open(true, clock::ticks(), by(reason::COMMAND));
    }

    /// Lets programs find out anew whether they are recorded, and report again what a drainer must know once.
    pub fn renumber(&self) {
        let place = &self.window().generation;
        place.store(place.load(Ordering::Relaxed).wrapping_add(1).max(1), Ordering::Release);
    }

    /// Makes all programs dormant again.
    pub fn end(&self) {
        self.switch().mask.store(0, Ordering::Relaxed);
        self.page().options.store(option::STANDBY, Ordering::Relaxed);
        self.clear_flags();
    }

    /// Nothing is recorded any more.
    fn clear_flags(&self) {
        for (api, functions) in self.functions.iter().enumerate() {
            let flags = self.flags(api);
            flags.iter().take(*functions).for_each(|flag| flag.store(0, Ordering::Relaxed));
            flags[MAX_FUNCTIONS - 1].store(0, Ordering::Relaxed);
        }
    }

    /// The flags of an API.
    fn flags(&self, api: usize) -> &[AtomicU8] {
        // SAFETY: the whole of one of the flags' pages, which stay mapped for as long as `self` lives; programs only
        // read them.
        unsafe {
            let first = self.mapping.base().add(abi::flags_offset(api)).cast::<AtomicU8>();
            std::slice::from_raw_parts(first, MAX_FUNCTIONS)
        }
    }

    /// Returns the first page.
    pub fn page(&self) -> &abi::Control {
        // SAFETY: mapped for as long as `self` lives, valid for all bit patterns.
        unsafe { &*self.mapping.base().cast::<abi::Control>() }
    }

    /// Returns the page of the capture window.
    pub fn window(&self) -> &abi::Window {
        self.pages().window
    }

    /// Returns what programs look at before they record.
    pub fn switch(&self) -> &abi::Switch {
        self.pages().switch()
    }

    /// Returns the pages of the capture window.
    pub fn pages(&self) -> Pages<'_> {
        Pages::of(&self.mapping, &self.reported)
    }

    /// What programs report that is of no process alone. They can write anything there.
    pub fn reported(&self) -> &abi::Reported {
        // SAFETY: mapped for as long as `self` lives, valid for all bit patterns, and made of atomics.
        unsafe { &*self.reported.base().cast::<abi::Reported>() }
    }

    fn reported_notes(&self) -> &[AtomicU8] {
        // SAFETY: the notes' pages lie inside the file, which stays mapped; programs write bytes there, as we do.
        unsafe {
            std::slice::from_raw_parts(
                self.reported.base().add(REPORTED_NOTES_OFFSET).cast(),
                NOTE_PAGES * PAGE,
            )
        }
    }

    /// Takes what programs have counted since, before another of them may overwrite it.
    pub fn hear(&self) {
        let reported = self.reported();
        let sound = self.arenas_made.take(&reported.arenas_made)
            & self.calls_without_arena.take(&reported.calls_without_arena);
        if !sound {
            self.overwritten.set(true);
        }
    }

    /// Arenas that programs said that they made.
    pub fn arenas_made(&self) -> u64 {
        self.arenas_made.all.get()
    }

    /// Calls that were dropped in processes without an arena, as far as they said.
    pub fn calls_without_arena(&self) -> u64 {
        self.calls_without_arena.all.get()
    }

    /// Which snapshot is asked for. One is wanted if it is not [`abi::Control::snapshot_done`].
    pub fn snapshot_asked(&self) -> u32 {
        let asked = &self.reported().snapshot_asked;
        asked.get().unwrap_or_else(|| {
            let done = self.page().snapshot_done.load(Ordering::Relaxed);
            asked.set(done);
            self.overwritten.set(true);
            done
        })
    }

    /// Lets programs take as much memory for rings as there is, besides the `used` bytes that so many arenas have. The
    /// system is not asked as long as what it said before is not old, and not half of it is taken.
    pub fn renew_budget(&self, folder: &Path, used: u64, arenas: usize) {
        let now = Instant::now();
        let known = self.looked.get().filter(|looked| !looked.is_due(now, looked.most.saturating_sub(used)));
        let looked = known.unwrap_or_else(|| budget::Looked::new(now, budget::left(folder, used), used));
        self.looked.set(Some(looked));
        let left = looked.most.min(self.most.get()).saturating_sub(used);
        let page = self.page();
        page.room.store(left, Ordering::Relaxed);
        page.budget.store(budget::share(left, arenas), Ordering::Relaxed);
        // Pairs with the Acquire load of a program: the budget above is that of this number.
        page.budget_looks.fetch_add(1, Ordering::Release);
    }

    /// Lets rings of all programs have no more than so many bytes, from the next budget on.
    pub fn limit_budget(&self, most: Option<u64>) {
        self.most.set(most.unwrap_or(u64::MAX));
    }

    /// Says what recording a call takes, in ticks, as it was measured: in a program, among other work, it
    /// takes more, as less of what it needs is in the processor's caches.
    pub fn set_call_ticks(&self, measured: f64) {
        const AMONG_OTHER_WORK: f64 = 1.5;
        self.page().call_ticks.store((measured * AMONG_OTHER_WORK).clamp(1.0, 1e6) as u32, Ordering::Relaxed);
    }

    /// Sleeps until a program wants the drainer, at most this long.
    pub fn wait(&self, most: Duration) {
        let word = &self.reported().wake;
        if word.swap(0, Ordering::Relaxed) != 0 {
            return;
        }
        let time =
            libc::timespec { tv_sec: most.as_secs() as libc::time_t, tv_nsec: most.subsec_nanos().into() };
        // SAFETY: a futex word that stays mapped, and a valid duration.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, 0, &time) };
        word.store(0, Ordering::Relaxed);
    }

    /// Returns what ends the sleep of [`Control::wait`], or the next one, from any thread.
    pub fn waker(&self) -> impl Fn() + Send + 'static + use<> {
        let word = std::ptr::from_ref(&self.reported().wake);
        // SAFETY: the mapping is never undone.
        let word: &'static AtomicU32 = unsafe { &*word };
        move || wake(word)
    }

    /// What programs left for the report that have no arena.
    pub fn notes(&self) -> note::Found {
        note::read(&self.reported().notes, self.reported_notes())
    }

    /// What is to be said of memory that a program has overwritten.
    pub fn overwritten(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.overwritten.get() || self.notes().damaged {
            notes.push(
                "a program has overwritten the memory in which the session's programs say what they could not record: \
                 calls of processes that had no memory of their own may be missing uncounted"
                    .to_owned(),
            );
        }
        let Pages { window, counts } = self.pages();
        if window.trigger != trigger::LAUNCHER && counts.seal.load(Ordering::Relaxed) != COUNTS_SEAL {
            notes.push(
                "a program has overwritten the memory in which programs count launches and ranges: the capture window \
                 may have begun and ended elsewhere than was asked for"
                    .to_owned(),
            );
        }
        notes
    }
}

/// Returns the API and the version of each library that found itself in a session of another version, and stayed out.
pub fn refused(session: &Path) -> Vec<(String, u32)> {
    let entries = session.read_dir().into_iter().flatten().flatten();
    let parse = |name: &str| {
        let (api, version) = name.strip_prefix(REFUSED_PREFIX)?.rsplit_once('-')?;
        let is_plain = api.len() < 32 && api.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        Some((api.to_owned(), version.parse().ok()?)).filter(|_| is_plain)
    };
    let mut found: Vec<_> = entries.filter_map(|entry| parse(entry.file_name().to_str()?)).collect();
    found.sort();
    found
}

/// Prepares the capture window of a control file that nobody else knows yet.
fn prepare_window(mapping: &Mapping, reported: &Mapping, asked: Option<&Asked>) {
    // SAFETY: the page lies inside the fresh file, which is zeros and nobody else's.
    let window = unsafe { &mut *mapping.base().add(abi::WINDOW_OFFSET).cast::<abi::Window>() };
    // SAFETY: this page, too, lies inside a fresh file of zeros that nobody else has.
    let counts = unsafe { &mut *reported.base().add(abi::COUNTS_OFFSET).cast::<abi::Counts>() };
    *counts.seal.get_mut() = COUNTS_SEAL;
    match asked {
        Some(asked) => asked.prepare(window, counts),
        None => *window.switch.mask.get_mut() = abi::flag::INSIDE,
    }
}

/// The control page of a session that this launcher or another one has made.
#[derive(Debug)]
pub struct LeftPage {
    mapping: Mapping,
}

impl LeftPage {
    /// Opens it, if the session's control file is of this version.
    pub fn open(session: &Path) -> Option<Self> {
        let file = open_to_write(&session.join(CONTROL_FILE)).ok()?;
        let left = LeftPage { mapping: map_file(&file, CONTROL_BYTES, true).ok()? };
        let page = left.page();
        let known = page.magic.load(Ordering::Acquire) == CONTROL_MAGIC && page.version == ABI_VERSION;
        known.then_some(left)
    }

    /// The page.
    pub fn page(&self) -> &abi::Control {
        // SAFETY: all of the file is mapped, and all bit patterns of a control page are valid.
        unsafe { &*self.mapping.base().cast::<abi::Control>() }
    }
}

/// Returns the version of a session's shared memory, if another build of hetrace made it: its rings can't be read here.
pub fn foreign_version(session: &Path) -> Option<u32> {
    let mut head = [0; 12];
    open_reported(&session.join(CONTROL_FILE)).ok()?.read_exact(&mut head).ok()?;
    let (magic, version) = head.split_first_chunk()?;
    let version = u32::from_le_bytes(version.try_into().ok()?);
    (u64::from_le_bytes(*magic) == CONTROL_MAGIC && version != ABI_VERSION).then_some(version)
}

/// The capture window of a session whose launcher was killed.
#[derive(Debug)]
pub struct LeftWindow {
    page: LeftPage,
    reported: Mapping,
}

impl LeftWindow {
    /// Opens it, if the session's control file is of this version.
    pub fn open(session: &Path) -> Option<Self> {
        let page = LeftPage::open(session)?;
        let reported =
            map_file(&open_reported(&session.join(REPORTED_FILE)).ok()?, REPORTED_BYTES, true).ok()?;
        Some(LeftWindow { page, reported })
    }

    /// Its pages.
    pub fn pages(&self) -> Pages<'_> {
        Pages::of(&self.page.mapping, &self.reported)
    }
}

/// Says that a file of a session is not one to be trusted.
pub(crate) fn not_plain(file: &str) -> String {
    format!("{file} is no plain file of this user")
}

/// Opens what a session's programs write: a plain file of this user.
pub(crate) fn open_reported(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, not_plain(REPORTED_FILE)));
    }
    Ok(file)
}

impl Drop for Control {
    fn drop(&mut self) {
        // A program that outlives us must not wait for us.
        self.page().drainer_alive.store(0, Ordering::Relaxed);
        self.switch().mask.store(0, Ordering::Relaxed);
        self.clear_flags();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn made(window: Option<Asked>) -> (tempfile::TempDir, Control) {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = Settings {
            options: Options::default(),
            ring_bytes: 1 << 16,
            caps: (128, 64, 16),
            most_in_flight: 0,
            overhead_ppm: 0,
            stack_depth: 0,
            window,
            apis: vec![Flags { functions: vec![0; 8].into(), ..Flags::none("some".into()) }],
        };
        let control = Control::make(folder.path(), &settings).expect("a session");
        (folder, control)
    }

    #[test]
    fn counts_are_taken_before_noise_and_go_on_behind_it() {
        let (_folder, control) = made(None);
        let calls = &control.reported().calls_without_arena;
        (0..5).for_each(|_| _ = calls.increase());
        control.hear();
        assert!(control.overwritten().is_empty());
        // SAFETY: a page that is mapped writable, of atomics.
        unsafe { control.reported.base().write_bytes(0xa5, PAGE) };
        calls.increase();
        calls.increase();
        control.hear();
        calls.increase();
        control.hear();
        assert_eq!((control.calls_without_arena(), control.arenas_made()), (8, 0));
        let said = control.overwritten().join(" ");
        assert!(said.contains("could not record"), "{said}");
    }

    #[test]
    fn noise_asks_for_no_snapshot() {
        let (_folder, control) = made(None);
        control.page().snapshot_done.store(7, Ordering::Relaxed);
        // SAFETY: a page that is mapped writable, of atomics.
        unsafe { control.reported.base().write_bytes(0x5a, PAGE) };
        assert_eq!(control.snapshot_asked(), 7);
        assert_eq!((control.reported().snapshot_asked.increase(), control.snapshot_asked()), (8, 8));
    }

    #[test]
    fn an_overwritten_window_of_programs_is_said_and_no_other() {
        for (window, said) in [(Some(Asked::Launches(1..2)), 1), (Some(Asked::Commands), 0), (None, 0)] {
            let (_folder, control) = made(window);
            let mask = control.switch().mask.load(Ordering::Relaxed);
            // SAFETY: a page that is mapped writable, of atomics.
            unsafe { control.reported.base().add(abi::COUNTS_OFFSET).write_bytes(0xff, PAGE) };
            assert_eq!(control.overwritten().len(), said);
            assert_eq!(control.switch().mask.load(Ordering::Relaxed) == mask, said == 0);
        }
    }

    #[test]
    fn the_control_file_is_read_only_and_its_next_owner_writes_it() {
        let (folder, control) = made(None);
        let mode =
            |name: &str| folder.path().join(name).metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!((mode(CONTROL_FILE), mode(REPORTED_FILE)), (0o400, 0o600));
        control.page().options.store(option::STANDBY, Ordering::Relaxed);
        let next = Control::adopt(folder.path(), &["some".into()]).expect("taken over");
        next.page().call_ticks.store(5, Ordering::Relaxed);
        assert_eq!(control.page().call_ticks.load(Ordering::Relaxed), 5);
        assert_eq!(mode(CONTROL_FILE), 0o400);
    }

    #[test]
    fn only_words_of_libraries_are_taken_for_such() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["refused-some-15", "refused-\u{1b}[2J-15", "refused-some", "refused-some-x", "other"] {
            std::fs::create_dir(folder.path().join(name)).expect("made");
        }
        assert_eq!(refused(folder.path()), [("some".to_owned(), 15)]);
    }
}
