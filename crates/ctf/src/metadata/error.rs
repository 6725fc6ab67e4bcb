//! What can be wrong with metadata.

mod ctf2;
mod tsdl;

use thiserror::Error;

pub use ctf2::{JsonError, JsonErrorKind};
pub use tsdl::{ParseError, ParseErrorKind};

/// Metadata that cannot be understood.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataError {
    /// The text is not UTF-8.
    #[error("metadata is not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// The first wrong byte of the text.
        offset: usize,
    },
    /// A metadata packet's header is cut off, or its sizes contradict each other.
    #[error(
        "metadata packet at byte {offset}: content {content_bits} bits, packet {packet_bits} bits, {available} bytes left"
    )]
    BadPacket {
        /// Where the packet starts.
        offset: usize,
        /// Its content size.
        content_bits: u32,
        /// Its packet size.
        packet_bits: u32,
        /// What is left of the file from there.
        available: usize,
    },
    /// A metadata packet without the magic number.
    #[error("metadata packet at byte {offset} starts with {found:#010x} instead of 0x75d11d57")]
    BadMagic {
        /// Where the packet starts.
        offset: usize,
        /// What is there.
        found: u32,
    },
    /// A metadata packet that is compressed, encrypted or checksummed.
    #[error("metadata packet at byte {offset} is compressed ({compression}) or encrypted ({encryption})")]
    Encoded {
        /// Where the packet starts.
        offset: usize,
        /// Its compression scheme.
        compression: u8,
        /// Its encryption scheme.
        encryption: u8,
    },
    /// The text is not valid TSDL.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The text is not valid JSON of CTF 2.
    #[error(transparent)]
    Json(#[from] JsonError),
}
