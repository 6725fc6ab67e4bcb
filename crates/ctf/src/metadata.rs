//! Metadata of either version: TSDL of CTF 1.8 or JSON of CTF 2, in packets or not.

pub mod ctf2;
mod error;
mod packetized;
pub mod tsdl;

use std::borrow::Cow;

use crate::class::TraceClass;

pub use error::MetadataError;

/// Deeper types than this are refused. LTTng needs 5; the stack bears some thousands.
pub(crate) const MAX_DEPTH: u32 = 64;

/// What any text may unfold into, however short it is.
const MIN_BUDGET: usize = 1 << 20;

/// Returns how many fields and names a text of so many bytes may unfold into: a type of
/// types of types doubles at each line, and would fill the memory from a few
/// hundred bytes.
pub(crate) fn budget(text_len: usize) -> usize {
    MIN_BUDGET.saturating_add(text_len.saturating_mul(4))
}

/// Reads the metadata of a trace, whichever version it is of.
pub fn parse(metadata: &[u8]) -> Result<TraceClass, MetadataError> {
    let text = text(metadata)?;
    if ctf2::is_ctf2(&text) { ctf2::parse_text(&text) } else { tsdl::parse_text(&text) }
}

/// Returns how many bytes behind the last packet of metadata are left unread, as they are no packet.
pub fn unread(metadata: &[u8]) -> usize {
    packetized::trailing(metadata)
}

/// Returns the text inside metadata, in packets or not.
pub(crate) fn text(metadata: &[u8]) -> Result<Cow<'_, [u8]>, MetadataError> {
    packetized::text(metadata)
}
