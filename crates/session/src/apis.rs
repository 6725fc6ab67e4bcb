//! The API libraries that lie beside the launcher, and the models in them.
//!
//! Nothing lists the APIs: each library carries its model in a section, so a
//! new API is a new file. A large model takes milliseconds to understand, and the
//! program waits: only its index is read before the program starts, and of the model
//! what is used, when it is used. Of an API that is absent not even that ([`candidate`]).

mod candidate;
mod sections;

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_ctf::account::Checksum;
use hetrace_model::index::Index;
use hetrace_model::{Interpose, Model};
use hetrace_ring::abi::ABI_VERSION;

pub use candidate::{Candidate, Sorted, candidates, sort};

use crate::ldcache::Search;

/// File names of API libraries begin like this, and end so.
const PREFIX: &str = "libhetrace_";
const SUFFIX: &str = ".so";
/// The section with the model.
const MODEL_SECTION: &str = ".hetrace.model";
/// The section with the model's index.
const INDEX_SECTION: &str = ".hetrace.index";
/// The section with the version of the shared memory it was built for.
const ABI_SECTION: &str = ".hetrace.abi";

/// An API's library, of whose model only the index is known.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where it is, as an absolute path.
    pub path: PathBuf,
    /// Short name of its API.
    pub api: String,
    /// All functions in short.
    pub index: Arc<Index>,
    /// What distinguishes the index from that of another build.
    pub mark: Checksum,
    /// None of the libraries and files of which its programs need one is on the machine or on the search path.
    pub absent: bool,
    file: Kept,
    /// Where the model is in it.
    model_at: u64,
}

/// The file of a library, of which the model is read when it is needed.
#[derive(Debug, Clone)]
enum Kept {
    /// Open, so that it is there even if another version takes its place.
    Open(Arc<File>),
    /// Its device and inode: there are few descriptors.
    Closed(u64, u64),
}

/// Below so many descriptors none is kept for a library.
const FEW: u64 = 64;

impl Kept {
    fn new(file: File) -> io::Result<Self> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if limit.is_none_or(|limit| limit >= FEW) {
            return Ok(Kept::Open(Arc::new(file)));
        }
        let found = file.metadata()?;
        Ok(Kept::Closed(found.dev(), found.ino()))
    }

    fn read_exact_at(&self, path: &Path, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let (device, inode) = match self {
            Kept::Open(file) => return file.read_exact_at(bytes, at),
            Kept::Closed(device, inode) => (*device, *inode),
        };
        let file = File::open(path)?;
        let found = file.metadata()?;
        if (found.dev(), found.ino()) != (device, inode) {
            return Err(io::Error::other("another file has taken its place since hetrace began"));
        }
        file.read_exact_at(bytes, at)
    }
}

impl Found {
    /// Returns how the API is intercepted.
    pub fn interpose(&self) -> &Interpose {
        &self.index.head.interpose
    }

    /// Returns the text of its model.
    ///
    /// # Errors
    /// When the file can't be read any more.
    pub fn model_json(&self) -> Result<Vec<u8>, LibraryError> {
        let mut json = vec![0; self.index.head.model_bytes];
        match self.file.read_exact_at(&self.path, &mut json, self.model_at) {
            Ok(()) => Ok(json),
            Err(error) => Err(LibraryError::Read { path: self.path.clone(), error }),
        }
    }

    /// Reads all of the model.
    ///
    /// # Errors
    /// When it cannot be understood.
    pub fn load(&self) -> Result<Library, LibraryError> {
        match serde_json::from_slice(&self.model_json()?) {
            Ok(model) => Ok(Library { path: self.path.clone(), model }),
            Err(error) => Err(self.wrong(&error)),
        }
    }

