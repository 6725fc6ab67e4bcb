//! What can be wrong with a trace.

use std::path::PathBuf;

use thiserror::Error;

use crate::class::PlanError;
use crate::metadata::MetadataError;

/// A trace that cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A file or folder that cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Nothing that looks like a trace.
    #[error("{}: not a trace: a folder with a file `metadata` is expected, or one packed by `hetrace pack`", path.display())]
    NoTrace {
        /// What was to be opened.
        path: PathBuf,
    },
    /// More than one trace.
    #[error(
        "{}: {} traces inside; name one of them{}:{}",
        path.display(),
        found.len(),
        if *ours { ", or merge them with `hetrace merge`" } else { "" },
        list(found)
    )]
    SeveralTraces {
        /// Where they were looked for.
        path: PathBuf,
        /// Where they are.
        found: Vec<PathBuf>,
        /// Whether all are folders of hetrace, which can be merged.
        ours: bool,
    },
    /// Metadata that cannot be understood.
    #[error(transparent)]
    Metadata(#[from] MetadataError),
    /// Another version of CTF than 1.8 and 2.0.
    #[error("CTF version {major}.{minor} instead of 1.8 or 2.0")]
    Version {
        /// Its major number.
        major: u64,
        /// Its minor number.
        minor: u64,
    },
    /// Metadata that describes no decodable layout.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Returns a few of many, each on a line of its own.
fn list(paths: &[PathBuf]) -> String {
    const SHOWN: usize = 16;
    let shown = paths.iter().take(SHOWN).map(|path| format!("\n  {}", path.display()));
    shown.chain((paths.len() > SHOWN).then(|| "\n  ...".to_owned())).collect()
}

/// Bytes that do not hold what the metadata says. Positions are bits from the
/// start of the packet.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// A field beyond the end of the content.
    #[error("{need} bits at bit {at} exceed the content of {end} bits")]
    PastEnd {
        /// Where the field starts.
        at: u64,
        /// How long it is; `u64::MAX` for more than can be said.
        need: u64,
        /// Where the content ends.
        end: u64,
    },
    /// A string without its NUL.
    #[error("unterminated string at bit {at}")]
    Unterminated {
        /// Where it starts.
        at: u64,
    },
    /// A tag that chooses no option.
    #[error("tag value {tag} at bit {at} chooses no option of the variant")]
    NoOption {
        /// The tag.
        tag: i128,
        /// Where the variant is.
        at: u64,
    },
    /// A length or tag inside an option that was not chosen.
    #[error("the length or tag needed at bit {at} was not in the event")]
    Unset {
        /// Where it is needed.
        at: u64,
    },
    /// An integer in LEB128 of more than 64 bits.
    #[error("integer of more than 64 bits at bit {at}")]
    TooLong {
        /// Where it starts.
        at: u64,
    },
    /// An array of very many elements without a bit.
    #[error("too many empty elements at bit {at}")]
    EmptyElements {
        /// Where.
        at: u64,
    },
    /// An event header with an id that the metadata does not have.
    #[error("unknown event id {id}")]
    UnknownEvent {
        /// The id.
        id: u64,
    },
    /// An event of no bits: there would be no end of them.
    #[error("event without a bit at bit {at}")]
    EmptyEvent {
        /// Where.
        at: u64,
    },
}

/// What is wrong with the head of a packet.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketDamage {
    /// Another magic number.
    #[error("magic number {found:#010x} instead of 0xc1fc1fc1")]
    Magic {
        /// What is there.
        found: u64,
    },
    /// The uuid of another trace. The events are given all the same, if the rest of the head fits this trace.
    #[error("packet has the uuid of another trace, {}, and may belong there", hexadecimal(found))]
    Uuid {
        /// What is there.
        found: [u8; 16],
    },
    /// A stream that the metadata does not have.
    #[error("unknown stream id {id}")]
    UnknownStream {
        /// The id.
        id: u64,
    },
    /// Sizes that contradict each other.
    #[error("content size {content} bits, packet size {packet} bits, header and context {head} bits")]
    Sizes {
        /// The content size.
        content: u64,
        /// The packet size.
        packet: u64,
        /// What header and context take.
        head: u64,
    },
    /// A header or context that cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}

/// Damage met on the way. Reading may go on after each.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamError {
    /// The file ends inside a packet, or inside a zstd frame. All whole events
    /// before have been given.
    #[error("{file}: cut off: packet at byte {offset} has {have} of {size} bytes")]
    Truncated {
        /// The file's name.
        file: String,
        /// Where the packet starts.
        offset: u64,
        /// How many of its bytes are there.
        have: u64,
        /// How many it should have; 0 if not even that can be read.
        size: u64,
    },
    /// A zstd frame that cannot be decompressed. The events before have been
    /// given; what is lost is not known. Positions of a compressed file count
    /// decompressed bytes everywhere but here, so those behind are too small.
    #[error("{file}: zstd frame at byte {offset}: {reason}")]
    Frame {
        /// The file's name.
        file: String,
        /// Where the frame starts, in the file as it is.
        offset: u64,
        /// What is wrong.
        reason: &'static str,
        /// The byte of the file as it is where reading goes on; none if the rest
        /// of the file is lost.
        resume: Option<u64>,
    },
    /// A packet whose head is damaged; none of its events are given, but for [`PacketDamage::Uuid`].
    #[error("{file}: packet at byte {offset}: {damage}")]
    Packet {
        /// The file's name.
        file: String,
        /// Where the packet starts.
        offset: u64,
        /// What is wrong.
        damage: PacketDamage,
        /// The byte where reading goes on; none if the rest of the file is lost.
        resume: Option<u64>,
    },
    /// An event that cannot be decoded; the rest of its packet is lost.
    #[error("{file}: event at byte {offset} (packet at byte {packet}): {source}")]
    Event {
        /// The file's name.
        file: String,
        /// Where the packet starts.
        packet: u64,
        /// Where the event starts.
        offset: u64,
        /// What is wrong.
        source: DecodeError,
    },
}

/// Bytes as digits, one behind the other.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
