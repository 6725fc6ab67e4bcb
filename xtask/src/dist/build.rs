//! The build that is packed, and its symbols apart.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{checked, elf, tree};
use crate::repo;

/// Linkers and compilers of known versions, from PyPI: the linker knows the symbols of each glibc.
const TOOLS: [&str; 2] = ["ziglang==0.13.0", "cargo-zigbuild==0.24.1"];

/// The files of a build, the command first.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![folder.join("hetrace"), folder.join(repo::GATE)];
    files.extend(repo::apis()?.iter().map(|api| folder.join(format!("libhetrace_{api}.so"))));
    Ok(files)
}

/// Builds for this machine's C library.
pub fn native() -> Result<Vec<PathBuf>> {
    checked(Command::new("cargo").args(repo::build_arguments()?).current_dir(repo::root()))?;
    files(&repo::root().join("target/release"))
}

/// Builds for machines with this C library or a newer one.
pub fn portable(glibc: elf::Version) -> Result<Vec<PathBuf>> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let tools = tools()?;
    let mut arguments = repo::build_arguments()?;
    arguments[0] = "zigbuild".to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    let root = repo::root().to_str().context("the path of the repository is not text")?;
    // The same source makes the same packages wherever it lies.
    let flags =
        [format!("--remap-path-prefix={root}=/hetrace"), format!("--remap-path-prefix={cargo}=/cargo")];
    let mut build = Command::new("cargo");
    build.args(&arguments).args(["--target", &format!("{target}.{glibc}")]).current_dir(root);
    build.env("PATH", format!("{}:{path}", tools.display()));
    // Somebody's own flags are theirs to choose.
    if ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"].iter().all(|name| std::env::var_os(name).is_none()) {
        build.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    }
    checked(&mut build)?;
    files(&repo::root().join("target").join(target).join("release"))
}

/// The folder with cargo-zigbuild and zig; they are brought on first use.
fn tools() -> Result<PathBuf> {
    let folder = repo::root().join("target/dist-tools");
    let bin = folder.join("bin");
    // Written last: a folder that was not filled is filled again.
    let mark = folder.join("complete");
    if fs::read_to_string(&mark).is_ok_and(|has| has == TOOLS.join(" ")) {
        return Ok(bin);
    }
    println!("installing {} into {}", TOOLS.join(" and "), folder.display());
    checked(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip = ["-m", "pip", "install", "-q", "--disable-pip-version-check"];
    checked(Command::new(bin.join("python")).args(pip).args(TOOLS))
        .context("packages for older C libraries need them; `--native` needs nothing")?;
    fs::write(&mark, TOOLS.join(" "))?;
    Ok(bin)
}

/// Files without symbols, and the symbols.
pub struct Stripped {
    /// As they are shipped.
    pub files: Vec<PathBuf>,
    /// For debuggers: where below the prefix, and the file.
    pub symbols: Vec<(String, PathBuf)>,
}

/// Takes the symbols out of binaries, into files that debuggers find by build id or by name.
pub fn strip(built: &[PathBuf], work: &Path) -> Result<Stripped> {
    let mut stripped = Stripped { files: Vec::new(), symbols: Vec::new() };
    for from in built {
        let name = from.file_name().and_then(|n| n.to_str()).context("a file without name")?;
        ensure!(from.is_file(), "{}: was not built", from.display());
        let symbols = work.join(format!("{name}.debug"));
        checked(Command::new("objcopy").arg("--only-keep-debug").arg(from).arg(&symbols))?;
        let to = work.join(name);
        checked(Command::new("strip").arg("--strip-unneeded").arg("-o").arg(&to).arg(from))?;
        let link = format!("--add-gnu-debuglink={name}.debug");
        checked(Command::new("objcopy").current_dir(work).arg(link).arg(name))?;
        let place = match elf::build_id(&to)? {
            Some(id) if id.len() > 2 => format!("lib/debug/.build-id/{}/{}.debug", &id[..2], &id[2..]),
            // Not all linkers write ids: then by the path of what distributions' packages install, and the link.
            _ => format!("lib/debug/usr/{}.debug", tree::place(name)),
        };
        stripped.symbols.push((place, symbols));
        stripped.files.push(to);
    }
    Ok(stripped)
}
