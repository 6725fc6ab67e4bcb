//! `hetrace doctor`: what works here, what not, and what mends it.

mod nvidia;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hetrace_session::apis;
use serde_json::json;

use crate::args;

/// One thing looked at.
struct Finding {
    what: String,
    /// Whether tracing works as far as this goes.
    works: bool,
    says: String,
    /// What would make it better, or work at all.
    mend: Option<String>,
}

impl Finding {
    fn fine(what: &str, says: impl Into<String>) -> Finding {
        Finding { what: what.to_owned(), works: true, says: says.into(), mend: None }
    }

    fn with(self, mend: impl Into<String>) -> Finding {
        Finding { mend: Some(mend.into()), ..self }
    }
}

/// Looks at the machine and prints what it finds. Exit status 1 if something
/// that tracing needs is missing.
pub fn run(args: &args::Doctor) -> Result<ExitCode> {
    let mut findings = vec![memory(), clock()];
    findings.extend(libraries());
    findings.extend(nvidia::findings());
    let works = findings.iter().all(|f| f.works);
    let mut out = std::io::stdout().lock();
    if args.json {
        let list: Vec<_> = findings
            .iter()
            .map(|f| json!({ "what": f.what, "works": f.works, "says": f.says, "mend": f.mend }))
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&list)?)?;
    } else {
        for f in &findings {
            writeln!(out, "{} {:<18} {}", if f.works { "ok  " } else { "FAIL" }, f.what, f.says)?;
            if let Some(mend) = &f.mend {
                writeln!(out, "     {:<18} mend: {mend}", "")?;
            }
        }
    }
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn memory() -> Finding {
    let path = Path::new("/dev/shm");
    let probe = path.join(format!("hetrace-probe-{}", std::process::id()));
    let made = std::fs::create_dir(&probe);
    let _ = std::fs::remove_dir(&probe);
    Finding {
        what: "shared memory".to_owned(),
        works: made.is_ok(),
        says: match &made {
            Ok(()) => "/dev/shm can be written".to_owned(),
            Err(e) => format!("/dev/shm: {e}"),
        },
        mend: made.err().map(|_| "mount -t tmpfs tmpfs /dev/shm (in a container: --shm-size)".to_owned()),
    }
}

fn clock() -> Finding {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let steady = !cfg!(target_arch = "x86_64") || info.contains("constant_tsc");
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    Finding {
        what: "clock".to_owned(),
        works: true,
        says: format!(
            "the processor's counter {}; the kernel uses {}",
            if steady {
                "runs at a constant rate"
            } else {
                "may change its rate: times can be off, and the trace says by how much"
            },
            source.unwrap_or_default().trim()
        ),
        mend: None,
    }
}

fn libraries() -> Vec<Finding> {
    let finding = |what: &str, works, says: String, mend: Option<&str>| Finding {
        what: what.to_owned(),
        works,
        says,
        mend: mend.map(str::to_owned),
    };
    match apis::find() {
        Err(error) => vec![finding("API libraries", false, error.to_string(), Some("cargo build --release"))],
        Ok(found) if found.is_empty() => vec![finding(
            "API libraries",
            false,
            "none beside the binary or in ../lib/hetrace".to_owned(),
            Some("cargo build --release, or set HETRACE_LIBRARIES"),
        )],
        Ok(found) => found
            .iter()
            .map(|library| {
                let required = library.interpose.requires.as_deref();
                if let Some(name) = required.filter(|name| hetrace_session::find_library(name).is_none()) {
                    let says =
                        format!("{name} is not here: no program can use this API, so it is not loaded");
                    return finding(&library.api, true, says, None);
                }
                if let Some(variable) = &library.interpose.injection_variable {
                    let says = format!("programs are told of it by {variable}");
                    return finding(&library.api, true, says, None);
                }
                let loader = hetrace_session::loader(&library.interpose);
                let says = match &loader {
                    Some((path, true)) => format!("{} takes layers", path.display()),
                    Some((path, false)) => format!("{} knows no layers: it is preloaded", path.display()),
                    None => "its loader is not installed: only programs that bring their own can use it"
                        .to_owned(),
                };
                finding(&library.api, true, says, None)
            })
            .collect(),
    }
}
