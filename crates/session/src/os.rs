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

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_format::files;
use hetrace_model::glob_matches;
use hetrace_os::{Keep, MakeFile, Probe, Recorder, Report, Scope, Target};
use serde::{Deserialize, Serialize};

use crate::access::Access;
use crate::beside;
use crate::child::inherited::kernel_mask;
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
    notes: Vec<String>,
}

/// What is being opened, while the launcher prepares the rest.
#[derive(Debug)]
pub struct Opening {
    asked: Asked,
    scope: Scope,
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
        Self { asked: options.asked, scope, opening }
    }

    /// Waits until all is open. From now on it is recorded, and the program may be started.
    pub fn ready(self) -> Os {
        let Self { asked, scope, opening } = self;
        Os { asked, recorder: opening.ready(), scope, notes: Vec::new() }
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
    hetrace_os::Options { scope, syscalls, ring_bytes: options.ring_bytes }
}

/// Returns where and as what a trace of the operating system's events is written.
fn place(to: Target, started: ReferencePoint) -> hetrace_os::Place {
    hetrace_os::Place {
        to,
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
    pub fn start(&mut self, pid: libc::pid_t, to: Target, access: Access, started: ReferencePoint) {
        let made = if to.keep.is_some() { Ok(()) } else { access.make_folder(&to.folder) };
        let begun = made.and_then(|()| self.recorder.start(pid.cast_unsigned(), place(to, started)));
        if let Err(error) = begun {
            self.notes.push(format!("no events of the operating system: {error}"));
        }
    }

    /// Returns what is known so far, for the manifest.
    pub fn report(&self) -> manifest::Os {
        first_report(self.recorder.probe(), self.scope)
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
        if let Some(error) = &report.error {
            notes.push(format!(
                "{} events of the operating system were not written: {error}",
                report.unwritten
            ));
        }
        notes.extend(less);
        os.events = report.events;
        os.bytes = report.bytes;
        os.dropped = report.dropped;
        os.unwritten = report.unwritten;
        os.late = report.late;
        os.unseen_switches = report.unseen;
        os.damaged_bytes = report.damaged;
        os.cpu_ns = report.cpu_ns;
        os.missing = report.missing;
        os.account = report.account;
        Finished { os, notes }
    }
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

/// Returns where a run's events of the operating system go.
pub fn target(folder: PathBuf, access: Access, compress: bool, keep: Option<Arc<Keep>>) -> Target {
    Target { folder, make: make(access), compress, keep }
}

/// Returns what makes its files.
pub fn make(access: Access) -> MakeFile {
    Arc::new(move |path: &Path| access.make_file(path))
}

/// Returns the folders of the program's trace and of the operating system's in that of a session.
pub fn folders(session: &Path) -> (PathBuf, PathBuf) {
    (session.join(files::PROGRAM), session.join(files::KERNEL))
}
