//! `hetrace doctor`: what works on this machine, what does not, and how to fix it.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Command;
use hetrace_session::{NO_SAMPLES, apis};
use hetrace_trace::text::plural;
use hetrace_vendor::doctor::{Finding, Machine};
use serde_json::json;

use super::terminal;
use crate::args;
use crate::settings::{self, Problem};

/// Columns before what a finding says.
const LABEL: usize = 24;

/// Examines the machine and prints the findings. Exit status 1 if something
/// that tracing needs is missing.
pub fn run(args: &args::Doctor, whole: &Command) -> Result<ExitCode> {
    let machine = Machine {
        root: Path::new("/"),
        privileged: rustix::process::geteuid().is_root(),
        library: &hetrace_session::find_library,
        variable: &|name| std::env::var_os(name),
    };
    // The host, then what stands on it, then the vendors of devices.
    let mut vendors = hetrace_vendor::ALL.iter().map(|vendor| vendor.findings(&machine));
    let mut findings = vendors.next().unwrap_or_default();
    findings.push(operating_system());
    findings.push(cpu_samples());
    findings.extend(libraries());
    findings.push(header());
    findings.push(settings_file(whole));
    findings.extend(vendors.flatten());
    let works = findings.iter().all(|f| f.works);
    let mut out = std::io::stdout().lock();
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| json!({ "what": f.what, "works": f.works, "says": f.says, "fix": f.fix }))
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&list)?)?;
    } else {
        let room = terminal::columns(&out).map(|columns| columns.saturating_sub(LABEL).max(LABEL));
        for f in &findings {
            let mut first = format!("{} {:<18} ", if f.works { "ok  " } else { "FAIL" }, f.what);
            for line in hetrace_report::wrap(&f.says, room) {
                writeln!(out, "{first}{line}")?;
                first = " ".repeat(LABEL);
            }
            // A command stays on one line, so that it can be copied.
            if let Some(fix) = &f.fix {
                writeln!(out, "{:LABEL$}fix: {fix}", "")?;
            }
        }
    }
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What `run --os` records for this user. Less than all is no failure: tracing works without.
fn operating_system() -> Finding {
    let what = "--os";
    let probe = hetrace_session::os_probe();
    let says = match &probe.why {
        None => format!("{}: {}", probe.way.name(), probe.way.what()),
        Some(why) => format!("{}: {}; no tracepoints: {why}", probe.way.name(), probe.way.what()),
    };
    let finding = Finding::fine(what, says);
    match probe.fix {
        None => finding,
        Some(fix) => finding.with(&fix),
    }
}

/// What `run --cpu-sample` records for this user. None is no failure either.
fn cpu_samples() -> Finding {
    let what = "--cpu-sample";
    let ability = hetrace_session::sample_ability();
    let most =
        ability.most_hz.map_or_else(String::new, |hz| format!(", at most {hz} a second of each thread"));
    let says = match (&ability.refused, ability.kernel) {
        (Some(why), _) => format!("{NO_SAMPLES}: {why}"),
        (None, true) => format!("samples of the program's threads, in system calls too{most}"),
        (None, false) => format!("samples of the program's own code, not of system calls{most}"),
    };
    let finding = Finding::fine(what, says);
    match ability.fix {
        None => finding,
        Some(fix) => finding.with(&fix),
    }
}

/// Where programs find the header by which they mark ranges. No tracing needs it.
fn header() -> Finding {
    let launcher = std::env::current_exe().unwrap_or_default();
    // Of an installation, and of a checkout's target/release.
    let places = ["../include/hetrace.h", "../../include/hetrace.h"];
    let folder = launcher.parent().unwrap_or(Path::new("/"));
    let found = places.iter().find_map(|place| folder.join(place).canonicalize().ok());
    Finding::fine(
        "hetrace.h",
        match found {
            Some(path) => format!("{}: ranges, marks and windows of programs of your own", path.display()),
            None => "not beside this installation; any copy of it does".to_owned(),
        },
    )
}

/// Which configuration file is in force.
fn settings_file(whole: &Command) -> Finding {
    match settings::find(whole) {
        Ok(Some(file)) => {
            let path = std::path::absolute(&file.path).unwrap_or(file.path);
            let options = plural(file.settings.len() as u64, "option");
            Finding::fine(settings::NAME, format!("{}: sets {options}", path.display()))
        }
        Ok(None) => Finding::fine(settings::NAME, "none is in force".to_owned()),
        Err(problem @ Problem::Distrusted(_)) => Finding::fine(settings::NAME, problem.to_string()),
        Err(problem @ Problem::Wrong(_)) => Finding::failed(settings::NAME, problem.to_string())
            .with("correct that line: until then all commands but this end with status 2"),
    }
}

fn libraries() -> Vec<Finding> {
    let what = "API libraries";
    match apis::find() {
        Err(error) => vec![Finding::failed(what, error.to_string()).with("cargo build --release")],
        Ok(found) if found.is_empty() => vec![
            Finding::failed(what, "none next to the hetrace binary or in ../lib/hetrace")
                .with("cargo build --release, or set HETRACE_LIBRARIES"),
        ],
        Ok(found) => found.iter().map(library).collect(),
    }
}

fn library(library: &apis::Found) -> Finding {
    if hetrace_session::is_absent(library) {
        let says = match &library.entrance().requires[..] {
            [name] => format!("{name} is not installed: no program can use this API, so it is not traced"),
            names => {
                let names = names.join(", ");
                format!("none of {names} is here: no program can use this API, so it is not traced")
            }
        };
        return Finding::fine(&library.api, says);
    }
    if let Some(variable) = &library.entrance().injection_variable {
        return Finding::fine(&library.api, format!("injected via {variable}"));
    }
    if let Some(tools) = &library.entrance().tools {
        return tool(&library.api, tools);
    }
    let says = match hetrace_session::loader(library.entrance()) {
        Some((path, true)) => format!("{} supports layers", path.display()),
        Some((path, false)) => format!("{} does not support layers: injected via LD_PRELOAD", path.display()),
        None => "the loader is not installed: only programs that bring their own can use this API".to_owned(),
    };
    Finding::fine(&library.api, says)
}

/// An API whose runtime loads tools: which are there beside ours.
fn tool(api: &str, tools: &apis::Tools) -> Finding {
    let now = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty());
    let [variable, value] = &tools.refused;
    if now(variable).is_some_and(|now| now.eq_ignore_ascii_case(&**value)) {
        return Finding::fine(api, format!("not traced: {variable} is {value}"));
    }
    let list = &tools.list;
    Finding::fine(
        api,
        match now(list) {
            None => format!("injected via {list}"),
            Some(others) => format!(
                "injected via {list}, before {}, which is reported the same",
                Path::new(&others).display()
            ),
        },
    )
}
