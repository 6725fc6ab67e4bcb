//! The files of a kernel trace: what they are called, and who makes them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Makes a file that is not there yet.
pub type MakeFile = Arc<dyn Fn(&Path) -> io::Result<File> + Send + Sync>;

/// The file of the metadata.
pub(crate) const METADATA: &str = "metadata";

/// Returns the name of the stream of a CPU.
pub(crate) fn file_name(cpu: u32) -> String {
    format!("channel0_{cpu}")
}

/// Returns the name of a stream's file.
pub(crate) fn stored(name: &str, compress: bool) -> String {
    let suffix = if compress { ".zst" } else { "" };
    format!("{name}{suffix}")
}
