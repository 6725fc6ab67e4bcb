//! The control file, from the launcher's side.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io;
use std::mem::ManuallyDrop;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hetrace_ring::abi::window::reason;
use hetrace_ring::abi::{
    self, ABI_VERSION, CONTROL_BYTES, CONTROL_FILE, CONTROL_MAGIC, MAX_FUNCTIONS, PAGE, option,
};
use hetrace_ring::writer::wake;
use hetrace_ring::{Mapping, clock, map_file};

use crate::options::Options;
use crate::whom::Whom;
use crate::window::{Asked, by};
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
    /// When programs record; none: always.
    pub window: Option<Asked>,
    /// Name and flags of each API.
    pub apis: Vec<(String, Vec<u8>)>,
}

/// A mapped control file.
#[derive(Debug)]
pub struct Control {
    /// Never unmapped: the kernel looks there for the lock when the launcher ends.
    mapping: ManuallyDrop<Mapping>,
    /// How many APIs have flags.
    apis: usize,
    /// When it was looked at how much memory there is for rings.
    looked: Cell<Option<budget::Looked>>,
}

impl Control {
    /// Makes the file in the session's folder.
    ///
    /// # Errors
    /// When it can't be made or mapped, or there are too many APIs.
    pub fn make(folder: &Path, settings: &Settings) -> io::Result<Control> {
        let too_many = settings.apis.len() > abi::MAX_APIS
            || settings.apis.iter().any(|(n, f)| n.len() > 31 || f.len() > MAX_FUNCTIONS);
        if too_many {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "more APIs or functions than fit in the control file",
            ));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(folder.join(CONTROL_FILE))?;
        // Really there: a full file system must show here, not later as SIGBUS.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, CONTROL_BYTES as u64)?;
        let mapping = map_file(&file, CONTROL_BYTES, true).map_err(|e| match e {
            hetrace_ring::MapError::Os(e) => e,
            hetrace_ring::MapError::Size(_) => io::ErrorKind::InvalidData.into(),
        })?;
        {
            // SAFETY: a fresh zeroed file of ours that nobody else knows yet;
            // all bit patterns of a control page are valid.
            let page = unsafe { &mut *mapping.base().cast::<abi::Control>() };
            page.version = ABI_VERSION;
            page.launcher = std::process::id();
            page.ring_bytes = settings.ring_bytes;
            (page.text_cap, page.bytes_cap, page.seq_cap) = settings.caps;
            page.api_count = settings.apis.len() as u32;
            for (place, (name, _)) in page.apis.iter_mut().zip(&settings.apis) {
                place[..name.len()].copy_from_slice(name.as_bytes());
            }
            let (options, sample_every) = settings.options.to_page();
            page.options.store(options, Ordering::Relaxed);
            page.sample_every.store(sample_every, Ordering::Relaxed);
            page.most_in_flight.store(settings.most_in_flight, Ordering::Relaxed);
            page.overhead_ppm.store(settings.overhead_ppm, Ordering::Relaxed);
            page.collect_every_ms.store(COLLECT_EVERY_MS, Ordering::Relaxed);
            page.drainer_alive.store(1, Ordering::Relaxed);
            keeper::hold(&page.keeper);
        }
        prepare_window(&mapping, settings.window.as_ref());
        for (api, (_, flags)) in settings.apis.iter().enumerate() {
            // SAFETY: the flags' pages lie inside the file, as checked above.
            unsafe {
                mapping
                    .base()
                    .add(abi::flags_offset(api))
                    .copy_from_nonoverlapping(flags.as_ptr(), flags.len());
            }
        }
        let control = Control {
            mapping: ManuallyDrop::new(mapping),
            apis: settings.apis.len(),
            looked: Cell::default(),
        };
        control.renew_budget(folder, || 0);
        // Pairs with the Acquire load of a joining process.
        control.page().magic.store(CONTROL_MAGIC, Ordering::Release);
        Ok(control)
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
    pub fn adopt(folder: &Path, apis: &[String]) -> io::Result<Control> {
        let other = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "its control file is damaged, or of another build of hetrace",
            )
        };
        let left = LeftWindow::open(folder).ok_or_else(other)?;
        let name = |place: &[u8; 32]| place.iter().take_while(|b| **b != 0).copied().collect::<Vec<u8>>();
        // SAFETY: all of the file is mapped, and all bit patterns of a control page are valid.
        let page = unsafe { &*left.0.base().cast::<abi::Control>() };
        let known =
            page.apis.iter().map(name).take(apis.len()).eq(apis.iter().map(|a| a.as_bytes().to_vec()));
        if !known || page.options.load(Ordering::Relaxed) & option::STANDBY == 0 {
            return Err(other());
        }
        page.drainer_alive.store(1, Ordering::Relaxed);
        keeper::hold(&page.keeper);
        Ok(Control { mapping: ManuallyDrop::new(left.0), apis: apis.len(), looked: Cell::default() })
    }

    /// Lets programs that began dormant know of a session: what is recorded, and of whom. The mask comes last.
    pub fn begin(&self, settings: &Settings, whom: &Whom) {
        let (options, sample_every) = settings.options.to_page();
        let page = self.page();
        page.options.store(options | option::STANDBY, Ordering::Relaxed);
        page.sample_every.store(sample_every, Ordering::Relaxed);
        page.most_in_flight.store(settings.most_in_flight, Ordering::Relaxed);
        page.overhead_ppm.store(settings.overhead_ppm, Ordering::Relaxed);
        page.calls_without_ring.store(0, Ordering::Relaxed);
        page.rings_failed.store(0, Ordering::Relaxed);
        page.arenas_made.store(0, Ordering::Relaxed);
        page.arenas_failed.store(0, Ordering::Relaxed);
        self.forget_notes();
        for (api, (_, flags)) in settings.apis.iter().enumerate() {
            for (function, flag) in self.flags(api).iter().zip(flags) {
                let counted = if whom.is_everybody() || *flag == 0 { 0 } else { abi::flag::COUNTED };
                function.store(flag | counted, Ordering::Relaxed);
            }
        }
        let window = self.window();
        window.flips.store(0, Ordering::Relaxed);
        window.drained.store(0, Ordering::Relaxed);
        window.log.iter().for_each(|flip| flip.sequence.store(0, Ordering::Relaxed));
        whom.store(window);
        self.renumber();
        window.set_open(true, clock::ticks(), by(reason::COMMAND));
    }

    /// Lets programs find out anew whether they are recorded, and report again what a drainer must know once.
    pub fn renumber(&self) {
        let place = &self.window().generation;
        place.store(place.load(Ordering::Relaxed).wrapping_add(1).max(1), Ordering::Release);
    }

    fn forget_notes(&self) {
        for at in 0..abi::NOTE_PAGES * PAGE {
            // SAFETY: the notes' pages lie inside the file. Programs write there with the note's room taken first, and
            // none is being recorded now; one that is late spoils a note, no more.
            unsafe { &*self.mapping.base().add(PAGE + at).cast::<AtomicU8>() }.store(0, Ordering::Relaxed);
        }
        self.page().notes_lost.store(0, Ordering::Relaxed);
        self.page().notes_used.store(0, Ordering::Relaxed);
    }

    /// Makes all programs dormant again.
    pub fn end(&self) {
        self.window().mask.store(0, Ordering::Relaxed);
        self.page().options.store(option::STANDBY, Ordering::Relaxed);
        (0..self.apis).flat_map(|api| self.flags(api)).for_each(|flag| flag.store(0, Ordering::Relaxed));
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
        // SAFETY: mapped for as long as `self` lives, valid for all bit patterns; what programs change are atomics.
        unsafe { &*self.mapping.base().add(abi::WINDOW_OFFSET).cast::<abi::Window>() }
    }

    /// Lets programs take as much memory for rings as there is, besides what they have: `used` says how much that
    /// is. Does nothing as long as what was found before is not old, and not half of it is taken.
    pub fn renew_budget(&self, folder: &Path, used: impl FnOnce() -> u64) {
        let now = Instant::now();
        let left = self.page().budget.load(Ordering::Relaxed);
        if self.looked.get().is_some_and(|looked| !looked.is_due(now, left)) {
            return;
        }
        let left = i64::try_from(budget::left(folder, used())).unwrap_or(i64::MAX);
        self.page().budget.store(left, Ordering::Relaxed);
        self.looked.set(Some(budget::Looked::new(now, left)));
    }

    /// Lets rings of all programs take no more than `most` bytes, of which they have `used`.
    pub fn limit_budget(&self, most: u64, used: u64) {
        let left = i64::try_from(most.saturating_sub(used)).unwrap_or(i64::MAX);
        self.page().budget.fetch_min(left, Ordering::Relaxed);
    }

    /// Says what recording a call takes, in ticks, as it was measured: in a program, among other work, it
    /// takes more, as less of what it needs is in the processor's caches.
    pub fn set_call_ticks(&self, measured: f64) {
        const AMONG_OTHER_WORK: f64 = 1.5;
        self.page().call_ticks.store((measured * AMONG_OTHER_WORK).clamp(1.0, 1e6) as u32, Ordering::Relaxed);
    }

    /// Sleeps until a program wants the drainer, at most this long.
    pub fn wait(&self, most: Duration) {
        let word = &self.page().wake;
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
        let word = std::ptr::from_ref(&self.page().wake);
        // SAFETY: the mapping is never undone.
        let word: &'static AtomicU32 = unsafe { &*word };
        move || wake(word)
    }

    /// Lines that programs left for the report.
    pub fn notes(&self) -> Vec<String> {
        let used = (self.page().notes_used.load(Ordering::Acquire) as usize).min(abi::NOTE_PAGES * PAGE);
        // SAFETY: the notes' pages lie inside the file. Programs may still
        // write there, so the bytes are copied first and believed only as far
        // as they go.
        let bytes: Vec<u8> =
            unsafe { std::slice::from_raw_parts(self.mapping.base().add(PAGE), used) }.to_vec();
        let (mut notes, mut at) = (Vec::new(), 0);
        while let Some(head) = bytes.get(at..at + 2) {
            let length = usize::from(u16::from_le_bytes([head[0], head[1]]));
            let Some(text) = bytes.get(at + 2..at + 2 + length).filter(|_| length > 0) else { break };
            let text = String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
            if !notes.contains(&text) {
                notes.push(text);
            }
            at += 2 + length;
        }
        notes
    }
}

