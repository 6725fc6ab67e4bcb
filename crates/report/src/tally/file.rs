//! Aggregates in files.
//!
//! A line `hetrace aggregate VERSION HASH` and, behind it, JSON; the hash is the
//! 64-bit FNV-1a of the version (from form 3 on) and of the rest, so that no damage
//! goes by as another number.

use super::aggregate::Aggregate;

/// How a file begins.
const MAGIC: &str = "hetrace aggregate ";
/// Version of the form; a change of what anything means raises it.
const VERSION: u32 = 4;
/// Forms that are read: times of the first are with what tracing cost, which is not in them; the first two lack own
/// times of failed calls and bytes of failed commands; the first three know of no calls that were added up, nor of commands
/// other than kernels that were only counted.
const READ: [&str; 4] = ["1", "2", "3", "4"];

/// A file that is no aggregate, or none that can be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It does not begin as aggregates do.
    #[error("this is no aggregate of hetrace")]
    NoAggregate,
    /// Another version of hetrace wrote it.
    #[error("this aggregate has form {0}; this hetrace reads forms up to {VERSION}")]
    Version(String),
    /// It is not as it was written.
    #[error("this aggregate is damaged")]
    Damaged,
    /// What it says makes no sense.
    #[error("this aggregate is damaged: {0}")]
    Content(#[from] serde_json::Error),
}

/// Whether a file begins as aggregates do.
pub fn is_aggregate(start: &[u8]) -> bool {
    start.starts_with(MAGIC.as_bytes())
}

/// The forms whose hash does not have the version in it, and whose sums lack what [`READ`] says.
const EARLY: [&str; 2] = ["1", "2"];

fn hash(version: &str, body: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let version = if EARLY.contains(&version) { "" } else { version };
    version.as_bytes().iter().chain(body).fold(0xcbf2_9ce4_8422_2325, step)
}

impl Aggregate {
    /// The content of its file: some kilobytes, however long the trace is.
    ///
    /// # Errors
    /// When there is a number that JSON does not have.
    pub fn to_bytes(&self) -> Result<Vec<u8>, FileError> {
        let body = serde_json::to_vec(self)?;
        let mut file = format!("{MAGIC}{VERSION} {:016x}\n", hash(&VERSION.to_string(), &body)).into_bytes();
        file.extend(body);
        file.push(b'\n');
        Ok(file)
    }

    /// Reads what [`Self::to_bytes`] made.
    ///
    /// # Errors
    /// When it is something else, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, FileError> {
        let rest = bytes.strip_prefix(MAGIC.as_bytes()).ok_or(FileError::NoAggregate)?;
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or(FileError::Damaged)?;
        let (line, body) = rest.split_at(end);
        let line = str::from_utf8(line).map_err(|_| FileError::Damaged)?;
        let (version, expected) = line.split_once(' ').ok_or(FileError::Damaged)?;
        if !READ.contains(&version) {
            return Err(FileError::Version(version.to_owned()));
        }
        let body = body.strip_prefix(b"\n").and_then(|b| b.strip_suffix(b"\n")).ok_or(FileError::Damaged)?;
        if expected != format!("{:016x}", hash(version, body)) {
            return Err(FileError::Damaged);
        }
        let mut all: Self = serde_json::from_slice(body)?;
        if EARLY.contains(&version) {
            all.without_own_error_times();
        }
        if version != "4" {
            all.with_all_traffic_timed();
        }
        Ok(all)
    }
}
