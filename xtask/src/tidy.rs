//! `cargo xtask tidy`: rules of the tree that no compiler checks.

mod exclusive;
mod links;
mod modules;
mod names;
mod paths;
mod proofs;
mod targets;
mod tokens;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use clap::Parser;
use serde_json::Value;

use crate::repo;

/// Arguments of `tidy`.
#[derive(Parser)]
pub struct Args {}

/// What each crate may use of the others; more is against the architecture.
const ARROWS: &[(&str, &[&str])] = &[
    ("hetrace-ring", &[]),
    ("hetrace-ctf", &[]),
    ("hetrace-model", &[]),
    ("hetrace-pool", &[]),
    ("hetrace-interpose", &["hetrace-ring", "hetrace-pool"]),
    ("hetrace-closed", &[]),
    ("hetrace-gate", &["hetrace-closed"]),
    ("hetrace-codegen", &["hetrace-model"]),
    ("hetrace-format", &["hetrace-ctf", "hetrace-model"]),
    ("hetrace-vendor", &["hetrace-format"]),
    ("hetrace-client", &[]),
    ("hetrace-gpu-kernel", &["hetrace-pool"]),
    ("hetrace-os", &["hetrace-ctf"]),
    (
        "hetrace-session",
        &[
            "hetrace-ring",
            "hetrace-pool",
            "hetrace-closed",
            "hetrace-format",
            "hetrace-ctf",
            "hetrace-model",
            "hetrace-os",
            "hetrace-vendor",
        ],
    ),
    ("hetrace-trace", &["hetrace-format", "hetrace-ctf", "hetrace-model", "hetrace-gpu-kernel"]),
    ("hetrace-report", &["hetrace-trace", "hetrace-vendor", "hetrace-ctf", "hetrace-model"]),
    ("hetrace-edit", &["hetrace-trace", "hetrace-format", "hetrace-ctf", "hetrace-model"]),
    ("hetrace-export", &["hetrace-trace", "hetrace-ctf", "hetrace-model"]),
    (
        "hetrace-cli",
        &[
            "hetrace-session",
            "hetrace-trace",
            "hetrace-report",
            "hetrace-edit",
            "hetrace-export",
            "hetrace-vendor",
            "hetrace-gpu-kernel",
            "hetrace-model",
            "hetrace-ctf",
        ],
    ),
    ("hetrace-tests", &["hetrace-ctf"]),
    ("xtask", &["hetrace-model", "hetrace-codegen", "hetrace-tests"]),
];

/// What may live inside a traced program, besides this project's own crates.
const INSIDE: &[&str] = &["libc"];

/// Prints what is against the rules.
pub fn run(_: &Args) -> Result<ExitCode> {
    let mut faults = dependencies()?;
    faults.extend(modules::faults(repo::root())?);
    let mut names = names::Names::read()?;
    let files = Command::new("git")
        .args(["ls-files", "-co", "--exclude-standard"])
        .current_dir(repo::root())
        .output()?;
    for name in String::from_utf8_lossy(&files.stdout).lines() {
        file(Path::new(name), &mut names, &mut faults)?;
    }
    names.finish(&mut faults);
    for fault in &faults {
        println!("{fault}");
    }
    println!("{} faults", faults.len());
    Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn dependencies() -> Result<Vec<String>> {
    let out = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(repo::root())
        .output()?;
    let metadata: Value = serde_json::from_slice(&out.stdout).context("cargo metadata")?;
    let mut faults = targets::faults(&repo::root().join("tests/e2e"), &metadata)?;
    let mut known: BTreeMap<&str, &[&str]> = ARROWS.iter().copied().collect();
    let packages = metadata["packages"].as_array().context("packages")?;
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let is_api = Path::new(manifest).starts_with(repo::root().join("apis"));
        let may: &[&str] = match known.remove(name) {
            Some(may) => may,
            None if is_api => &["hetrace-interpose", "hetrace-ring"],
            None => {
                faults.push(format!("{name}: a crate without a place in xtask/src/tidy.rs"));
                continue;
            }
        };
        let inside = is_api
            || matches!(
                name,
                "hetrace-ring" | "hetrace-pool" | "hetrace-interpose" | "hetrace-closed" | "hetrace-gate"
            );
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let target = dependency["name"].as_str().unwrap_or_default();
            if dependency["kind"] != Value::Null
                || dependency["target"].as_str().is_some_and(|t| t.contains("loom"))
            {
                continue; // Tests and builds may use what they like.
            }
            let ours = target.starts_with("hetrace");
            if ours && !may.contains(&target) {
                faults.push(format!("{name} must not know {target}"));
            }
            if inside && !ours && !INSIDE.contains(&target) {
                faults.push(format!("{name} lives in other programs and must not bring {target}"));
            }
        }
    }
    Ok(faults)
}

fn file(name: &Path, names: &mut names::Names, faults: &mut Vec<String>) -> Result<()> {
    let path: PathBuf = repo::root().join(name);
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(()) };
    exclusive::check(name, &text, faults);
    proofs::check(name, &text, faults);
    links::check(repo::root(), name, &text, faults);
    let shown = name.display();
    names.check(name, &text, faults);
    let generated = text.starts_with("// @generated") || name.ends_with("model.json");
    let source = name.extension().is_some_and(|e| e == "rs") && !name.starts_with("crates/ctf/tests");
    if source && !generated && !text.starts_with("//!") {
        faults.push(format!("{shown}: begins without saying what it is for (`//!`)"));
    }
    Ok(())
}
