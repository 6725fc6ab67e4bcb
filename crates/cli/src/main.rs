//! The `hetrace` command.

mod args;
mod commands;

use std::process::ExitCode;

use clap::Parser;

use commands::say;

fn main() -> ExitCode {
    let cli = args::Cli::parse_from(args::with_implied_run(std::env::args_os()));
    match commands::dispatch(cli.command) {
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
            ExitCode::from(commands::OWN_FAILURE)
        }
    }
}