/// Prepares the capture window of a control file that nobody else knows yet.
fn prepare_window(mapping: &Mapping, asked: Option<&Asked>) {
    // SAFETY: the window's page lies inside the fresh file, which is zeros and nobody else's.
    let window = unsafe { &mut *mapping.base().add(abi::WINDOW_OFFSET).cast::<abi::Window>() };
    match asked {
        Some(asked) => asked.prepare(window),
        None => *window.mask.get_mut() = abi::flag::INSIDE,
    }
}

/// The capture window of a session whose launcher was killed.
#[derive(Debug)]
pub struct LeftWindow(Mapping);

impl LeftWindow {
    /// Opens it, if the session's control file is of this version.
    pub fn open(session: &Path) -> Option<Self> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(session.join(CONTROL_FILE));
        let mapping = map_file(&file.ok()?, CONTROL_BYTES, true).ok()?;
        // SAFETY: all of the file is mapped, and all bit patterns of a control page are valid.
        let page = unsafe { &*mapping.base().cast::<abi::Control>() };
        let known = page.magic.load(Ordering::Acquire) == CONTROL_MAGIC && page.version == ABI_VERSION;
        known.then_some(LeftWindow(mapping))
    }

    /// Its page.
    pub fn page(&self) -> &abi::Window {
        // SAFETY: mapped for as long as `self` lives, valid for all bit patterns; what programs change are atomics.
        unsafe { &*self.0.base().add(abi::WINDOW_OFFSET).cast::<abi::Window>() }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // A program that outlives us must not wait for us.
        self.page().drainer_alive.store(0, Ordering::Relaxed);
        self.window().mask.store(0, Ordering::Relaxed);
        (0..self.apis).flat_map(|api| self.flags(api)).for_each(|flag| flag.store(0, Ordering::Relaxed));
    }
}
