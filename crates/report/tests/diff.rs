//! `diff`: pairs of sides as text and the report beside them (`golden_diff/*.txt`, whose
//! README.md has the form), and what holds whatever the runs are.
//!
//! `BLESS=1 cargo test -p hetrace-report --test diff` writes the reports anew; read the
//! difference before you believe it.

mod common;

use std::fmt::Write;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use hetrace_report::diff::{
    By, FailOn, Form, Metric, MinChange, Options, Profile, Report, Row, TextOptions, Time, diff,
};
use hetrace_report::tally::{self, Aggregate};
use proptest::prelude::*;

/// What is known of a run by its script; with `sums` by way of a file of sums.
fn profile(name: &str, script: &str, sums: bool) -> Profile {
    let trace = common::build(script);
    if !sums {
        return Profile::of_trace(name, &trace, None).expect("nobody stops it");
    }
    let all = tally::aggregate(&trace, &tally::Options::default(), &tally::Query::default());
    let bytes = all.expect("nobody stops it").to_bytes().expect("numbers");
    let sums = Aggregate::from_bytes(&bytes).expect("what was written");
    Profile::of_sums(name, &sums.whole_run().expect("one whole trace"))
}

/// The runs of a golden file, `=== SIDE NUMBER` before each; `sums` behind it for a file of sums.
fn sides(text: &str) -> [Vec<Profile>; 2] {
    let mut sides = [Vec::new(), Vec::new()];
    for section in text.split("\n=== ").skip(1) {
        let (head, script) = section.split_once('\n').unwrap_or((section, ""));
        let (head, sums) = head.strip_suffix(" sums").map_or((head, false), |head| (head, true));
        let side = if head.starts_with("A ") { 0 } else { 1 };
        sides[side].push(profile(&head.to_lowercase().replace(' ', "-"), script, sums));
    }
    sides
}

/// The report of a section `diff …`, with the options of the command.
fn report(sides: &[Vec<Profile>; 2], line: &str) -> String {
    let (mut options, mut text, mut json) = (Options::default(), TextOptions::default(), false);
    let mut metrics = Vec::new();
    let mut words = line.split(' ').skip(1);
    while let Some(option) = words.next() {
        let mut value = || words.next().expect("a value");
        match option {
            "--by" => {
                let by = |name: &str| By::ALL.into_iter().find(|by| by.name() == name).expect("a table");
                options.by = value().split(',').map(by).collect();
            }
            "--time" => options.time = if value() == "total" { Time::Total } else { Time::Own },
            "--filter" => options.filter.push(value().to_owned()),
            "--min-change" => options.min_change = Some(MinChange::Ns(value().parse().expect("nanoseconds"))),
            "--per-process" => options.per_process = true,
            "--fail-on" => {
                let percent = value().parse().expect("percent");
                options.fail_on = Some(FailOn { percent, metrics: Vec::new() });
            }
            "--metric" => {
                let metric =
                    |name: &str| Metric::ALL.into_iter().find(|m| m.name() == name).expect("a metric");
                metrics = value().split(',').map(metric).collect();
            }
            "--top" => text.top = value().parse().expect("a number"),
            "--width" => text.width = Some(value().parse().expect("a number")),
            "--full-names" => text.full_names = true,
            "--colour" => text.colour = true,
            "--markdown" => text.form = Form::Markdown,
            "--json" => json = true,
            other => panic!("no option {other}"),
        }
    }
    if let Some(fail_on) = &mut options.fail_on {
        fail_on.metrics = metrics;
    }
    let report = match diff(&sides[0], &sides[1], &options) {
        Ok(report) => report,
        Err(error) => return format!("error: {error}"),
    };
    match json {
        true => serde_json::to_string_pretty(&report).expect("a report is JSON"),
        false => report.render(&text).replace('\x1b', "␛"),
    }
}

#[test]
fn golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_diff");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    paths.sort();
    assert!(!paths.is_empty());
    let mut wrong = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).expect("readable");
        let mut sections = text.split("\n== ");
        let scripts = sections.next().unwrap_or("");
        let sides = sides(scripts);
        let mut made = scripts.trim_end().to_owned() + "\n";
        for section in sections {
            let name = section.split('\n').next().unwrap_or("");
            let shown = report(&sides, name);
            made += &format!("\n== {name}\n{}\n", shown.trim_end_matches('\n'));
        }
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &made).expect("writable");
        } else if made != text {
            let at = text.lines().zip(made.lines()).take_while(|(a, b)| a == b).count();
            let line = |t: &str| t.lines().nth(at).unwrap_or("(end)").to_owned();
            let (expected, found) = (line(&text), line(&made));
            wrong.push(format!("{}:{}:\n  expected {expected}\n  found    {found}", path.display(), at + 1));
        }
    }
    assert!(wrong.is_empty(), "{}\n(BLESS=1 to accept)", wrong.join("\n"));
}

