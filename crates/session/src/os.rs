//! Events of the operating system in a run: where they go, and what the manifest says of them.
//!
//! ```text
//!  TRACE/hetrace/    the trace of the program, as it is without these events
//!  TRACE/kernel/     theirs, as LTTng's kernel tracer writes it
//! ```
//! ([decision 0048]: tools look for a folder of that name, and readers do not look below a trace.)
//!
//! [decision 0048]: https://github.com/hetrace/hetrace/blob/main/docs/decisions/0048-os-events.md

mod attached;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_model::glob_matches;
use hetrace_os::{Borders, Keep, MakeFile, Probe, Recorder, Report, Room, Scope, Target};
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::beside;
use crate::child::inherited::kernel_mask;
use crate::layout;
use crate::manifest::{self, Manifest};
use crate::time::ReferencePoint;

pub use attached::Attached;

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asked {
    /// What the privileges allow, of the program and its descendants.
    Auto,
    /// What concerns the program and its descendants.
    Tree,
    /// All of the machine.
    System,
}

/// What to record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Whose events.
    pub asked: Asked,
    /// Globs of the system calls that are recorded; none if there are none.
    pub syscalls: Vec<String>,
    /// Bytes of the ring buffer of each CPU.
    pub ring_bytes: usize,
    /// Probes of the program that is run.
    #[serde(skip)]
    pub probes: Vec<hetrace_os::UserProbe>,
    /// Those of them that are the beginning and the end of ranges, by their names.
    #[serde(skip)]
    pub pairs: Vec<[String; 2]>,
}

/// Returns whether a glob matches the name of a system call of this processor.
pub fn is_syscall(glob: &str) -> bool {
    hetrace_os::syscall::any(&|name| glob_matches(glob, name))
}

/// A run's events of the operating system. It never fails: what is missing stands in the manifest.
#[derive(Debug)]
pub struct Os {
    asked: Asked,
    recorder: Recorder,
    scope: Scope,
    pairs: Vec<[String; 2]>,
    notes: Vec<String>,
}

/// What is being opened, while the launcher prepares the rest.
#[derive(Debug)]
pub struct Opening {
    asked: Asked,
    scope: Scope,
    pairs: Vec<[String; 2]>,
    opening: hetrace_os::Opening,
}

impl Opening {
    /// Begins to open what the privileges allow, for a program that this thread starts.
    pub fn begin(options: &Options) -> Self {
        let wanted = wanted(options);
        let scope = wanted.scope;
        // What is sent to this process is for the main thread, which passes it on.
        let mask = kernel_mask(Some(u64::MAX));
        let opening = hetrace_os::Opening::begin(wanted);
        kernel_mask(Some(mask));
        Self { asked: options.asked, scope, pairs: options.pairs.clone(), opening }
    }

    /// Waits until all is open. From now on it is recorded, and the program may be started.
    pub fn ready(self) -> Os {
        let Self { asked, scope, pairs, opening } = self;
        Os { asked, recorder: opening.ready(), scope, pairs, notes: Vec::new() }
    }
}

/// Returns what was asked for as the recorder has it.
fn wanted(options: &Options) -> hetrace_os::Options {
    let scope = match options.asked {
        Asked::Auto | Asked::Tree => Scope::Tree,
        Asked::System => Scope::System,
    };
    let globs = options.syscalls.clone();
    let wanted = move |name: &str| globs.iter().any(|glob| glob_matches(glob, name));
    let syscalls = (!options.syscalls.is_empty()).then(|| Arc::new(wanted) as hetrace_os::Wanted);
    hetrace_os::Options { scope, syscalls, ring_bytes: options.ring_bytes, probes: options.probes.clone() }
}

/// Returns where and as what a trace of the operating system's events is written.
fn place(Kernel { to, borders }: Kernel, started: ReferencePoint) -> hetrace_os::Place {
    hetrace_os::Place {
        to,
        borders,
        uuid: *uuid::Uuid::new_v4().as_bytes(),
        clock: beside::clock(started),
        host: beside::host_name(),
        recorder: format!("hetrace {}", env!("CARGO_PKG_VERSION")),
    }
}

/// Returns what is known of events before they are counted, for the manifest.
fn first_report(probe: &Probe, scope: Scope) -> manifest::Os {
    manifest::Os {
        scope: scope.name().to_owned(),
        way: probe.way.name().to_owned(),
        why: probe.why.clone(),
        fix: probe.fix.clone(),
        ..manifest::Os::default()
    }
}

