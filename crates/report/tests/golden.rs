//! Traces as text and what the reports make of them, side by side:
//! `golden/*.txt`. `BLESS=1 cargo test -p hetrace-report --test golden` writes
//! the reports anew (`BLESS=tally` only those whose names begin so); read the
//! difference before you believe it.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use hetrace_report::lint;
use hetrace_report::print::{self, Clock, Form};
use hetrace_report::tally::{self, TextOptions};
use hetrace_report::timeline;
use hetrace_report::why;
use hetrace_trace::trace::Trace;

/// A report by the name of its section.
fn report(trace: &Trace, name: &str) -> String {
    match name.split(' ').next().unwrap_or("") {
        "tally" => tally_report(trace, name),
        "print" => print_report(trace, name),
        "postmortem" => ending(trace, name),
        "lint" => lint_report(trace, name),
        "timeline" if name == "timeline" => {
            let mut out = Vec::new();
            let options = timeline::Options::default();
            timeline::timeline(trace, &options, &mut out).expect("memory takes it");
            common::perfetto::read(&out)
        }
        "why" if name == "why --json" => {
            let json = serde_json::to_string_pretty(&why::why(trace, &why::Options::default()));
            json.expect("a report is JSON") + "\n"
        }
        "why" => explained(trace, name),
        _ => panic!("no report {name:?}"),
    }
}