/// What a run does: a call of `toyFinish` around so many of `baseWait`, and a command.
type Done = (u64, u8, u64, u8);

/// A run by what it does. `ids` stands for what is different in each run: process,
/// thread, handles and time.
fn script(done: &[Done], ids: u64) -> String {
    let (pid, tid, handle) = (100 + ids, 7 * ids + 1, 0x1000 * (ids + 1));
    let start = 1_000_000 * ids;
    let mut text = String::new();
    let _ = writeln!(text, "{start} {pid}.1 * device device={} handle={handle} name=\"Toy GPU\"", ids + 1);
    let _ = writeln!(
        text,
        "{start} {pid}.1 * queue queue={} handle={handle} device={} api=\"toy\"",
        ids + 2,
        ids + 1
    );
    for kernel in 0..3 {
        let _ = writeln!(
            text,
            "{start} {pid}.1 * function function={} name=\"_Z4stepILi{kernel}EEvPf\"",
            ids + kernel + 1
        );
    }
    let mut time = start;
    for (own, waits, command, kernel) in done {
        let _ = writeln!(text, "{time} {pid}.{tid} > toyFinish queue={handle}");
        for _ in 0..*waits {
            let _ = writeln!(text, "{} {pid}.{tid} > baseWait event={handle}", time + 1);
            time += 1 + own / 2;
            let _ = writeln!(text, "{time} {pid}.{tid} < baseWait result=0");
        }
        time += own;
        let _ = writeln!(text, "{time} {pid}.{tid} < toyFinish result=0");
        let what = match kernel {
            0..3 => format!("kernel function={}", ids + u64::from(*kernel) + 1),
            3 => "write to=device bytes=64".to_owned(),
            _ => "marker".to_owned(),
        };
        let _ = writeln!(text, "{time} {pid}.1 * {what} queue={} duration={command}", ids + 2);
        time += 10;
    }
    text
}

fn of(side: &[Vec<Done>], ids: u64) -> Vec<Profile> {
    let named = |(n, done): (u64, &Vec<Done>)| profile(&format!("{n}"), &script(done, ids + n), false);
    (0..).zip(side).map(named).collect()
}

fn all_tables() -> Options {
    Options { by: By::ALL.to_vec(), ..Options::default() }
}

fn compared(a: &[Profile], b: &[Profile]) -> Report {
    diff(a, b, &all_tables()).expect("nothing is asked for")
}

/// All rows of a report, and the tables they are in.
fn rows(report: &Report) -> impl Iterator<Item = (By, &Row)> {
    let all = |t| -> Vec<(By, &Row)> {
        let t: &hetrace_report::diff::Table = t;
        t.rows.iter().chain(&t.appeared).chain(&t.vanished).map(|row| (t.by, row)).collect()
    };
    report.tables.iter().flat_map(all)
}

