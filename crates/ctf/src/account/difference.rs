//! What is otherwise than it was written.

use std::fmt;

/// Something that is otherwise than the account says. Its text says what is where, and what
/// that means for a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// A stream file that is not there.
    Missing {
        /// Its name.
        name: String,
        /// Packets that it had.
        packets: u64,
        /// Events that it had, if they were counted.
        events: Option<u64>,
    },
    /// A stream file of 0 bytes.
    Empty {
        /// Its name.
        name: String,
        /// Packets that it had.
        packets: u64,
        /// Events that it had, if they were counted.
        events: Option<u64>,
    },
    /// A stream file of another size.
    Size {
        /// Its name.
        name: String,
        /// Bytes that are there.
        found: u64,
        /// Bytes that were written.
        written: u64,
        /// Which packets are missing, as far as they show it.
        gaps: Gaps,
    },
    /// A stream file that nobody wrote.
    Unlisted {
        /// Its name.
        name: String,
        /// A stream of the same size, of which it may be a copy.
        like: Option<String>,
    },
    /// A stream that is there with compression and without: its events count twice.
    Twice {
        /// Its name without the ending of a compressed one.
        name: String,
    },
    /// Another file that is not there.
    FileMissing {
        /// Its path in the trace.
        name: String,
    },
    /// Another file of another size.
    FileSize {
        /// Its path in the trace.
        name: String,
        /// Bytes that are there; none if it cannot be read.
        found: Option<u64>,
        /// Bytes that were written.
        written: u64,
    },
    /// Another file of other content.
    FileContent {
        /// Its path in the trace.
        name: String,
    },
}

/// Which packets of a stream are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// Packets that are there.
    pub found: u64,
    /// Packets that were written.
    pub written: u64,
    /// Missing before the first that is there.
    pub first: u64,
    /// Missing in between.
    pub middle: u64,
}

impl Gaps {
    /// Missing after the last that is there, if none is there twice.
    pub fn last(&self) -> u64 {
        self.written.saturating_sub(self.found).saturating_sub(self.first).saturating_sub(self.middle)
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} packets", self.found, self.written)?;
        let missing = [(self.first, "first"), (self.middle, "middle"), (self.last(), "last")];
        let mut before = ": ";
        for (n, what) in missing.into_iter().filter(|(n, _)| *n > 0) {
            write!(
                f,
                "{before}{n} missing {}",
                match what {
                    "first" => "at the beginning",
                    "middle" => "in between",
                    _ => "at the end",
                }
            )?;
            before = ", ";
        }
        Ok(())
    }
}

impl Difference {
    /// Returns the file that it is about.
    pub fn name(&self) -> &str {
        match self {
            Self::Missing { name, .. }
            | Self::Empty { name, .. }
            | Self::Size { name, .. }
            | Self::Unlisted { name, .. }
            | Self::Twice { name }
            | Self::FileMissing { name }
            | Self::FileSize { name, .. }
            | Self::FileContent { name } => name,
        }
    }

    /// Returns what kind it is, in a word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "stream-missing",
            Self::Empty { .. } => "stream-empty",
            Self::Size { .. } => "stream-size",
            Self::Unlisted { .. } => "stream-unlisted",
            Self::Twice { .. } => "stream-twice",
            Self::FileMissing { .. } => "file-missing",
            Self::FileSize { .. } => "file-size",
            Self::FileContent { .. } => "file-changed",
        }
    }
}

/// What is not shown as a stream had it.
struct Held(u64, Option<u64>);

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |n: u64| if n == 1 { "" } else { "s" };
        match self.1 {
            Some(events) => write!(f, "{events} event{} in {} packet{}", s(events), self.0, s(self.0)),
            None => write!(f, "{} packet{}", self.0, s(self.0)),
        }
    }
}

/// Says that a file has another size.
fn size(f: &mut fmt::Formatter<'_>, name: &str, found: u64, written: u64) -> fmt::Result {
    write!(f, "{name}: {found} bytes instead of the {written} written")
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name, packets, events } => {
                write!(f, "{name}: the stream is missing: {} are not shown", Held(*packets, *events))
            }
            Self::Empty { name, packets, events } => {
                write!(f, "{name}: the stream is empty: {} are not shown", Held(*packets, *events))
            }
            Self::Size { name, found, written, gaps } => {
                size(f, name, *found, *written)?;
                if gaps.written > 0 { write!(f, " ({gaps})") } else { Ok(()) }
            }
            Self::Unlisted { name, like: Some(like) } => {
                write!(
                    f,
                    "{name}: not a stream of this trace; it has the size of {like}: if it is a copy, its events count twice"
                )
            }
            Self::Unlisted { name, like: None } => {
                write!(f, "{name}: not a stream of this trace, but its events count")
            }
            Self::Twice { name } => {
                write!(f, "{name}: the stream is there compressed and uncompressed: its events count twice")
            }
            Self::FileMissing { name } => write!(f, "{name}: the file is missing"),
            Self::FileSize { name, found: Some(found), written } => size(f, name, *found, *written),
            Self::FileSize { name, found: None, written } => {
                write!(f, "{name}: it cannot be read, but {written} bytes were written")
            }
            Self::FileContent { name } => write!(f, "{name}: the file was changed since it was written"),
        }
    }
}
