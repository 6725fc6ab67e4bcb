//! `cargo xtask extract`: what a machine can read about an API.
//!
//! ```text
//! apis/NAME/extract.toml ─► description.rs ─► which files, and what is special in them
//! sources.rs             ─► the files: from packages, folders, a person's hands
//! headers/ or registry/  ─► Extracted ─► json.rs ─► apis/NAME/api.json
//! ```
//! No API is known here by name.

mod description;
mod headers;
mod json;
mod registry;
mod sources;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use hetrace_model::{Extracted, Registry};
use sha2::{Digest, Sha256};

use self::description::Description;
use crate::{lines, repo};

/// Arguments of `extract`.
#[derive(Parser)]
pub struct Args {
    /// The API to extract, which is a folder under apis/ with an extract.toml
    api: String,
    /// The file or folder that extract.toml says is given, or a folder of unpacked packages;
    /// without it packages are downloaded into target/headers
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
    /// Write here instead of apis/<API>/api.json
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compare with the file instead of writing it
    #[arg(long)]
    check: bool,
}

/// What an extraction yields besides the data: things a person should know.
pub struct Extraction {
    /// The data.
    pub extracted: Extracted,
    /// One remark per line.
    pub notes: Vec<String>,
}

/// Extracts, and writes or compares.
pub fn run(args: &Args) -> Result<ExitCode> {
    let api = description::read(&args.api)?;
    let read = extract(&api, args.from.as_deref());
    let Extraction { extracted, notes } = read.with_context(|| format!("extracting {}", api.api))?;
    for note in &notes {
        eprintln!("note: {note}");
    }
    let path = args.output.clone().unwrap_or_else(|| repo::api_json(&extracted.api));
    let new = json::write(&extracted);
    let summary = format!(
        "{} functions, {} types, {} groups of values",
        extracted.functions.len(),
        extracted.types.len(),
        extracted.enums.len()
    );
    if !args.check {
        std::fs::write(&path, new).with_context(|| format!("writing {}", path.display()))?;
        println!("{}: {summary}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    let old = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let changes = lines::diff(&old, &new);
    if changes.is_empty() {
        println!("{} is current: {summary}", path.display());
        return Ok(ExitCode::SUCCESS);
    }
    for line in changes {
        println!("{line}");
    }
    bail!("{} differs from what its source gives; run without --check", path.display());
}

fn extract(api: &Description, from: Option<&Path>) -> Result<Extraction> {
    let found = sources::find(api, from)?;
    match (&api.headers, &api.registry, found.as_slice()) {
        (Some(headers), _, _) => headers::extract(api, headers, &found),
        (_, Some(special), [file]) => from_registry(api, special, &file.place),
        _ => bail!("neither headers nor one registry"),
    }
}

fn from_registry(api: &Description, special: &description::Registry, file: &Path) -> Result<Extraction> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {shown}"))?;
    let origin = Registry {
        file: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256: hex(&Sha256::digest(text.as_bytes())),
        ..Registry::default()
    };
    registry::extract(&text, origin, &api.api, special).with_context(|| format!("extracting from {shown}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
