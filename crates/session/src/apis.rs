//! The API libraries that lie beside the launcher, and the models in them.
//!
//! Nothing lists the APIs: each library carries its model in a section, so a
//! new API is a new file. A large model takes milliseconds to understand, and the
//! program waits: of an API that no program can use here, only the head is read.

mod head;

use std::path::{Path, PathBuf};

use hetrace_model::{Interpose, Model};
use hetrace_ring::abi::ABI_VERSION;
use object::{Object, ObjectSection};

/// File names of API libraries begin like this.
const PREFIX: &str = "libhetrace_";
/// The section with the model.
const SECTION: &str = ".hetrace.model";
/// The section with the version of the shared memory it was built for.
const ABI_SECTION: &str = ".hetrace.abi";

/// An API's library, of whose model only the head is known.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where it is, as an absolute path.
    pub path: PathBuf,
    /// Short name of its API.
    pub api: String,
    /// How the API is intercepted.
    pub interpose: Interpose,
    model_json: Vec<u8>,
}

impl Found {
    /// Reads the rest of the model.
    ///
    /// # Errors
    /// When it cannot be understood.
    pub fn load(self) -> Result<Library, LibraryError> {
        let Self { path, model_json, .. } = self;
        match serde_json::from_slice(&model_json) {
            Ok(model) => Ok(Library { path, model, model_json }),
            Err(error) => Err(LibraryError::Form { path, what: format!("its model: {error}") }),
        }
    }
}

/// An API's library.
#[derive(Debug, Clone)]
pub struct Library {
    /// Where it is, as an absolute path.
    pub path: PathBuf,
    /// The model it was made from.
    pub model: Model,
    /// The same as the library carries it, for the trace.
    pub model_json: Vec<u8>,
}

/// Why a library can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// It can't be read.
    #[error("{path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// It is no library of hetrace.
    #[error("{path}: {what}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It was built for another launcher.
    #[error(
        "{path} is from another build of hetrace (shared memory version {found}, not {ABI_VERSION}): build or install both again"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// Looks into one library.
///
/// # Errors
/// When the file can't be read or carries no model of this version.
pub fn open(path: &Path) -> Result<Found, LibraryError> {
    let form = |what: String| LibraryError::Form { path: path.to_owned(), what };
    let read = |error| LibraryError::Read { path: path.to_owned(), error };
    // Reads the headers and the one section, not the megabytes of code.
    let cache = object::ReadCache::new(std::fs::File::open(path).map_err(read)?);
    let file = object::File::parse(&cache).map_err(|e| form(format!("not a library: {e}")))?;
    let abi = file.section_by_name(ABI_SECTION).and_then(|s| s.data().ok()?.try_into().ok());
    let found = abi.map_or(0, u32::from_le_bytes);
    if found != ABI_VERSION {
        return Err(LibraryError::Version { path: path.to_owned(), found });
    }
    let section = file.section_by_name(SECTION).ok_or_else(|| form(format!("has no {SECTION}")))?;
    let data = section.data().map_err(|e| form(e.to_string()))?;
    let head::Head { api, interpose } = head::read(data).map_err(|e| form(format!("its model: {e}")))?;
    let path = path.canonicalize().map_err(read)?;
    Ok(Found { path, api, interpose, model_json: data.to_vec() })
}

/// The variable that names the folder with the libraries.
const VARIABLE: &str = "HETRACE_LIBRARIES";

/// Folders in which libraries may lie: where `HETRACE_LIBRARIES` says and
/// nowhere else, or beside the launcher, or in `../lib/hetrace` of an installation.
pub fn folders() -> Vec<PathBuf> {
    if let Some(folder) = std::env::var_os(VARIABLE) {
        return vec![folder.into()];
    }
    let mut folders = Vec::new();
    if let Ok(launcher) = std::env::current_exe()
        && let Some(folder) = launcher.parent()
    {
        folders.push(folder.to_owned());
        folders.push(folder.join("../lib/hetrace"));
    }
    folders
}

/// Returns the rest of the models of libraries, in the same order.
///
/// # Errors
/// The first library that can't be used.
pub fn load(found: Vec<Found>) -> Result<Vec<Library>, LibraryError> {
    std::thread::scope(|scope| {
        let loading: Vec<_> = found.into_iter().map(|one| scope.spawn(move || one.load())).collect();
        loading.into_iter().map(|one| one.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}

/// Returns all libraries in the first folder that has any, by API name.
///
/// # Errors
/// The first library that can't be used.
pub fn find() -> Result<Vec<Found>, LibraryError> {
    for folder in folders() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut paths = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PREFIX) && name.ends_with(".so") {
                paths.push(entry.path());
            }
        }
        let found: Result<Vec<Found>, LibraryError> = paths.iter().map(|path| open(path)).collect();
        let mut found = found?;
        if !found.is_empty() {
            found.sort_by(|a, b| a.api.cmp(&b.api));
            return Ok(found);
        }
    }
    match std::env::var_os(VARIABLE) {
        Some(folder) => Err(LibraryError::Form {
            path: folder.into(),
            what: format!("contains no {PREFIX}*.so, but {VARIABLE} names it"),
        }),
        None => Ok(Vec::new()),
    }
}
