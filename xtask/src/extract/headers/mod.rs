//! C headers of many versions to one [`Extracted`].
//!
//! ```text
//! clang.rs    ─► parses one version in one mode ─► ctype.rs, records.rs ─► Snapshot
//! snapshot.rs ─► all modes of one version together
//! layouts.rs  ─► types of all versions together
//! merge.rs    ─► functions, values and all else together
//! same.rs     ─► one name for types of the same objects
//! handles.rs  ─► structs that are handles
//! ```
//! libclang is loaded when an extraction runs, so nothing else needs it.

mod clang;
mod ctype;
mod deprecations;
mod entity;
mod handles;
mod history;
mod layouts;
mod merge;
mod records;
mod same;
mod snapshot;
#[cfg(test)]
mod tests;
mod values;

use std::path::PathBuf;

use anyhow::{Context, Result};
use hetrace_model::Registry;
use sha2::{Digest, Sha256};

use super::description::{Description, Headers};
use super::sources::{self, Found};
use super::{Extraction, hex};
use crate::repo;

/// Reads all versions of an API.
pub fn extract(api: &Description, headers: &Headers, found: &[Found]) -> Result<Extraction> {
    let stand_ins = stand_ins(api);
    let libclang = clang::load()?;
    let mut versions = Vec::new();
    let mut sum = Sha256::new();
    for Found { version, place, with } in found {
        let mut read = || -> Result<_> {
            let root = sources::include_folder(place, &headers.files[0])?.canonicalize()?;
            // Behind the stand-ins.
            let mut others = stand_ins.clone();
            for package in with {
                others.push(sources::any_include_folder(package)?);
            }
            let snapshot = clang::read(&libclang, headers, version, &root, &others)?;
            for file in &snapshot.inputs {
                sum.update(std::fs::read(file).with_context(|| format!("reading {}", file.display()))?);
            }
            Ok(snapshot)
        };
        versions.push(read().with_context(|| place.display().to_string())?);
    }
    let mut done = merge::merge(&api.api, headers, versions);
    same::unite(&mut done.extracted, &headers.same)?;
    values::also(&mut done.extracted.enums, &headers.also)?;
    handles::by_value(&mut done.extracted, &headers.handles)?;
    handles::by_address(&mut done.extracted, &headers.objects)?;
    done.extracted.registry = Registry {
        file: headers.files.join(", "),
        sha256: hex(&sum.finalize()),
        versions: found.iter().map(|f| f.version.clone()).filter(|v| !v.is_empty()).collect(),
    };
    Ok(done)
}

/// Folders with just enough of the headers of others: the API's own before C's.
fn stand_ins(api: &Description) -> Vec<PathBuf> {
    let folders = [api.folder.join("include"), repo::root().join("xtask/src/extract/headers/c")];
    folders.into_iter().filter(|f| f.is_dir()).collect()
}
