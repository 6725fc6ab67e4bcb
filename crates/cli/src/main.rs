//! The `hetrace` command.

mod args;
mod command_line;
mod commands;
mod memory;
mod settings;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::ContextKind;

use command_line::Cli;
use commands::say;
use settings::Problem;

/// Exit status when what was typed, a variable or the configuration file is wrong.
const WRONG_USAGE: u8 = 2;

/// Exit status when there is no such program.
const NO_PROGRAM: u8 = 127;

/// Commands that work whatever is wrong with the configuration file: they help to correct it.
const WITHOUT_FILE: [&str; 4] = ["doctor", "man", "completions", "help"];

fn main() -> ExitCode {
    let cli = match parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match command_line::dispatch(cli.command) {
        Ok(code) => code,
        Err(error) => {
            // A reader that has seen enough (`| head`) is no failure.
            if commands::is_closed_pipe(&error) {
                return ExitCode::SUCCESS;
            }
            if commands::is_stopped(&error) {
                return commands::watch::interrupted();
            }
            say(format_args!("{error:#}"));
            ExitCode::from(commands::failure(&error))
        }
    }
}

/// Returns what is to be done, or the exit status after what is wrong was said.
fn parse(typed: Vec<OsString>) -> Result<Cli, ExitCode> {
    if let Some(cli) = quickly(&typed) {
        return Ok(cli);
    }
    let command = command_line::whole();
    if let Some(what) = usage::no_command(&typed, &command, std::env::var_os("PATH").as_deref()) {
        say(format_args!("{what}"));
        return Err(ExitCode::from(NO_PROGRAM));
    }
    let is_general = typed.get(1).is_none_or(|first| {
        WITHOUT_FILE.iter().any(|name| first == name) || first.as_encoded_bytes().starts_with(b"-")
    });
    let file = match settings::find(&command) {
        _ if is_general => None,
        Ok(file) => file,
        Err(Problem::Distrusted(why)) => {
            say(format_args!("{why}"));
            None
        }
        Err(Problem::Wrong(why)) => {
            say(format_args!("{why}"));
            return Err(ExitCode::from(WRONG_USAGE));
        }
    };
    let typed = usage::with_implied_run(typed, &command);
    let set = match &file {
        Some(file) => settings::with(command.clone(), file),
        None => command.clone(),
    };
    let parsed = set.try_get_matches_from(&typed).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|mut error| {
        let meant = usage::misplaced(&error, &typed, &command);
        if meant.is_some() {
            // What is known is better than what looks alike.
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Suggested);
        }
        // A closed stdout or stderr is no reason to end otherwise.
        let _ = error.print();
        if let Some(what) = meant {
            what.lines().for_each(|line| say(format_args!("{line}")));
        }
        ExitCode::from(error.exit_code() as u8)
    })
}

/// Returns what is to be done if it begins with a command, is right, and no file says anything about it: the usual case,
/// for which the other commands need not be described.
fn quickly(typed: &[OsString]) -> Option<Cli> {
    let name = typed.get(1)?.to_str()?;
    let command = command_line::alone(name)?;
    if settings::is_there() {
        return None;
    }
    let matches = command.try_get_matches_from(typed).ok()?;
    Cli::from_arg_matches(&matches).ok()
}
