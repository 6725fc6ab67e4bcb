//! `cargo xtask extract`: what a machine can read about an API.
//!
//! A registry has a module that turns it into [`Extracted`]; APIs that only have
//! C headers stand in one table ([`headers`]). Writing and comparing are the
//! same for all.

mod headers;
mod json;
mod opencl;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use hetrace_model::{Extracted, Registry};
use sha2::{Digest, Sha256};

use crate::{lines, repo};

/// Arguments of `extract`.
#[derive(Parser)]
pub struct Args {
    /// The API to extract
    #[arg(value_parser = PossibleValuesParser::new(names()))]
    api: String,
    /// The registry of an API that has one
    #[arg(long, value_name = "FILE", conflicts_with = "headers")]
    registry: Option<PathBuf>,
    /// A folder of unpacked wheels with the API's headers; else they are
    /// downloaded into target/
    #[arg(long, value_name = "DIR")]
    headers: Option<PathBuf>,
    /// Write here instead of apis/<API>/api.json
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compare with the file instead of writing it
    #[arg(long)]
    check: bool,
}

/// Turns a registry's text into data.
type Reader = fn(&str, Registry) -> Result<Extraction>;

/// APIs with a registry.
const REGISTRIES: &[(&str, Reader)] = &[("opencl", opencl::extract)];

fn names() -> Vec<&'static str> {
    let registries = REGISTRIES.iter().map(|(name, _)| *name);
    registries.chain(headers::ALL.iter().map(|api| api.name)).collect()
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
    let Extraction { extracted, notes } = match REGISTRIES.iter().find(|(name, _)| *name == args.api) {
        Some((name, read)) => {
            let file = args.registry.as_deref().with_context(|| format!("{name} needs --registry"))?;
            from_registry(*read, file)?
        }
        None => {
            let api = headers::ALL.iter().find(|api| api.name == args.api).context("no such API")?;
            headers::extract(api, args.headers.as_deref())
                .with_context(|| format!("extracting {}", api.name))?
        }
    };
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

fn from_registry(read: Reader, file: &Path) -> Result<Extraction> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {shown}"))?;
    let registry = Registry {
        file: file.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256: hex(&Sha256::digest(text.as_bytes())),
        ..Registry::default()
    };
    read(&text, registry).with_context(|| format!("extracting from {shown}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
