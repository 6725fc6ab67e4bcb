//! The API libraries that lie beside the launcher, and the models in them.
//!
//! Nothing lists the APIs: each library carries its model in a section, so a
//! new API is a new file. A large model takes milliseconds to understand, and the
//! program waits: only its index is looked at before the program starts, and of the model
//! what is used, when it is used. Nor is the index read where it is the one that the launcher knows ([`known`]). Of an API
//! that is absent not even that is looked at ([`candidate`]).

mod candidate;
mod entrance;
mod known;
mod path;
mod sections;

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use hetrace_ctf::account::Checksum;
use hetrace_model::Model;
use hetrace_model::index::Index;
use hetrace_ring::abi::ABI_VERSION;

pub use candidate::{Candidate, Sorted, candidates, sort};
pub use entrance::{Entrance, Tools};
use known::Known;

use crate::ldcache::Search;

/// Short name of an API.
pub type Name = Cow<'static, str>;

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
    pub path: Arc<Path>,
    /// Short name of its API.
    pub api: Name,
    /// What distinguishes the index from that of another build.
    pub mark: Checksum,
    /// None of the libraries and files of which its programs need one is on the machine or on the search path.
    pub absent: bool,
    inside: Arc<Inside>,
}

/// What is in a library.
#[derive(Debug)]
struct Inside {
    file: Kept,
    /// Where the model is in it.
    model_at: u64,
    model_bytes: usize,
    /// Where the index is in it.
    index_at: Range<u64>,
    /// What the launcher knows of it, or what it said itself.
    entrance: Cow<'static, Entrance>,
    /// The flags of its functions in a run without options, if the launcher knows them.
    usual: Option<&'static [u8]>,
    /// All functions in short, once somebody has asked for one.
    index: OnceLock<Index>,
}

/// The file of a library, of which the model is read when it is needed.
#[derive(Debug)]
enum Kept {
    /// Open, so that it is there even if another version takes its place.
    Open(File),
    /// Its device and inode: there are few descriptors.
    Closed(u64, u64),
}

/// Below so many descriptors none is kept for a library.
const FEW: u64 = 64;

impl Kept {
    fn new(file: File) -> io::Result<Self> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        if limit.is_none_or(|limit| limit >= FEW) {
            return Ok(Kept::Open(file));
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
    /// Returns how it gets into programs.
    pub fn entrance(&self) -> &Entrance {
        &self.inside.entrance
    }

    /// Returns all functions in short.
    ///
    /// # Errors
    /// When the file can't be read any more, or is not what it was.
    pub fn index(&self) -> Result<&Index, LibraryError> {
        let Inside { file, index_at, index, .. } = &*self.inside;
        if let Some(index) = index.get() {
            return Ok(index);
        }
        let mut text = vec![0; usize::try_from(index_at.end - index_at.start).unwrap_or(0)];
        let read = file.read_exact_at(&self.path, &mut text, index_at.start);
        read.map_err(|error| LibraryError::Read { path: self.path.to_path_buf(), error })?;
        let form = |what| LibraryError::Form { path: self.path.to_path_buf(), what };
        let read = Index::begin(text).map_err(|e| form(format!("its index: {e}; {OTHER_BUILD}")))?;
        if Checksum::of(read.before_rows()) != self.mark {
            return Err(form("its index is not what it was when it was opened".to_owned()));
        }
        Ok(index.get_or_init(|| read))
    }

    /// Returns the flags of its functions in a run without options, if they were made with the launcher.
    pub(crate) fn usual(&self) -> Option<&'static [u8]> {
        self.inside.usual
    }

    /// Returns the text of its model.
    ///
    /// # Errors
    /// When the file can't be read any more.
    pub fn model_json(&self) -> Result<Vec<u8>, LibraryError> {
        let Inside { file, model_at, model_bytes, .. } = &*self.inside;
        let mut json = vec![0; *model_bytes];
        match file.read_exact_at(&self.path, &mut json, *model_at) {
            Ok(()) => Ok(json),
            Err(error) => Err(LibraryError::Read { path: self.path.to_path_buf(), error }),
        }
    }