    /// Returns a library that is nothing but a model's text, which has each function on a line of its own.
    #[cfg(test)]
    pub(crate) fn of_model(path: &Path, json: &str) -> Self {
        let model: Model = serde_json::from_str(json).expect("a model");
        let index = hetrace_model::index::print(&model, json).expect("an index");
        let index = Index::parse(index.into_bytes()).expect("an index");
        let mark = Checksum::of(index.before_rows());
        std::fs::write(path, json).expect("a file");
        let file = File::open(path).and_then(Kept::new).expect("a file");
        let (path, index) = (path.to_owned(), Arc::new(index));
        let absent = is_absent(&model.interpose, &Search::new());
        Found { path, api: model.api, index, mark, absent, file, model_at: 0 }
    }

    /// Returns whether a program that is linked to these libraries brings the API's own, or one that it requires.
    pub(crate) fn is_brought_by(&self, linked: &[String]) -> bool {
        let Interpose { libraries, requires, .. } = self.interpose();
        libraries.iter().chain(requires).any(|name| linked.contains(name))
    }

    /// Returns what is to be said of a model that is not as it should be.
    pub fn wrong(&self, what: &dyn std::fmt::Display) -> LibraryError {
        LibraryError::Form { path: self.path.clone(), what: format!("its model: {what}") }
    }
}

/// An API's library and its whole model.
#[derive(Debug, Clone)]
pub struct Library {
    /// Where it is, as an absolute path.
    pub path: PathBuf,
    /// The model it was made from.
    pub model: Model,
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
    open_by(path, &Search::new())
}

/// Returns whether none of what an API requires is there.
fn is_absent(interpose: &Interpose, search: &Search) -> bool {
    search.are_absent(interpose.requires.iter().map(String::as_str))
}

/// Looks into one of several libraries.
fn open_by(path: &Path, search: &Search) -> Result<Found, LibraryError> {
    let form = |what: String| LibraryError::Form { path: path.to_owned(), what };
    let read = |error| LibraryError::Read { path: path.to_owned(), error };
    let file = File::open(path).map_err(read)?;
    let [abi, index, model] = sections::find(&file, [ABI_SECTION, INDEX_SECTION, MODEL_SECTION])
        .map_err(|e| form(format!("not a library: {e}")))?;
    let content = |section: &_| sections::read(&file, section).map_err(|e| form(e.to_string()));
    let abi = abi.and_then(|section| content(&section).ok()?.try_into().ok());
    let found = abi.map_or(0, u32::from_le_bytes);
    if found != ABI_VERSION {
        return Err(LibraryError::Version { path: path.to_owned(), found });
    }
    let there =
        |section: Option<_>, name| section.ok_or_else(|| form(format!("has no {name}; {OTHER_BUILD}")));
    let text = content(&there(index, INDEX_SECTION)?)?;
    // Functions' lines are looked at when one of them is called: they would only make each start longer.
    let index = Index::begin(text).map_err(|e| form(format!("its index: {e}; {OTHER_BUILD}")))?;
    let absent = is_absent(&index.head.interpose, search);
    let model = there(model, MODEL_SECTION)?;
    if model.end - model.start != index.head.model_bytes as u64 {
        return Err(form(format!("its index is not that of its model; {OTHER_BUILD}")));
    }
    let mark = Checksum::of(index.before_rows());
    let api = index.head.api.clone();
    let file = Kept::new(file).map_err(read)?;
    let path = path.canonicalize().map_err(read)?;
    Ok(Found { path, api, index: Arc::new(index), mark, absent, file, model_at: model.start })
}

/// What to do about a library that is not as this launcher expects.
const OTHER_BUILD: &str = "it is from another build of hetrace: build or install both again";

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

/// Returns all libraries in the first folder that has any, by API name.
///
/// # Errors
/// The first library that can't be used.
pub fn find() -> Result<Vec<Found>, LibraryError> {
    let search = Search::new();
    let mut found = candidates()?
        .iter()
        .map(|candidate| open_by(candidate.path(), &search))
        .collect::<Result<Vec<Found>, _>>()?;
    found.sort_by(|a, b| a.api.cmp(&b.api));
    Ok(found)
}
