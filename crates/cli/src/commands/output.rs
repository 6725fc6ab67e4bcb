//! Standard output of commands that read: it may be a pipe which is read slowly,
//! or no more.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use hetrace_trace::Stopped;

use super::watch;

/// Standard output without a buffer. A write that waits for the reader of a pipe
/// ends when Ctrl-C asks to stop; its error is [`Stopped`] then.
#[derive(Debug)]
pub struct Output {
    to: File,
    /// Whether anything was written.
    pub used: bool,
}

impl Output {
    /// # Errors
    /// When there is no standard output.
    pub fn new() -> io::Result<Self> {
        Ok(Self { to: io::stdout().as_fd().try_clone_to_owned()?.into(), used: false })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if watch::asked_to_stop() {
            return Err(io::Error::other(Stopped));
        }
        self.used = true;
        // Interrupted, it comes here again.
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Writes a report.
///
/// # Errors
/// That of standard output.
pub fn write(report: &str) -> anyhow::Result<()> {
    Ok(Output::new()?.write_all(report.as_bytes())?)
}
