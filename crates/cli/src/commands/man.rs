//! `hetrace man`: the manual page, made from the same description as `--help`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::args::Cli;

/// Prints the page in roff, with one section per command.
pub fn run() -> Result<ExitCode> {
    let mut out = Vec::new();
    let command = Cli::command();
    let man = clap_mangen::Man::new(command.clone());
    man.render(&mut out)?;
    for sub in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        writeln!(out, ".SH \"HETRACE {}\"", sub.get_name().to_uppercase())?;
        let man = clap_mangen::Man::new(sub.clone());
        man.render_description_section(&mut out)?;
        man.render_options_section(&mut out)?;
    }
    std::io::stdout().write_all(&out)?;
    Ok(ExitCode::SUCCESS)
}
