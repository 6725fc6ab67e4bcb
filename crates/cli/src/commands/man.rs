//! `hetrace man`: the manual pages, made from the same description as `--help`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Args, Command};
use clap_mangen::Man as Page;
use clap_mangen::roff::{Roff, bold, roman};

use crate::settings::{self, option};
use crate::usage::nearest;

/// Options of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// The command [default: hetrace itself]
    pub command: Vec<String>,
    /// Write all pages to this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub write: Option<PathBuf>,
}

/// What the statuses mean.
const STATUSES: [(&str, &str); 8] = [
    ("0", "It was done, and nothing was found that is asked for by status."),
    (
        "1",
        "Something was found: check (something is missing, changed or damaged), lint and diff (what --fail-on asks \
         for), doctor (something is missing), cost (the program failed).",
    ),
    (
        "2",
        "The command line, an environment variable or hetrace.toml is wrong, and nothing was done. Of check: it is \
         not a readable trace.",
    ),
    ("125", "hetrace itself failed. Of run: the program was not started."),
    ("126", "Of run: the program was found, but could not be executed."),
    (
        "127",
        "Of run: there is no such program. Also where the first word is neither a command nor a program.",
    ),
    ("128+n", "What shells make of the end by signal n: run ends by the signal that ended the program."),
    ("any other", "Of run: the program's own. Whatever becomes of the report or the trace, it is passed on."),
];

/// Shows a page, or prints it in roff where nothing can show it.
pub fn run(args: &Man, whole: Command) -> Result<ExitCode> {
    if let Some(folder) = &args.write {
        return write_all(folder, whole);
    }
    let all = pages(whole);
    let name = [&["hetrace".to_owned()][..], &args.command].concat().join("-");
    let Some((_, text)) = all.iter().find(|(page, _)| *page == name) else {
        let names = all.iter().map(|(page, _)| &**page);
        let near = nearest(&name, names).map(|near| near.replacen("hetrace-", "", 1));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `hetrace man {near}`?"));
        bail!("there is no page of `{}`{near}", args.command.join(" "));
    };
    let mut out = std::io::stdout();
    if out.is_terminal() && show(text)? {
        return Ok(ExitCode::SUCCESS);
    }
    out.write_all(text)?;
    Ok(ExitCode::SUCCESS)
}

fn write_all(folder: &Path, whole: Command) -> Result<ExitCode> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    for (name, text) in pages(whole) {
        let path = folder.join(format!("{name}.1"));
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Has man(1) show a page. Returns whether it could.
fn show(text: &[u8]) -> Result<bool> {
    let mut file = tempfile::Builder::new().prefix("hetrace").suffix(".1").tempfile()?;
    file.write_all(text)?;
    let shown = std::process::Command::new("man").arg("-l").arg(file.path()).status();
    Ok(shown.is_ok_and(|status| status.success()))
}

/// Returns all pages by name.
fn pages(whole: Command) -> Vec<(String, Vec<u8>)> {
    // Without the page of `help`, which says nothing else.
    let mut whole = whole.disable_help_subcommand(true);
    whole.build();
    let mut all = Vec::new();
    add(&whole, "hetrace", &mut all);
    all
}

fn add(command: &Command, name: &str, all: &mut Vec<(String, Vec<u8>)>) {
    let page = page(command, name).expect("memory takes all that is written");
    all.push((name.to_owned(), page));
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        add(below, &format!("{name}-{}", below.get_name()), all);
    }
}

fn page(command: &Command, name: &str) -> std::io::Result<Vec<u8>> {
    let is_whole = name == "hetrace";
    // Pages are found by their name with a dash, commands are typed with a space.
    let renamed: &'static str = name.to_owned().leak();
    let page =
        Page::new(command.clone().name(renamed).bin_name(name.replace('-', " ")).display_name(renamed))
            .manual("hetrace")
            .source(format!("hetrace {}", env!("CARGO_PKG_VERSION")));
    let mut out = Vec::new();
    page.render_title(&mut out)?;
    page.render_name_section(&mut out)?;
    page.render_synopsis_section(&mut out)?;
    page.render_description_section(&mut out)?;
    if command.get_arguments().next().is_some() {
        page.render_options_section(&mut out)?;
    }
    if command.has_subcommands() {
        page.render_subcommands_section(&mut out)?;
    }
    if command.get_after_long_help().is_some() || command.get_after_help().is_some() {
        page.render_extra_section(&mut out)?;
    }
    if is_whole {
        statuses(&mut out)?;
    }
    environment(command, is_whole, &mut out)?;
    if is_whole {
        files(&mut out)?;
    }
    see_also(command, is_whole, &mut out)?;
    Ok(out)
}