fn side() -> impl Strategy<Value = Vec<Vec<Done>>> {
    let done = (1u64..1 << 20, 0u8..3, 0u64..1 << 20, 0u8..5);
    prop::collection::vec(prop::collection::vec(done, 0..6), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_runs_do_not_differ(x in side()) {
        // Other processes, threads, handles and times.
        let report = compared(&of(&x, 1), &of(&x, 50));
        for (by, row) in rows(&report) {
            prop_assert_eq!(row.change.change_ns, 0.0, "{:?} {:?}", by, &row.what);
            prop_assert!(!row.change.significant);
            prop_assert_eq!(row.a_calls, row.b_calls);
        }
        prop_assert!(report.tables.iter().all(|t| t.appeared.is_empty() && t.vanished.is_empty()));
        prop_assert!(report.whole.iter().all(|w| w.change.change_ns == 0.0));
    }

    #[test]
    fn parts_add_up((a, b) in (side(), side())) {
        let report = compared(&of(&a, 1), &of(&b, 50));
        let near = |x: f64, y: f64| (x - y).abs() <= 1e-9 * (1.0 + x.abs().max(y.abs())) + 1e-3;
        for (_, row) in rows(&report) {
            let change = &row.change;
            prop_assert!(near(row.by_calls_ns + row.by_time_ns, change.change_ns));
            if row.a_calls > 0.0 && row.b_calls > 0.0 {
                let means = change.b_ns / row.b_calls - change.a_ns / row.a_calls;
                prop_assert!(near(row.by_time_ns, means * (row.a_calls + row.b_calls) / 2.0));
            } else {
                prop_assert_eq!(row.by_time_ns, 0.0);
            }
            if let (Some(low), Some(high)) = (change.low_ns, change.high_ns) {
                prop_assert!(low <= change.change_ns + 1e-3 && change.change_ns <= high + 1e-3);
            }
        }
        let whole = |metric: &str| {
            report.whole.iter().find(|w| w.metric == metric).map_or(0.0, |w| w.change.change_ns)
        };
        let sum = |by: &[By]| rows(&report).filter(|(b, _)| by.contains(b)).map(|(_, r)| r.change.change_ns).sum::<f64>();
        for by in [By::Path, By::Name, By::Api] {
            prop_assert!(near(sum(&[by]), whole("host")), "{:?}", by);
        }
        prop_assert!(near(sum(&[By::Kernel, By::Copy]), whole("commands")));
        let shares: f64 = rows(&report).filter(|(by, _)| *by == By::Path).filter_map(|(_, r)| r.share_percent).sum();
        prop_assert!(shares == 0.0 || (shares - 100.0).abs() < 1e-3, "{}", shares);
    }

    #[test]
    fn swapping_the_sides_turns_all_around((a, b) in (side(), side())) {
        let (a, b) = (of(&a, 1), of(&b, 50));
        let (one, other) = (compared(&a, &b), compared(&b, &a));
        for (x, y) in one.tables.iter().zip(&other.tables) {
            prop_assert_eq!(x.appeared.len(), y.vanished.len());
            prop_assert_eq!(x.rows.len(), y.rows.len());
            let back = y.rows.iter().chain(&y.vanished).chain(&y.appeared);
            for (x, y) in x.rows.iter().chain(&x.appeared).chain(&x.vanished).zip(back) {
                prop_assert_eq!(&x.what, &y.what);
                prop_assert_eq!(x.change.change_ns, -y.change.change_ns);
                prop_assert_eq!(x.change.low_ns, y.change.high_ns.map(|ns| -ns));
                prop_assert_eq!(x.by_calls_ns, -y.by_calls_ns);
                prop_assert_eq!(x.change.significant_of_all, y.change.significant_of_all);
            }
        }
    }

    #[test]
    fn the_order_of_runs_does_not_matter((a, b) in (side(), side())) {
        let (a, b) = (of(&a, 1), of(&b, 50));
        let turned = |side: &[Profile]| side.iter().rev().cloned().collect::<Vec<_>>();
        let text = |a: &[Profile], b: &[Profile]| {
            let mut report = compared(a, b);
            report.a.clear();
            report.b.clear();
            report.render(&TextOptions { top: 1000, ..TextOptions::default() })
        };
        prop_assert_eq!(text(&a, &b), text(&turned(&a), &turned(&b)));
    }
}

#[test]
fn deep_recursion_is_compared() {
    let nested = |depth: u64| {
        let mut text = String::new();
        for level in 0..depth {
            let _ = writeln!(text, "{} 1.1 > toyFinish queue=0x1", level * 10);
        }
        for level in 0..depth {
            let _ = writeln!(text, "{} 1.1 < toyFinish result=0", (depth + level) * 10);
        }
        text
    };
    let (a, b) = (profile("a", &nested(300), false), profile("b", &nested(400), false));
    let report = compared(std::slice::from_ref(&a), std::slice::from_ref(&b));
    let paths = &report.tables[0];
    assert_eq!(paths.rows.len(), 65);
    // The innermost ones, which are too deep to be distinguished, and no time is lost.
    let rest = paths.rows.iter().find(|row| row.what.path.last().is_some_and(|step| step.name == "…"));
    let rest = rest.expect("a row for what is too deep");
    assert_eq!((rest.a_calls, rest.b_calls, rest.change.change_ns), (236.0, 336.0, 2000.0));
    assert!(report.notes.iter().any(|note| note.contains("572 calls are too deep")), "{:?}", report.notes);
}

/// Runs of one kernel of this many nanoseconds each.
fn kernels(side: &[u64], ids: u64) -> Vec<Profile> {
    let runs: Vec<Vec<Done>> = side.iter().map(|ns| vec![(10, 0, *ns, 0)]).collect();
    of(&runs, ids)
}

#[test]
fn limits_hold_for_what_is_not_chance() {
    let failures = |a: &[u64], b: &[u64], percent: f64, metrics: &[Metric]| {
        let fail_on = FailOn { percent, metrics: metrics.to_vec() };
        let options = Options { fail_on: Some(fail_on), ..Options::default() };
        let report = diff(&kernels(a, 1), &kernels(b, 50), &options).expect("traces");
        let verdict = report.verdict.expect("it was asked for");
        (verdict.tested, verdict.failures.iter().map(|f| f.metric).collect::<Vec<_>>())
    };
    let even = [1_000_000, 1_001_000, 999_000, 1_000_500];
    let slower = [1_100_000, 1_101_000, 1_099_000, 1_100_700];
    let wild = [700_000, 1_700_000, 900_000, 1_100_000];
    // Ten percent: more than two, less than fifteen.
    assert_eq!(failures(&even, &slower, 2.0, &[]), (true, vec![Metric::Wall, Metric::Device]));
    assert_eq!(failures(&even, &slower, 2.0, &[Metric::Rows]), (true, vec![Metric::Rows]));
    assert_eq!(failures(&even, &slower, 15.0, &[Metric::Rows, Metric::Device]), (true, vec![]));
    // Ten percent that chance makes; and faster is never worse.
    assert_eq!(failures(&even, &wild, 2.0, &[Metric::Device, Metric::Rows]), (true, vec![]));
    assert_eq!(failures(&slower, &even, 0.0, &[]), (true, vec![]));
    // One run: the difference itself.
    assert_eq!(failures(&even[..1], &slower, 2.0, &[Metric::Device]), (false, vec![Metric::Device]));
    assert_eq!(failures(&even[..1], &slower, 15.0, &[Metric::Device]), (false, vec![]));
}

/// Five runs of a kernel that takes so long, with a spread of 1 %, of which one is disturbed: it takes 10 % to
/// 100 % longer. `seed` is where they come from.
fn five_of_which_one_is_disturbed(ns: f64, seed: &mut u64) -> Vec<u64> {
    let mut even = || {
        // Knuth's MMIX generator; its upper bits are good.
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) as f64 / f64::from(1u32 << 31)
    };
    let at = (even() * 5.0) as usize;
    let run = |run: usize| {
        let normal = (0..12).map(|_| even()).sum::<f64>() - 6.0;
        let disturbed = if run == at { 1.1 + 0.9 * even() } else { 1.0 };
        (ns * (1.0 + 0.01 * normal) * disturbed) as u64
    };
    (0..5).map(run).collect()
}

