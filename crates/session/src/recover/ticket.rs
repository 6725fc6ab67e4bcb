//! What another process needs to finish a trace: kept in the session's folder.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hetrace_ctf::account::Checksum;
use serde::{Deserialize, Serialize, Serializer};

use crate::access::Access;
use crate::apis::{self, Found, Name};
use crate::declare::Declarations;
use crate::output::TraceFolder;
use crate::time::ReferencePoint;

/// The file's name.
const FILE: &str = "trace";
/// The file with the time of the last look at the rings, in ticks.
const LOOKED: &str = "looked";
/// Longest ticket; a path may have 4 KiB, escaped six times that.
const LONGEST: u64 = 64 << 10;

/// Which trace a session's rings belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The trace's folder, from the root.
    pub trace: PathBuf,
    uuid: [u8; 16],
    compress: bool,
    group: bool,
    /// The APIs, in the session's order.
    apis: Vec<ApiLibrary>,
    /// The three clocks when the session began, and how far off they may be together.
    started: (u64, u64, u64, u32),
    /// This start of the machine: its counter began with it.
    boot: String,
}

/// An API, and the library whose model its records follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ApiLibrary {
    name: Name,
    library: PathBuf,
    /// That of its index: a library that was built again may number its functions otherwise.
    #[serde(serialize_with = "digits")]
    mark: Checksum,
}

/// The session's file in which the last look at the rings is noted.
#[derive(Debug)]
pub struct Looked(Option<File>);

impl Looked {
    /// Notes when the rings were emptied last. Times in rings are cut short: who reads them later
    /// needs one nearby.
    pub fn note(&self, ticks: u64) {
        if let Looked(Some(file)) = self {
            // A session that can't be recovered is no reason to do anything else.
            let _ = file.write_all_at(&ticks.to_le_bytes(), 0);
        }
    }
}

impl Ticket {
    /// Returns a ticket for a trace.
    pub fn new(trace: &TraceFolder, apis: &[Found], started: ReferencePoint) -> io::Result<Self> {
        let clocks = (started.tsc, started.monotonic_ns, started.realtime_ns, started.uncertainty_ns);
        Ok(Ticket {
            trace: std::path::absolute(trace.path())?,
            uuid: trace.uuid(),
            compress: trace.compress(),
            group: trace.access() == Access::Group,
            apis: apis
                .iter()
                .map(|f| ApiLibrary { name: f.api.clone(), library: f.path.to_path_buf(), mark: f.mark })
                .collect(),
            started: clocks,
            boot: boot(),
        })
    }

    /// Leaves it in the session's folder.
    ///
    /// # Errors
    /// When that is full.
    pub fn leave(&self, session: &Path) -> io::Result<Looked> {
        let text = serde_json::to_vec(self).map_err(io::Error::other)?;
        Access::Owner.write(&session.join(FILE), &text)?;
        let looked = Access::Owner.make_file(&session.join(LOOKED))?;
        looked.write_all_at(&self.started.0.to_le_bytes(), 0)?;
        Ok(Looked(Some(looked)))
    }

    /// Leaves it, or goes without: the session can't be recovered then.
    pub fn try_leave(trace: &TraceFolder, apis: &[Found], started: ReferencePoint, session: &Path) -> Looked {
        Self::new(trace, apis, started).and_then(|ticket| ticket.leave(session)).unwrap_or(Looked(None))
    }

    /// Leaves another one in its place: records go on in another folder.
    ///
    /// # Errors
    /// When that is not possible; the one before stays.
    pub fn renew(
        trace: &TraceFolder,
        apis: &[Found],
        started: ReferencePoint,
        session: &Path,
    ) -> io::Result<()> {
        let text = serde_json::to_vec(&Self::new(trace, apis, started)?).map_err(io::Error::other)?;
        let fresh = session.join(format!("{FILE}.new"));
        let _ = std::fs::remove_file(&fresh);
        Access::Owner.write(&fresh, &text)?;
        std::fs::rename(fresh, session.join(FILE))
    }

