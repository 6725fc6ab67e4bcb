//! Keeps results out of the trace that is read.

use std::path::Path;

use anyhow::{Result, bail};
use hetrace_ctf::read::Files;

/// Refuses an output that would be part of the trace: its folder is its content, and a file more
/// in it is taken for a stream.
///
/// # Errors
/// When `output` lies in `trace`, or is its file, also by way of links.
pub fn outside(trace: &Path, output: &Path) -> Result<()> {
    // What is no trace has nothing to be damaged; whoever opens it says so.
    let Ok(files) = Files::open(trace) else { return Ok(()) };
    if files.contains(output) {
        bail!(
            "{}: inside the trace {}, which this would damage; choose a place outside",
            output.display(),
            files.path().display()
        );
    }
    Ok(())
}
