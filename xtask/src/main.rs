//! The one door for developers: `cargo xtask <command>`.
//!
//! Each command is a module with an `Args` struct and a `run` function; a new
//! one is a new file, a variant of [`Command`] and an arm in [`main`].

mod bench;
mod codegen;
mod demo;
mod dist;
mod extract;
mod lines;
mod model;
mod repo;
mod steps;
mod test;
mod tidy;
mod torture;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the hetrace repository.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    /// The root of the repository to work on; the one that this was built from when absent
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure what tracing costs, and how fast traces are read
    Bench(bench::Args),
    /// Read an API's registry and write apis/<API>/api.json
    Extract(extract::Args),
    /// Write apis/<API>/src/generated/ from the model
    Codegen(codegen::Args),
    /// Install what is missing, build, and trace a real OpenCL program
    Demo(demo::Args),
    /// Make an archive, a Debian package, an RPM and a Python wheel, and check that each installs and runs
    Dist(dist::Args),
    /// Check apis/<API>/semantics.toml against api.json and print the coverage
    #[command(alias = "check-model")]
    Model(model::Args),
    /// Run everything that shows whether hetrace works
    Test(test::Args),
    /// Check the rules of the tree that no compiler checks
    Tidy(tidy::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Some(root) = cli.root {
        repo::set_root(root);
    }
    let done = match cli.command {
        Command::Bench(args) => bench::run(&args),
        Command::Codegen(args) => codegen::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Extract(args) => extract::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Tidy(args) => tidy::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}