/// What `--fail-on 2% --metric device` finds of two sides, and what is noted.
fn judged(a: &[u64], b: &[u64]) -> (bool, Vec<String>) {
    let fail_on = FailOn { percent: 2.0, metrics: vec![Metric::Device] };
    let options = Options { fail_on: Some(fail_on), ..Options::default() };
    let report = diff(&kernels(a, 1), &kernels(b, 50), &options).expect("traces");
    (!report.verdict.expect("it was asked for").failures.is_empty(), report.notes)
}

#[test]
fn five_percent_are_found_though_runs_are_disturbed() {
    let (mut seed, mut found, mut named) = (1, 0, 0);
    for _ in 0..20 {
        let a = five_of_which_one_is_disturbed(1e6, &mut seed);
        let b = five_of_which_one_is_disturbed(1.05e6, &mut seed);
        let (worse, notes) = judged(&a, &b);
        found += usize::from(worse);
        named += notes.iter().filter(|note| note.contains("may have disturbed it")).count();
    }
    // With means it were none: a run that takes half longer is in the way of any 5 %.
    assert!(found >= 17, "{found} of 20");
    assert!(named >= 20, "{named} of 40 disturbed runs are named");
}

#[test]
fn disturbed_runs_alone_are_no_alarm() {
    let mut seed = 2;
    for pair in 0..16 {
        let sides = [(); 2].map(|()| five_of_which_one_is_disturbed(1e6, &mut seed));
        assert!(!judged(&sides[0], &sides[1]).0, "{pair}: {sides:?}");
    }
}

#[test]
fn a_reading_can_be_stopped() {
    let trace = common::long(common::models(), 1, 100_000);
    let seen = std::cell::Cell::new(0u64);
    let watch = |events| {
        seen.set(seen.get() + events);
        if seen.get() > 100_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(Profile::of_trace("long", &trace, Some(&watch)).is_err());
    assert!((100_000..200_000).contains(&seen.get()));
}

#[test]
fn sums_of_several_traces_or_of_parts_are_no_run() {
    let trace = common::build(&script(&[(10, 1, 5, 0)], 1));
    let sums = |query: &tally::Query<'_>| {
        tally::aggregate(&trace, &tally::Options::default(), query).expect("nobody stops it")
    };
    let mut two = sums(&tally::Query::default());
    assert!(two.whole_run().is_ok());
    two.merge(sums(&tally::Query::default())).expect("alike");
    let error = |sums: &Aggregate| sums.whole_run().expect_err("no run").to_string();
    assert!(error(&two).contains("sums of 2 traces"), "{}", error(&two));
    let part = tally::Query { names: vec!["toy*".to_owned()], ..tally::Query::default() };
    assert!(error(&sums(&part)).contains("without filters"));
    let apart = tally::Query { by: vec![tally::By::Process], ..tally::Query::default() };
    assert!(error(&sums(&apart)).contains("without --by"));
}
