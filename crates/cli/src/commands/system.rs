//! `hetrace system install` and `remove`: programs of all login shells and of systemd's user managers begin dormant.
//!
//! Three files of our own, and no line in anybody else's: one for shells, one that systemd's user managers ask for their
//! environment, and one unit of the service for these, which every user may start. What was changed since is not removed.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hetrace_session::service::standby;

use super::say;

/// Options of `system`.
#[derive(Debug, Args)]
pub struct System {
    /// What to do.
    #[command(subcommand)]
    pub what: What,
}

/// What `system` does.
#[derive(Debug, Subcommand)]
pub enum What {
    /// Let programs of login shells, desktops and systemd's user units start dormant, and add the service's unit
    Install(Root),
    /// Undo that; files that were changed since stay
    Remove(Root),
}

/// Where.
#[derive(Debug, Args)]
pub struct Root {
    /// The root folder of the system to change
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
}

/// One of our files: its path from the root, and its text.
struct Ours {
    path: &'static str,
    mode: u32,
    text: String,
}

fn files(hetrace: &Path) -> Result<[Ours; 3]> {
    let Some(program) =
        hetrace.to_str().filter(|p| p.chars().all(|c| c.is_ascii_alphanumeric() || "/._+-".contains(c)))
    else {
        bail!(
            "{}: only letters, digits and /._+- may be in the path of a program that is installed",
            hetrace.display()
        );
    };
    let named = |text: &str| text.replace("@HETRACE@", program);
    let shell = named(include_str!("../../../../packaging/profile.d/hetrace.sh"));
    let unit = named(include_str!("../../../../packaging/systemd/hetrace.service"));
    let environment = named(include_str!("../../../../packaging/systemd/user-environment-generator"));
    Ok([
        Ours { path: "etc/profile.d/hetrace.sh", mode: 0o644, text: shell },
        Ours { path: "etc/systemd/user/hetrace.service", mode: 0o644, text: unit },
        Ours { path: "etc/systemd/user-environment-generators/60-hetrace", mode: 0o755, text: environment },
    ])
}

/// What stands in a file's place.
enum There {
    Nothing,
    Ours,
    Other,
}

/// Never through a link: what it leads to is somebody else's.
fn there(path: &Path, text: &str) -> Result<There> {
    match path.symlink_metadata() {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound) => Ok(There::Nothing),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
        Ok(found) if !found.is_file() => Ok(There::Other),
        Ok(_) => {
            let now = fs::read(path).with_context(|| path.display().to_string())?;
            Ok(if now == text.as_bytes() { There::Ours } else { There::Other })
        }
    }
}

/// Runs the command.
pub fn run(args: &System) -> Result<ExitCode> {
    let program = std::env::current_exe()?;
    let files = files(&program)?;
    match &args.what {
        What::Install(at) => install(&at.root, &files),
        What::Remove(at) => remove(&at.root, &files),
    }
}

/// All or nothing: what is in the way is found before anything is written.
fn install(root: &Path, files: &[Ours]) -> Result<ExitCode> {
    let mut missing = Vec::new();
    for ours in files {
        let path = root.join(ours.path);
        match there(&path, &ours.text)? {
            There::Nothing => missing.push((path, ours)),
            There::Ours => say(format_args!("{}: installed already", path.display())),
            There::Other => bail!(
                "{}: something else is there, or another version's file that was changed; remove it first. Nothing was installed",
                path.display()
            ),
        }
    }
    let mut done: Vec<PathBuf> = Vec::new();
    for (path, ours) in missing {
        if let Err(error) = write(&path, ours) {
            done.iter().for_each(|path| _ = fs::remove_file(path));
            return Err(error).with_context(|| format!("{}; nothing was installed", path.display()));
        }
        done.push(path);
    }
    done.iter().for_each(|path| say(format_args!("{}: installed", path.display())));
    say(format_args!(
        "login shells and user managers (desktops) that begin from now on let their programs start dormant; next: systemctl --user start hetrace"
    ));
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, ours: &Ours) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(ours.mode).open(path)?;
    file.set_permissions(fs::Permissions::from_mode(ours.mode))?;
    let written = file.write_all(ours.text.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        let _ = fs::remove_file(path);
    }
    written
}

fn remove(root: &Path, files: &[Ours]) -> Result<ExitCode> {
    let mut left = Vec::new();
    for ours in files {
        let path = root.join(ours.path);
        match there(&path, &ours.text)? {
            There::Nothing => {}
            There::Ours => {
                fs::remove_file(&path).with_context(|| path.display().to_string())?;
                say(format_args!("{}: removed", path.display()));
            }
            There::Other => left.push(path.display().to_string()),
        }
    }
    if root == Path::new("/") {
        // What programs of this user were started with, as long as one uses it.
        let libraries = super::run::chosen(&["auto".to_owned()])?;
        if let Ok(own) = standby::path(&libraries) {
            let removed = standby::clean(&own);
            removed.iter().for_each(|path| say(format_args!("{}: removed", path.display())));
        }
    }
    if !left.is_empty() {
        bail!("not removed, since it was changed or is from another version: {}", left.join(", "));
    }
    Ok(ExitCode::SUCCESS)
}
