//! Traces as text and what the reports make of them, side by side:
//! `golden/*.txt`. `BLESS=1 cargo test -p hetrace-analyze --test golden` writes
//! the reports anew; read the difference before you believe it.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use hetrace_analyze::print::{self, Clock, Form};
use hetrace_analyze::tally::{self, TextOptions};
use hetrace_analyze::timeline;
use hetrace_analyze::trace::Trace;

/// A report by the name of its section.
fn report(trace: &Trace, name: &str) -> String {
    let tally_of = |extended| tally::tally(trace, &tally::Options { extended });
    match name {
        "tally" => tally_of(false).render(&TextOptions::default()),
        "tally --extended" => {
            tally_of(true).render(&TextOptions { extended: true, ..TextOptions::default() })
        }
        "tally --json" => {
            let json = serde_json::to_string_pretty(&tally_of(false));
            json.expect("a tally is JSON") + "\n"
        }
        "tally --colour" => {
            let options = TextOptions { colour: true, ..TextOptions::default() };
            tally_of(false).render(&options).replace('\x1b', "␛")
        }
        "tally --width 60" => {
            tally_of(false).render(&TextOptions { width: Some(60), ..TextOptions::default() })
        }
        "print" => printed(trace, &print::Options::default()),
        "print --events" => {
            printed(trace, &print::Options { form: Form::Events, ..print::Options::default() })
        }
        "print --clock wall --deltas" => {
            let clock = Clock::Wall { utc_offset: 7200 };
            printed(trace, &print::Options { clock, deltas: true, ..print::Options::default() })
        }
        "timeline" => {
            let mut out = Vec::new();
            let options = timeline::Options::default();
            timeline::timeline(trace, &options, &mut out).expect("memory takes it");
            common::perfetto::read(&out)
        }
        other => panic!("no report {other:?}"),
    }
}

fn printed(trace: &Trace, options: &print::Options) -> String {
    let mut out = Vec::new();
    print::print(trace, options, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// The file with all reports made anew.
fn remade(text: &str) -> String {
    let mut sections = text.split("\n== ");
    let script = sections.next().unwrap_or("");
    let trace = common::build(script);
    let mut made = script.trim_end().to_owned() + "\n";
    for section in sections {
        let name = section.lines().next().unwrap_or("");
        made += &format!("\n== {name}\n{}", report(&trace, name));
    }
    made
}

#[test]
fn golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    paths.sort();
    assert!(!paths.is_empty());
    let mut wrong = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("readable");
        let made = remade(&text);
        if made == text {
            continue;
        }
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, made).expect("writable");
            continue;
        }
        let pairs = text.lines().zip(made.lines());
        let at = pairs.take_while(|(a, b)| a == b).count();
        let line = |t: &str| t.lines().nth(at).unwrap_or("(end)").to_owned();
        let (expected, found) = (line(&text), line(&made));
        wrong.push(format!("{}:{}:\n  expected {expected}\n  found    {found}", path.display(), at + 1));
    }
    assert!(wrong.is_empty(), "{}\n(BLESS=1 to accept)", wrong.join("\n"));
}
