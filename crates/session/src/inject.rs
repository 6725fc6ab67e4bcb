//! How each API's library gets into the program.
//!
//! A loader with a layer mechanism is asked to load it; where the loader that
//! the program would use has none, the library is preloaded. With both, the
//! library notices that it is a layer and lets the preloaded way rest.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hetrace_ring::abi::SESSION_VARIABLE;

use crate::apis::Library;
use crate::manifest::Interposition;

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// The layer where the loader has layers, else the preloaded way.
    #[default]
    Auto,
    /// The layer only.
    Layer,
    /// The preloaded way only.
    Preload,
}

/// Variables for the program.
#[derive(Debug, Default)]
pub struct Injection {
    /// Name and value.
    pub variables: Vec<(OsString, OsString)>,
    /// What was chosen.
    pub ways: Vec<Interposition>,
}

/// Decides for all libraries.
pub fn plan(libraries: &[Library], session: &Path, way: Way) -> Injection {
    let mut injection = Injection::default();
    injection.variables.push((SESSION_VARIABLE.into(), session.into()));
    let mut preload: Vec<PathBuf> = Vec::new();
    for library in libraries {
        let interpose = &library.model.interpose;
        let layer = match (&interpose.layer_variable, way) {
            (None, _) | (_, Way::Preload) => None,
            (Some(variable), Way::Layer) => Some(variable),
            (Some(variable), Way::Auto) => honours_layers(library).then_some(variable),
        };
        match layer {
            Some(variable) => {
                injection.variables.push((variable.into(), appended(variable, &library.path)));
            }
            None => preload.push(library.path.clone()),
        }
        injection.ways.push(Interposition {
            api: library.model.api.clone(),
            way: if layer.is_some() { "layer" } else { "preload" }.to_owned(),
        });
    }
    if !preload.is_empty() {
        let mut value = OsString::new();
        for path in preload {
            value.push(path);
            value.push(":");
        }
        value.push(std::env::var_os("LD_PRELOAD").unwrap_or_default());
        injection.variables.push(("LD_PRELOAD".into(), value));
    }
    injection
}

/// A list variable with one more path.
fn appended(variable: &str, path: &Path) -> OsString {
    let mut value = std::env::var_os(variable).unwrap_or_default();
    if !value.is_empty() {
        value.push(":");
    }
    value.push(path);
    value
}

/// Whether the API's loader knows layers. A machine without the loader counts
/// as yes: a program may bring its own, and a layer never hurts.
fn honours_layers(library: &Library) -> bool {
    loader(library).is_none_or(|(_, layers)| layers)
}

/// The API's loader as a program would find it, and whether it knows layers.
pub fn loader(library: &Library) -> Option<(PathBuf, bool)> {
    let interpose = &library.model.interpose;
    let path = interpose.libraries.iter().find_map(|name| locate(OsStr::new(name)))?;
    let bytes = std::fs::read(&path).ok()?;
    let marker = interpose.layer_marker.as_deref().unwrap_or_default().as_bytes();
    let layers = !marker.is_empty() && bytes.windows(marker.len()).any(|w| w == marker);
    Some((path, layers))
}

/// Where the dynamic loader would find a library.
fn locate(name: &OsStr) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("LD_LIBRARY_PATH").map(|v| std::env::split_paths(&v).collect()).unwrap_or_default();
    let arch = std::env::consts::ARCH;
    for folder in ["/usr/local/lib", "/usr/lib", "/lib", "/usr/lib64", "/lib64"] {
        folders.push(format!("{folder}/{arch}-linux-gnu").into());
        folders.push(folder.into());
    }
    folders.into_iter().map(|f| f.join(name)).find(|p| p.exists())
}

/// Why a program can't be traced, from its file; `None` if nothing speaks
/// against it.
pub fn obstacle(program: &Path) -> Option<String> {
    use object::Object;
    use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    let metadata = std::fs::metadata(program).ok()?;
    let mode = metadata.permissions().mode();
    let me = rustix::process::geteuid().as_raw();
    let changes_user = mode & 0o4000 != 0 && metadata.uid() != me;
    let changes_group = mode & 0o2000 != 0 && metadata.gid() != rustix::process::getegid().as_raw();
    if changes_user || changes_group {
        return Some("it is setuid or setgid, so the system lets nobody load a library into it".to_owned());
    }
    let bytes = std::fs::read(program).ok()?;
    let file = ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
    let endian = file.endian();
    let headers = file.elf_header().program_headers(endian, &*bytes).ok()?;
    let has = |kind: u32| headers.iter().any(|h| h.p_type(endian) == kind);
    let is_program = file.kind() == object::ObjectKind::Executable || file.entry() != 0;
    (is_program && !has(object::elf::PT_INTERP))
        .then(|| "it is statically linked, so no library can be loaded into it".to_owned())
}
