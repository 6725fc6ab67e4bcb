//! Collects what the APIs of this source tree need of a machine, so that the launcher leaves out the absent ones without
//! opening their libraries ([`apis::candidate`](src/apis/candidate.rs)).
//!
//! A library that is not in this list is opened: nothing has to be added here for a new API.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = Path::new("../../apis");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.path().join("src/generated/needs.txt"))
        .filter(|file| file.exists())
        .collect();
    files.sort();
    let mut needs = String::new();
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        needs += &fs::read_to_string(file)?;
    }
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("needs.txt"), needs)
}
