//! Instructions per call, counted by callgrind: unlike time they do not depend
//! on what else the machine does.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::calls::CALLS;
use super::ground::{Ground, Pin, succeeds};
use super::report::{Report, difference, number};
use super::setting::{DEFAULT, FULL, OUTSIDE, Setting, run as run_in};

const SETTINGS: &[Setting] =
    &[Setting::Bare, Setting::Dormant, OUTSIDE, DEFAULT, FULL, Setting::PeerOff, Setting::PeerOn];
/// The loops of sync_loop, in the order of [`CALLS`].
const LOOPS: &[&str] = &["get_platforms", "set_argument", "event_info", "kernel_info"];
/// Largest loop. With one round, a loop of each power of ten up to this, and
/// 100 calls before each of them.
const MOST: u32 = 10_000;

/// Instructions per call by setting and call.
#[derive(Debug, Default)]
pub struct Instructions(BTreeMap<(Setting, &'static str), f64>);

impl Instructions {
    /// What a setting adds to a call; not a number if it was not measured.
    pub fn added(&self, setting: Setting, call: &str) -> f64 {
        self.of(setting, call) - self.of(Setting::Bare, call)
    }

    fn of(&self, setting: Setting, call: &str) -> f64 {
        self.0.iter().find(|((s, c), _)| *s == setting && *c == call).map_or(f64::NAN, |(_, n)| *n)
    }
}

/// Counts and prints the table.
pub fn run(ground: &Ground, report: &mut Report) -> Instructions {
    let mut all = Instructions::default();
    report.title("Instructions per call (callgrind; with the loop around it)");
    if !succeeds("valgrind", &["--version"]) {
        report.line("skipped: valgrind is not installed");
        return all;
    }
    for setting in SETTINGS.iter().copied().filter(|s| s.possible(ground)) {
        match count(ground, setting) {
            Ok(counts) => all.0.extend(counts.into_iter().map(|(call, n)| ((setting, call), n))),
            Err(error) => report.line(&format!("{} failed: {error:#}", setting.name())),
        }
    }
    let mut head = vec!["call"];
    head.extend(SETTINGS.iter().filter(|s| s.possible(ground)).map(|s| s.name()));
    let row = |call: &str, text: &dyn Fn(Setting) -> String| {
        let mut cells = vec![call.to_owned()];
        cells.extend(SETTINGS.iter().filter(|s| s.possible(ground)).map(|s| text(*s)));
        cells
    };
    let mut rows = Vec::new();
    for call in CALLS {
        rows.push(row(call, &|s| number(all.of(s, call), 1)));
        rows.push(row("  added", &|s| difference(all.added(s, call), 1)));
    }
    report.table(&head, &rows);
    let kept: BTreeMap<String, f64> =
        all.0.iter().map(|((s, c), n)| (format!("{}.{c}", s.name()), *n)).collect();
    report.keep("instructions", json!(kept));
    all
}

fn count(ground: &Ground, setting: Setting) -> Result<Vec<(&'static str, f64)>> {
    let mut program: Vec<OsString> = vec![ground.program("sync_loop").into()];
    program.extend(["-n", &MOST.to_string(), "-r", "1", "-p", "0"].map(OsString::from));
    let sizes: Vec<u32> = (0..=MOST.ilog10()).map(|p| 10u32.pow(p)).collect();
    let calls = f64::from(sizes.iter().sum::<u32>() + 100 * sizes.len() as u32);
    let counts = per_call(ground, setting, &program, LOOPS, calls)?;
    Ok(CALLS.iter().copied().zip(counts).collect())
}

/// Instructions of each of a program's functions with all it calls, divided by the
/// calls that it makes.
pub fn per_call(
    ground: &Ground,
    setting: Setting,
    program: &[OsString],
    functions: &[&str],
    calls: f64,
) -> Result<Vec<f64>> {
    let file = ground.work.join("callgrind");
    let mut option = OsString::from("--callgrind-out-file=");
    option.push(&file);
    let mut words: Vec<OsString> = vec!["valgrind".into(), "-q".into(), "--tool=callgrind".into(), option];
    words.extend_from_slice(program);
    let ran = run_in(ground, setting, Pin::No, &words, |_| Ok(()))?;
    if ran.lost > 0.0 {
        // A lost record costs less than a written one.
        bail!("{} records were lost, so that the counts would be too low", ran.lost);
    }
    let text = fs::read_to_string(&file).context("callgrind's result")?;
    let costs = inclusive(&text);
    let of = |name: &&str| costs.get(name).map_or(f64::NAN, |cost| *cost as f64 / calls);
    Ok(functions.iter().map(of).collect())
}

/// Instructions of each called function and all it called, from callgrind's
/// file: behind a line `calls=…` stands what that call cost, and names are
/// numbered where they come first.
fn inclusive(text: &str) -> HashMap<&str, u64> {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut costs: HashMap<&str, u64> = HashMap::new();
    let mut callee = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((kind @ ("fn" | "cfn"), name)) = line.split_once('=') {
            let (id, name) = name.split_once(' ').unwrap_or((name, ""));
            if !name.is_empty() {
                names.insert(id, name);
            }
            if kind == "cfn" {
                callee = names.get(id).copied();
            }
        } else if line.starts_with("calls=") {
            let cost = lines.next().and_then(|l| l.rsplit(' ').next()).and_then(|c| c.parse::<u64>().ok());
            if let (Some(name), Some(cost)) = (callee.take(), cost) {
                *costs.entry(name).or_default() += cost;
            }
        }
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_of_calls_add_up() {
        let text = "fn=(1) main\n1 5\ncfn=(2) loop\ncalls=1 3\n2 100\ncfn=(2)\ncalls=4 3\n2 20\n\
                    fn=(2)\n3 7\ncfn=(3) f\ncalls=9 1\n3 50\n";
        let costs = inclusive(text);
        assert_eq!((costs.get("loop"), costs.get("f"), costs.get("main")), (Some(&120), Some(&50), None));
    }
}
