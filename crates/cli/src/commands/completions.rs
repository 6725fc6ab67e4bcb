//! `hetrace completions`: what shells complete.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::Shell;

/// Options of `completions`.
#[derive(Debug, Args)]
#[command(after_help = "\
To have them in shells that begin from now on:
  bash: hetrace completions bash > ~/.local/share/bash-completion/completions/hetrace
  zsh:  hetrace completions zsh > FOLDER/_hetrace, where FOLDER is in $fpath
  fish: hetrace completions fish > ~/.config/fish/completions/hetrace.fish
Packages install them.")]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// Prints the shell's completions.
pub fn run(args: &Completions, whole: Command) -> Result<ExitCode> {
    let mut out = Vec::new();
    clap_complete::generate(args.shell, &mut with_apis(whole), "hetrace", &mut out);
    std::io::stdout().write_all(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// Lets shells complete the names of the APIs that this installation has libraries of.
fn with_apis(command: Command) -> Command {
    let Ok(found) = hetrace_session::apis::find() else { return command };
    let names: Vec<&'static str> = found.iter().map(|library| &*library.api.to_string().leak()).collect();
    if names.is_empty() {
        return command;
    }
    let is_api = |arg: &clap::Arg| {
        matches!(arg.get_id().as_str(), "api")
            || arg.get_value_names().is_some_and(|names| names.iter().any(|n| n.as_str() == "API"))
    };
    command.mut_subcommands(|below| {
        let is_run = below.get_name() == "run";
        below.mut_args(|arg| {
            let is_choice = is_run && arg.get_id() == "trace";
            match is_choice || is_api(&arg) {
                true => {
                    let all = is_choice.then_some("auto");
                    arg.value_parser(PossibleValuesParser::new(all.into_iter().chain(names.iter().copied())))
                }
                false => arg,
            }
        })
    })
}
