//! Recording: from what is opened before the program starts to the report after its end.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};

use crate::perf::close;
use crate::sources::Sources;
use crate::tracefs::Tracefs;
use crate::way::{Probe, Way, less};
use crate::worker::{Source, Worker, now};
use crate::{Options, Place, Report};

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

impl Recorder {
    /// Opens the best that the privileges allow, on the thread that starts the program: its events are
    /// inherited from there. Nothing is written yet.
    pub fn open(options: Options) -> Self {
        let opened = now();
        let (probe, source) = best(&options);
        Self { probe, options, source: Some((source, opened)), stop: None, running: None }
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
        let mut worker = Worker::begin(source, &self.options, pid, place, Arc::clone(&stop))?;
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
                if let Some(sources) = open {
                    close::quickly(sources, |sources| sources.events());
                }
                report
            }
            Err(_) => Report { error: Some("its reader ended unexpectedly".to_owned()), ..Report::default() },
        }
    }
}

impl Drop for Recorder {
    /// The program did not start, perhaps.
    fn drop(&mut self) {
        if let Some((Source::Tracepoints { sources, .. }, _)) = self.source.take() {
            close::quickly(sources, |sources| sources.events());
        }
    }
}

fn best(options: &Options) -> (Probe, Source) {
    let opened = Tracefs::open().and_then(|tracefs| {
        let sources = Sources::tracepoints(options, &tracefs)?;
        Ok(Source::Tracepoints { sources: Box::new(sources), tracefs })
    });
    let why = match opened {
        Ok(source) => return (Probe { way: Way::Tracepoints, why: None, fix: None }, source),
        Err(why) => why,
    };
    match Sources::switches(options) {
        Ok(sources) => (less(Way::Switches, why), Source::Switches(Box::new(sources))),
        Err(_) => (less(Way::Statistics, why), Source::Statistics),
    }
}
