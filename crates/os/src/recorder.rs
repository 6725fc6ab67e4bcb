//! Recording: from what is opened before the program starts to the report after its end.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};

use crate::clock::now;
use crate::emptier::READER_ENDED;
use crate::perf::close;
use crate::perf::open::Pid;
use crate::sources::{Beside, Sources};
use crate::tracefs::Tracefs;
use crate::way::{Probe, Way, less, statistics};
use crate::worker::{Source, Worker};
use crate::{Options, Place, Report};

/// Says that events which are not the program's own are not recorded.
pub(crate) fn unwatched(error: &std::io::Error) -> String {
    format!("events of the whole machine: {error}")
}

/// A recording.
#[derive(Debug)]
pub struct Recorder {
    probe: Probe,
    options: Options,
    /// And when it was opened.
    source: Option<(Source, u64)>,
    stop: Option<Arc<OwnedFd>>,
    running: Option<JoinHandle<Finished>>,
}

/// What the reader leaves.
#[derive(Debug)]
pub struct Finished {
    /// What was recorded.
    pub report: Report,
    /// Tracepoints, whose closing takes long.
    pub open: Option<Box<Sources>>,
}

/// A recording that is being opened, by a thread of its own: that takes the kernel some milliseconds, in
/// which the caller has other things to do.
#[derive(Debug)]
pub struct Opening {
    options: Options,
    starter: Pid,
    thread: Option<JoinHandle<Recorder>>,
}

impl Opening {
    /// Begins to open the best that the privileges allow, for a program that the calling thread starts once
    /// [`Opening::ready`] has returned: its events are inherited from there.
    pub fn begin(options: Options) -> Self {
        let starter = rustix::thread::gettid();
        let copy = options.clone();
        let open = move || Recorder::open(copy, starter);
        let thread = thread::Builder::new().name("hetrace-os-open".to_owned()).spawn(open).ok();
        Self { options, starter, thread }
    }

    /// Waits until all is open, and begins to record. Nothing is written yet.
    pub fn ready(mut self) -> Recorder {
        let opened = self.thread.take().and_then(|thread| thread.join().ok());
        // There can be no thread, so this one does it.
        let mut recorder = opened.unwrap_or_else(|| Recorder::open(self.options.clone(), self.starter));
        recorder.enable();
        recorder
    }
}

impl Drop for Opening {
    /// The program is not started: what was opened closes in a process of its own, before this one ends.
    fn drop(&mut self) {
        drop(self.thread.take().map(JoinHandle::join));
    }
}

impl Recorder {
    fn open(options: Options, starter: Pid) -> Self {
        let opened = now();
        let copy = options.clone();
        let beside = move || Beside::prepare(&copy);
        let beside = thread::Builder::new().name("hetrace-os-load".to_owned()).spawn(beside);
        let (probe, mut source) = best(&options, Some(starter), move || match beside.map(JoinHandle::join) {
            Ok(Ok(beside)) => beside,
            // There can be no thread, so this one does it.
            _ => Beside::default(),
        });
        // A storm of others may fill buffers before the program has begun.
        source.sources_mut().into_iter().for_each(Sources::begin_taking);
        Self { probe, options, source: Some((source, opened)), stop: None, running: None }
    }

    fn enable(&mut self) {
        let Some((Source::Tracepoints { sources, .. }, _)) = &mut self.source else { return };
        if let Err(error) = sources.enable() {
            sources.missing.push(unwatched(&error));
        }
    }

    /// Returns which way it is, and why no better one.
    pub fn probe(&self) -> &Probe {
        &self.probe
    }

    /// Begins to read and to write: the program runs in this process.
    ///
    /// # Errors
    /// When the trace cannot be begun.
    pub fn start(&mut self, pid: u32, place: Place) -> std::io::Result<()> {
        let Some(source) = self.source.take() else { return Ok(()) };
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let mut worker = Worker::begin(source, &self.options, Some(pid), place, Arc::clone(&stop))?;
        let run = move || {
            let report = worker.run();
            Finished { report, open: worker.into_sources() }
        };
        self.running = Some(thread::Builder::new().name("hetrace-os".to_owned()).spawn(run)?);
        self.stop = Some(stop);
        Ok(())
    }

    /// Takes what is left, now that the program has ended.
    pub fn finish(mut self) -> Report {
        let (Some(running), Some(stop)) = (self.running.take(), self.stop.take()) else {
            return Report::default();
        };
        // A counter that has room for any number of ones.
        let _ = rustix::io::write(&*stop, &1u64.to_ne_bytes());
        match running.join() {
            Ok(Finished { report, open }) => {
                open.into_iter().for_each(close);
                report
            }
            Err(_) => Report { error: Some(READER_ENDED.to_owned()), ..Report::default() },
        }
    }
}

impl Drop for Recorder {
    /// The program did not start, perhaps.
    fn drop(&mut self) {
        if let Some((Source::Tracepoints { sources, .. }, _)) = self.source.take() {
            close(sources);
        }
    }
}

/// Closes what is open while this process does what else is left to do. What perf has open takes the kernel longer than
/// that.
fn close(sources: Box<Sources>) {
    if sources.of_perf() {
        close::quickly(sources, |sources| sources.events());
    } else {
        // Where there can be no thread it is closed at once.
        let _ = thread::Builder::new().name("hetrace-os-close".to_owned()).spawn(move || drop(sources));
    }
}

/// Opens the best that the privileges allow: for what `starter` starts, or for processes that are named later.
pub fn best(options: &Options, starter: Option<Pid>, beside: impl FnOnce() -> Beside) -> (Probe, Source) {
    let opened = Tracefs::open().and_then(|tracefs| {
        let (sources, disks) = Sources::tracepoints(options, starter, beside, &tracefs)?;
        Ok(Source::Tracepoints { sources: Box::new(sources), tracefs, disks })
    });
    let why = match opened {
        Ok(source) => return (Probe { way: Way::Tracepoints, why: None, fix: None }, source),
        Err(why) => why,
    };
    match Sources::switches(options, starter) {
        Ok(sources) => (less(Way::Switches, why), Source::Switches(Box::new(sources))),
        Err(error) => (statistics(why, &error), Source::Statistics),
    }
}
