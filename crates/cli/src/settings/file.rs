//! `hetrace.toml`: a table for each command, in it a line for each option.
//!
//! ```toml
//! [run]
//! mode = "full"
//! include = ["cl*", "cu*"]
//! quiet = true
//!
//! [tally]
//! top = 20
//! ```
//!
//! One file is in force: the one that `HETRACE_CONFIG` names, or the one in this folder, or the user's own.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};
use toml::de::{DeTable, DeValue};

use super::option;
use crate::usage::nearest;

/// The name of the file.
pub const NAME: &str = "hetrace.toml";

/// The variable that names another file; empty for none.
pub const VARIABLE: &str = "HETRACE_CONFIG";

/// A file that is in force.
#[derive(Debug, Default)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// What it sets.
    pub settings: Vec<Setting>,
}

/// An option's value.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    /// The command: `["tally"]`.
    pub command: Vec<String>,
    /// The option, as clap calls it.
    pub id: String,
    /// Its values.
    pub values: Vec<String>,
}

/// Why a file is not in force.
#[derive(Debug)]
pub enum Problem {
    /// There is something wrong in it: where, and what.
    Wrong(String),
    /// It could be somebody else's doing, and nobody asked for it.
    Distrusted(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Problem::Wrong(text) | Problem::Distrusted(text)) = self;
        f.write_str(text)
    }
}

/// Returns the file that is in force, if there is any.
///
/// # Errors
/// What is wrong with it.
pub fn find(command: &Command) -> Result<Option<File>, Problem> {
    let Some((path, is_named)) = which() else { return Ok(None) };
    if !is_named {
        trusted(&path)?;
    }
    read(&path, command).map(Some)
}

/// Whether there may be a file that is in force.
pub fn is_there() -> bool {
    which().is_some()
}

/// Which file may be in force, and whether somebody has named it.
fn which() -> Option<(PathBuf, bool)> {
    match std::env::var_os(VARIABLE) {
        Some(named) => (!named.is_empty()).then(|| (PathBuf::from(named), true)),
        None => Some((places().into_iter().find(|path| path.is_file())?, false)),
    }
}

