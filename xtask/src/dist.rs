//! `cargo xtask dist`: an archive that runs where it is unpacked.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::repo;

/// Arguments of `dist`.
#[derive(Parser)]
pub struct Args {}

/// Builds, strips and packs: the binary, the API libraries, the header for programs, the manual page,
/// the licences.
///
/// ```text
///   hetrace-VERSION-ARCH/bin/hetrace
///                       /lib/hetrace/libhetrace_*.so
///                       /include/hetrace.h
///                       /share/man/man1/hetrace.1
/// ```
pub fn run(_: &Args) -> Result<ExitCode> {
    let mut build = Command::new("cargo");
    build.args(repo::build_arguments()?);
    checked(build.current_dir(repo::root()))?;
    let name = format!("hetrace-{}-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    let out = repo::root().join("target/dist");
    let folder = out.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let release = repo::root().join("target/release");
    for place in ["bin", "lib/hetrace", "include", "share/man/man1", "share/doc/hetrace"] {
        fs::create_dir_all(folder.join(place))?;
    }
    strip(&release.join("hetrace"), &folder.join("bin/hetrace"))?;
    for api in repo::apis()? {
        let file = format!("libhetrace_{api}.so");
        strip(&release.join(&file), &folder.join("lib/hetrace").join(&file))?;
    }
    fs::copy(repo::root().join("include/hetrace.h"), folder.join("include/hetrace.h"))?;
    let page = Command::new(release.join("hetrace")).arg("man").output()?;
    fs::write(folder.join("share/man/man1/hetrace.1"), page.stdout)?;
    for text in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        fs::copy(repo::root().join(text), folder.join("share/doc/hetrace").join(text))
            .with_context(|| text)?;
    }
    let archive = out.join(format!("{name}.tar.gz"));
    checked(Command::new("tar").arg("-C").arg(&out).arg("-czf").arg(&archive).arg(&name))?;
    println!("{}", archive.display());
    Ok(ExitCode::SUCCESS)
}

/// Copies a file without what only a debugger wants.
fn strip(from: &Path, to: &Path) -> Result<()> {
    checked(Command::new("strip").arg("--strip-debug").arg("-o").arg(to).arg(from))
}

fn checked(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}
