//! The command line: the commands there are, and which function runs each.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::{args, commands, memory, settings};

/// Shows what a program and its accelerators really did, on one timeline.
#[derive(Debug, Parser)]
#[command(name = "hetrace", version, about, long_about = None, max_term_width = 100)]
#[command(after_help = "\
`hetrace ./app args` is short for `hetrace run -- ./app args`. Each option has an environment variable and a place \
in hetrace.toml; `hetrace man` has them, and the exit statuses.")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a program, record what it does, and print a summary
    Run(Box<args::Run>),
    /// Print tables of calls, device commands and memory traffic
    Tally(args::Tally),
    /// Print every event, decoded
    Print(args::Print),
    /// Show what each thread was in at the end, its last calls, and commands that did not end: after a crash or a hang
    Postmortem(commands::postmortem::Postmortem),
    /// Write a timeline for Perfetto (ui.perfetto.dev)
    Timeline(commands::timeline::Timeline),
    /// Convert a trace to the format of another tool
    Export(commands::export::Export),
    /// Show where the time of each device went, and why it was idle
    Why(commands::why::Why),
    /// Find API misuse and waste: leaks, use after release, out-of-bounds copies, needless waits, and more
    Lint(args::Lint),
    /// Compare two sets of runs: what became slower, and whether the difference is significant
    Diff(commands::diff::Diff),
    /// Measure what tracing costs a program: bare and traced in turn
    Cost(commands::cost::Cost),
    /// Verify that a trace is complete and undamaged
    Check(commands::check::Check),
    /// Extract a part of a trace: a time window, some threads, some APIs
    Trim(commands::trim::Trim),
    /// Merge traces into one: of ranks, of hosts, of programs started separately
    Merge(commands::merge::Merge),
    /// Pack a trace into one compressed file, which all commands can read
    Pack(commands::pack::Pack),
    /// Unpack a packed trace into a folder
    Unpack(commands::pack::Unpack),
    /// Write what a program that runs has recorded so far, so that its trace can be read now
    Snapshot(commands::snapshot::Snapshot),
    /// Show what a program that runs spends its time in, refreshed as it goes
    Top(commands::top::Top),
    /// Add to a trace what a killed hetrace left in shared memory
    Recover(args::Recover),
    /// Record programs that run already and were started dormant (see `hetrace env`)
    Start(commands::service::Start),
    /// Pause the recording that `start` began
    Pause(commands::service::Whose),
    /// Resume it
    Resume(commands::service::Whose),
    /// End it, and finish the trace
    Stop(commands::service::Whose),
    /// List what is being recorded for this user
    Status(commands::service::Status),
    /// Run the service that records for `start`, in the foreground
    Service(commands::service::Service),
    /// Print shell commands after which programs start dormant: eval "$(hetrace env)"
    Env(commands::service::Env),
    /// Let the programs of all login shells start dormant, or no longer
    System(commands::system::System),
    /// Show what is recorded of each function
    Model(args::Model),
    /// Show what works on this machine, what does not and why, and how to fix it
    Doctor(args::Doctor),
    /// Show the manual page of a command
    Man(commands::man::Man),
    /// Print what bash, zsh or fish complete
    Completions(commands::completions::Completions),
    /// Rewrite an image of device code; `run --inside` starts it
    #[command(hide = true)]
    Rewrite(commands::rewrite::Rewrite),
}

/// Returns the command line as it is parsed, each option with its environment variable.
pub fn whole() -> clap::Command {
    settings::with_variables(Cli::command())
}

/// Adds the options of a command.
type WithOptions = fn(clap::Command) -> clap::Command;

/// Commands that somebody waits for.
const ALONE: [(&str, WithOptions); 11] = [
    ("run", args::Run::augment_args),
    ("tally", args::Tally::augment_args),
    ("print", args::Print::augment_args),
    ("postmortem", commands::postmortem::Postmortem::augment_args),
    ("timeline", commands::timeline::Timeline::augment_args),
    ("export", commands::export::Export::augment_args),
    ("why", commands::why::Why::augment_args),
    ("lint", args::Lint::augment_args),
    ("diff", commands::diff::Diff::augment_args),
    ("check", commands::check::Check::augment_args),
    ("rewrite", commands::rewrite::Rewrite::augment_args),
];