    /// Removes that of a session whose folder stays.
    pub fn withdraw(session: &Path) {
        for file in [FILE, LOOKED] {
            let _ = std::fs::remove_file(session.join(file));
        }
    }

    /// Opens the file again in which looks are noted.
    pub fn resume(session: &Path) -> Looked {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        Looked(OpenOptions::new().write(true).custom_flags(flags).open(session.join(LOOKED)).ok())
    }

    /// Reads that of a session of this start of the machine.
    pub fn of(session: &Path) -> Option<Self> {
        let ticket: Ticket = serde_json::from_slice(&read(&session.join(FILE))?).ok()?;
        (ticket.boot == boot()).then_some(ticket)
    }

    /// Returns when the session's rings were looked at last, in ticks.
    pub fn looked(&self, session: &Path) -> u64 {
        let bytes = read(&session.join(LOOKED)).unwrap_or_default();
        bytes.try_into().map_or(self.started.0, u64::from_le_bytes)
    }

    /// Returns the clocks when the session began.
    pub fn started(&self) -> ReferencePoint {
        let (tsc, monotonic_ns, realtime_ns, uncertainty_ns) = self.started;
        ReferencePoint { tsc, monotonic_ns, realtime_ns, uncertainty_ns }
    }

    /// Returns the names of the APIs, in the session's order.
    pub fn apis(&self) -> Vec<Name> {
        self.apis.iter().map(|api| api.name.clone()).collect()
    }

    /// Returns the trace's folder, to write more streams to.
    ///
    /// # Errors
    /// When its metadata can't be read or added to.
    pub fn folder(&self) -> io::Result<TraceFolder> {
        let access = if self.group { Access::Group } else { Access::Owner };
        let folder = TraceFolder::new(self.trace.clone(), self.uuid, self.compress).accessible(access);
        let apis = self.apis.iter().map(|api| (api.name.clone(), api.find()));
        Ok(folder.declaring(Declarations::resume(self.trace.clone(), access, apis)?))
    }
}

impl ApiLibrary {
    /// Opens the library, if it is what it was; else says what is known no more.
    fn find(&self) -> Result<Found, String> {
        let lost = |why: String| {
            format!("functions of {} that were not called before are not known: {why}", self.name)
        };
        // A pipe in its place would be waited for.
        if !self.library.is_file() {
            return Err(lost(format!("{} is gone", self.library.display())));
        }
        let found = apis::open(&self.library).map_err(|error| lost(error.to_string()))?;
        if found.mark == self.mark {
            return Ok(found);
        }
        Err(lost(format!("{} was replaced since the trace was begun", self.library.display())))
    }
}

/// Writes a checksum as [`Checksum`] itself does: there is one for each API, and the program waits.
fn digits<S: Serializer>(Checksum(mark): &Checksum, serializer: S) -> Result<S::Ok, S::Error> {
    let mut digits = [0; 16];
    for (number, digit) in digits.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(mark >> (4 * number) & 15) as usize];
    }
    serializer.serialize_str(std::str::from_utf8(&digits).unwrap_or_default())
}

fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Returns a short plain file of a session.
fn read(path: &Path) -> Option<Vec<u8>> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut bytes = Vec::new();
    let plain = file.metadata().is_ok_and(|m| m.is_file());
    (plain && file.take(LONGEST).read_to_end(&mut bytes).is_ok()).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_read_as_it_was_written() {
        for mark in [0, 1, 0xfedc_ba98_7654_3210, u64::MAX] {
            let mark = Checksum(mark);
            let library = ApiLibrary { name: "toy".into(), library: "/a/libtoy.so".into(), mark };
            let text = serde_json::to_string(&library).expect("JSON");
            assert!(text.contains(&format!("\"mark\":\"{mark}\"")), "{text}");
            assert_eq!(serde_json::from_str::<ApiLibrary>(&text).expect("a library"), library);
        }
    }
}