    /// Reads all of the model.
    ///
    /// # Errors
    /// When it cannot be understood.
    pub fn load(&self) -> Result<Library, LibraryError> {
        match serde_json::from_slice(&self.model_json()?) {
            Ok(model) => Ok(Library { path: self.path.to_path_buf(), model }),
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
        let entrance = Entrance::of(index.head.clone());
        let absent = Search::new().are_absent(entrance.requires.iter().map(|name| &**name));
        let inside = Inside {
            file,
            model_at: 0,
            model_bytes: json.len(),
            index_at: 0..0,
            entrance: Cow::Owned(entrance),
            usual: None,
            index: index.into(),
        };
        Found { path: path.into(), api: model.api.into(), mark, absent, inside: Arc::new(inside) }
    }

    /// Returns whether a program that is linked to these libraries brings the API's own, or one that it requires.
    pub(crate) fn is_brought_by(&self, linked: &[String]) -> bool {
        let Entrance { libraries, requires, .. } = self.entrance();
        libraries.iter().chain(&**requires).any(|name| linked.iter().any(|linked| linked == name))
    }

    /// Returns what is to be said of a model that is not as it should be.
    pub fn wrong(&self, what: &dyn std::fmt::Display) -> LibraryError {
        LibraryError::Form { path: self.path.to_path_buf(), what: format!("its model: {what}") }
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

/// Looks into one library, and reads all that is to be known before a program starts.
///
/// # Errors
/// When the file can't be read or carries no model of this version.
pub fn open(path: &Path) -> Result<Found, LibraryError> {
    let file = File::open(path).map_err(|error| LibraryError::Read { path: path.to_owned(), error })?;
    open_file(file, &|| path.to_owned(), None, &Search::new())
}

/// Looks into one of several libraries, which is open. If its index begins as the launcher knows it, it is not read.
fn open_file(
    file: File,
    path: &dyn Fn() -> PathBuf,
    known: Option<&'static Known>,
    search: &Search,
) -> Result<Found, LibraryError> {
    let form = |what: String| LibraryError::Form { path: path(), what };
    let read = |error| LibraryError::Read { path: path(), error };
    let [abi, index, model] = sections::find(&file, [ABI_SECTION, INDEX_SECTION, MODEL_SECTION])
        .map_err(|e| form(format!("not a library: {e}")))?;
    let found = abi.and_then(|section| sections::number(&file, &section)).unwrap_or(0);
    if found != ABI_VERSION {
        return Err(LibraryError::Version { path: path(), found });
    }
    let there =
        |section: Option<_>, name| section.ok_or_else(|| form(format!("has no {name}; {OTHER_BUILD}")));
    let index_at: Range<u64> = there(index, INDEX_SECTION)?;
    let begins = |known: &Known| sections::begins(&file, &index_at, known.beginning);
    let (api, mark, absent, inside) = match known.filter(|known| begins(known)) {
        Some(Known { api, mark, model_bytes, entrance, flags, .. }) => {
            let (entrance, usual) = (Cow::Borrowed(entrance), Some(*flags));
            ((*api).into(), *mark, false, (*model_bytes, entrance, usual, OnceLock::new()))
        }
        None => {
            let text = sections::read(&file, &index_at).map_err(|e| form(e.to_string()))?;
            // Functions' lines are looked at when one of them is called: they would only make each start longer.
            let index = Index::begin(text).map_err(|e| form(format!("its index: {e}; {OTHER_BUILD}")))?;
            let (mark, bytes) = (Checksum::of(index.before_rows()), index.head.model_bytes as u64);
            let entrance = Entrance::of(index.head.clone());
            let absent = search.are_absent(entrance.requires.iter().map(|name| &**name));
            let api = Cow::Owned(index.head.api.clone());
            (api, mark, absent, (bytes, Cow::Owned(entrance), None, index.into()))
        }
    };
    let (model_bytes, entrance, usual, index) = inside;
    let model = there(model, MODEL_SECTION)?;
    if model.end - model.start != model_bytes {
        return Err(form(format!("its index is not that of its model; {OTHER_BUILD}")));
    }
    let path = path::of_open(&file, path).map_err(read)?;
    let file = Kept::new(file).map_err(read)?;
    let (model_at, model_bytes) = (model.start, model_bytes as usize);
    let inside = Inside { file, model_at, model_bytes, index_at, entrance, usual, index };
    Ok(Found { path, api, mark, absent, inside: Arc::new(inside) })
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
    let mut found = candidates()?.iter().map(Candidate::open).collect::<Result<Vec<Found>, _>>()?;
    found.sort_by(|a, b| a.api.cmp(&b.api));
    Ok(found)
}
