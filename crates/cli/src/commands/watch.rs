//! Progress of long commands, and a clean end on Ctrl-C.

use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Exit status after Ctrl-C, as of a shell.
const INTERRUPTED: u8 = 130;
/// Time before the first report of progress.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two reports of progress.
const OFTEN: Duration = Duration::from_millis(200);

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// Reports progress on a terminal, and whether to stop.
pub struct Watch {
    since: Instant,
    events: AtomicU64,
    /// How many there will be; 0 if that is not known.
    expected: AtomicU64,
    /// When progress was last reported, ms after `since`; 0 for never.
    reported: AtomicU64,
    reports: bool,
    /// What is counted, in millions.
    unit: &'static str,
}

impl Watch {
    /// Installs a handler: the first Ctrl-C asks to stop, the second one ends the process.
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
            expected: AtomicU64::new(0),
            reported: AtomicU64::new(0),
            reports: !quiet && std::io::stderr().is_terminal(),
            unit: "million events",
        }
    }

    /// As [`Watch::new`], for work counted in bytes.
    pub fn of_bytes() -> Self {
        Self { unit: "MB", ..Self::new(false) }
    }

    /// So many more events will be read, if that is known.
    pub fn expect(&self, events: Option<u64>) {
        self.expected.fetch_add(events.unwrap_or(0), Ordering::Relaxed);
    }

    /// Adds events, or bytes, that have been read; breaks if Ctrl-C was pressed.
    pub fn seen(&self, events: u64) -> ControlFlow<()> {
        if STOP.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let events = self.events.fetch_add(events, Ordering::Relaxed) + events;
        let now = self.since.elapsed();
        if self.reports && now > PATIENCE {
            let ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            let last = self.reported.load(Ordering::Relaxed);
            let due = last == 0 || ms - last.min(ms) > OFTEN.as_millis() as u64;
            // Of several threads one reports.
            if due && self.reported.compare_exchange(last, ms, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                let line = progress(events, self.expected.load(Ordering::Relaxed), self.unit);
                let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
            }
        }
        ControlFlow::Continue(())
    }

    /// Removes the progress from the terminal when the work is done or stopped.
    pub fn end(&self) {
        if self.reported.swap(0, Ordering::Relaxed) > 0 {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }

    /// Returns the exit status of a command that was stopped.
    pub fn stopped(&self) -> ExitCode {
        self.end();
        interrupted()
    }
}

/// Returns how far it is, in words; what is read twice is never more than all.
fn progress(events: u64, expected: u64, unit: &str) -> String {
    let millions = events as f64 / 1e6;
    match expected {
        0 => format!("{millions:.1} {unit} read"),
        all => {
            let percent = (events as f64 / all as f64 * 100.0).min(99.0);
            format!("{percent:.0}%: {millions:.1} of {:.1} {unit} read", all as f64 / 1e6)
        }
    }
}

/// Reports that Ctrl-C stopped the work; returns the exit status.
pub fn interrupted() -> ExitCode {
    super::say(format_args!("stopped"));
    ExitCode::from(INTERRUPTED)
}

/// Returns whether Ctrl-C was pressed since a [`Watch`] was made.
pub fn asked_to_stop() -> bool {
    STOP.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_a_percentage_where_the_end_is_known() {
        assert_eq!(progress(1_500_000, 0, "million events"), "1.5 million events read");
        assert_eq!(progress(1_500_000, 6_000_000, "million events"), "25%: 1.5 of 6.0 million events read");
        assert_eq!(progress(7_000_000, 6_000_000, "MB"), "99%: 7.0 of 6.0 MB read");
    }
}