/// How a trace ends, with 5 calls of each thread or as many as the name says.
fn ending(trace: &Trace, name: &str) -> String {
    let count = name.strip_prefix("postmortem -n ").map_or(5, |count| count.parse().expect("a number"));
    let options = print::LastOptions { count, clock: Clock::Relative, colour: false };
    let mut out = Vec::new();
    let go_on = |_| std::ops::ControlFlow::Continue(());
    print::print_last(trace, &options, &go_on, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

fn tally_report(trace: &Trace, name: &str) -> String {
    let tally_of = |extended| tally::tally(trace, &tally::Options { extended });
    let plain = TextOptions::default();
    match name {
        "tally" => tally_of(false).render(&plain),
        "tally --extended" => tally_of(true).render(&TextOptions { extended: true, ..plain }),
        "tally --json" => {
            let json = serde_json::to_string_pretty(&tally_of(false));
            json.expect("a tally is JSON") + "\n"
        }
        "tally --colour" => {
            tally_of(false).render(&TextOptions { colour: true, ..plain }).replace('\x1b', "␛")
        }
        "tally --width 60" => tally_of(false).render(&TextOptions { width: Some(60), ..plain }),
        "tally --full-names" => tally_of(false).render(&TextOptions { full_names: true, ..plain }),
        "tally --gross" => {
            let query = tally::Query { gross: true, ..tally::Query::default() };
            let sums = tally::aggregate(trace, &tally::Options::default(), &query);
            sums.expect("nobody stops it").tally().render(&plain)
        }
        "tally --stats" => tally_of(false).render(&TextOptions { stats: true, ..plain }),
        "tally --top 1" => tally_of(false).render(&TextOptions { top: Some(1), ..plain }),
        "tally --markdown" => {
            let form = tally::Form::Markdown;
            tally_of(false).render(&TextOptions { form, ..plain })
        }
        other => chosen_tally(trace, &other["tally ".len()..]),
    }
}

fn print_report(trace: &Trace, name: &str) -> String {
    let plain = print::Options::default();
    match name {
        "print -c" => printed(trace, &print::Options { form: Form::Tree, ..plain }),
        "print" => printed(trace, &plain),
        "print --events" => printed(trace, &print::Options { form: Form::Events, ..plain }),
        "print --clock wall --deltas" => {
            let clock = Clock::Wall { utc_offset: 7200 };
            printed(trace, &print::Options { clock, deltas: true, ..plain })
        }
        other => chosen_print(trace, &other["print ".len()..]),
    }
}

fn lint_report(trace: &Trace, name: &str) -> String {
    match name.strip_prefix("lint --rule ") {
        Some(rules) => {
            let rules: Vec<&str> = rules.split(',').collect();
            linted(trace, &rules).render(&lint::TextOptions::default())
        }
        None if name == "lint --json" => {
            let json = serde_json::to_string_pretty(&linted(trace, &[]));
            json.expect("findings are JSON") + "\n"
        }
        None if name == "lint" => linted(trace, &[]).render(&lint::TextOptions::default()),
        None => panic!("no report {name:?}"),
    }
}

/// Times of options, in ns.
fn ns(text: &str) -> Option<u64> {
    Some(text.parse().expect("nanoseconds"))
}

/// A tally with `--by`, `--csv` and filters, each with a value behind.
fn chosen_tally(trace: &Trace, options: &str) -> String {
    let words: Vec<&str> = options.split(' ').collect();
    let (mut query, mut table) = (tally::Query::default(), None);
    for pair in words.chunks(2) {
        let [option, value] = pair else { panic!("{options}: a value is missing") };
        match *option {
            "--by" => query.by = value.split(',').map(|by| by.parse().expect("a key")).collect(),
            "--csv" => table = Some(value.parse().expect("a table")),
            "--filter" => query.names.push((*value).to_owned()),
            "--api" => query.apis.push((*value).to_owned()),
            "--pid" => query.pids.push(value.parse().expect("a number")),
            "--tid" => query.tids.push(value.parse().expect("a number")),
            "--from" => query.from = ns(value),
            "--to" => query.to = ns(value),
            other => panic!("no option {other}"),
        }
    }
    let sums = tally::aggregate(trace, &tally::Options::default(), &query).expect("nobody stops it");
    let Some(table) = table else { return sums.tally().render(&TextOptions::default()) };
    let mut csv = Vec::new();
    sums.tally().write_csv(table, &mut csv).expect("memory takes it");
    String::from_utf8(csv).expect("text")
}

/// A print with filters, each with a value behind but for `-c` and `--errors`.
fn chosen_print(trace: &Trace, options: &str) -> String {
    let (mut filter, mut form) = (print::Filter::default(), Form::Calls);
    let mut words = options.split(' ');
    while let Some(option) = words.next() {
        let mut value = || words.next().expect("a value");
        match option {
            "-c" => form = Form::Tree,
            "--events" => form = Form::Events,
            "--errors" => filter.errors = true,
            "--name" => filter.names.push(value().to_owned()),
            "--pid" => filter.pids.push(value().parse().expect("a number")),
            "--thread" => filter.tids.push(value().parse().expect("a number")),
            "--min-duration" => filter.min_duration = ns(value()),
            "--from" => filter.from = ns(value()),
            "--to" => filter.to = ns(value()),
            "--arg" => {
                let (name, value) = value().split_once('=').expect("NAME=VALUE");
                filter.args.push((name.to_owned(), value.to_owned()));
            }
            other => panic!("no option {other}"),
        }
    }
    let (mut out, go_on) = (Vec::new(), |_| std::ops::ControlFlow::Continue(()));
    let options = print::Options { form, ..print::Options::default() };
    print::print_some(trace, &options, &filter, &go_on, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// `why` with `--device NAME`, `--from NS`, `--to NS`, `--gaps NS` (the shortest), `--top N`.
fn explained(trace: &Trace, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let (mut options, mut text) = (why::Options::default(), why::TextOptions::default());
    for pair in words.chunks(2) {
        let &[option, value] = pair else { panic!("{line}: a value is missing") };
        let number = || Some(value.parse().expect("a number"));
        match option {
            "--device" => options.device = Some(value.to_owned()),
            "--from" => options.from = number(),
            "--to" => options.to = number(),
            "--gaps" => options.gaps = number(),
            "--top" => text.top = value.parse().expect("a number"),
            other => panic!("no option {other}"),
        }
    }
    why::why(trace, &options).render(&text)
}

fn linted(trace: &Trace, only: &[&str]) -> lint::Report {
    let only = only.iter().map(|rule| (*rule).to_owned()).collect();
    lint::lint(trace, &lint::Options { only, ..lint::Options::default() })
}

fn printed(trace: &Trace, options: &print::Options) -> String {
    let mut out = Vec::new();
    print::print(trace, options, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// The file with those reports made anew whose names begin with `which`.
fn remade(text: &str, which: &str) -> String {
    let mut sections = text.split("\n== ");
    let script = sections.next().unwrap_or("");
    let trace = common::build(script);
    let mut made = script.trim_end().to_owned() + "\n";
    for section in sections {
        let (name, old) = section.split_once('\n').unwrap_or((section, ""));
        let new = if name.starts_with(which) { report(&trace, name) } else { old.to_owned() };
        made += &format!("\n== {name}\n{}\n", new.trim_end_matches('\n'));
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
    let bless = std::env::var("BLESS").ok();
    let mut wrong = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("readable");
        if let Some(which) = &bless {
            let which = if which == "1" { "" } else { which };
            fs::write(&path, remade(&text, which)).expect("writable");
            continue;
        }
        let made = remade(&text, "");
        if made == text {
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

/// Independent readers join files of one class and one id.
#[test]
fn each_file_is_a_stream_of_its_own() {
    let trace = common::build("10 1.1 > toyFinish queue=0x1\n20 1.2 > toyFinish queue=0x1\n");
    let mut ids: Vec<_> = trace
        .ctf()
        .streams()
        .map(|mut stream| {
            assert!(stream.next_event().is_some_and(|event| event.is_ok()));
            stream.packet().and_then(|packet| packet.stream_instance_id)
        })
        .collect();
    ids.dedup();
    assert!(ids.len() == 2 && ids.iter().all(Option::is_some), "{ids:?}");
}
