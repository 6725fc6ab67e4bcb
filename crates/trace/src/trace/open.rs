//! A folder, or one packed into a file, to a [`Trace`].

use std::path::Path;

use hetrace_ctf::account::differences_but;
use hetrace_ctf::read::Files;
use hetrace_format::class::is_of_hetrace;
use hetrace_model::Model;

use super::error::{OpenError, SCHEMA};
use super::models::read_models;
use super::{Manifest, Trace};

/// Where the manifest is in a trace.
const MANIFEST: &str = "hetrace/manifest.json";

impl Trace {
    /// Opens a folder, or one packed into a file: streams, `hetrace/model/*.json`,
    /// `hetrace/manifest.json`. A folder that is no trace itself may have one inside.
    ///
    /// A manifest that is missing or damaged is what a killed launcher leaves:
    /// the trace opens without, and [`Trace::problems`] says so; also what a packed file
    /// lacks. What is not there, or not as it was written, is in [`Trace::differences`].
    ///
    /// # Errors
    /// When metadata, a stream or a model cannot be read, when another
    /// version of hetrace wrote the trace, or when there is none or more than one.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::from_files(&Files::open(path)?)
    }

    /// The same for files that are open.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn from_files(files: &Files) -> Result<Self, OpenError> {
        Self::read(files)
    }

    fn read(files: &Files) -> Result<Self, OpenError> {
        // Models may be large, and nothing in the streams' description depends on them.
        let read = hetrace_format::manifest::read(files);
        let parsed = read.as_ref().ok().and_then(|bytes| Manifest::parse(bytes.as_ref()?).ok());
        // What another version wrote may have what this one does not understand.
        let own = parsed.as_ref().filter(|manifest| manifest.version == env!("CARGO_PKG_VERSION"));
        let account = own.and_then(|manifest| manifest.written.account.as_ref());
        let models = || read_models(files, account);
        let (ctf, models) = beside(models, || hetrace_ctf::read::Trace::from_files(files));
        let ctf = ctf?;
        let known: Vec<String> = models.iter().filter(|read| read.known).map(|read| read.path()).collect();
        let models = models.into_iter().filter_map(|read| read.model.transpose());
        let models = models.collect::<Result<Vec<Model>, _>>()?;
        let mut problems = files.problems().to_vec();
        let needed = !models.is_empty() || is_of_hetrace(ctf.class());
        let manifest = manifest(files, needed, &mut problems)?;
        let account = manifest.written.account.as_ref();
        let differences = account.map(|account| {
            let seen = |name: &str| known.iter().any(|known| known == name);
            differences_but(files, &ctf, account, seen)
        });
        let differences = differences.unwrap_or_default();
        let mut trace = Self::new(ctf, models, manifest);
        trace.differences = differences;
        trace.problems.splice(0..0, problems);
        Ok(trace)
    }
}

/// Does both at the same time where there can be another thread for the first. Returns what the second gives first.
fn beside<A: Send, B>(other: impl Fn() -> A + Sync, own: impl FnOnce() -> B) -> (B, A) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, &other);
        let own = own();
        let other = match thread.map(|thread| thread.join()) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // A limit on processes, say.
            Err(_) => other(),
        };
        (own, other)
    })
}

/// Returns the manifest; an empty one, and why in `problems`, if there is none or it is damaged. A trace of another
/// tracer needs none.
pub(crate) fn manifest(
    files: &Files,
    needed: bool,
    problems: &mut Vec<String>,
) -> Result<Manifest, OpenError> {
    let mut problem = |error: &dyn std::fmt::Display| {
        problems.push(format!("{}: {error}", files.path().join(MANIFEST).display()));
        Manifest::default()
    };
    let manifest = match hetrace_format::manifest::read(files) {
        Ok(Some(bytes)) => Manifest::parse(&bytes).unwrap_or_else(|error| problem(&error)),
        Ok(None) if !needed => Manifest::default(),
        Ok(None) => problem(&"it is missing"),
        Err(error) => problem(&error),
    };
    if ![0, SCHEMA].contains(&manifest.schema) {
        let (found, version) = (manifest.schema, manifest.version);
        return Err(OpenError::Schema { found, version });
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use std::fs;

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
