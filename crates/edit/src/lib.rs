//! Traces made of traces: packed into one file and unpacked, cut, or merged.
//!
//! ```text
//!  pack/    a folder to a file that is read in place, and back
//!  trim/    a window of time, some threads, some APIs
//!  merge/   several traces as one
//!  check/   whether a trace is what was written, and sound in itself
//!  stream_file  streams of traces that are made, compressed or not
//!  output   files and folders that are there whole or not at all
//! ```
//!
//! What binds it:
//! - Nothing is overwritten, and nothing is left half-done: results get their names when
//!   they are complete and on disk.
//! - What cannot be read of a damaged trace is reported, and the rest is kept.
//! - It works on any CTF trace, but for `merge`, which is for hetrace's. What hetrace's
//!   own events mean it knows by their names only, as far as the trace format says.
//! - No bytes make it panic, and memory does not grow with the trace.

mod account;
mod check;
mod merge;
mod output;
mod pack;
mod parallel;
mod stream_file;
mod trim;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use check::{Checked, Finding, check};
pub use merge::{Merged, merge};
pub use pack::{PackOptions, Packed, Unpacked, pack, unpack};
pub use stream_file::Form;
pub use trim::{Trimmed, Window, trim};

/// Called with the number of bytes read since the last call; returns whether to go on.
pub type Watch<'w> = &'w (dyn Fn(u64) -> ControlFlow<()> + Sync);

/// Why there is no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is to be changed is no trace.
    #[error(transparent)]
    Open(#[from] hetrace_ctf::read::OpenError),
    /// Where the result should be is something already.
    #[error("{}: already exists; choose another name with -o", path.display())]
    Exists {
        /// What is there.
        path: PathBuf,
    },
    /// What is to be packed is packed.
    #[error("{}: already packed", path.display())]
    IsPacked {
        /// What it is.
        path: PathBuf,
    },
    /// What is to be unpacked is a folder.
    #[error("{}: not a packed trace", path.display())]
    NotPacked {
        /// What it is.
        path: PathBuf,
    },
    /// A name that cannot be packed, or must not be unpacked.
    #[error("{}: unsupported file name {name:?}", path.display())]
    Name {
        /// The trace.
        path: PathBuf,
        /// The file in it.
        name: String,
    },
    /// A packed file that does not hold what it was made of; it is kept, and so is the trace.
    #[error("{}: {name} changed while it was packed; nothing was removed", path.display())]
    Changed {
        /// The trace.
        path: PathBuf,
        /// The file in it.
        name: String,
    },
    /// What lies in the folder and is not in the packed file, which is kept; so is the folder.
    #[error("{}: {name} is not in the packed file; nothing was removed", path.display())]
    LeftOut {
        /// The folder.
        path: PathBuf,
        /// What it is, below the folder.
        name: String,
    },
    /// A stream of a form with which this cannot be done.
    #[error("{stream}: {why}")]
    Refused {
        /// The stream's name.
        stream: String,
        /// Why.
        why: String,
    },
    /// A trace that cannot be merged with others.
    #[error("{}: {why}", path.display())]
    Unmergeable {
        /// The trace.
        path: PathBuf,
        /// Why, and what to do.
        why: String,
    },
    /// Somebody asked to stop.
    #[error("stopped")]
    Stopped,
}

impl Error {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.into(), source }
    }
}

/// Reports progress to `watch`; an error if it asks to stop.
fn report(watch: Watch<'_>, bytes: u64) -> Result<(), Error> {
    match watch(bytes) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Stopped),
    }
}
