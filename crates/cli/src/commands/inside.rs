//! What was recorded inside of kernels, for the commands that show it.

use std::path::Path;

use anyhow::Result;
use hetrace_ctf::read::Files;
use hetrace_trace::inside::Recording;
use hetrace_trace::trace::Trace;

use super::say;

/// Joins what a trace has of its kernels' insides. What of it cannot be read is said.
pub fn join(path: &Path, trace: &mut Trace) -> Result<()> {
    let recording = Recording::read(&Files::open(path)?);
    for problem in &recording.problems {
        say(format_args!("inside kernels: {problem}"));
    }
    trace.join_inside(recording);
    Ok(())
}