/// Returns the command line with this command alone, if it is one of those: to describe all thirty takes a millisecond.
/// It says nothing of what commands are for, as whoever made a mistake is answered by [`whole`].
pub fn alone(name: &str) -> Option<clap::Command> {
    let (name, with_options) = ALONE.into_iter().find(|(known, _)| *known == name)?;
    let command = with_options(clap::Command::new(name));
    Some(settings::with_variables(
        clap::Command::new("hetrace").subcommand_required(true).subcommand(command),
    ))
}

impl Command {
    /// Whether it reads a trace and ends.
    fn reads(&self) -> bool {
        matches!(
            self,
            Self::Tally(_)
                | Self::Print(_)
                | Self::Postmortem(_)
                | Self::Lint(_)
                | Self::Timeline(_)
                | Self::Why(_)
                | Self::Diff(_)
                | Self::Export(_)
                | Self::Trim(_)
                | Self::Merge(_)
                | Self::Check(_)
        )
    }
}

/// Runs the command.
pub fn dispatch(command: Command) -> Result<ExitCode> {
    if command.reads() {
        memory::in_large_pieces();
    }
    match command {
        Command::Run(args) => Ok(commands::run::run(*args)),
        Command::Start(args) => commands::service::start(&args),
        Command::Pause(args) => commands::service::pause(&args),
        Command::Resume(args) => commands::service::resume(&args),
        Command::Stop(args) => commands::service::stop(&args),
        Command::Status(args) => commands::service::status(&args),
        Command::Service(args) => commands::service::run(&args),
        Command::Env(args) => commands::service::env(&args),
        Command::System(args) => commands::system::run(&args),
        Command::Model(args) => commands::model::run(&args),
        Command::Doctor(args) => commands::doctor::run(&args, &whole()),
        Command::Man(args) => commands::man::run(&args, whole()),
        Command::Completions(args) => commands::completions::run(&args, whole()),
        Command::Rewrite(args) => commands::rewrite::run(&args),
        Command::Tally(args) => commands::tally::run(&args),
        Command::Print(args) => commands::print::run(&args),
        Command::Postmortem(args) => commands::postmortem::run(&args),
        Command::Snapshot(args) => commands::snapshot::run(&args),
        Command::Top(args) => commands::top::run(&args),
        Command::Recover(args) => commands::recover::run(&args),
        Command::Lint(args) => commands::lint::run(&args),
        Command::Timeline(args) => commands::timeline::run(&args),
        Command::Why(args) => commands::why::run(&args),
        Command::Diff(args) => commands::diff::run(&args),
        Command::Export(args) => commands::export::run(&args),
        Command::Pack(args) => commands::pack::run(&args),
        Command::Unpack(args) => commands::pack::unpack(&args),
        Command::Trim(args) => commands::trim::run(&args),
        Command::Merge(args) => commands::merge::run(&args),
        Command::Check(args) => commands::check::run(&args),
        Command::Cost(args) => commands::cost::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::{ALONE, Cli, alone, whole};
    use clap::{Command, FromArgMatches};

    /// What is parsed, without what is said of it.
    fn parsed(command: &Command) -> Vec<String> {
        let options = command.get_arguments().map(|arg| format!("{arg:?}"));
        let groups = command.get_groups().map(|group| format!("{group:?}"));
        let below = command.get_subcommands().flat_map(parsed);
        let switches = [
            command.is_subcommand_required_set(),
            command.is_arg_required_else_help_set(),
            command.is_args_conflicts_with_subcommands_set(),
            command.is_subcommand_negates_reqs_set(),
            command.is_allow_missing_positional_set(),
            command.is_allow_external_subcommands_set(),
            command.is_dont_delimit_trailing_values_set(),
            command.is_trailing_var_arg_set(),
        ];
        let own = format!(
            "{} {:?} {switches:?}",
            command.get_name(),
            command.get_all_aliases().collect::<Vec<_>>()
        );
        std::iter::once(own).chain(options).chain(groups).chain(below).collect()
    }

    #[test]
    fn a_command_alone_is_parsed_as_among_all() {
        let whole = whole();
        for (name, _) in ALONE {
            let among_all = whole.find_subcommand(name).expect(name);
            let line = alone(name).expect(name);
            assert_eq!(parsed(line.find_subcommand(name).expect(name)), parsed(among_all), "{name}");
        }
        assert!(alone("completions").is_none());
        let read =
            alone("tally").map(|line| line.try_get_matches_from(["hetrace", "tally", "--top", "3", "t"]));
        let read = read.and_then(Result::ok).expect("it is right");
        assert!(Cli::from_arg_matches(&read).is_ok());
    }
}
