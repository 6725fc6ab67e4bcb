//! What was measured, for people and for programs.

use std::fmt::Write as _;

use anyhow::Result;
use hetrace_report::tally::TracingRow;
use hetrace_trace::text::{count, duration_f, plural};
use serde_json::{Value, json};

use super::differences::{Interval, median_of};
use super::measure::{Measured, Plan, Times, Traced};

/// Version of the JSON form.
const SCHEMA: u32 = 1;

/// One of the times of a run.
type Kind = fn(&Times) -> f64;
const WALL: Kind = |times| times.wall;
const LIFETIME: Kind = |times| times.lifetime;
const PROCESSOR: Kind = |times| times.processor;
/// Those that are compared.
const KINDS: [Kind; 3] = [WALL, LIFETIME, PROCESSOR];
/// Their names.
const NAMES: [&str; 3] = ["wall", "lifetime", "processor"];

/// One time in all rounds, against that of bare runs.
struct Compared {
    median: Option<f64>,
    bare: Option<f64>,
    added: Option<Interval>,
}

impl Compared {
    fn of(times: &[Times], bare: &[Times], kind: Kind) -> Self {
        let all = |times: &[Times]| times.iter().map(kind).collect::<Vec<f64>>();
        let (times, bare) = (all(times), all(bare));
        let pairs: Vec<f64> = times.iter().zip(&bare).map(|(time, bare)| time - bare).collect();
        Self { median: median_of(&times), bare: median_of(&bare), added: Interval::of(&pairs) }
    }

    fn percent(&self) -> Option<f64> {
        let (added, bare) = (self.added?, self.bare.filter(|bare| *bare > 0.0)?);
        Some(100.0 * added.median / bare)
    }

    fn cells(&self) -> [String; 3] {
        let dash = || "-".to_owned();
        [
            self.median.map_or_else(dash, duration_f),
            self.added.map_or_else(dash, |i| {
                format!("{} ({} to {})", signed(i.median), signed(i.low), signed(i.high))
            }),
            self.percent().map_or_else(dash, |percent| format!("{percent:+.1}%")),
        ]
    }

    fn json(&self) -> Value {
        let added = self.added.map(|i| {
            json!({
                "median_ns": i.median,
                "low_ns": i.low,
                "high_ns": i.high,
                "confidence": i.confidence,
                "significant": i.excludes_zero(),
            })
        });
        json!({ "median_ns": self.median, "added": added, "percent": self.percent() })
    }
}

fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "+" };
    format!("{sign}{}", duration_f(ns.abs()))
}

/// What the traces of a setting state in the middle.
fn stated(traced: &Traced, part: fn(&TracingRow) -> u64) -> Option<f64> {
    median_of(&traced.stated.iter().map(|row| part(row) as f64).collect::<Vec<f64>>())
}

/// A table and what must be known of it.
pub fn text(plan: &Plan, measured: &Measured) -> String {
    let confidence = Compared::of(&measured.again, &measured.bare, WALL).added;
    let confidence = confidence.map_or(0.0, |interval| interval.confidence * 100.0);
    let head = format!("added ({confidence:.0}%)");
    let columns = |name: &str, of: &dyn Fn(usize) -> [String; 3], last: &str| {
        let cells = (0..KINDS.len()).flat_map(of);
        std::iter::once(name.to_owned()).chain(cells).chain([last.to_owned()]).collect::<Vec<String>>()
    };
    let bare = |kind| Compared::of(&measured.bare, &measured.bare, kind).median;
    let cell = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), duration_f);
    let (empty, of_bare) = (String::new, || "of bare".to_owned());
    let mut rows = vec![
        columns("", &|kind| [NAMES[kind].to_owned(), head.clone(), of_bare()], "stated"),
        columns("bare", &|kind| [cell(bare(KINDS[kind])), empty(), empty()], ""),
    ];
    let mut row = |name: String, times: &[Times], stated: String| {
        let cells = KINDS.iter().flat_map(|kind| Compared::of(times, &measured.bare, *kind).cells());
        rows.push(std::iter::once(name).chain(cells).chain([stated]).collect());
    };
    row("bare again".to_owned(), &measured.again, empty());
    for (setting, traced) in plan.settings.iter().zip(&measured.settings) {
        row(setting.name(), &traced.times, cell(stated(traced, |row| row.total_ns)));
    }
    let mut text = String::new();
    let command: Vec<_> = plan.command.iter().map(|word| word.to_string_lossy()).collect();
    let _ = writeln!(text, "{}: {}", command.join(" "), plural(plan.rounds as u64, "round"));
    text += &aligned(&rows);
    text += &remarks(plan, measured);
    text
}

