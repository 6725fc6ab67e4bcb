//! Sessions of this user that are being recorded by `hetrace run`.

use std::path::PathBuf;

use crate::drain::{self, Seen};
use crate::folder;
use crate::recover::ticket::Ticket;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its folder in shared memory.
    pub session: PathBuf,
    /// The folder of its trace, if that is known.
    pub trace: Option<PathBuf>,
    /// What its shared memory shows.
    pub seen: Seen,
}

/// Returns all whose launchers live.
pub fn all() -> Vec<Running> {
    let of = |session: PathBuf| {
        let trace = Ticket::of(&session).map(|ticket| ticket.trace);
        let seen = drain::look(&session);
        Running { session, trace, seen }
    };
    folder::live().into_iter().map(of).collect()
}
