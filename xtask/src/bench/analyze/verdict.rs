//! The targets, and whether they are met.

use serde_json::json;

use super::super::report::{Report, number};
use super::Scale;
use super::rows::{Cores, DUMMY, EVENTS, FOR_MEMORY, Found, MIB, PRINT, TALLY, TEXT, TIMELINE, Tool};

const LTTNG: &str = "LTTng-UST";
const OURS: &str = "ours";
const LONG: &str = "ours, long";

struct Target {
    what: String,
    unit: &'static str,
    found: f64,
    bound: Bound,
    digits: usize,
}

enum Bound {
    Least(f64),
    Most(f64),
}

impl Target {
    fn verdict(&self) -> &'static str {
        match self.bound {
            _ if !self.found.is_finite() => "not measured",
            Bound::Least(least) if self.found >= least => "PASS",
            Bound::Most(most) if self.found <= most => "PASS",
            _ => "FAIL",
        }
    }
}

/// Prints each target with its figure.
pub fn print(found: &Found, scale: Scale, report: &mut Report) {
    report.title("Verdict");
    if scale != Scale::Full {
        report.line("on short traces: for the targets run it at full scale");
    }
    let mut kept = Vec::new();
    let mut rows = Vec::new();
    for t in targets(found) {
        let bound = match t.bound {
            Bound::Least(n) => format!("at least {} {}", number(n, t.digits), t.unit),
            Bound::Most(n) => format!("at most {} {}", number(n, t.digits), t.unit),
        };
        let verdict = t.verdict();
        kept.push(json!({ "target": t.what, "found": t.found, "bound": bound, "verdict": verdict }));
        rows.push(vec![
            t.what,
            format!("{} {}", number(t.found, t.digits), t.unit),
            bound,
            verdict.to_owned(),
        ]);
    }
    report.table(&["target", "found", "wanted", ""], &rows);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    report.line(&format!("load of the machine now: {}", load.trim()));
    report.keep("load_at_end", json!(load.trim()));
    report.keep("verdict", json!(kept));
}

fn targets(found: &Found) -> Vec<Target> {
    let least = |what: String, found: f64, least: f64, unit: &'static str| Target {
        what,
        unit,
        found,
        bound: Bound::Least(least),
        digits: 2,
    };
    let most = |what: String, found: f64, most: f64, unit: &'static str| Target {
        what,
        unit,
        found,
        bound: Bound::Most(most),
        digits: 1,
    };
    let ratio =
        |ours, cores, peer, trace| found.rate(ours, cores, trace) / found.rate(peer, Cores::One, trace);
    let mut all = Vec::new();

    let tally = ratio(TALLY, Cores::One, DUMMY, LTTNG);
    all.push(least("tally / babeltrace2 -o dummy, one core, LTTng".into(), tally, 20.0, "x"));
    all.push(least("  the aim".into(), tally, 30.0, "x"));
    for trace in [LTTNG, OURS] {
        let scaling = found.rate(TALLY, Cores::All, trace) / found.rate(TALLY, Cores::One, trace);
        all.push(least(format!("tally on all cores / on one, {trace}"), scaling, 1.5, "x"));
    }
    for way in [PRINT, EVENTS] {
        for (cores, name) in [(Cores::One, "one core"), (Cores::All, "all cores")] {
            for trace in [LTTNG, OURS] {
                let what = format!("{} / babeltrace2 text, {name}, {trace}", &way.name["hetrace ".len()..]);
                all.push(least(what, ratio(way, cores, TEXT, trace), 3.0, "x"));
            }
        }
    }
    for trace in [LTTNG, OURS, LONG] {
        let first = found.first.get(&(PRINT.name, trace.to_owned())).map_or(f64::NAN, |s| s.median());
        all.push(most(format!("first line of print, {trace}"), first * 1e3, 50.0, "ms"));
    }
    for (cores, name) in [(Cores::One, "one core"), (Cores::All, "all cores")] {
        for trace in [LTTNG, OURS] {
            let rate = found.rate(TIMELINE, cores, trace) / 1e6;
            all.push(least(format!("timeline, {name}, {trace}"), rate, 2.0, "M/s"));
        }
    }
    for way in FOR_MEMORY.iter().filter(|w| w.tool != Tool::Peer) {
        let peak = found.peak.get(way.name);
        let value = |of: Option<f64>| of.map_or(f64::NAN, |bytes| bytes / MIB);
        let name = &way.name["hetrace ".len()..];
        all.push(most(
            format!("memory of {name}, long trace: RSS"),
            value(peak.map(|p| p.rss)),
            512.0,
            "MiB",
        ));
        all.push(most("  anonymous".into(), value(peak.map(|p| p.anonymous)), 512.0, "MiB"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_look_both_ways() {
        let verdict =
            |found, bound| Target { what: String::new(), unit: "", found, bound, digits: 0 }.verdict();
        assert_eq!(verdict(20.0, Bound::Least(20.0)), "PASS");
        assert_eq!(verdict(19.9, Bound::Least(20.0)), "FAIL");
        assert_eq!(verdict(50.0, Bound::Most(50.0)), "PASS");
        assert_eq!(verdict(50.1, Bound::Most(50.0)), "FAIL");
        assert_eq!(verdict(f64::NAN, Bound::Most(50.0)), "not measured");
    }

    #[test]
    fn nothing_measured_passes_nothing() {
        assert!(targets(&Found::default()).iter().all(|t| t.verdict() == "not measured"));
    }
}
