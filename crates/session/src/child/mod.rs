//! Starting the program and waiting for it, as if nobody stood in between.
//!
//! ```text
//!   caller ──exec──► launcher ──fork──► program
//!            │ inherited: read before Rust's runtime changes it
//!            └──────────────────────────► handed on, whatever we use ourselves
//! ```
//! `std::process::Command` is not enough: it sorts the environment, resets SIGPIPE, opens
//! `/dev/null` for closed descriptors and does not start scripts without `#!`. So the program
//! is started by [`exec`] with what [`inherited`] found, [`signals`] passes on what is
//! sent to the launcher, [`stop`] stops the launcher while its program is stopped, and [`ending`]
//! wakes the launcher at its end.

mod ending;
mod environment;
mod exec;
pub mod guard;
pub mod inherited;
pub mod limits;
mod search;
mod signals;
mod stop;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::manifest::Exit;

pub use ending::Ending;
pub use inherited::Inherited;
pub use signals::{end_by, ended, toggle_on, toggles};

/// The program, started.
#[derive(Debug)]
pub struct Child {
    pid: libc::pid_t,
}

/// What became of the program since it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It runs, or is stopped as before.
    None,
    /// It was stopped by this signal.
    Stopped(libc::c_int),
    /// It ended.
    Ended(Exit),
}

impl Child {
    /// Starts a program with more variables in its environment. Variables that are there get
    /// their new value in place; all else is as this process has it from its caller.
    ///
    /// # Errors
    /// When the program can't be found or executed. Nothing runs then.
    pub fn start(
        command: &[OsString],
        variables: &[(OsString, OsString)],
        inherited: &Inherited,
    ) -> io::Result<Child> {
        let pid = exec::start(command, variables, inherited)?;
        // The drainer works little but must not be late. Only root may ask for
        // this; without it a busy machine loses records a little sooner.
        let _ = rustix::process::setpriority_process(None, -10);
        Ok(Child { pid })
    }

    /// Its process id.
    pub fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// Looks what became of it, without waiting.
    ///
    /// # Errors
    /// When it is no child of ours any more.
    pub fn look(&self) -> io::Result<Event> {
        wait(self.pid, libc::WNOHANG | libc::WUNTRACED)
    }

    /// Stops this process as the program was stopped, until either is continued.
    pub fn stop_with_it(&self, signal: libc::c_int) {
        stop::with(self.pid, signal);
    }

    /// Waits for the end of a program that [`Child::look`] lost sight of: its status is not known.
    pub fn outlast(&self) {
        // SAFETY: signal 0 only asks whether the process is there.
        while unsafe { libc::kill(self.pid, 0) } == 0 {
            std::thread::sleep(Duration::from_millis(25));
        }
    }
}

/// Returns the file that a shell would start for this name, if there is one.
pub fn find(name: &std::ffi::OsStr) -> Option<PathBuf> {
    search::candidates(name).into_iter().find(|path| search::is_executable(path))
}

fn wait(pid: libc::pid_t, how: libc::c_int) -> io::Result<Event> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is ours to write to.
        match unsafe { libc::waitpid(pid, &mut status, how) } {
            0 => return Ok(Event::None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => {
                let event = event(status);
                if let Event::Ended(_) = event {
                    signals::nobody();
                }
                return Ok(event);
            }
        }
    }
}

fn event(status: libc::c_int) -> Event {
    if libc::WIFSTOPPED(status) {
        Event::Stopped(libc::WSTOPSIG(status))
    } else if libc::WIFSIGNALED(status) {
        Event::Ended(Exit::Signal(libc::WTERMSIG(status)))
    } else {
        Event::Ended(Exit::Code(libc::WEXITSTATUS(status)))
    }
}

#[cfg(test)]
mod tests;
