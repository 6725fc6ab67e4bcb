//! Why a folder is no trace that can be read.

use std::path::PathBuf;

use thiserror::Error;

/// The form of traces that is understood: `schema` in the manifest.
pub const SCHEMA: u32 = 2;

/// A folder that is no trace, or none that can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Streams or metadata.
    #[error(transparent)]
    Ctf(#[from] hetrace_ctf::read::OpenError),
    /// A model that is there but cannot be understood: without it, nothing in
    /// the trace would mean what it says.
    #[error("{}: {source}", path.display())]
    Model {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A trace of another version of hetrace, whose events mean something else.
    #[error(
        "this trace has form {found} (written by hetrace {version}); this hetrace reads form {SCHEMA} only"
    )]
    Schema {
        /// The form, as its manifest says.
        found: u32,
        /// The version of hetrace that wrote it.
        version: String,
    },
}
