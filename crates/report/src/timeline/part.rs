//! Files that a time line is cut into, and what of a trace is drawn.

use std::io::{self, Write};

use hetrace_trace::spans::Summary;
pub use hetrace_trace::watch::Watch;

/// What to draw.
#[derive(Clone, Debug)]
pub struct Options {
    /// Arguments and results as annotations of the slices.
    pub arguments: bool,
    /// What these processes did only; all if none is named.
    pub pids: Vec<i64>,
    /// Only what is then or later, ns after the first event.
    pub from: Option<u64>,
    /// Only what is before, ns after the first event.
    pub to: Option<u64>,
    /// From so many bytes on, the next event begins another part.
    pub part_bytes: u64,
    /// The same for slices and instants.
    pub part_slices: u64,
    /// Thread blocks and warps inside of kernels that are drawn at most.
    pub inside_slices: u64,
}

/// So many bytes are well for a browser, whose trace processor has 4 GB for what it makes of
/// them.
pub const PART_BYTES: u64 = 1_000_000_000;
/// So are so many slices.
pub const PART_SLICES: u64 = 10_000_000;
/// So many of them may be of what is inside of kernels.
pub const INSIDE_SLICES: u64 = 500_000;

impl Default for Options {
    fn default() -> Self {
        Self {
            arguments: true,
            pids: Vec::new(),
            from: None,
            to: None,
            part_bytes: PART_BYTES,
            part_slices: PART_SLICES,
            inside_slices: INSIDE_SLICES,
        }
    }
}

/// A file of a time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Counts from 1.
    pub number: u32,
    /// When it begins, ns after the trace's first event.
    pub from: u64,
    /// When it ends.
    pub to: u64,
    /// Slices and instants in it.
    pub slices: u64,
    /// Its size.
    pub bytes: u64,
}

/// Where a time line is written to.
pub trait Parts: Write {
    /// The part is whole, and what is written from now on is of the next.
    ///
    /// # Errors
    /// Those of the files.
    fn next(&mut self, done: &Part) -> io::Result<()>;
}

/// What was drawn.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// What was read; of a window, without what is behind it.
    pub summary: Summary,
    /// The files; none if there was nothing to draw.
    pub parts: Vec<Part>,
    /// Thread blocks and warps inside of kernels that were not drawn, as there are too many.
    pub inside_left_out: u64,
    /// Launches that recorded inside and are not drawn, as their commands are not known.
    pub inside_unplaced: u64,
}

/// Why a time line is not whole.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The [`Watch`] said so.
    #[error("stopped")]
    Stopped,
}

/// One file, whatever its size.
pub(super) struct Whole<'o>(pub &'o mut dyn Write);

impl Write for Whole<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Parts for Whole<'_> {
    fn next(&mut self, _: &Part) -> io::Result<()> {
        Ok(())
    }
}
