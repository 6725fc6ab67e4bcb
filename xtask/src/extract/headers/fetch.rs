//! The packages that hold the headers, from PyPI or from a folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::table::{HeaderApi, Package};
use crate::repo;

/// Headers of ours: what packages leave out, and just enough of the headers of
/// others to parse the API's own. (`folder`, name, text)
const OWN: &[(&str, &str, &str)] = &[
    ("common", "hetrace_cuda.h", include_str!("include/common/hetrace_cuda.h")),
    ("common", "hetrace_cudart.h", include_str!("include/common/hetrace_cudart.h")),
    ("common", "crt/host_defines.h", include_str!("include/common/host_defines.h")),
    ("common", "cudaProfiler.h", ""),
    ("common", "cuda_runtime.h", "#include <cuda_runtime_api.h>\n"),
    ("common", "limits.h", include_str!("include/common/limits.h")),
    ("common", "stdbool.h", "#define bool _Bool\n#define true 1\n#define false 0\n"),
    ("common", "stddef.h", include_str!("include/common/stddef.h")),
    ("common", "stdint.h", include_str!("include/common/stdint.h")),
    ("common", "stdlib.h", "#include <stddef.h>\n"),
    ("common", "string.h", "#include <stddef.h>\n"),
    ("common", "wchar.h", "#include <stddef.h>\n"),
    ("common", "GL/gl.h", include_str!("include/common/gl.h")),
    ("common", "EGL/egl.h", include_str!("include/common/egl.h")),
    ("common", "EGL/eglext.h", "#include <EGL/egl.h>\n"),
    ("common", "vdpau/vdpau.h", include_str!("include/common/vdpau.h")),
    ("nccl", "cuda_runtime.h", include_str!("include/nccl/cuda_runtime.h")),
    ("nccl", "hetrace_nccl.h", include_str!("include/nccl/hetrace_nccl.h")),
    ("nccl", "cuda.h", include_str!("include/nccl/cuda.h")),
    ("nccl", "cuda_fp16.h", ""),
];

/// Each version with the folder that it includes its headers from.
pub fn roots(api: &HeaderApi, folder: Option<&Path>) -> Result<Vec<(&'static str, PathBuf)>> {
    if api.packages.is_empty() {
        return Ok(vec![("", repo::root().join("apis").join(api.name))]);
    }
    let roots = api.packages.iter().map(|package| {
        let place = match folder {
            Some(folder) => unpacked(folder, package)?
                .with_context(|| format!("no folder {}* in {}", stem(package), folder.display()))?,
            None => fetched(package)?,
        };
        let found = find(&place, api.headers[0])?;
        let found = found.with_context(|| format!("no {} in {}", api.headers[0], place.display()))?;
        Ok((package.label, found))
    });
    roots.collect()
}

/// How the names of a package's files begin.
fn stem(package: &Package) -> String {
    format!("{}-{}-", package.name.replace('-', "_"), package.version)
}

fn unpacked(folder: &Path, package: &Package) -> Result<Option<PathBuf>> {
    let stem = stem(package);
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(&stem) && entry.path().is_dir() {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Reads headers out of wheels.
const WHEEL: &str = include_str!("wheel.py");

/// Downloads a package's headers, unless an earlier run did.
fn fetched(package: &Package) -> Result<PathBuf> {
    let cache = repo::root().join("target/headers");
    std::fs::create_dir_all(&cache)?;
    if let Some(there) = unpacked(&cache, package)? {
        return Ok(there);
    }
    let requirement = format!("{}=={}", package.name, package.version);
    let place = cache.join(format!("{}headers", stem(package)));
    eprintln!("downloading the headers of {requirement}");
    let part = place.with_extension("part");
    run(Command::new("python3").args(["-c", WHEEL, &requirement]).arg(&part))?;
    // A folder of this name is whole.
    std::fs::rename(&part, &place)?;
    Ok(place)
}

fn run(command: &mut Command) -> Result<()> {
    let status = command.status().context("starting python3")?;
    ensure!(status.success(), "python3: {status}");
    Ok(())
}

/// The folder under `folder` that has this header, by its path as included.
fn find(folder: &Path, header: &str) -> Result<Option<PathBuf>> {
    if folder.join(header).is_file() {
        return Ok(Some(folder.to_owned()));
    }
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        entries.push(entry?.path());
    }
    entries.sort();
    for path in entries.into_iter().filter(|p| p.is_dir()) {
        if let Some(found) = find(&path, header)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Writes our headers where libclang finds them: the API's own before those
/// that all share.
pub fn own_headers(api: &HeaderApi) -> Result<Vec<PathBuf>> {
    let place = repo::root().join("target/headers/own");
    let mut folders = Vec::new();
    for folder in [api.name, "common"] {
        for (_, name, text) in OWN.iter().filter(|(f, ..)| *f == folder) {
            let path = place.join(folder).join(name);
            let Some(parent) = path.parent() else { bail!("no folder for {name}") };
            std::fs::create_dir_all(parent)?;
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        folders.push(place.join(folder));
    }
    Ok(folders.into_iter().filter(|f| f.is_dir()).collect())
}
