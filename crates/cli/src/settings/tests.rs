//! Each option has its variable and its place in the file.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};

use super::*;
use crate::command_line::{self, Cli, whole as command};

/// All commands, with those below them, by what is typed.
fn commands(command: &Command, path: &[String]) -> Vec<(Vec<String>, Command)> {
    command
        .get_subcommands()
        .flat_map(|below| {
            let path: Vec<String> = path.iter().cloned().chain([below.get_name().to_owned()]).collect();
            [vec![(path.clone(), below.clone())], commands(below, &path)].concat()
        })
        .collect()
}

/// A value that an option takes.
fn sample(arg: &Arg, command: &Command) -> String {
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return "true".to_owned();
    }
    let possible = arg.get_possible_values();
    if let Some(first) = possible.last() {
        return first.get_name().to_owned();
    }
    let long = option(arg).unwrap();
    let candidates = [
        "7", "5s", "50ms", "2%", "16M", "auto", "time", "name", "json", "kernel", "a=b", "host", "USR2",
        "1..2", "a@1..2", "ctas:2",
    ];
    let rules = hetrace_report::lint::RULES.iter().map(|rule| rule.id);
    let takes = |value: &&str| {
        let line = ["x".to_owned(), format!("--{long}={value}")];
        command.clone().try_get_matches_from(line).map_or_else(
            |error| {
                use clap::error::ErrorKind::{InvalidValue, ValueValidation};
                !matches!(error.kind(), InvalidValue | ValueValidation)
            },
            |_| true,
        )
    };
    let found = candidates.into_iter().chain(rules).find(takes);
    found.unwrap_or_else(|| panic!("{}: no value known for --{long}", command.get_name())).to_owned()
}

#[test]
fn each_option_has_a_variable_of_its_own() {
    let mut names = BTreeSet::new();
    for (path, command) in commands(&command(), &[]) {
        for arg in command.get_arguments().filter(|arg| option(arg).is_some()) {
            let name = arg.get_env().unwrap().to_str().unwrap().to_owned();
            assert!(name.starts_with("HETRACE_"), "{path:?}: {name}");
            assert!(names.insert(name.clone()), "{path:?}: {name} belongs to another option, too");
        }
    }
    // These are others'.
    for taken in ["CONFIG", "LIBRARIES", "SESSION", "MARKS", "CUPTI", "ROCPROFILER"] {
        let taken = &format!("HETRACE_{taken}");
        assert!(!names.contains(taken), "{taken}");
    }
    assert!(names.contains("HETRACE_MODE") && names.contains("HETRACE_TALLY_BY"), "{names:?}");
}

/// Returns where each option of a command has its value from.
fn sources(command: &Command, line: &[String]) -> Vec<(String, Option<ValueSource>)> {
    let parsed = command.clone().ignore_errors(true).try_get_matches_from(line).unwrap();
    let options = command.get_arguments().filter(|arg| option(arg).is_some());
    let source = |parsed: &ArgMatches, arg: &Arg| parsed.value_source(arg.get_id().as_str());
    options.map(|arg| (arg.get_long().unwrap().to_owned(), source(&parsed, arg))).collect()
}

#[test]
fn each_option_has_a_place_in_the_file() {
    let whole = command();
    for (path, of) in commands(&whole, &[]) {
        for arg in of.get_arguments().filter(|arg| option(arg).is_some()) {
            let long = option(arg).unwrap();
            let value = sample(arg, &of);
            let value = if value == "true" { value } else { format!("\"{value}\"") };
            let text = format!("[{}]\n{long} = {value}\n", path.join("."));
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join(NAME);
            std::fs::write(&file, &text).unwrap();
            let settings =
                file::parse_for_tests(&text, &whole).unwrap_or_else(|why| panic!("{text}: {why:?}"));
            assert_eq!(settings.len(), 1, "{text}");
            let set = with(whole.clone(), &File { path: PathBuf::new(), settings });
            let set = path.iter().fold(set, |c, name| c.find_subcommand(name).unwrap().clone());
            let now = set.get_arguments().find(|a| a.get_id() == arg.get_id()).unwrap();
            let default = now.get_default_values();
            assert!(!default.is_empty(), "{text}");
        }
    }
}

#[test]
fn the_command_line_is_stronger_than_the_file() {
    let whole = command();
    let text = "[run]\nmode = \"full\"\nquiet = true\nsample = true\ninclude = [\"a*\", \"b*\"]\nlive = false\nbuffer = 64\n";
    let settings = file::parse_for_tests(text, &whole).unwrap();
    let set = with(whole, &File { path: PathBuf::new(), settings });
    let parsed = |line: &[&str]| {
        let matches = set.clone().try_get_matches_from(line).unwrap();
        match Cli::from_arg_matches(&matches).unwrap().command {
            command_line::Command::Run(run) => run,
            other => panic!("{other:?}"),
        }
    };
    let run = parsed(&["hetrace", "run", "--", "app"]);
    assert_eq!(run.mode, crate::args::Mode::Full);
    assert!(run.quiet && !run.live);
    assert_eq!(run.sample, Some(std::time::Duration::from_millis(50)));
    assert_eq!(run.include, ["a*", "b*"]);
    assert_eq!(run.buffer, 64);
    let run = parsed(&["hetrace", "run", "-m", "minimal", "--include", "c*", "--", "app"]);
    assert_eq!(run.mode, crate::args::Mode::Minimal);
    assert_eq!(run.include, ["c*"]);
}

#[test]
fn what_is_wrong_in_a_file_is_said_with_its_place() {
    let whole = command();
    for (text, place, says) in [
        ("[tally]\ntopp = 3\n", 8, "did you mean `top`?"),
        ("[taly]\ntop = 3\n", 1, "did you mean `tally`?"),
        ("mode = \"full\"\n", 0, "such as [run]"),
        ("[run]\nmode = \"fulll\"\n", 13, "'fulll'"),
        ("[run]\nmode = [\"full\", \"minimal\"]\n", 13, "one value"),
        ("[run]\nquiet = \"yes\"\n", 14, "true or false"),
        ("[run]\noutput = true\n", 15, "expected a value"),
        ("[run]\nmax-overhead = 1000\n", 21, "percentage"),
        ("[run]\nmode = 2020-01-01\n", 13, "expected a text"),
        ("[run\n", 4, ""),
    ] {
        let (at, what) = file::parse_for_tests(text, &whole).unwrap_err();
        assert!(what.contains(says), "{text}: {what}");
        assert_eq!(at, place, "{text}: {what}");
    }
}

/// Runs this very test again in a process that has a value in each variable.
#[test]
fn each_variable_works() {
    const CHILD: &str = "HETRACE_TEST_OF_VARIABLES";
    let mut whole = command();
    whole.build();
    if std::env::var_os(CHILD).is_none() {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "settings::tests::each_variable_works"]).env(CHILD, "1");
        for (_, of) in commands(&whole, &[]) {
            for arg in of.get_arguments().filter(|arg| option(arg).is_some()) {
                child.env(arg.get_env().unwrap(), sample(arg, &of));
            }
        }
        let output = child.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    }
    let mut seen = 0;
    for (path, of) in commands(&whole, &[]) {
        for (long, source) in sources(&of, &path) {
            assert_eq!(source, Some(ValueSource::EnvVariable), "{path:?} --{long}");
            seen += 1;
        }
    }
    assert!(seen > 100, "{seen} options only");
}
