//! Events of the operating system in a session of processes that run already.

use std::io;

use hetrace_os::{Scope, Way};

use super::{Asked, Finished, Kernel, Options, first_report, less, place, wanted};
use crate::access::Access;
use crate::manifest;
use crate::time::ReferencePoint;

/// What is recorded of processes as they are found.
#[derive(Debug)]
pub struct Attached {
    asked: Asked,
    scope: Scope,
    recorder: hetrace_os::Attached,
}

impl Attached {
    /// Opens what the privileges allow, and begins to record into a folder that is not there yet.
    ///
    /// # Errors
    /// When the trace cannot be begun, or if events of the whole machine were asked for, which are not permitted.
    pub fn begin(options: &Options, to: Kernel, access: Access, started: ReferencePoint) -> io::Result<Self> {
        if options.asked == Asked::System {
            let probe = hetrace_os::probe();
            if let Some(why) = probe.why.filter(|_| probe.way != Way::Tracepoints) {
                let fix = probe.fix.unwrap_or_default();
                let text =
                    format!("--os system: the service may not record events of the machine: {why}. {fix}");
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
        }
        let wanted = wanted(options);
        let scope = wanted.scope;
        to.make_folder(access)?;
        let recorder = hetrace_os::Attached::begin(wanted, place(to, started))?;
        Ok(Self { asked: options.asked, scope, recorder })
    }

    /// Follows processes, and all that descend from them.
    pub fn follow(&self, processes: Vec<u32>) {
        self.recorder.follow(processes);
    }

    /// Records nothing more until it is resumed, or again.
    pub fn set_open(&self, open: bool) {
        if open { self.recorder.resume() } else { self.recorder.pause() }
    }

    /// Bytes of the trace so far.
    pub fn bytes(&self) -> u64 {
        self.recorder.bytes()
    }

    /// Returns that there is less than what was asked for, and how there would be more.
    pub fn less(&self) -> Option<String> {
        less(self.asked, self.recorder.probe())
    }

    /// Returns what is known so far, for the manifest.
    pub fn report(&self) -> manifest::Os {
        first_report(self.recorder.probe(), self.scope)
    }

    /// Takes what is left.
    pub fn finish(self) -> Finished {
        let (os, less) = (self.report(), self.less());
        Finished::new(os, Vec::new(), self.recorder.finish(), less)
    }
}
