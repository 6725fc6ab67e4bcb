//! `cargo xtask extract`: what a machine can read about an API.
//!
//! Each API has a module that turns its registry into [`Extracted`]; writing
//! and comparing are the same for all.

mod json;
mod opencl;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use hetrace_model::{Extracted, Registry};
use sha2::{Digest, Sha256};

use crate::{lines, repo};

/// Arguments of `extract`.
#[derive(Parser)]
pub struct Args {
    /// The API to extract
    api: Api,
    /// Its registry or header
    #[arg(long, value_name = "FILE")]
    registry: PathBuf,
    /// Compare with the checked-in file instead of writing it
    #[arg(long)]
    check: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Api {
    Opencl,
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
    let shown = args.registry.display();
    let text = std::fs::read_to_string(&args.registry).with_context(|| format!("reading {shown}"))?;
    let registry = Registry {
        file: args.registry.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        sha256: hex(&Sha256::digest(text.as_bytes())),
    };
    let Extraction { extracted, notes } = match args.api {
        Api::Opencl => opencl::extract(&text, registry),
    }
    .with_context(|| format!("extracting from {shown}"))?;
    for note in &notes {
        eprintln!("note: {note}");
    }
    let path = repo::api_json(&extracted.api);
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
    bail!("{} differs from what {shown} gives; run without --check", path.display());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
