//! What records beside the program's own calls: telemetry of devices, events of the operating system, samples of processors,
//! insides of kernels.

use std::path::Path;

use crate::apis::Name;
use crate::inside::Desk;
use crate::manifest::{self, Manifest};
use crate::os::{self, Kernel, Os};
use crate::output::TraceFolder;
use crate::run_options::RunOptions;
use crate::samples::{self, Samples};
use crate::telemetry::{self, Telemetry};
use crate::time::ReferencePoint;
use crate::trigger::{TriggerError, Watch};

/// What was asked for. None of it fails a run: what is missing stands in the manifest.
#[derive(Debug)]
pub struct Recorders {
    telemetry: Option<Telemetry>,
    opening: Option<os::Opening>,
    os: Option<Os>,
    samples: Option<Samples>,
    /// Samples a second of each thread.
    sample_hz: Option<u32>,
    /// Where events of the operating system go.
    kernel: Option<Kernel>,
    /// Who rewrites code for programs.
    desk: Option<Desk>,
}

/// What was recorded.
#[derive(Debug)]
pub struct Recorded {
    telemetry: Option<telemetry::Finished>,
    os: Option<os::Finished>,
    samples: Option<samples::Finished>,
    /// What is to be said of kernels' insides.
    inside: Vec<String>,
}

impl Recorders {
    /// Opens telemetry: counters of devices are read before the program can change them. The operating
    /// system's events are being opened already. Programs meet us in the folder `session`.
    pub fn open(
        options: &RunOptions,
        session: &Path,
        opening: Option<os::Opening>,
        trace: &TraceFolder,
        kernel: Option<Kernel>,
        manifest: &mut Manifest,
    ) -> Self {
        let telemetry = options.sample.as_ref().map(|o| Telemetry::open(o, trace));
        manifest.telemetry = telemetry.as_ref().map(Telemetry::report);
        let desk = options.inside.as_ref().map(|inside| Desk::begin(inside, session, trace));
        let sample_hz = options.cpu_sample;
        // What is in the metadata depends on it; the rest is known when they are open.
        manifest.samples = sample_hz.map(|hz| manifest::Samples { hz, ..manifest::Samples::default() });
        Self { telemetry, opening, os: None, samples: None, sample_hz, kernel, desk }
    }

    /// Returns what watches for the triggers of a flight recording, also in samples. APIs have these names.
    ///
    /// # Errors
    /// When nothing is sampled that a trigger names.
    pub fn watch(
        &mut self,
        options: &RunOptions,
        names: &[Name],
        manifest: &Manifest,
    ) -> Result<Option<Watch>, TriggerError> {
        let Some((bound, flight)) = options.triggers.as_ref().zip(options.flight.as_ref()) else {
            return Ok(None);
        };
        let mut watch = Watch::new(bound, names, flight.window);
        watch.devices(manifest.telemetry.as_ref())?;
        self.telemetry.iter_mut().for_each(|telemetry| telemetry.feed(&watch.feed()));
        Ok(Some(watch))
    }

    /// Waits until the operating system's events are open, right before the program is started by this thread: what is
    /// recorded from now on is the launcher's, too.
    pub fn ready_os(&mut self, manifest: &mut Manifest) {
        self.samples = self.sample_hz.map(Samples::open);
        manifest.samples = self.samples.as_ref().map(Samples::report);
        self.os = self.opening.take().map(os::Opening::ready);
        manifest.os = self.os.as_ref().map(Os::report);
    }

    /// Begins: the program runs in this process.
    pub fn start(&mut self, pid: libc::pid_t, trace: &TraceFolder, started: ReferencePoint) {
        self.samples.iter_mut().for_each(|samples| samples.start(trace));
        self.telemetry.iter_mut().for_each(|telemetry| telemetry.start([pid.unsigned_abs()]));
        if let (Some(os), Some(to)) = (&mut self.os, self.kernel.take()) {
            os.start(pid, to, trace.access(), started);
        }
    }

    /// Takes what is left, now that the program has ended.
    pub fn finish(self) -> Recorded {
        let inside = self.desk.map_or_else(Vec::new, Desk::finish);
        Recorded {
            os: self.os.map(Os::finish),
            samples: self.samples.map(Samples::finish),
            telemetry: self.telemetry.map(Telemetry::finish),
            inside,
        }
    }
}

impl Recorded {
    /// Writes it into the manifest.
    pub fn complete(self, manifest: &mut Manifest) {
        self.telemetry.into_iter().for_each(|telemetry| telemetry.complete(manifest));
        self.samples.into_iter().for_each(|samples| samples.complete(manifest));
        self.os.into_iter().for_each(|os| os.complete(manifest));
        manifest.notes.extend(self.inside);
    }
}
