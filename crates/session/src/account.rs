//! What is beside the streams in the folder of a trace, for the account of what was written.

use std::fs;
use std::io;
use std::path::Path;

use hetrace_ctf::account::FileAccount;
use hetrace_format::files::{BLOBS, METADATA, MODELS, PART};

/// Returns what is beside the streams: by their content, and those that are named by it by their size.
/// Models that are `known` were written by this launcher and need not be read.
///
/// # Errors
/// When a file or folder is there and can't be read.
pub fn account_of_files(trace: &Path, known: &[FileAccount]) -> io::Result<Vec<FileAccount>> {
    let mut files = vec![FileAccount::of(METADATA, &fs::read(trace.join(METADATA))?)];
    match fs::read(trace.join(PART)) {
        Ok(part) => files.push(FileAccount::of(PART, &part)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    for name in names(&trace.join(MODELS))? {
        let name = format!("{MODELS}/{name}");
        files.push(match known.iter().find(|file| file.name == name) {
            Some(known) => known.clone(),
            None => FileAccount::of(&name, &fs::read(trace.join(&name))?),
        });
    }
    for name in names(&trace.join(BLOBS))? {
        let name = format!("{BLOBS}/{name}");
        let bytes = fs::metadata(trace.join(&name))?.len();
        files.push(FileAccount { name, bytes, checksum: None });
    }
    Ok(files)
}

/// Returns the names in a folder, sorted; none if it is not there.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let mut names = entries.map(name).collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}