/// Returns that there is less than what was asked for, and how there would be more; none if there is all of it.
fn less(asked: Asked, probe: &Probe) -> Option<String> {
    let (why, fix) = probe.why.as_ref().zip(probe.fix.as_ref()).filter(|_| asked != Asked::Auto)?;
    let what = probe.way.what();
    Some(format!("operating system: only {what}, because {why}. For more: {fix}"))
}

impl Os {
    /// Begins to read: the program runs in this process.
    pub fn start(&mut self, pid: libc::pid_t, to: Kernel, access: Access, started: ReferencePoint) {
        let begun = to.make_folder(access);
        let begun = begun.and_then(|()| self.recorder.start(pid.cast_unsigned(), place(to, started)));
        if let Err(error) = begun {
            self.notes.push(format!("no events of the operating system: {error}"));
        }
    }

    /// Returns what is known so far, for the manifest.
    pub fn report(&self) -> manifest::Os {
        let pairs = self.pairs.clone();
        manifest::Os { pairs, ..first_report(self.recorder.probe(), self.scope) }
    }

    /// Takes what is left, now that the program has ended.
    pub fn finish(self) -> Finished {
        let os = self.report();
        let Self { recorder, notes, asked, .. } = self;
        let less = less(asked, recorder.probe());
        Finished::new(os, notes, recorder.finish(), less)
    }
}

impl Finished {
    fn new(mut os: manifest::Os, mut notes: Vec<String>, report: Report, less: Option<String>) -> Self {
        notes.extend(unwritten(&report));
        notes.extend(less);
        fill(&mut os, report);
        Finished { os, notes }
    }
}

/// Returns what the user should know of events that were not written.
pub fn unwritten(report: &Report) -> Option<String> {
    let error = report.error.as_ref()?;
    Some(format!("{} events of the operating system were not written: {error}", report.unwritten))
}

/// Writes into the manifest what was recorded.
pub fn fill(os: &mut manifest::Os, report: Report) {
    let Report {
        events,
        bytes,
        dropped,
        unwritten,
        error: _,
        late,
        unseen,
        damaged,
        cpu_ns,
        missing,
        account,
    } = report;
    let (unseen_switches, damaged_bytes) = (unseen, damaged);
    let known = std::mem::take(os);
    *os = manifest::Os {
        events,
        bytes,
        dropped,
        unwritten,
        late,
        unseen_switches,
        damaged_bytes,
        cpu_ns,
        missing,
        account,
        ..known
    };
}

/// What was recorded, and what the user should know.
#[derive(Debug)]
pub struct Finished {
    os: manifest::Os,
    notes: Vec<String>,
}

impl Finished {
    /// Writes it into the manifest.
    pub fn complete(self, manifest: &mut Manifest) {
        manifest.os = Some(self.os);
        manifest.notes.extend(self.notes);
    }
}

/// Where a run's events of the operating system go.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The folder, or what keeps them.
    pub to: Target,
    /// Where parts of the run begin, if it is divided.
    pub borders: Option<Arc<Borders>>,
}

impl Kernel {
    /// They are kept in memory, or written into a folder that is not there yet.
    pub fn new(folder: PathBuf, access: Access, compress: bool, keep: Option<Arc<Keep>>) -> Self {
        Self { to: Target { keep, ..Target::new(folder, make(access), compress) }, borders: None }
    }

    /// They are divided, and this is the first part.
    ///
    /// # Errors
    /// When there are too many open files.
    pub fn divided(mut self) -> io::Result<Self> {
        self.to.part = Some(1);
        self.borders = Some(Arc::new(Borders::new()?));
        Ok(self)
    }

    /// Their bytes are accounted for here.
    pub fn within(mut self, room: Arc<dyn Room>) -> Self {
        self.to.room = Some(room);
        self
    }

    /// Makes the folder, unless nothing is written.
    fn make_folder(&self, access: Access) -> io::Result<()> {
        match (&self.to.keep, self.to.part) {
            (Some(_), _) => Ok(()),
            (None, None) => access.make_folder(&self.to.folder),
            (None, Some(number)) => layout::make_kernel_part(&self.to.folder, number, access),
        }
    }
}

/// Returns what makes its files.
pub fn make(access: Access) -> MakeFile {
    Arc::new(move |path: &Path| access.make_file(path))
}
