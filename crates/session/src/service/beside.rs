//! What is recorded beside the calls of a session's processes: events of the operating system, and telemetry.
//!
//! Both follow the processes: those that are dormant when the session begins, those that record something, and all that
//! descend from them.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hetrace_ring::abi::CONTROL_FILE;

use crate::access::Access;
use crate::drain::Drainer;
use crate::manifest::Manifest;
use crate::os::{Attached, Kernel};
use crate::output::TraceFolder;
use crate::run_options::RunOptions;
use crate::telemetry::Telemetry;
use crate::time::ReferencePoint;
use crate::trigger::Watch;
use crate::whom::Whom;

/// What records beside the calls; nothing if that was not asked for.
#[derive(Debug, Default)]
pub struct Beside {
    telemetry: Option<Telemetry>,
    os: Option<Attached>,
    /// Processes that are followed, and when they began.
    followed: HashSet<(u32, u64)>,
    paused: bool,
}

impl Beside {
    /// Begins; `kernel` is where events of the operating system go: its folder is not there yet. What is recorded
    /// stands in the manifest.
    ///
    /// # Errors
    /// When what was asked for is not permitted, or cannot be written.
    pub fn begin(
        options: &RunOptions,
        (trace, kernel): (&TraceFolder, Option<Kernel>),
        started: ReferencePoint,
        manifest: &mut Manifest,
    ) -> io::Result<Self> {
        let telemetry = options.sample.as_ref().map(|o| Telemetry::open(o, trace));
        manifest.telemetry = telemetry.as_ref().map(Telemetry::report);
        let access: Access = options.access;
        let begin = |(options, kernel)| Attached::begin(options, kernel, access, started);
        let os = options.os.as_ref().zip(kernel).map(begin).transpose()?;
        manifest.os = os.as_ref().map(Attached::report);
        Ok(Self { telemetry, os, followed: HashSet::new(), paused: false })
    }

    /// Samples are looked at by triggers, too.
    pub fn feed(&mut self, watch: &Watch) {
        self.telemetry.iter_mut().for_each(|telemetry| telemetry.feed(&watch.feed()));
    }

    fn is_nothing(&self) -> bool {
        self.telemetry.is_none() && self.os.is_none()
    }

    /// Follows the processes that are dormant now and selected.
    pub fn start(&mut self, session: &Path, whom: &Whom) {
        if self.is_nothing() {
            return;
        }
        let found: Vec<u32> = joined(session).into_iter().filter(|pid| whom.selects(*pid)).collect();
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.start(found.iter().copied());
        }
        self.os.iter().for_each(|os| os.follow(found.clone()));
    }

    /// Follows the processes that record.
    pub fn look(&mut self, drainer: &Drainer) {
        if self.is_nothing() {
            return;
        }
        let recorded: HashSet<(u32, u64)> = drainer.recorded().collect();
        let fresh: Vec<u32> = recorded.difference(&self.followed).map(|(pid, _)| *pid).collect();
        self.followed = recorded;
        if fresh.is_empty() {
            return;
        }
        self.telemetry.iter().for_each(|telemetry| fresh.iter().for_each(|pid| telemetry.follow(*pid)));
        self.os.iter().for_each(|os| os.follow(fresh.clone()));
    }

    /// Records nothing, or goes on. Returns when that is so.
    pub fn set_open(&mut self, open: bool) {
        if self.paused != open {
            return;
        }
        self.paused = !open;
        // What takes long comes first, so that the rest begins with the first call.
        self.os.iter().for_each(|os| os.set_open(open));
        self.telemetry.iter().for_each(|telemetry| telemetry.set_open(open));
    }

    /// Returns what the user should know from the beginning.
    pub fn notes(&self) -> Vec<String> {
        self.os.iter().filter_map(Attached::less).collect()
    }

    /// Returns by which means events of the operating system are recorded, and whether telemetry is sampled.
    pub fn what(&self) -> (Option<String>, bool) {
        (self.os.as_ref().map(|os| os.report().way), self.telemetry.is_some())
    }

    /// Bytes of events of the operating system in the trace.
    pub fn bytes(&self) -> u64 {
        self.os.as_ref().map_or(0, Attached::bytes)
    }

    /// Takes what is left.
    pub fn finish(self) -> Finished {
        Finished { os: self.os.map(Attached::finish), telemetry: self.telemetry.map(Telemetry::finish) }
    }
}

/// What was recorded.
#[derive(Debug)]
pub struct Finished {
    os: Option<crate::os::Finished>,
    telemetry: Option<crate::telemetry::Finished>,
}

impl Finished {
    /// Writes it into the manifest.
    pub fn complete(self, manifest: &mut Manifest) {
        self.telemetry.into_iter().for_each(|telemetry| telemetry.complete(manifest));
        self.os.into_iter().for_each(|os| os.complete(manifest));
    }
}

/// Returns this user's processes that have joined a session's folder, as far as they can be seen.
fn joined(session: &Path) -> Vec<u32> {
    let control = session.join(CONTROL_FILE);
    let control = control.to_string_lossy().into_owned();
    let own = rustix::process::geteuid().as_raw();
    let this = std::process::id();
    let is_own = |entry: &fs::DirEntry| entry.metadata().is_ok_and(|m| m.uid() == own);
    let has_it = |pid: &u32| {
        let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
        String::from_utf8_lossy(&maps).lines().any(|line| line.ends_with(&control))
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten().filter(is_own);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != this).filter(has_it).collect()
}
