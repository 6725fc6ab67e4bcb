//! `hetrace lint`.

use std::process::ExitCode;

use anyhow::Result;
use hetrace_report::lint::{Options, Severity, TextOptions, lint_watched, rules_text};
use hetrace_trace::trace::Trace;

use super::watch::Watch;
use super::{newest, output, terminal};
use crate::args::{self, FailOn};

/// Exit status when there are findings.
const FOUND: u8 = 1;

/// Prints the findings.
pub fn run(args: &args::Lint) -> Result<ExitCode> {
    let options = TextOptions { colour: terminal::colour(&std::io::stdout()) };
    if args.rules {
        output::write_text(&rules_text(&options))?;
        return Ok(ExitCode::SUCCESS);
    }
    let path = newest::trace(args.trace.as_deref())?;
    let trace = super::open(&path)?;
    super::report_problems(&trace);
    let (only, except) = (args.rule.clone(), args.except.clone());
    let looked = Options { only, except, partial: partial(&trace) };
    let watch = Watch::new(false);
    let seen = |events| watch.seen(events);
    let Ok(report) = lint_watched(&trace, &looked, Some(&seen)) else { return Ok(watch.stopped()) };
    watch.end();
    let text = match (args.json, args.sarif) {
        (true, _) => serde_json::to_string_pretty(&report)? + "\n",
        (_, true) => serde_json::to_string_pretty(&report.sarif())? + "\n",
        _ => report.render(&options),
    };
    output::write_report(&text, args.json || args.sarif)?;
    let worst = report.worst();
    let failed = match args.fail_on {
        FailOn::Never => false,
        FailOn::Hint => worst >= Some(Severity::Hint),
        FailOn::Warning => worst >= Some(Severity::Warning),
        FailOn::Error => worst >= Some(Severity::Error),
    };
    Ok(if failed { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// Returns why not all calls were recorded, if the options of the run excluded some.
fn partial(trace: &Trace) -> Option<String> {
    let options = trace.manifest().options.iter().map(String::as_str);
    let mut options = options.take_while(|option| *option != "--");
    let chooses = |option: &str| {
        let name = option.split('=').next().unwrap_or(option);
        matches!(name, "--include" | "--exclude") || option.ends_with("minimal")
    };
    options.any(chooses).then(|| "the options of the run excluded some of them".to_owned())
}
