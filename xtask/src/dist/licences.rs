//! Licences of the crates that are linked into what is shipped: their authors ask that the notices go with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::text_of;
use crate::repo;

/// Returns names, versions, licences and notices of all crates that the command and the libraries contain.
pub fn text() -> Result<String> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = ["metadata", "--format-version", "1", "--filter-platform", &platform];
    let metadata = text_of(Command::new("cargo").args(metadata).current_dir(repo::root()))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = by_id(&metadata["packages"]);
    let mut out = String::from(
        "hetrace contains the crates below, each under its own licence, and Rust's standard library\n\
         (https://github.com/rust-lang/rust: MIT or Apache-2.0).\n",
    );
    // One text for all that have the same.
    let mut notices: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for id in linked(&metadata, &shipped(&packages)?)? {
        let package = packages[&*id];
        if package["source"].is_null() {
            continue;
        }
        let name = format!("{} {}", string(&package["name"]), string(&package["version"]));
        out += &format!("\n{name}: {}", string(&package["license"]));
        let folder =
            Path::new(string(&package["manifest_path"])).parent().context("a manifest without folder")?;
        for notice in notices_in(folder)? {
            notices.entry(notice).or_default().push(name.clone());
        }
    }
    out.push('\n');
    for (notice, names) in notices {
        out += &format!("\n{}\n{}\n\n{}\n", "-".repeat(72), names.join(", "), notice.trim());
    }
    Ok(out)
}

/// Ids of our packages that are shipped.
fn shipped(packages: &BTreeMap<&str, &Value>) -> Result<Vec<String>> {
    let mut names: Vec<String> = repo::apis()?.iter().map(|api| format!("hetrace-{api}")).collect();
    names.extend(["hetrace-cli", "hetrace-gate"].map(str::to_owned));
    let ours = packages.iter().filter(|(_, p)| names.iter().any(|n| p["name"] == **n));
    Ok(ours.map(|(id, _)| (*id).to_owned()).collect())
}

/// Ids of all packages that these are linked with. What only builds or tests them is not.
fn linked(metadata: &Value, roots: &[String]) -> Result<BTreeSet<String>> {
    let nodes = by_id(&metadata["resolve"]["nodes"]);
    let packages = by_id(&metadata["packages"]);
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = roots.iter().map(|id| &**id).collect();
    while let Some(id) = open.pop() {
        if is_macro(packages[id]) || !found.insert(id.to_owned()) {
            continue;
        }
        let node = nodes.get(id).with_context(|| format!("cargo metadata has no {id}"))?;
        for dependency in node["deps"].as_array().into_iter().flatten() {
            let kinds = dependency["dep_kinds"].as_array();
            if kinds.into_iter().flatten().any(|kind| kind["kind"].is_null()) {
                open.push(string(&dependency["pkg"]));
            }
        }
    }
    Ok(found)
}

/// Whether it runs in the compiler only.
fn is_macro(package: &Value) -> bool {
    let mut targets = package["targets"].as_array().into_iter().flatten();
    targets
        .any(|target| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k == "proc-macro")))
}

fn notices_in(folder: &Path) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let is_notice =
            ["LICENSE", "LICENCE", "COPYING", "NOTICE"].iter().any(|start| name.starts_with(start));
        if is_notice && entry.path().is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path())?).replace("\r\n", "\n"));
        }
    }
    texts.sort();
    Ok(texts)
}

fn by_id(list: &Value) -> BTreeMap<&str, &Value> {
    list.as_array().into_iter().flatten().map(|p| (string(&p["id"]), p)).collect()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}
