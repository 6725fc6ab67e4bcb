//! The bytes of a stream file from the current packet on.

use super::frames::{Frames, Stop};
use super::map::Bytes;

/// Bytes of a mapped file that may lie behind before they are given back.
const KEEP: usize = 8 << 20;

/// A window that moves over a stream.
#[derive(Debug)]
pub(super) enum Source<'t> {
    /// All of it is there.
    Plain {
        /// From the packet to the end.
        window: &'t [u8],
        /// Where it starts in the stream.
        offset: u64,
        /// The whole.
        file: &'t Bytes,
        /// Up to where the file was given back to the system.
        forgotten: usize,
    },
    /// It is decompressed as far as needed.
    Frames(Box<Frames<'t>>),
}

impl<'t> Source<'t> {
    /// Returns a view from an offset in a file on, which starts at `border` in the stream. What lies before belongs to
    /// another reader.
    pub fn plain_at(file: &'t Bytes, border: u64, offset: u64) -> Self {
        let forgotten = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
        Source::Plain { window: &file[forgotten..], offset: border + forgotten as u64, file, forgotten }
    }

    /// Returns a view of no file.
    pub fn nothing() -> Self {
        static NOTHING: Bytes = Bytes::Owned(Vec::new());
        Self::plain_at(&NOTHING, 0, 0)
    }

    #[inline]
    pub fn window(&self) -> &[u8] {
        match self {
            Source::Plain { window, .. } => window,
            Source::Frames(frames) => frames.window(),
        }
    }

    /// Returns where the window starts in the stream.
    pub fn offset(&self) -> u64 {
        match self {
            Source::Plain { offset, .. } => *offset,
            Source::Frames(frames) => frames.offset(),
        }
    }

    /// Lets the window start at an offset inside it.
    pub fn seek(&mut self, to: u64) {
        match self {
            Source::Frames(frames) => frames.seek(to),
            Source::Plain { window, offset, file, forgotten } => {
                let forward = usize::try_from(to.saturating_sub(*offset)).unwrap_or(usize::MAX);
                let forward = forward.min(window.len());
                *window = &window[forward..];
                *offset += forward as u64;
                let behind = file.len() - window.len();
                if behind - *forgotten >= KEEP {
                    file.forget(*forgotten..behind);
                    *forgotten = behind;
                }
            }
        }
    }

    /// Lets the window have `need` bytes, if there are so many.
    pub fn fill(&mut self, need: usize) {
        if let Source::Frames(frames) = self {
            frames.fill(need);
        }
    }

    /// Returns why the window cannot grow; none if it can.
    pub fn stop(&self) -> Option<Stop> {
        match self {
            Source::Plain { .. } => Some(Stop::End),
            Source::Frames(frames) => frames.stop(),
        }
    }

    /// Returns where the window ends, if packets are likely to begin there too.
    pub fn frame_border(&self) -> Option<u64> {
        match self {
            Source::Frames(frames) if frames.between() => {
                Some(frames.offset() + frames.window().len() as u64)
            }
            _ => None,
        }
    }
}
