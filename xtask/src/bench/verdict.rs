//! The targets, and whether they are met.

use serde_json::json;

use super::calls::{CALLS, Calls, FOLDED, recorded};
use super::disk::PerEvent;
use super::instructions::Instructions;
use super::iterations::Small;
use super::memory::Memory;
use super::report::{Report, number};
use super::setting::{DEFAULT, OUTSIDE, Setting};

const MIB: f64 = 1024.0 * 1024.0;
/// The call that stands for one with arguments.
const TYPICAL: &str = "clSetKernelArg";

/// Everything that was measured.
#[derive(Debug)]
pub struct Found {
    /// Table 2.
    pub calls: Calls,
    /// Instructions per call.
    pub instructions: Instructions,
    /// A 10x10 iteration.
    pub iteration: Small,
    /// What `run -- true` takes longer than `true`, in milliseconds.
    pub startup: f64,
    /// Memory.
    pub memory: Memory,
    /// Bytes per event, by program.
    pub disk: Vec<PerEvent>,
}

struct Target {
    what: String,
    unit: &'static str,
    found: f64,
    most: f64,
    digits: usize,
}

/// Prints each target with its figure.
pub fn print(found: &Found, report: &mut Report) {
    report.title("Verdict");
    report.line("added = median less the bare program's median of the same run, so without the call itself");
    let targets = targets(found);
    let mut kept = Vec::new();
    let mut rows = Vec::new();
    for t in &targets {
        let verdict = match () {
            () if !t.found.is_finite() => "not measured",
            () if t.found <= t.most => "PASS",
            () => "FAIL",
        };
        rows.push(vec![
            t.what.clone(),
            format!("{} {}", number(t.found, t.digits), t.unit),
            format!("{} {}", number(t.most, t.digits), t.unit),
            verdict.to_owned(),
        ]);
        kept.push(json!({ "target": t.what, "found": t.found, "most": t.most, "verdict": verdict }));
    }
    report.table(&["target", "found", "at most", ""], &rows);
    for (place, lost) in [
        ("table 2", found.calls.lost(DEFAULT).unwrap_or_default()),
        ("the 10x10 iteration", found.iteration.lost),
    ] {
        if lost > 0.0 {
            report.line(&format!("{lost} records were lost in {place}: its times are too good"));
        }
    }
    report.keep("verdict", json!(kept));
}

fn targets(found: &Found) -> Vec<Target> {
    let calls = &found.calls;
    let floor = calls.floor.median();
    let target =
        |what: &str, found, most, unit, digits| Target { what: what.to_owned(), unit, found, most, digits };
    let named = |what: &str, call: &str| {
        let mode = if call == FOLDED { "full" } else { "default" };
        format!("{what}: {call} ({mode})")
    };
    let worst = |of: &dyn Fn(&'static str) -> f64| {
        CALLS.iter().map(|c| (*c, of(c))).max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((TYPICAL, f64::NAN))
    };
    let mut all = Vec::new();

    let (call, added) = worst(&|c| calls.added(Setting::Dormant, c));
    all.push(target(&format!("dormant adds to a call, worst: {call}"), added, 1.5, "ns", 2));

    let ratio = |call: &str| calls.added(recorded(call), call) / floor;
    all.push(target(&named("added / floor, a call with arguments", TYPICAL), ratio(TYPICAL), 1.4, "x", 2));
    let (call, most) = worst(&|c| ratio(c));
    all.push(target(&named("added / floor, worst", call), most, 1.4, "x", 2));
    all.push(target(
        &format!("added / floor, folded: {FOLDED} (default)"),
        calls.added(DEFAULT, FOLDED) / floor,
        1.4,
        "x",
        2,
    ));

    let to_peer = |call: &str| calls.added(recorded(call), call) / calls.added(Setting::PeerOn, call);
    let (call, most) = worst(&|c| to_peer(c));
    all.push(target(&named("added / added by LTTng, worst", call), most, 0.4, "x", 2));

    let (call, most) = worst(&|c| found.instructions.added(OUTSIDE, c));
    all.push(target(&format!("instructions added outside of a window, worst: {call}"), most, 20.0, "", 1));
    let instructions = |call: &str| found.instructions.added(recorded(call), call);
    all.push(target(&named("instructions added", TYPICAL), instructions(TYPICAL), 150.0, "", 1));
    let (call, most) = worst(&|c| instructions(c));
    all.push(target(&named("instructions added, worst", call), most, 150.0, "", 1));
    let folded = found.instructions.added(DEFAULT, FOLDED);
    all.push(target(&format!("instructions added, folded: {FOLDED} (default)"), folded, 150.0, "", 1));

    let memory = &found.memory;
    all.push(target("10x10 iteration adds", found.iteration.added / 1e3, 5.0, "us", 2));
    all.push(target("hetrace run -- true takes longer", found.startup, 8.0, "ms", 2));
    all.push(target("memory of a recording thread", memory.thread / MIB, 2.0, "MiB", 3));
    let rss = memory.thread_rss / MIB;
    all.push(target("  as RSS, which counts the ring twice", rss, 2.0, "MiB", 3));
    let commands = memory.thread_with_commands / MIB;
    all.push(target("memory of a thread that makes commands", commands, 2.0, "MiB", 3));
    let launcher = &memory.launcher;
    let what = format!("launcher's peak RSS, worst: {}", launcher.program);
    all.push(target(&what, launcher.rss / MIB, 64.0, "MiB", 1));
    all.push(target("  without mapped files and rings", launcher.anonymous / MIB, 64.0, "MiB", 1));
    for program in &found.disk {
        all.push(target(&format!("bytes per event, {}", program.name), program.plain, 28.0, "B", 2));
        all.push(target("  compressed", program.compressed, 8.0, "B", 2));
    }
    all
}
