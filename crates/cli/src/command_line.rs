//! The command line: the commands there are, and which function runs each.

use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

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
