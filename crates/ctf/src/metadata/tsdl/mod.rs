//! TSDL, the language of CTF 1.8 metadata: text to [`TraceClass`] and back.
//!
//! [`parse`] goes bytes → text ([`crate::metadata`]) → tokens (`lex`) → syntax tree
//! (`parse`, `parse_type`) → classes (`lower`, `lower_type`, `lower_number`). The tree is there
//! because a byte order or a clock may be declared after the first type that
//! depends on it, as LTTng does. [`print`](print()) goes straight from classes to text.

mod ast;
mod attributes;
mod lex;
mod lower;
mod lower_number;
mod lower_type;
mod names;
mod parse;
mod parse_type;
mod print;
mod print_type;
mod quote;

use crate::class::TraceClass;
use crate::metadata;

pub use crate::metadata::error::{MetadataError, ParseError, ParseErrorKind};
pub use print::{Growing, print};

/// Reads metadata: plain text, or in packets as LTTng writes it.
pub fn parse(metadata: &[u8]) -> Result<TraceClass, MetadataError> {
    parse_text(&metadata::text(metadata)?)
}

/// The same behind the packets.
pub(crate) fn parse_text(text: &[u8]) -> Result<TraceClass, MetadataError> {
    let text = std::str::from_utf8(text).map_err(|e| MetadataError::NotUtf8 { offset: e.valid_up_to() })?;
    let tokens = lex::tokens(text)?;
    let items = parse::items(tokens)?;
    Ok(lower::trace(&items, text.len())?)
}
