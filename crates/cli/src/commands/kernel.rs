//! The trace of the operating system that belongs to a program's.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context, Result};
use hetrace_ctf::read::Files;
use hetrace_trace::os::{self, NotJoined};
use hetrace_trace::probes::PREFIX;
use hetrace_trace::system::System;
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::{Stopped, Watch};

use super::say;
use crate::args::Kernel;

impl Kernel {
    /// Opens the kernel trace of a trace: the one that is named, or the one beside it. The latter is left out with a
    /// message if it cannot be read.
    pub fn open(&self, path: &Path, program: &Trace) -> Result<Option<Trace>> {
        if let Some(named) = &self.kernel {
            let files = Files::open(named)?;
            // A folder of a session stands for the kernel trace in it.
            let files = files.kernel().unwrap_or(&files);
            let trace = Trace::from_files(files)?;
            super::report_problems(&trace);
            os::join(program, &trace).with_context(|| files.path().display().to_string())?;
            return Ok(Some(trace));
        }
        let files = Files::open(path)?;
        let Some(kernel) = files.kernel() else { return Ok(None) };
        match Trace::from_files(kernel) {
            Ok(trace) => {
                super::report_problems(&trace);
                Ok(Some(trace))
            }
            Err(error) => {
                say(format_args!("{}: left out: {error}", kernel.path().display()));
                Ok(None)
            }
        }
    }

    /// Reads what the operating system did to the program's threads, and joins it to the program's trace.
    ///
    /// # Errors
    /// When a trace that was named cannot be read or does not belong to the program's. The watch stops it with
    /// the inner error.
    pub fn join(
        &self,
        path: &Path,
        program: &mut Trace,
        watch: Option<Watch<'_>>,
    ) -> Result<Result<(), Stopped>> {
        let kernel = self.open(path, program)?;
        kernel.map_or(Ok(Ok(())), |kernel| self.join_opened(&kernel, path, program, watch))
    }

    /// The same, but nothing where no probe in the program's code was recorded: for what shows no states of threads.
    pub fn join_probes(
        &self,
        path: &Path,
        program: &mut Trace,
        watch: Option<Watch<'_>>,
    ) -> Result<Result<(), Stopped>> {
        let has_probes = |kernel: &Trace| {
            let mut events = kernel.ctf().class().streams.iter().flat_map(|stream| &stream.events);
            events.any(|event| event.name.starts_with(PREFIX))
        };
        let kernel = self.open(path, program)?.filter(has_probes);
        kernel.map_or(Ok(Ok(())), |kernel| self.join_opened(&kernel, path, program, watch))
    }

    fn join_opened(
        &self,
        kernel: &Trace,
        path: &Path,
        program: &mut Trace,
        watch: Option<Watch<'_>>,
    ) -> Result<Result<(), Stopped>> {
        let place = self.kernel.as_deref().unwrap_or(path).display();
        let pids: HashSet<i64> = program.manifest().processes.iter().map(|p| p.pid).collect();
        let all = pids.is_empty();
        let system = match os::read(kernel, |pid| all || pids.contains(&pid), watch) {
            Err(stopped) => return Ok(Err(stopped)),
            Ok(system) => system,
        };
        match system {
            Ok(system) => {
                report_losses(&system);
                if !all
                    && !system
                        .lives
                        .iter()
                        .any(|life| system.person(life.person).pid.is_some_and(|pid| pids.contains(&pid)))
                {
                    say(format_args!(
                        "operating system: no thread of the program is in it: its numbers are of another PID namespace, \
                         or it was recorded at another time"
                    ));
                }
                program.join_system(system);
            }
            Err(error) if self.kernel.is_some() => return Err(error).with_context(|| place.to_string()),
            // Scheduler statistics only: `print` shows them.
            Err(NotJoined::NoEvents) => {}
            Err(error) => say(format_args!("{place}: operating system: left out: {error}")),
        }
        Ok(Ok(()))
    }
}

/// What is missing makes states unknown, or hides changes of them.
fn report_losses(system: &System) {
    let mut missing = Vec::new();
    for (number, what) in [
        (system.dropped, "events dropped"),
        (system.missing_packets, "packets missing"),
        (system.damaged, "damaged places"),
        (system.torn, "context switches not recorded"),
    ] {
        if number > 0 {
            missing.push(format!("{number} {what}"));
        }
    }
    if !missing.is_empty() {
        say(format_args!("operating system: {}; states of threads are unknown there", missing.join(", ")));
    }
}
