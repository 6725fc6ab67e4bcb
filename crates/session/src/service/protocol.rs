//! What a service is asked, and what it answers: a line of JSON each, over a socket in a folder that only its owner
//! can enter.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::os;
use crate::sink::Rotate;
use crate::whom::Whom;

/// Name of the socket in the folder.
pub const SOCKET: &str = "socket";
/// Longest line.
const LONGEST: u64 = 256 << 10;
/// How long an answer may take: finishing a trace writes all that is left.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a service can be asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// What is going on.
    Status,
    /// Begin to record.
    Start(Box<Start>),
    /// Record only what must be known later.
    Pause,
    /// Record again.
    Resume,
    /// Finish the trace.
    Stop,
}

/// What is recorded, and where it goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Folder of the trace, from the root.
    pub output: PathBuf,
    /// A number is added to it.
    pub numbered: bool,
    /// The group may read it.
    pub group: bool,
    /// Packets are compressed.
    pub compress: bool,
    /// Only calls that enqueue, build or wait.
    pub minimal: bool,
    /// Short names of APIs; none: all.
    pub apis: Vec<String>,
    /// Globs of functions; none: all.
    pub include: Vec<String>,
    /// Globs of functions that are not recorded.
    pub exclude: Vec<String>,
    /// Commands on devices are timed.
    pub devices: bool,
    /// How much of each thread's time recording may take, in percent.
    pub max_overhead: Option<f64>,
    /// Which processes.
    pub whom: Whom,
    /// Events of the operating system.
    pub os: Option<os::Options>,
    /// Time between two samples of telemetry.
    pub sample: Option<Duration>,
    /// Only what was recorded last is kept: so long, and in so many bytes of memory.
    pub flight: Option<(Duration, u64)>,
    /// What asks for that by itself, as text, and how often each may.
    pub triggers: (Vec<String>, u32),
    /// The session is divided into several traces.
    pub rotate: Option<Rotate>,
    /// The command line, for the manifest.
    pub shown: Vec<String>,
}

/// What a service answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// What is going on.
    Status(Status),
    /// A session has begun.
    Started(Started),
    /// Whether that was a change.
    Done(bool),
    /// A trace is finished.
    Stopped(Stopped),
    /// Why not.
    Refused(String),
}

/// A session that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The folder of its trace; of a flight recording that of its first snapshot.
    pub trace: PathBuf,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// What a service does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its process id.
    pub pid: u32,
    /// What it records; none if nothing.
    pub session: Option<Session>,
}

/// A session that is being recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The folder of its trace.
    pub trace: PathBuf,
    /// It is paused.
    pub paused: bool,
    /// It is paused for good: a limit was reached.
    pub limit: Option<String>,
    /// Processes that were recorded and live.
    pub processes: usize,
    /// Records in the trace so far.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records that were dropped.
    pub lost: u64,
    /// Bytes of shared memory that rings take.
    pub memory: u64,
    /// Processes and threads that were refused because of the service's limits.
    pub refused: (u64, u64),
    /// By which means events of the operating system are recorded; none if they are not.
    pub os: Option<String>,
    /// Telemetry is sampled.
    pub sampled: bool,
    /// Only what was recorded last is kept.
    pub flight: bool,
}

/// A session that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// The folder of its trace.
    pub trace: PathBuf,
    /// Records in it.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Both are since the service came back: another that was killed began the trace.
    pub resumed: bool,
    /// Processes that were recorded.
    pub processes: usize,
    /// Dropped records and calls.
    pub lost: u64,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Snapshots of a flight recording; none if it was none.
    pub snapshots: Option<Vec<String>>,
}

/// Returns the socket of a service that has its folder's lock.
pub(super) fn listen(folder: &Path) -> io::Result<UnixListener> {
    let path = folder.join(SOCKET);
    // That of a service that was killed.
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Asks the service of a folder; none if there is no service.
///
/// # Errors
/// When it does not answer.
pub fn ask(folder: &Path, request: &Request) -> io::Result<Option<Reply>> {
    let stream = match UnixStream::connect(folder.join(SOCKET)) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    send(&stream, request)?;
    receive(&stream).map(Some)
}

pub(super) fn send(mut stream: &UnixStream, what: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(what).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line)
}

pub(super) fn receive<T: DeserializeOwned>(stream: &UnixStream) -> io::Result<T> {
    let mut line = Vec::new();
    BufReader::new(stream.take(LONGEST)).read_until(b'\n', &mut line)?;
    serde_json::from_slice(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
