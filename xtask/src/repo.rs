//! Where things are in the repository.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static ROOT: OnceLock<PathBuf> = OnceLock::new();

/// Sets the repository's root, before anyone asks for it.
pub fn set_root(path: PathBuf) {
    ROOT.get_or_init(|| path);
}

/// The repository's root, whatever the working directory is.
pub fn root() -> &'static Path {
    ROOT.get_or_init(|| {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        own.parent().expect("xtask lies in the repository's root").to_owned()
    })
}

/// What was extracted for an API.
pub fn api_json(api: &str) -> PathBuf {
    root().join("apis").join(api).join("api.json")
}

/// What people wrote about an API.
pub fn semantics_toml(api: &str) -> PathBuf {
    root().join("apis").join(api).join("semantics.toml")
}

/// `cargo build` arguments that make the command, the gate and the libraries of all APIs.
pub fn build_arguments() -> anyhow::Result<Vec<String>> {
    let mut arguments: Vec<String> =
        ["build", "--release", "-p", "hetrace-cli", "-p", "hetrace-gate"].map(str::to_owned).into();
    for api in apis()? {
        arguments.extend(["-p".to_owned(), format!("hetrace-{api}")]);
    }
    Ok(arguments)
}

/// The library that stands in place of the APIs' in programs that can't come to an API.
pub const GATE: &str = "libhetgate.so";

/// All APIs: the folders under `apis/` that have a model.
pub fn apis() -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join("apis"))? {
        let entry = entry?;
        if entry.path().join("api.json").exists() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
