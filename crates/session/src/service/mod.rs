//! Sessions of programs that run already: the service that drains them, and how it is asked.
//!
//! ```text
//!   a shell: eval "$(hetrace env)"        hetrace start, pause, resume, stop, status
//!      │ programs join, dormant                 │ one line of JSON, one back
//!      ▼                                        ▼
//!   /dev/shm/hetrace-UID/standby-VERSION-BUILD/ socket ──► Service: owns the folder by its lock
//!      control   mask 0: dormant                              │
//!      arena-…   of processes that were recorded ──► Course: one session, drained into a trace
//!      trace     which trace that is, for a service that takes over
//! ```
//! The folder outlives sessions and services. A service that is killed leaves the mask as it is: programs go on recording
//! until their rings are full, and the next service goes on with the trace.

mod beside;
mod course;
pub mod protocol;
pub mod standby;

use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hetrace_ring::survive;

use crate::apis::Found;
use crate::child::limits;
use crate::control::Control;
use crate::flight::Answer;
use course::Course;
use protocol::{Reply, Request, Session, Started, Status, Stopped};

pub use course::Limits;

/// Longest time between two looks at the socket while nothing is recorded.
const IDLE: Duration = Duration::from_millis(50);
/// How long one who asks may take to say what.
const PATIENCE: Duration = Duration::from_millis(500);

/// The service of one user and build.
#[derive(Debug)]
pub struct Service {
    libraries: Vec<Found>,
    limits: Limits,
    control: Control,
    socket: UnixListener,
    course: Option<Course>,
    held: standby::Held,
}

/// Why there is no service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// There is one.
    #[error("a service of this user is running already: see `hetrace status`")]
    Running,
    /// The shared memory can't be had.
    #[error("{path}: {error}")]
    Standby {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl Service {
    /// Takes over the folder of this user and these libraries, and the session that a killed service left there.
    /// Returns what is to be said of that.
    ///
    /// # Errors
    /// When there is another, or no shared memory to be had.
    pub fn begin(libraries: Vec<Found>, limits: Limits) -> Result<(Self, Option<String>), ServiceError> {
        survive::install();
        // Programs are not started by it: nobody inherits them.
        let _ = limits::raise();
        let path = standby::make(&libraries).map_err(|error| ServiceError::Standby {
            path: standby::path(&libraries).unwrap_or_default(),
            error,
        })?;
        let wrong = |error| ServiceError::Standby { path: path.clone(), error };
        let (held, control) =
            standby::take(&path, &libraries).map_err(wrong)?.ok_or(ServiceError::Running)?;
        let socket = protocol::listen(&path).map_err(wrong)?;
        let (course, said) = match Course::resume(&path, &control, limits) {
            // What it kept was in memory of the one that was killed.
            Some(Ok(course)) if Answer::is_given(&path) => {
                let Stopped { trace, records, .. } = course.stop(&control);
                let trace = trace.display();
                let said = format!(
                    "a flight recording was lost with the service that was killed; {records} records that stood in rings are in {trace}"
                );
                (None, Some(said))
            }
            Some(Ok(course)) => {
                let said = format!("goes on with {}, whose service was killed", course.trace().display());
                (Some(course), Some(said))
            }
            Some(Err((trace, error))) => {
                control.end();
                (None, Some(format!("{}: could not be gone on with: {error}", trace.display())))
            }
            None => {
                control.end();
                (None, None)
            }
        };
        Ok((Service { libraries, limits, control, socket, course, held }, said))
    }

    /// Serves until `stop` is set: then a session that is recorded is finished. Returns the folder of its trace, and
    /// what is to be said of it.
    pub fn serve(mut self, stop: &Arc<AtomicBool>) -> Option<protocol::Stopped> {
        while !stop.load(Ordering::Relaxed) {
            while let Ok((asking, _)) = self.socket.accept() {
                self.answer(asking);
            }
            match &mut self.course {
                Some(course) => course.look(&self.control),
                None => std::thread::sleep(IDLE),
            }
        }
        let stopped = self.stop();
        self.held.forget_socket();
        stopped
    }

    /// Serves one request. Whoever does not say what it wants, or does not listen, is left alone.
    fn answer(&mut self, stream: UnixStream) {
        let patient = stream.set_nonblocking(false).is_ok()
            && stream.set_read_timeout(Some(PATIENCE)).is_ok()
            && stream.set_write_timeout(Some(PATIENCE)).is_ok();
        if !patient {
            return;
        }
        let reply = match protocol::receive::<Request>(&stream) {
            Ok(request) => self.act(request),
            Err(error) => Reply::Refused(format!("the request can't be read: {error}")),
        };
        let _ = protocol::send(&stream, &reply);
    }

    fn act(&mut self, request: Request) -> Reply {
        const NONE: &str = "nothing is being recorded: begin with `hetrace start`";
        match (request, &mut self.course) {
            (Request::Status, _) => Reply::Status(self.status()),
            (Request::Start(_), Some(course)) => Reply::Refused(format!(
                "{} is being recorded: `hetrace stop` ends it",
                course.trace().display()
            )),
            (Request::Start(asked), None) => {
                match Course::begin(self.held.path(), &self.control, &self.libraries, self.limits, &asked) {
                    Ok(course) => {
                        let started = Started { trace: course.trace().to_owned(), notes: course.notes() };
                        self.course = Some(course);
                        Reply::Started(started)
                    }
                    Err(error) => {
                        self.control.end();
                        Answer::withdraw(self.held.path());
                        Reply::Refused(error)
                    }
                }
            }
            (_, None) => Reply::Refused(NONE.to_owned()),
            (Request::Pause, Some(course)) => Reply::Done(course.set_open(&self.control, false)),
            (Request::Resume, Some(course)) => Reply::Done(course.set_open(&self.control, true)),
            (Request::Stop, Some(_)) => {
                self.stop().map_or_else(|| Reply::Refused(NONE.to_owned()), Reply::Stopped)
            }
        }
    }

    fn stop(&mut self) -> Option<protocol::Stopped> {
        Some(self.course.take()?.stop(&self.control))
    }

    fn status(&self) -> Status {
        let session: Option<Session> = self.course.as_ref().map(|course| course.status(&self.control));
        Status { pid: std::process::id(), session }
    }
}
