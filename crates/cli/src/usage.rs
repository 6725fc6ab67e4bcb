//! What was meant when a command line is not one of ours.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// How alike two names are that may be meant for each other, from 0 to 1.
const ALIKE: f64 = 0.7;

/// Returns the name that is most like this one, if any is like it.
pub fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Two letters in the wrong order are one slip, which in a short name leaves little that is alike.
    let slip = |n: &str| n.len() > 2 && strsim::osa_distance(name, n) == 1;
    let likeness = names.map(|n| (if slip(n) { 1.0 } else { strsim::jaro_winkler(name, n) }, n));
    likeness.filter(|(alike, _)| *alike > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, n)| n)
}

/// Puts `run --` before a command line that begins with a program.
pub fn with_implied_run(mut args: Vec<OsString>, command: &Command) -> Vec<OsString> {
    if implies_run(&args, command) {
        args.splice(1..1, ["run".into(), "--".into()]);
    }
    args
}

fn implies_run(args: &[OsString], command: &Command) -> bool {
    let Some(first) = args.get(1).map(|a| a.to_string_lossy()) else { return false };
    let is_ours = first == "help" || first.starts_with('-') || is_command(command, &first);
    !is_ours
}

fn is_command(command: &Command, name: &str) -> bool {
    command.get_subcommands().any(|c| c.get_name() == name)
}

/// Returns what to say of a first word that is neither a command nor a program that could be run.
pub fn no_command(args: &[OsString], command: &Command, path: Option<&OsStr>) -> Option<String> {
    let first = args.get(1).filter(|_| implies_run(args, command))?;
    // Without a PATH the C library has one of its own.
    if first.as_encoded_bytes().contains(&b'/') || path.is_none_or(|path| is_on(path, first)) {
        return None;
    }
    let name = first.to_string_lossy();
    let here =
        Path::new(first).is_file().then(|| format!("the program in this folder is `hetrace ./{name}`"));
    let names = command.get_subcommands().filter(|c| !c.is_hide_set()).map(Command::get_name);
    let near = nearest(&name, names).map(|near| format!("did you mean `hetrace {near}`?"));
    let advice = here.or(near).unwrap_or_else(|| "`hetrace --help` lists the commands".to_owned());
    Some(format!("`{name}`: neither a command of hetrace nor a program on the PATH; {advice}"))
}

fn is_on(path: &OsStr, program: &OsStr) -> bool {
    let runs =
        |file: &Path| file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    std::env::split_paths(path).any(|folder| runs(&folder.join(program)))
}

/// Returns what to say beside clap's words about an option that the command does not have: which command has it,
/// and on which side of `--` it belongs.
pub fn misplaced(error: &clap::Error, args: &[OsString], command: &Command) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return None };
    let name = wrong.split(['=', ' ']).next().unwrap_or(wrong);
    if !name.starts_with('-') {
        return None;
    }
    let first = args.get(1).map(|a| a.to_string_lossy()).unwrap_or_default();
    let having: Vec<&str> = command
        .get_subcommands()
        .filter(|c| !c.is_hide_set() && c.get_name() != first && has(c, name))
        .map(Command::get_name)
        .collect();
    let mut said = Vec::new();
    if first.starts_with('-') && having.contains(&"run") {
        // Before any command: a program was to be run with it.
        said.push(format!("`{name}` is an option of `run`: hetrace run {name} … -- PROGRAM"));
    } else if !having.is_empty() {
        let commands: Vec<String> = having.iter().map(|c| format!("`{c}`")).collect();
        said.push(format!("`{name}` is an option of {}", commands.join(", ")));
    }
    if matches!(&*first, "run" | "cost") {
        said.push(format!(
            "options of hetrace stand before `--`, those of the program after it: hetrace {first} -- PROGRAM {name}"
        ));
    }
    (!said.is_empty()).then(|| said.join("\n"))
}

fn has(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| name.chars().nth(1) == Some(short)),
    })
}

#[cfg(test)]
mod tests;
