//! Follows a trace that is being recorded, with the help of its launcher.
//!
//! ```text
//!  now ──► "write what you have" ──► answer ──► all before `now` is in the files: it is added up
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hetrace_ctf::read::Part;
use hetrace_report::tally::{By, Live, Picture};
use hetrace_session::manifest::Exit;
use hetrace_session::recover::{State, state};
use hetrace_session::sessions::{Session, Unchosen, choose, live};
use hetrace_trace::follow::Follower;
use rustix::time::{ClockId, clock_gettime};

/// Pause between two looks for an answer.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a launcher may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Who records for a session that can't be asked writes at least so often.
const BEHIND: Duration = Duration::from_secs(1);
/// Up to so many bytes a trace is read again when it is finished.
const READ_AGAIN: u64 = 256 << 20;
/// How long a launcher takes to make its trace at most, and the pause between two looks for that.
const BEGIN: Duration = Duration::from_secs(5);

/// What becomes of the program that is followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// It is recorded.
    Running,
    /// Its launcher does not answer: it is stopped, or its disk is slow.
    Silent,
    /// It has ended; how, if that is known.
    Ended(Option<Exit>),
    /// Its launcher was killed, or whoever wrote the trace has left it unfinished.
    Left,
}

impl Progress {
    /// Returns whether nothing more comes.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended(_) | Self::Left)
    }
}

/// A trace that is followed.
#[derive(Debug)]
pub struct Followed {
    session: Option<Session>,
    trace: PathBuf,
    follower: Follower,
    live: Live,
    by: Vec<By>,
    /// Set by who wants no more, and waits.
    stop: Option<Arc<AtomicBool>>,
    /// Up to when everything is added up, in nanoseconds of the trace's clock.
    reached: u64,
}

impl Followed {
    /// Follows what was asked for: a process, a session, the folder of a trace, or the only session there is.
    pub fn open(asked: Option<&str>, by: Vec<By>) -> Result<Self> {
        match (choose(asked), asked) {
            (Ok(session), _) => Self::of(session, by),
            (Err(Unchosen::NoSuch(..) | Unchosen::None(_)), Some(folder)) if Path::new(folder).exists() => {
                let trace = Path::new(folder);
                // A part is followed until the next one is begun, whatever becomes of the run.
                let session = if Part::of(trace).is_some() { None } else { of_trace(trace) };
                Self::begin(session, trace.to_owned(), by)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Follows a session.
    pub fn of(session: Session, by: Vec<By>) -> Result<Self> {
        let Some(trace) = session.trace.clone() else {
            bail!(
                "{session}: its hetrace left no note of where the trace is; give the trace's folder instead"
            );
        };
        Self::begin(Some(session), trace, by)
    }

    fn begin(session: Option<Session>, trace: PathBuf, by: Vec<By>) -> Result<Self> {
        if let Some(session) = session.as_ref().filter(|session| session.is_flight()) {
            bail!(
                "{session}: a flight recording writes nothing to follow; `hetrace snapshot` writes what it has"
            );
        }
        let begun = Instant::now();
        let follower = loop {
            match Follower::open(&trace) {
                Ok(follower) => break follower,
                // It may be about to make it.
                Err(_) if session.as_ref().is_some_and(Session::is_alive) && begun.elapsed() < BEGIN => {
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(error).with_context(|| trace.display().to_string()),
            }
        };
        let live = Live::new(follower.trace(), by.clone());
        Ok(Self { session, trace, follower, live, by, stop: None, reached: 0 })
    }

    /// From now on nothing is waited for once this is set.
    pub fn until(self, stop: Arc<AtomicBool>) -> Self {
        Self { stop: Some(stop), ..self }
    }

    /// Takes what there is now.
    pub fn step(&mut self) -> Result<(Picture, Progress)> {
        let now = now();
        let progress = self.progress(now)?;
        if progress.is_over() {
            return self.finish();
        }
        while self.live.follow(&mut self.follower, Some(self.reached))?.more {}
        Ok((self.live.picture(&self.follower, Some(now), false), progress))
    }

    /// Takes what is left.
    fn finish(&mut self) -> Result<(Picture, Progress)> {
        while self.live.follow(&mut self.follower, None)?.more {}
        if self.reached > 0 && self.follower.read_bytes() <= READ_AGAIN && self.follower.is_there() {
            // What recording costs is known in the end only, and is left out of times, as `tally` does.
            self.follower = Follower::open(&self.trace)?;
            self.live = Live::new(self.follower.trace(), self.by.clone());
            while self.live.follow(&mut self.follower, None)?.more {}
        }
        self.follower.read_manifest()?;
        self.follower.steps_mut().finish(&mut self.live);
        Ok((self.live.picture(&self.follower, None, true), self.ending()))
    }

    /// Asks the launcher to write what there is before `now`.
    fn progress(&mut self, now: u64) -> Result<Progress> {
        let Some(session) = &self.session else {
            self.follower.read_manifest()?;
            let of = self.follower.trace().manifest().session.clone();
            let is_recorded = of.is_some_and(|of| state(&of) == State::Alive);
            if is_recorded {
                self.reached = now.saturating_sub(BEHIND.as_nanos() as u64);
                return Ok(Progress::Running);
            }
            return Ok(Progress::Ended(None));
        };
        let number = session.ask_snapshot();
        let begun = Instant::now();
        while !session.answered(number) {
            if !session.is_alive() {
                return Ok(Progress::Ended(None));
            }
            let is_stopped = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
            if is_stopped || begun.elapsed() > PATIENCE {
                return Ok(Progress::Silent);
            }
            thread::sleep(PAUSE);
        }
        self.reached = now;
        Ok(Progress::Running)
    }

    /// How it ended, as the last manifest has it.
    fn ending(&self) -> Progress {
        let manifest = self.follower.trace().manifest();
        let unfinished = manifest.session.is_some() && manifest.exit.is_none();
        if unfinished { Progress::Left } else { Progress::Ended(manifest.exit) }
    }

    /// Returns the launcher's process id and the program, as far as they are known.
    pub fn title(&self) -> String {
        let mut command = self.follower.trace().manifest().command.join(" ");
        let mut title = "hetrace top".to_owned();
        if let Some(session) = &self.session {
            title += &format!(" | process {}", session.launcher());
            if command.is_empty() {
                command = session.command.join(" ");
            }
        }
        if !command.is_empty() {
            title += &format!(" | {command}");
        }
        title
    }

    /// Returns where the trace is.
    pub fn trace(&self) -> &Path {
        &self.trace
    }
}

/// Returns the session that records into a folder, or into one inside.
fn of_trace(trace: &Path) -> Option<Session> {
    let trace = trace.canonicalize().ok()?;
    let is_it = |session: &Session| {
        let of = session.trace.as_ref().and_then(|of| of.canonicalize().ok());
        of.is_some_and(|of| of == trace || of.parent() == Some(&trace))
    };
    live().0.into_iter().find(is_it)
}

/// The clock of traces, in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}
