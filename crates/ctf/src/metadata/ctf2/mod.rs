//! CTF 2 metadata: JSON fragments to a [`TraceClass`] and back.
//!
//! ```text
//! 1E { "type": "preamble", "version": 2, … }
//! 1E { "type": "trace-class", … }             1E is the byte that begins a record
//! 1E { "type": "data-stream-class", … }       of an RFC 7464 JSON text sequence
//! ```
//! [`parse`] goes bytes → JSON (`json`) → classes (`lower`, `lower_field`). [`print`](print())
//! makes JSON of classes (`print_field`); those of a CTF 1.8 trace are first given roles and
//! locations instead of names (`upgrade`). The data streams of both versions are the same.

mod json;
mod lower;
mod lower_field;
mod names;
mod object;
mod print;
mod print_field;
mod properties;
mod upgrade;

use crate::class::TraceClass;
use crate::metadata::{self, MetadataError};

pub use crate::metadata::error::{JsonError, JsonErrorKind};
pub use print::print;
pub use upgrade::upgrade;

/// What each fragment begins with.
const SEPARATOR: u8 = 0x1E;

/// Returns whether metadata is CTF 2's: no TSDL text begins so.
pub(crate) fn is_ctf2(text: &[u8]) -> bool {
    text.first() == Some(&SEPARATOR)
}

/// Reads metadata: fragments as they are, or in packets.
pub fn parse(metadata: &[u8]) -> Result<TraceClass, MetadataError> {
    parse_text(&metadata::text(metadata)?)
}

/// The same behind the packets.
pub(crate) fn parse_text(text: &[u8]) -> Result<TraceClass, MetadataError> {
    let text = std::str::from_utf8(text).map_err(|e| MetadataError::NotUtf8 { offset: e.valid_up_to() })?;
    Ok(lower::trace(text)?)
}
