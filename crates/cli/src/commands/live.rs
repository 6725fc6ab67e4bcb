//! What `hetrace run --live` shows.
//!
//! A thread of low priority reads what the launcher writes, as `hetrace top` does from another process: draining goes
//! on beside it, and waits for nothing that is done here.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hetrace_report::tally::LiveText;
use hetrace_session::sessions;
use rustix::process::{getpid, setpriority_process};

use super::follow::{Followed, Progress};
use super::screen::Bottom;
use super::{say, terminal};

/// Time between two pictures on a terminal.
const OFTEN: Duration = Duration::from_secs(1);
/// And between two lines where there is none.
const SELDOM: Duration = Duration::from_secs(10);
/// Time between two looks for the session.
const PAUSE: Duration = Duration::from_millis(20);
/// The thread's priority.
const NICE: i32 = 10;
/// Lines of a picture at most, and of a terminal at least: in a smaller one there are lines, as in a file.
const LINES: usize = 14;
const LEAST: usize = 20;

/// A thread that shows what is recorded.
#[derive(Debug)]
pub struct Shown {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Shown {
    /// Begins, before there is a session.
    pub fn begin() -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let asked = end.clone();
        let thread = thread::Builder::new().name("hetrace-live".to_owned()).spawn(move || show(&asked));
        if thread.is_err() {
            say(format_args!("--live: no thread to show anything with: {}", std::io::Error::last_os_error()));
        }
        Self { end, thread: thread.ok() }
    }

    /// Ends, and restores the terminal.
    pub fn end(self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread {
            thread.thread().unpark();
            // It shows things, and nothing depends on how that ended.
            let _ = thread.join();
        }
    }
}

fn show(end: &Arc<AtomicBool>) {
    block_signals();
    // Linux has a priority for each thread.
    let own = rustix::thread::gettid();
    let _ = setpriority_process(Some(own), NICE);
    // The launcher does not answer any more when it is about to end, and must not wait for us.
    let Some(mut followed) = find(end).map(|followed| followed.until(end.clone())) else { return };
    let mut bottom = Bottom::default();
    let mut said = Instant::now();
    let stderr = std::io::stderr();
    while !end.load(Ordering::Relaxed) {
        let step = followed.step();
        if end.load(Ordering::Relaxed) {
            break;
        }
        let picture = match step {
            Ok((picture, Progress::Running)) => picture,
            Ok((_, Progress::Silent)) => continue,
            Ok(_) => break,
            Err(error) => {
                bottom.end();
                say(format_args!("--live: {error:#}"));
                return;
            }
        };
        match terminal::size(&stderr).filter(|(_, lines)| *lines >= LEAST) {
            Some((columns, lines)) => {
                let own = LINES.min(lines / 2);
                let title = "hetrace run --live".to_owned();
                let colour = terminal::colour(&stderr);
                let text = LiveText { colour, width: Some(columns), height: Some(own), title };
                bottom.show(&picture.text(&text), (lines, own));
            }
            None if said.elapsed() >= SELDOM => {
                said = Instant::now();
                say(format_args!("live: {}", picture.line()));
            }
            None => {}
        }
        let time =
            if stderr.is_terminal() { OFTEN } else { SELDOM.saturating_sub(said.elapsed()).max(PAUSE) };
        thread::park_timeout(time);
    }
    bottom.end();
}

/// Waits for the session of this process.
fn find(end: &AtomicBool) -> Option<Followed> {
    let own = u32::try_from(getpid().as_raw_nonzero().get()).ok()?;
    while !end.load(Ordering::Relaxed) {
        let (sessions, _) = sessions::live();
        // The note of where the trace is comes a little after the session.
        let is_own = |session: &sessions::Session| session.launcher() == own && session.trace.is_some();
        if let Some(session) = sessions.into_iter().find(is_own) {
            return match Followed::of(session, Vec::new()) {
                Ok(followed) => Some(followed),
                Err(error) => {
                    say(format_args!("--live: {error:#}"));
                    None
                }
            };
        }
        thread::park_timeout(PAUSE);
    }
    None
}

/// Signals are for the thread that runs the program.
fn block_signals() {
    // SAFETY: the set is filled in before it is used, and is this thread's only.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}
