//! Long work: progress for who waits for it, and a clean end on Ctrl-C.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Exit status of who was ended by Ctrl-C, as a shell has it.
const INTERRUPTED: u8 = 130;
/// How long one waits without a word.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often progress is told from then on.
const OFTEN: Duration = Duration::from_millis(200);

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// Tells progress on a terminal, and whether to stop.
pub struct Watch {
    since: Instant,
    events: AtomicU64,
    /// When progress was told last, ms after `since`; 0 for never.
    told: AtomicU64,
    tells: bool,
    /// What is counted, in millions.
    unit: &'static str,
}

impl Watch {
    /// From now on Ctrl-C only asks to stop; the second one ends the process.
    /// `quiet`: something else is written to the terminal.
    pub fn new(quiet: bool) -> Self {
        // SAFETY: all bit patterns of a sigaction are valid; the handler only
        // sets a flag, and is gone after the first time.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = stop as extern "C" fn(libc::c_int) as libc::sighandler_t;
            action.sa_flags = libc::SA_RESETHAND;
            libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
        }
        Self {
            since: Instant::now(),
            events: AtomicU64::new(0),
            told: AtomicU64::new(0),
            tells: !quiet && std::io::stderr().is_terminal(),
            unit: "million events",
        }
    }

    /// The same for work that is counted in bytes.
    pub fn of_bytes() -> Self {
        Self { unit: "MB", ..Self::new(false) }
    }

    /// So many more events, or bytes, have been read.
    pub fn seen(&self, events: u64) -> ControlFlow<()> {
        if STOP.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let events = self.events.fetch_add(events, Ordering::Relaxed) + events;
        let now = self.since.elapsed();
        if self.tells && now > PATIENCE {
            let ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            let told = self.told.load(Ordering::Relaxed);
            let due = told == 0 || ms - told.min(ms) > OFTEN.as_millis() as u64;
            // Of several threads one tells.
            if due && self.told.compare_exchange(told, ms, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                let (millions, unit) = (events as f64 / 1e6, self.unit);
                let _ = write!(std::io::stderr(), "\r{millions:.1} {unit} read\x1b[K");
            }
        }
        ControlFlow::Continue(())
    }

    /// The work is done, or stopped: takes the progress off the terminal.
    pub fn end(&self) {
        if self.told.swap(0, Ordering::Relaxed) > 0 {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    /// The status of a command that was stopped.
    pub fn stopped(&self) -> ExitCode {
        self.end();
        interrupted()
    }
}

/// Says that work was stopped by Ctrl-C; the status to exit with.
pub fn interrupted() -> ExitCode {
    super::say(format_args!("stopped"));
    ExitCode::from(INTERRUPTED)
}

/// Whether Ctrl-C was pressed since a [`Watch`] was made.
pub fn asked_to_stop() -> bool {
    STOP.load(Ordering::Relaxed)
}
