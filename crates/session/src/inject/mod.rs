//! How each API's library gets into the program.
//!
//! A loader with a layer mechanism is asked to load it; where the loader that
//! the program would use has none, the library is preloaded. With both, the
//! library notices that it is a layer and lets the preloaded way rest.
//!
//! * [`program`]: what will run, and whether a library can be loaded into it;
//! * [`preload`]: how our libraries are written in `LD_PRELOAD`;
//! * [`tools`]: how one of them stands in a runtime's list of tools.

mod elf;
mod preload;
mod program;
mod tools;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_ring::abi::SESSION_VARIABLE;

use crate::apis::{Entrance, Found};
use crate::ldcache;
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
    /// What the report must say about that.
    pub notes: Vec<String>,
}

impl Injection {
    /// Names the library in the API's own variable, unless that names a tool of
    /// the user's. One of ours there is that of a launcher around this one.
    fn name_tool(&mut self, variable: &str, library: &Found) {
        let (api, title) = (library.api.clone(), &library.entrance().title);
        let theirs = std::env::var_os(variable)
            .filter(|path| !path.is_empty() && Path::new(path).file_name() != library.path.file_name());
        let way = if theirs.is_some() { "left" } else { "injection" };
        match theirs {
            Some(tool) => self.notes.push(format!(
                "{title} is not traced: {variable} is already set to {}",
                Path::new(&tool).display()
            )),
            None => self.variables.push((variable.into(), library.path.as_os_str().to_owned())),
        }
        self.ways.push(Interposition { api, way: way.into() });
    }
}

/// Returns whether no program can use the API: none of the libraries and files of which they need one
/// is on the machine or on the search path.
pub fn is_absent(library: &Found) -> bool {
    library.absent
}

/// Decides for all libraries and a program. One that puts something of its own
/// in the loader's place has no layers, whatever the machine's loader has:
/// preloaded, we step before that.
pub fn plan(libraries: &[Found], session: &Path, way: Way, program: Option<&Path>) -> Injection {
    let way = match way {
        Way::Auto if program.is_some_and(replaces_loader) => Way::Preload,
        way => way,
    };
    let mut injection = Injection::default();
    injection.variables.push((SESSION_VARIABLE.into(), session.into()));
    let mut preload: Vec<Arc<Path>> = Vec::new();
    for library in libraries {
        let entrance = library.entrance();
        if let Some(variable) = &entrance.injection_variable {
            injection.name_tool(variable, library);
            continue;
        }
        if let Some(tools) = &entrance.tools {
            injection.join_tools(tools, library, program);
            continue;
        }
        // Where the machine's loader knows no layers, the program may bring one
        // that does, so both ways are open; a call is recorded once all the same.
        let layer = entrance.layer_variable.as_ref().filter(|_| way != Way::Preload);
        let preloaded = match way {
            Way::Layer => layer.is_none(),
            Way::Preload => true,
            Way::Auto => layer.is_none() || !honours_layers(entrance),
        };
        if let Some(variable) = layer {
            if library.path.as_os_str().as_bytes().contains(&b':') {
                let title = &entrance.title;
                injection.notes.push(format!(
                    "{title} is not traced as a layer: {variable} allows no colon in a path, as in {}; install hetrace elsewhere",
                    library.path.display()
                ));
            }
            injection.variables.push((variable.as_ref().into(), appended(variable, &library.path)));
        }
        if preloaded {
            preload.push(library.path.clone());
        }
        let way = match (layer, preloaded) {
            (Some(_), true) => "layer+preload",
            (Some(_), false) => "layer",
            (None, _) => "preload",
        };
        injection.ways.push(Interposition { api: library.api.clone(), way: way.into() });
    }
    let known = program.map(program::recognise).unwrap_or_default();
    injection.preload(&preload, &known);
    injection
}

/// Returns the variables by which all programs of a shell begin dormant: name, value, and whether the value is a list
/// that others may have begun.
pub fn dormant(libraries: &[Found], standby: &Path) -> Injection {
    let (_, present): (Vec<&Found>, Vec<&Found>) = libraries.iter().partition(|l| is_absent(l));
    let present: Vec<Found> = present.into_iter().cloned().collect();
    plan(&present, standby, Way::Auto, None)
}

/// Returns the file that is executed for a program: of a script the interpreter.
pub fn executed(program: &Path) -> PathBuf {
    program::recognise(program).interpreter.unwrap_or_else(|| program.to_owned())
}

/// Returns the libraries that a file is linked to, by their names.
pub fn needed(file: &Path) -> Vec<String> {
    program::needed(file)
}

/// Programs that run others with a library in the loader's place.
pub fn replaces_loader(program: &Path) -> bool {
    program.file_name() == Some(OsStr::new("oclgrind"))
}

/// Returns a list variable with one more path; a launcher around this one may have named it.
fn appended(variable: &str, path: &Path) -> OsString {
    let mut value = std::env::var_os(variable).unwrap_or_default();
    if value.as_bytes().split(|b| *b == b':').any(|other| other == path.as_os_str().as_bytes()) {
        return value;
    }
    if !value.is_empty() {
        value.push(":");
    }
    value.push(path);
    value
}

/// Returns whether the API's loader knows layers. A machine without the loader counts
/// as yes: a program may bring its own, and a layer never hurts.
fn honours_layers(entrance: &Entrance) -> bool {
    loader(entrance).is_none_or(|(_, layers)| layers)
}

/// Returns the API's loader as a program would find it, and whether it knows layers.
pub fn loader(entrance: &Entrance) -> Option<(PathBuf, bool)> {
    let path = entrance.libraries.iter().find_map(|name| ldcache::find(name))?;
    let bytes = std::fs::read(&path).ok()?;
    let marker = entrance.layer_marker.as_deref().unwrap_or_default().as_bytes();
    let layers = !marker.is_empty() && memchr::memmem::find(&bytes, marker).is_some();
    Some((path, layers))
}

/// Returns why a program can't be traced, from its file; `None` if nothing speaks
/// against it.
pub fn obstacle(program: &Path) -> Option<String> {
    let known = program::recognise(program);
    let obstacle = known.obstacle?;
    Some(match known.interpreter {
        Some(path) => format!("its interpreter {}: {obstacle}", path.display()),
        None => obstacle.to_string(),
    })
}
