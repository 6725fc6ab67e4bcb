//! How the traces of a run lie: alone, beside that of the operating system's events, in parts.
//!
//! ```text
//!   NAME/              the program's trace
//!   NAME/hetrace/      the same, if there is NAME/kernel/ with events of the operating system
//!   NAME/0001/         a part of a long run, which is one of the above
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use hetrace_ctf::read::Part;
use hetrace_format::files;

use crate::access::Access;

/// Returns the folders of the program's trace and of the operating system's in that of a session.
pub fn folders(session: &Path) -> (PathBuf, PathBuf) {
    (session.join(files::PROGRAM), session.join(files::KERNEL))
}

/// Returns the folder of two traces that a program's is in, if it is.
pub fn above_program(trace: &Path) -> Option<&Path> {
    trace.parent().filter(|above| folders(above).0 == trace && folders(above).1.is_dir())
}

/// Makes the folder of a part of the operating system's events.
///
/// # Errors
/// When the system refuses.
pub fn make_kernel_part(folder: &Path, number: u32, access: Access) -> io::Result<()> {
    access.make_folder(folder)?;
    access.make_folder(&folder.join(files::OWN))?;
    // The recorder writes over it what is repeated.
    access.write(&folder.join(Part::FILE), Part { number, ..Part::default() }.to_text().as_bytes())
}

/// Where a part of a run is.
#[derive(Debug)]
pub struct PartPlace {
    /// The folder of all parts.
    pub series: PathBuf,
    /// Its number.
    pub number: u32,
    /// Of the program's trace in the part's folder, if that is one inside.
    inner: Option<PathBuf>,
}

impl PartPlace {
    /// Returns which part a program's trace is, if it is one.
    pub fn of(trace: &Path) -> Option<Self> {
        let folder = above_program(trace).unwrap_or(trace);
        let number = Part::number(folder.file_name()?.to_str()?)?;
        let inner = (folder != trace).then(|| trace.file_name().map(PathBuf::from)).flatten();
        let is_part = Part::of(trace).is_some_and(|part| part.number == number);
        is_part.then_some(Self { series: folder.parent()?.to_owned(), number, inner })
    }

    /// Returns the folder of the program's trace of another part.
    pub fn trace(&self, number: u32) -> PathBuf {
        let part = self.series.join(Part::name(number));
        self.inner.iter().fold(part, |part, inner| part.join(inner))
    }
}

/// Returns the folders that a program's trace is in: its own, or those of all parts that are there.
pub fn trace_folders(own: &Path) -> Vec<PathBuf> {
    let Some(place) = PartPlace::of(own) else { return vec![own.to_owned()] };
    let entries = fs::read_dir(&place.series).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| Part::number(entry.file_name().to_str()?));
    numbers.map(|number| place.trace(number)).collect()
}
