//! Where options come from beside the command line: environment variables and `hetrace.toml`.
//!
//! All of it is made of the description that clap has: an option that is added has its variable and its place in
//! the file, and is in the manual pages.

mod file;

use clap::builder::BoolishValueParser;
use clap::{Arg, ArgAction, Command};

pub use file::{File, NAME, Problem, VARIABLE, find, is_there};

/// Returns the command line, each option with its environment variable.
pub fn with_variables(whole: Command) -> Command {
    whole.mut_subcommands(|command| {
        let prefix = match command.get_name() {
            // Its options came first, and have the short names.
            "run" => "HETRACE".to_owned(),
            name => format!("HETRACE_{}", variable(name)),
        };
        with_prefix(command, &prefix)
    })
}

fn with_prefix(command: Command, prefix: &str) -> Command {
    let command = command.mut_args(|arg| {
        let Some(long) = option(&arg).map(variable) else { return arg };
        // A flag's variable may say no, too.
        let arg = match arg.get_action() {
            ArgAction::SetTrue => arg.value_parser(BoolishValueParser::new()),
            _ => arg,
        };
        if arg.get_env().is_some() {
            return arg;
        }
        // The description lives as long as the process.
        let name: &'static str = format!("{prefix}_{long}").leak();
        arg.env(name)
    });
    command.mut_subcommands(|below| {
        let prefix = format!("{prefix}_{}", variable(below.get_name()));
        with_prefix(below, &prefix)
    })
}

/// Returns the long name of an option that has a variable and a place in the file. Others are positions, and the
/// requests for help.
pub fn option(arg: &Arg) -> Option<&str> {
    let asks = matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    arg.get_long().filter(|_| !asks)
}

fn variable(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

/// Returns the command line with the file's values in place of the defaults: variables and the command line are
/// stronger.
pub fn with(command: Command, file: &File) -> Command {
    file.settings.iter().fold(command, |command, setting| {
        let set = |command: Command| {
            command.mut_arg(&*setting.id, |arg| arg.default_values(setting.values.iter().map(|v| leaked(v))))
        };
        at(command, &setting.command, &set)
    })
}

/// Changes the command below this one that the path leads to.
fn at(command: Command, path: &[String], change: &dyn Fn(Command) -> Command) -> Command {
    match path.split_first() {
        None => change(command),
        Some((first, rest)) => command.mut_subcommand(first, |below| at(below, rest, change)),
    }
}

fn leaked(text: &str) -> &'static str {
    text.to_owned().leak()
}

#[cfg(test)]
mod tests;
