//! A folder to a [`Trace`].

use std::fs;
use std::path::{Path, PathBuf};

use hetrace_model::Model;
use thiserror::Error;

use super::{Manifest, Trace};

/// A folder that is no trace, or none that can be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Streams or metadata.
    #[error(transparent)]
    Ctf(#[from] hetrace_ctf::read::OpenError),
    /// A model that is there but cannot be understood: without it, nothing in
    /// the trace would mean what it says.
    #[error("{}: {source}", path.display())]
    Model {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// A trace of another version of hetrace, whose events mean something else.
    #[error(
        "this trace has form {found} (written by hetrace {version}); this hetrace reads form {SCHEMA} only"
    )]
    Schema {
        /// The form, as its manifest says.
        found: u32,
        /// The version of hetrace that wrote it.
        version: String,
    },
}

/// The form of traces that is understood: `schema` in the manifest.
pub const SCHEMA: u32 = 2;

impl Trace {
    /// Opens a folder: streams, `hetrace/model/*.json`, `hetrace/manifest.json`.
    ///
    /// A manifest that is missing or damaged is what a killed launcher leaves:
    /// the trace opens without, and [`Trace::problems`] says so.
    ///
    /// # Errors
    /// When metadata, a stream or a model cannot be read, or when another
    /// version of hetrace wrote the trace.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        let ctf = hetrace_ctf::read::Trace::open(folder)?;
        let own = folder.join("hetrace");
        let mut problems = Vec::new();
        let models = models(&own.join("model"))?;
        let path = own.join("manifest.json");
        let manifest = match fs::read(&path) {
            Ok(bytes) => Manifest::parse(&bytes).unwrap_or_else(|error| {
                problems.push(format!("{}: {error}", path.display()));
                Manifest::default()
            }),
            Err(error) => {
                // A trace of another tracer has no such folder, and needs none.
                if own.is_dir() {
                    problems.push(format!("{}: {error}", path.display()));
                }
                Manifest::default()
            }
        };
        if ![0, SCHEMA].contains(&manifest.schema) {
            let (found, version) = (manifest.schema, manifest.version);
            return Err(OpenError::Schema { found, version });
        }
        let mut trace = Self::new(ctf, models, manifest);
        trace.problems = problems;
        Ok(trace)
    }
}

fn models(folder: &Path) -> Result<Vec<Model>, OpenError> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let json = |path: &PathBuf| path.extension().is_some_and(|e| e == "json");
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).filter(json).collect();
    paths.sort();
    let mut models = Vec::new();
    for path in paths {
        let bytes = fs::read(&path).map_err(|source| {
            OpenError::Ctf(hetrace_ctf::read::OpenError::Io { path: path.clone(), source })
        })?;
        match serde_json::from_slice(&bytes) {
            Ok(model) => models.push(model),
            Err(source) => return Err(OpenError::Model { path, source }),
        }
    }
    Ok(models)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_form_is_refused_by_name() {
        let folder = std::env::temp_dir().join(format!("hetrace-form-{}", std::process::id()));
        let own = folder.join("hetrace");
        fs::create_dir_all(&own).unwrap();
        fs::write(folder.join("metadata"), "/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };")
            .unwrap();
        fs::write(own.join("manifest.json"), r#"{"schema":1,"version":"0.1.0"}"#).unwrap();
        let error = Trace::open(&folder).unwrap_err();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            error.to_string(),
            "this trace has form 1 (written by hetrace 0.1.0); this hetrace reads form 2 only"
        );
    }
}