fn remarks(plan: &Plan, measured: &Measured) -> String {
    let mut text = String::new();
    for (setting, traced) in plan.settings.iter().zip(&measured.settings) {
        if traced.lost > 0 {
            let lost = count(traced.lost);
            let _ = writeln!(
                text,
                "{}: {lost} events were dropped: its cost is more than is shown (a larger --buffer keeps them)",
                setting.name()
            );
        }
    }
    let uncertain = measured
        .settings
        .iter()
        .any(|traced| differences(&traced.times, measured).iter().any(|added| !added.excludes_zero()));
    if uncertain {
        let _ = writeln!(text, "An interval with 0 in it shows no difference: more --runs may show one.");
    }
    if differences(&measured.again, measured).iter().any(Interval::excludes_zero) {
        let _ = writeln!(
            text,
            "Bare runs differ from bare runs: something else on this machine changed meanwhile. Measure again."
        );
    }
    text
}

/// What both times of runs have more than those of bare runs, as far as that is known.
fn differences(times: &[Times], measured: &Measured) -> Vec<Interval> {
    KINDS.iter().filter_map(|kind| Compared::of(times, &measured.bare, *kind).added).collect()
}

/// Columns: the first is text, the others are numbers.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The same for programs, with each single run.
pub fn json(plan: &Plan, measured: &Measured) -> Result<String> {
    let samples = |times: &[Times]| {
        let of = |kind: Kind| times.iter().map(kind).collect::<Vec<f64>>();
        json!({ "wall_ns": of(WALL), "lifetime_ns": of(LIFETIME), "processor_ns": of(PROCESSOR) })
    };
    let against_bare = |times: &[Times]| {
        let of = |kind| Compared::of(times, &measured.bare, kind).json();
        json!({
            "wall": of(WALL), "lifetime": of(LIFETIME), "processor": of(PROCESSOR), "samples": samples(times)
        })
    };
    let setting = |(setting, traced): (&super::Setting, &Traced)| -> Result<Value> {
        let mut row = against_bare(&traced.times);
        row["options"] = json!(setting.options);
        row["lost"] = json!(traced.lost);
        row["stated_ns"] = json!(stated(traced, |row| row.total_ns));
        row["stated"] = serde_json::to_value(&traced.stated)?;
        Ok(row)
    };
    let settings: Result<Vec<Value>> = plan.settings.iter().zip(&measured.settings).map(setting).collect();
    let value = json!({
        "schema": SCHEMA,
        "command": plan.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "rounds": plan.rounds,
        "bare": samples(&measured.bare),
        "bare_again": against_bare(&measured.again),
        "settings": settings?,
    });
    Ok(format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::super::Setting;
    use super::*;

    fn plan() -> Plan {
        let settings = vec![Setting { options: vec!["--mode=default".to_owned()] }];
        Plan { command: vec!["./app".into(), "-n".into()], settings, rounds: 6, shows_output: true }
    }

    /// Lifetimes are 1 ms less than walls; `added` is what tracing adds to both.
    fn times(added: f64) -> Vec<Times> {
        let wall = |round: u32| 100e6 + f64::from(round) * 1e6 + added;
        let times =
            |round| Times { wall: wall(round), lifetime: wall(round) - 1e6, processor: wall(round) / 2.0 };
        (0..6).map(times).collect()
    }

    fn measured() -> Measured {
        let stated = vec![TracingRow { total_ns: 1_500_000, ..TracingRow::default() }];
        let traced = Traced { times: times(2e6), stated, lost: 3 };
        let mut again = times(0.0);
        again.iter_mut().zip([-3e5, 2e5, -1e5, 1e5, 4e5, -2e5]).for_each(|(time, noise)| {
            time.wall += noise;
            time.lifetime += noise;
        });
        Measured { bare: times(0.0), again, settings: vec![traced] }
    }

    #[test]
    fn the_table_has_differences_of_pairs() {
        let expected = "\
./app -n: 6 rounds
                  wall                      added (97%)  of bare  lifetime                      added (97%)  of bare  processor                      added (97%)  of bare   stated
bare            102 ms                                              102 ms                                              51.2 ms
bare again      102 ms       +0 ns (-300 µs to +400 µs)    +0.0%    102 ms       +0 ns (-300 µs to +400 µs)    +0.0%    51.2 ms           +0 ns (+0 ns to +0 ns)    +0.0%
--mode=default  104 ms  +2.00 ms (+2.00 ms to +2.00 ms)    +2.0%    104 ms  +2.00 ms (+2.00 ms to +2.00 ms)    +2.0%    52.2 ms  +1.00 ms (+1.00 ms to +1.00 ms)    +2.0%  1.50 ms
--mode=default: 3 events were dropped: its cost is more than is shown (a larger --buffer keeps them)
";
        assert_eq!(text(&plan(), &measured()), expected);
    }

    #[test]
    fn the_object_has_all_runs() {
        let text = json(&plan(), &measured()).expect("numbers");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let row = &value["settings"][0];
        assert_eq!((&row["wall"]["added"]["median_ns"], &row["stated_ns"]), (&2e6.into(), &1.5e6.into()));
        assert_eq!(row["lifetime"]["added"]["significant"], true);
        assert_eq!(value["bare_again"]["lifetime"]["added"]["significant"], false);
        assert_eq!(value["bare"]["wall_ns"].as_array().map(Vec::len), Some(6));
    }
}
