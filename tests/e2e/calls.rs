//! Every hard case of interposition: what the trace holds is what the program
//! says it has called, and the program ends as it does without us.
//!
//! The programs and how they end are in `tests/programs/check/runs.txt`.

use hetrace_tests::{Expected, Platform, trace_with};

/// Calls that a test must not compare: made through pointers, where some
/// platforms answer with functions of their own making.
fn comparable(name: &str) -> bool {
    !name.starts_with("clIcdGetPlatformIDs")
}

fn check(platform: Platform) {
    let runs = include_str!("../programs/check/runs.txt");
    let mut failures = Vec::new();
    let mut ran = 0;
    for line in runs.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [command @ .., end, place] = &words[..] else { panic!("{line}") };
        if platform != Platform::Pocl && *place == "pocl" {
            continue;
        }
        ran += 1;
        if let Err(what) = one(platform, command, end.parse().expect("a status")) {
            failures.push(format!("{}: {what}", command.join(" ")));
        }
    }
    assert!(ran > 30, "only {ran} runs");
    assert!(failures.is_empty(), "{platform:?}:\n{}", failures.join("\n"));
}

fn one(platform: Platform, command: &[&str], end: i32) -> Result<(), String> {
    // Room for a busy test machine, on which the drainer may have to wait.
    let traced = trace_with(platform, &["--buffer", "8192"], command);
    if traced.done.status != end {
        return Err(format!("ended with {}, not {end}: {}", traced.done.status, traced.done.err));
    }
    let seen = traced.seen();
    if !seen.damage.is_empty() || seen.disorder > 0 || seen.discarded > 0 {
        return Err(format!(
            "damage {:?}, {} out of order, {} lost",
            seen.damage, seen.disorder, seen.discarded
        ));
    }
    let losses = &traced.manifest()["losses"];
    for what in ["records", "calls", "calls_without_ring", "unwritten_bytes", "damaged_bytes"] {
        if losses[what] != 0 {
            return Err(format!("losses: {losses}"));
        }
    }
    let expected = Expected::parse(&traced.done.out);
    if expected.0.is_empty() && command[0] != "static" {
        return Err("the program said nothing".to_owned());
    }
    let by_process = expected.0.keys().any(|pid| *pid != 0);
    let (want, got) = if by_process {
        let want: Vec<_> =
            expected.0.iter().map(|(p, c)| (*p, c.clone())).filter(|(_, c)| !c.is_empty()).collect();
        let got: Vec<_> = seen.calls.iter().map(|(p, c)| (*p, c.clone())).collect();
        (want, got)
    } else {
        (vec![(0, expected.total())], vec![(0, seen.total())])
    };
    let filter = |list: Vec<(u32, std::collections::BTreeMap<String, u64>)>| {
        list.into_iter()
            .map(|(p, c)| (p, c.into_iter().filter(|(n, _)| comparable(n)).collect::<Vec<_>>()))
            .filter(|(_, c)| !c.is_empty())
            .collect::<Vec<_>>()
    };
    let (want, got) = (filter(want), filter(got));
    if want != got {
        return Err(format!("called {want:?}\n   recorded {got:?}"));
    }
    // A call that never returned is the last thing a dying thread did.
    let began: u64 = seen.total().values().sum();
    let ended: u64 = seen.ended.values().sum();
    let unfinished = began - ended;
    let may = u64::from(command == ["ending", "hang"]);
    if unfinished != may && !matches!(command[0], "lifecycle") {
        return Err(format!("{unfinished} calls without an end"));
    }
    Ok(())
}

#[test]
fn what_is_recorded_is_what_was_called_on_pocl() {
    check(Platform::Pocl);
}

#[test]
fn what_is_recorded_is_what_was_called_on_oclgrind() {
    check(Platform::Oclgrind);
}

#[test]
fn what_is_recorded_is_what_was_called_on_both_at_once() {
    check(Platform::Both);
}