fn statuses(out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (status, what) in STATUSES {
        roff.control("TP", []).text([bold(status)]).text([roman(what)]);
    }
    roff.to_writer(out)
}

/// The variables of all options, each with its option.
fn environment(command: &Command, is_whole: bool, out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut roff = Roff::new();
    let options: Vec<_> =
        command.get_arguments().filter_map(|arg| Some((arg.get_env()?, option(arg)?))).collect();
    if options.is_empty() && !is_whole {
        return Ok(());
    }
    roff.control("SH", ["ENVIRONMENT"]);
    if is_whole {
        roff.text([roman(
            "Each option of each command has a variable: HETRACE_OPTION for those of run, HETRACE_COMMAND_OPTION for \
             those of the others, listed in their pages. A flag's takes true or false; several values are separated \
             by commas. The command line is stronger than a variable, a variable stronger than hetrace.toml. Besides:",
        )]);
        for (name, what) in [
            (settings::VARIABLE, "The configuration file; empty for none."),
            ("HETRACE_LIBRARIES", "The folder of the libraries libhetrace_*.so."),
            ("NO_COLOR", "If set and not empty, nothing is coloured."),
            ("TMPDIR", "Where cost writes its traces."),
        ] {
            roff.control("TP", []).text([bold(name)]).text([roman(what)]);
        }
    }
    for (variable, long) in options {
        roff.control("TP", []).text([bold(variable.to_string_lossy())]).text([roman(format!("--{long}"))]);
    }
    roff.to_writer(out)
}

fn files(out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", ["FILES"]);
    for (name, what) in [
        (
            settings::NAME,
            "In the current folder, or else in $XDG_CONFIG_HOME/hetrace (~/.config/hetrace): a table for each \
             command, in it a line for each option, such as mode = \"full\" under [run]. hetrace doctor names the one \
             in force.",
        ),
        ("hetrace-PROGRAM-N", "Traces, unless run has another name for them (--output)."),
    ] {
        roff.control("TP", []).text([bold(name)]).text([roman(what)]);
    }
    roff.to_writer(out)
}

fn see_also(command: &Command, is_whole: bool, out: &mut Vec<u8>) -> std::io::Result<()> {
    let mut roff = Roff::new();
    let names: Vec<String> = match is_whole {
        true => command
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
            .map(|c| format!("hetrace-{}(1)", c.get_name()))
            .collect(),
        false => vec!["hetrace(1)".to_owned()],
    };
    roff.control("SH", ["SEE ALSO"]).text([roman(names.join(", "))]);
    roff.to_writer(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_a_page_with_its_options_and_variables() {
        let whole = crate::command_line::whole();
        let pages = pages(whole.clone());
        let of = |name: &str| {
            let page = pages.iter().find(|(page, _)| page == name);
            String::from_utf8(page.unwrap_or_else(|| panic!("no page {name}")).1.clone()).unwrap()
        };
        for command in whole.get_subcommands().filter(|c| !c.is_hide_set()) {
            // Roff writes a dash so.
            let page = of(&format!("hetrace-{}", command.get_name())).replace("\\-", "-");
            for arg in command.get_arguments().filter(|arg| option(arg).is_some() && !arg.is_hide_set()) {
                let variable = arg.get_env().unwrap().to_string_lossy();
                assert!(page.contains(&*variable), "{}: {variable}", command.get_name());
                assert!(page.contains(&format!("--{}", option(arg).unwrap())), "{}", command.get_name());
            }
        }
        let main = of("hetrace");
        for (status, _) in STATUSES {
            assert!(main.contains(status), "{status}");
        }
        assert!(main.contains("EXIT STATUS") && main.contains("hetrace.toml"));
        assert!(of("hetrace-system-install").contains("hetrace system install"));
    }
}
