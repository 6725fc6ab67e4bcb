//! `cargo xtask dist`: an archive that runs where it is unpacked, a Debian package, an RPM and a Python
//! wheel, all of one build; and a check that each installs and runs ([decision 0063]).
//!
//! [decision 0063]: ../../docs/decisions/0063-packages.md

mod archive;
mod build;
mod check;
mod elf;
mod licences;
mod rpm;
mod tree;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;

use crate::repo;
use tree::Tree;

/// The oldest C library that packages run with: that of RHEL 8, Debian 10 and Ubuntu 18.10.
const GLIBC: elf::Version = elf::Version(2, 28);

/// Arguments of `dist`.
#[derive(Parser)]
pub struct Args {
    /// Pack the build for this machine's C library in target/release, as a quick check; such packages run
    /// with no older one
    #[arg(long)]
    native: bool,
    /// Do not install the packages and run what they install
    #[arg(long)]
    no_check: bool,
    /// Install the Debian package in a whole Debian of this name, too (debootstrap, network and root are
    /// needed), such as bullseye
    #[arg(long, value_name = "SUITE", conflicts_with = "no_check")]
    debian: Option<String>,
}

/// What is packed, and as what.
pub struct Package {
    /// Files below the prefix.
    tree: Tree,
    /// Version of hetrace.
    version: &'static str,
    /// The processors, as Rust names them.
    arch: &'static str,
    /// The least C library that it runs with.
    glibc: elf::Version,
    /// Whether a file needs the compiler's run-time library.
    needs_libgcc: bool,
    /// The time that all files bear, in seconds since 1970.
    date: u32,
}

impl Package {
    /// `hetrace-VERSION-ARCH`.
    fn name(&self) -> String {
        format!("hetrace-{}-{}", self.version, self.arch)
    }
}

/// One sentence about hetrace for packages.
const SUMMARY: &str = "Tracer for OpenCL and CUDA programs";

/// What it is, for packages.
const DESCRIPTION: &str = "hetrace records every call of a program into OpenCL, CUDA, HIP, Level Zero, NCCL, NVTX, ITT and ROCTX \
                           with its arguments, and every command of OpenCL and CUDA on the devices with its true times, on one \
                           time line.";

/// Where the project's users write to, for forms that want an address.
const MAINTAINER: &str = "The hetrace developers <hetrace@hetrace.invalid>";

/// Builds, makes all packages, and checks them.
pub fn run(args: &Args) -> Result<ExitCode> {
    let built = if args.native { build::native()? } else { build::portable(GLIBC)? };
    let out = repo::root().join("target/dist");
    let work = tempfile::tempdir()?;
    let stripped = build::strip(&built, work.path())?;
    let needs = elf::needs(&stripped.files)?;
    if !args.native {
        ensure!(
            needs.glibc <= GLIBC,
            "{}: needs glibc {}, but packages are to run with {GLIBC}",
            needs.by.display(),
            needs.glibc
        );
    }
    let package = Package {
        tree: tree::collect(&stripped.files)?,
        version: env!("CARGO_PKG_VERSION"),
        arch: std::env::consts::ARCH,
        glibc: needs.glibc,
        needs_libgcc: needs.libgcc,
        date: date()?,
    };
    fs::create_dir_all(&out)?;
    let made = Made {
        tarball: archive::tarball(&package, &out)?,
        deb: archive::deb(&package, &out)?,
        rpm: rpm::write(&package, &out)?,
        wheel: wheel::write(&package, &out, args.native)?,
    };
    let symbols = archive::symbols(&package, &stripped.symbols, &out)?;
    println!(
        "needs glibc {} ({}){}",
        needs.glibc,
        needs.by.display(),
        if needs.libgcc { ", libgcc_s" } else { "" }
    );
    for path in made.all().into_iter().chain([&*symbols]) {
        println!("{:>9} bytes  {}", fs::metadata(path)?.len(), path.display());
    }
    if !args.no_check {
        check::all(&package, &made)?;
    }
    if let Some(suite) = &args.debian {
        check::debian(suite, &made.deb, &package)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The packages that were made.
pub struct Made {
    tarball: PathBuf,
    deb: PathBuf,
    rpm: PathBuf,
    wheel: PathBuf,
}

impl Made {
    fn all(&self) -> [&Path; 4] {
        [&self.tarball, &self.deb, &self.rpm, &self.wheel]
    }
}

/// The time that all files bear, so that the same source makes the same packages: SOURCE_DATE_EPOCH, or that of
/// the last commit.
fn date() -> Result<u32> {
    if let Ok(asked) = std::env::var("SOURCE_DATE_EPOCH") {
        return asked.parse().context("SOURCE_DATE_EPOCH");
    }
    let log = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(repo::root()).output();
    let commit = log.ok().and_then(|log| String::from_utf8_lossy(&log.stdout).trim().parse().ok());
    // 1980 is where the times of zip files begin.
    Ok(commit.unwrap_or(315_532_800))
}

fn checked(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

/// What a command wrote to stdout.
fn text_of(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