/// Where it is looked for.
fn places() -> Vec<PathBuf> {
    let is_set = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let own = is_set("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.or_else(|| is_set("HOME").map(|home| Path::new(&home).join(".config")));
    [Some(PathBuf::from(NAME)), own.map(|folder| folder.join("hetrace").join(NAME))]
        .into_iter()
        .flatten()
        .collect()
}

/// A file in a folder that others can write to may have options that its finder would never give: a library to
/// open, say.
fn trusted(path: &Path) -> Result<(), Problem> {
    let wrong = |error: std::io::Error| Problem::Wrong(format!("{}: {error}", path.display()));
    let about = path.metadata().map_err(wrong)?;
    let own = rustix::process::geteuid().as_raw();
    let why = match (about.uid(), about.mode() & 0o002) {
        (owner, _) if owner != own && owner != 0 => "it belongs to another user",
        (_, 0) => return Ok(()),
        _ => "all users can write it",
    };
    let path = path.display();
    Err(Problem::Distrusted(format!(
        "{path}: not used, because {why}; {VARIABLE}={path} uses it all the same"
    )))
}

fn read(path: &Path, command: &Command) -> Result<File, Problem> {
    let wrong = |what: String| Problem::Wrong(format!("{}{what}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!(": {error}")))?;
    let settings = parse(&text, command).map_err(|(at, what)| {
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        wrong(format!(":{line}: {what}"))
    })?;
    Ok(File { path: path.to_owned(), settings })
}

/// What is wrong, and at which byte.
type Wrong = (usize, String);

fn parse(text: &str, command: &Command) -> Result<Vec<Setting>, Wrong> {
    let table = DeTable::parse(text)
        .map_err(|error| (error.span().map_or(0, |span| span.start), error.message().to_owned()))?;
    let mut settings = Vec::new();
    section(table.get_ref(), command, &[], &mut settings)?;
    Ok(settings)
}

/// Reads the options of a command, and the tables of those below it.
fn section(table: &DeTable, command: &Command, path: &[String], out: &mut Vec<Setting>) -> Result<(), Wrong> {
    for (key, value) in table {
        let (at, key) = (key.span().start, key.get_ref().as_ref());
        if let DeValue::Table(below) = value.get_ref() {
            let Some(found) = command.get_subcommands().find(|c| c.get_name() == key) else {
                let names = command.get_subcommands().map(Command::get_name);
                return Err((at, unknown("command", key, names)));
            };
            let path: Vec<String> = path.iter().cloned().chain([key.to_owned()]).collect();
            section(below, found, &path, out)?;
            continue;
        }
        if path.is_empty() {
            return Err((
                at,
                format!("`{key}` stands above all tables; a table is that of a command, such as [run]"),
            ));
        }
        let Some(arg) = command.get_arguments().find(|arg| option(arg) == Some(key)) else {
            let what = format!("option of `{}`", path.join(" "));
            return Err((at, unknown(&what, key, command.get_arguments().filter_map(option))));
        };
        let at = value.span().start;
        if let Some(values) =
            values(value.get_ref(), arg, command).map_err(|what| (at, format!("{key}: {what}")))?
        {
            out.push(Setting { command: path.to_vec(), id: arg.get_id().to_string(), values });
        }
    }
    Ok(())
}

fn unknown<'n>(what: &str, name: &str, names: impl Iterator<Item = &'n str>) -> String {
    match nearest(name, names) {
        Some(near) => format!("no {what} is called `{name}`; did you mean `{near}`?"),
        None => format!("no {what} is called `{name}`"),
    }
}

/// Returns what is set; nothing for an option that is switched off.
fn values(value: &DeValue, arg: &Arg, command: &Command) -> Result<Option<Vec<String>>, String> {
    let is_flag = matches!(arg.get_action(), ArgAction::SetTrue);
    let list = match value {
        DeValue::Boolean(false) => return Ok(None),
        DeValue::Boolean(true) if is_flag => return Ok(Some(vec!["true".to_owned()])),
        DeValue::Boolean(true) => return optional(arg, command).map(Some),
        _ if is_flag => return Err("expected true or false".to_owned()),
        DeValue::Array(values) => {
            values.iter().map(|v| scalar(v.get_ref())).collect::<Result<Vec<_>, _>>()?
        }
        other => vec![scalar(other)?],
    };
    if list.len() > 1 && !matches!(arg.get_action(), ArgAction::Append) {
        return Err("expected one value".to_owned());
    }
    for value in &list {
        acceptable(value, arg, command)?;
    }
    Ok((!list.is_empty()).then_some(list))
}

/// Returns what an option stands for that may be given without a value.
fn optional(arg: &Arg, command: &Command) -> Result<Vec<String>, String> {
    let none = || "expected a value".to_owned();
    if arg.get_num_args().is_none_or(|n| n.min_values() > 0) {
        return Err(none());
    }
    let line = [command.get_name().to_owned(), format!("--{}", option(arg).unwrap_or_default())];
    // Other arguments are missing.
    let parsed = command.clone().ignore_errors(true).try_get_matches_from(line).map_err(|e| e.to_string())?;
    let values = parsed.get_raw(arg.get_id().as_str()).ok_or_else(none)?;
    Ok(values.map(|v| v.to_string_lossy().into_owned()).collect())
}

fn scalar(value: &DeValue) -> Result<String, String> {
    Ok(match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(yes) => yes.to_string(),
        _ => return Err("expected a text, a number, true or false, or a list of them".to_owned()),
    })
}

/// Asks clap whether the option takes this value on the command line.
fn acceptable(value: &str, arg: &Arg, command: &Command) -> Result<(), String> {
    let line = [command.get_name().to_owned(), format!("--{}={value}", option(arg).unwrap_or_default())];
    match command.clone().try_get_matches_from(line) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) => {
            // Of clap's words only those about the value: the usage that follows is that of a command line.
            let text = error.to_string();
            let text = text.trim_start_matches("error: ");
            let about: Vec<&str> =
                text.lines().take_while(|l| !l.starts_with("For more")).map(str::trim).collect();
            Err(about.into_iter().filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" "))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(super) fn parse_for_tests(text: &str, command: &Command) -> Result<Vec<Setting>, Wrong> {
    parse(text, command)
}
