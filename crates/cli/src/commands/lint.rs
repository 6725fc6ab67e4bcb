//! `hetrace lint`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use hetrace_analyze::lint::{Options, Severity, TextOptions, lint, rules_text};
use hetrace_analyze::trace::Trace;

use super::{newest, terminal};
use crate::args::{self, FailOn};

/// Exit status when something was found.
const FOUND: u8 = 1;

/// Prints what is wrong.
pub fn run(args: &args::Lint) -> Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let options = TextOptions { colour: terminal::colour(&out) };
    if args.rules {
        out.write_all(rules_text(&options).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = newest::trace(args.trace.as_deref())?;
    let trace = Trace::open(&path)?;
    super::tell_problems(&trace);
    let (only, except) = (args.rule.clone(), args.except.clone());
    let report = lint(&trace, &Options { only, except, partial: partial(&trace) });
    let text = match (args.json, args.sarif) {
        (true, _) => serde_json::to_string_pretty(&report)? + "\n",
        (_, true) => serde_json::to_string_pretty(&report.sarif())? + "\n",
        _ => report.render(&options),
    };
    out.write_all(text.as_bytes())?;
    let worst = report.worst();
    let failed = match args.fail_on {
        FailOn::Never => false,
        FailOn::Hint => worst >= Some(Severity::Hint),
        FailOn::Warning => worst >= Some(Severity::Warning),
        FailOn::Error => worst >= Some(Severity::Error),
    };
    Ok(if failed { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// Why not all calls were recorded, if the options of the run say so.
fn partial(trace: &Trace) -> Option<String> {
    let options = trace.manifest().options.iter().map(String::as_str);
    let mut options = options.take_while(|option| *option != "--");
    let chooses = |option: &str| {
        let name = option.split('=').next().unwrap_or(option);
        matches!(name, "--include" | "--exclude") || option.ends_with("minimal")
    };
    options.any(chooses).then(|| "the run was told not to record all of them".to_owned())
}
