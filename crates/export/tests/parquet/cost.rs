//! What is left of times without the tracer's own cost fits together: however calls are grouped, in
//! every form, of any calls and of any cost.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use hetrace_export::{chrome, stacks};
use hetrace_report::tally::{By, HostRow, Options, Query, Reading, Tally, aggregate};
use hetrace_trace::trace::Trace;
use proptest::prelude::*;
use serde_json::Value;

use super::common;
use super::read::{Row, long, text};
use super::tables;

/// Names, what is passed, and what comes back; calls of the first two enqueue.
const FUNCTIONS: [(&str, &str, bool); 5] = [
    ("toyLaunch", "queue=0x10 kernel=0x3 dims=1 global=[64]", true),
    ("toyWrite", "queue=0x10 buffer=0xb size=64 data=0x7fff", true),
    ("toyFinish", "queue=0x10", true),
    ("toyFree", "address=0x1", false),
    ("baseSubmit", "", true),
];
const ENQUEUING: usize = 2;

/// A call: its function, time before and after what is inside, what is inside.
#[derive(Clone, Debug)]
struct Work {
    function: usize,
    around: (u64, u64),
    inside: Vec<Work>,
    /// Polls recorded as one run after it, and their time.
    polls: Option<(u64, u64)>,
    /// Calls that were added up: how many, since how long before it ended, and of that how much was in them, percent.
    summed: Option<(u64, u64, u64)>,
    /// What the tracer says that it did inside, if that was much.
    own_work: Option<u64>,
    failed: bool,
}

fn works() -> impl Strategy<Value = Vec<Work>> {
    let time = || prop_oneof![0u64..4, 0u64..300, 10_000u64..1_000_000];
    let head = move || {
        let polls = prop::option::weighted(0.1, (1u64..9, 0u64..500));
        let own_work = prop::option::weighted(0.3, prop_oneof![0u64..400, 0u64..2_000_000]);
        let summed = prop::option::weighted(0.2, (1u64..9, time(), 0u64..100));
        (0..FUNCTIONS.len(), (time(), time()), (polls, summed), own_work, prop::bool::weighted(0.2))
    };
    let made = |((function, around, (polls, summed), own_work, failed), inside)| {
        let function: usize = function;
        let failed = failed && FUNCTIONS[function].2;
        Work { function, around, inside, polls, summed, own_work, failed }
    };
    let leaf = head().prop_map(move |head| made((head, Vec::new())));
    let tree = leaf
        .prop_recursive(4, 40, 5, move |inner| (head(), prop::collection::vec(inner, 0..5)).prop_map(made));
    prop::collection::vec(tree, 1..12)
}

/// Any cost: far more than calls take as well as less.
fn manifests() -> impl Strategy<Value = String> {
    (0u32..400, 0.0..1.0, 0u32..300, 0.0..1.0, 0u32..5, 0u64..100_000).prop_map(
        |(call, inside, fold, fold_inside, least, timing)| {
            let (inside, fold_inside) = (f64::from(call) * inside, f64::from(fold) * fold_inside);
            format!(
                r#"manifest {{"schema":2,"exit":{{"code":0}},"cost":{{"call_ns":{call},"inside_ns":{inside},"fold_ns":{fold},"fold_inside_ns":{fold_inside},"least_ns":{least},"timing":[{{"api":"toy","calls":100,"ns":{timing},"apart_calls":3,"apart_ns":5000,"collecting_ns":7000}}]}}}}"#
            )
        },
    )
}

fn script(out: &mut String, now: &mut u64, thread: u64, works: &[Work]) {
    for work in works {
        let (name, passed, fails) = FUNCTIONS[work.function];
        *out += &format!("{now} 1.{thread} > {name} {passed}\n");
        *now += work.around.0;
        script(out, now, thread, &work.inside);
        *now += work.around.1;
        if let Some(ns) = work.own_work.filter(|_| work.function < ENQUEUING) {
            *out += &format!("{now} 1.{thread} w toy ns={ns}\n");
        }
        let back =
            if fails { format!(" result={}", if work.failed { -5 } else { 0 }) } else { String::new() };
        *out += &format!("{now} 1.{thread} < {name}{back}\n");
        *now += 3;
        if let Some((count, since, percent)) = work.summed {
            let first = now.saturating_sub(since);
            let total = (*now - first) * percent / 100;
            *out += &format!(
                "{now} 1.{thread} ~ {name} count={count} first={first} last={now} total={total} added_up=1\n"
            );
            *now += 1;
        }
        if let Some((count, total)) = work.polls {
            let first = *now;
            *now += total + 2;
            *out +=
                &format!("{now} 1.{thread} ~ toyPoll count={count} first={first} last={now} total={total}\n");
            *now += 1;
        }
    }
}

fn tally(trace: &Trace, by: &[By], gross: bool, reading: Reading) -> Tally {
    let query = Query { by: by.to_vec(), gross, reading, ..Query::default() };
    aggregate(trace, &Options::default(), &query).expect("nobody stops it").tally()
}

/// Sums of rows by name: calls, time, own time, and that of failed calls.
fn sums(tally: &Tally) -> BTreeMap<&str, [u64; 4]> {
    let mut sums = BTreeMap::new();
    for row in &tally.host {
        let sum: &mut [u64; 4] = sums.entry(row.name.as_str()).or_default();
        for (to, n) in sum.iter_mut().zip([row.calls, row.total_ns, row.self_ns, row.error_ns]) {
            *to += n;
        }
    }
    sums
}

fn whole(tally: &Tally) -> [u64; 4] {
    sums(tally).values().fold([0; 4], |all, one| std::array::from_fn(|i| all[i] + one[i]))
}

fn is_possible(row: &HostRow) {
    let well = row.calls - row.errors;
    assert!(row.self_ns <= row.total_ns, "{row:?}");
    // Quantiles are of calls that were not added up.
    let single = well > row.added_up;
    assert!(
        !single || row.min_ns <= row.p50_ns && row.p50_ns <= row.p99_ns && row.p99_ns <= row.max_ns,
        "{row:?}"
    );
    if well > 0 {
        assert!(row.avg_ns >= row.min_ns as f64, "{row:?}");
        // Of a run only the mean is known, rounded down.
        assert!(row.avg_ns < (row.max_ns + 1) as f64, "{row:?}");
        assert!(row.total_ns >= well * row.min_ns && row.total_ns < well * (row.max_ns + 1), "{row:?}");
    }
}

/// All groupings have the same sums, with the tracer's cost and without it.
fn groupings_agree(trace: &Trace) -> (Tally, Tally) {
    let named: [&[By]; 4] =
        [&[By::Name], &[By::Thread, By::Name], &[By::Name, By::Error], &[By::Api, By::Process, By::Name]];
    let others: [&[By]; 4] = [&[By::Thread], &[By::Api], &[By::Range, By::Thread], &[By::Error]];
    let both = [false, true].map(|gross| {
        let plain = tally(trace, &[], gross, Reading::Slices(3));
        plain.host.iter().for_each(is_possible);
        for reading in [Reading::Slices(1), Reading::Slices(3), Reading::InOrder] {
            for by in named {
                let grouped = tally(trace, by, gross, reading);
                grouped.host.iter().for_each(is_possible);
                assert_eq!(sums(&grouped), sums(&plain), "{by:?}");
            }
            for by in others {
                let grouped = tally(trace, by, gross, reading);
                grouped.host.iter().for_each(is_possible);
                assert_eq!(whole(&grouped), whole(&plain), "{by:?}");
            }
        }
        plain
    });
    let [net, gross] = both;
    for (with, without) in gross.host.iter().flat_map(|g| net.host.iter().map(move |n| (g, n))) {
        if (&with.name, &with.api) == (&without.name, &without.api) {
            assert_eq!(with.total_ns, without.total_ns + without.cost_ns, "{}", with.name);
            assert_eq!(with.self_ns, without.self_ns + without.self_cost_ns, "{}", with.name);
            assert_eq!(with.error_ns, without.error_ns + without.error_cost_ns, "{}", with.name);
            assert!(without.min_ns <= with.min_ns && without.max_ns <= with.max_ns, "{}", with.name);
        }
    }
    (net, gross)
}

/// Call paths, by the function that they end in.
fn stacks_agree(trace: &Trace, net: &Tally) {
    let mut folded = Vec::new();
    stacks::write(trace, &stacks::Options::default(), &mut folded, &|_| ControlFlow::Continue(()))
        .expect("memory takes it");
    let mut found: BTreeMap<(String, bool), u64> = BTreeMap::new();
    for line in String::from_utf8(folded).expect("UTF-8").lines() {
        let (path, weight) = line.rsplit_once(' ').expect("a weight");
        let failed = path.strip_suffix(";[failed]");
        let (_, name) = failed.unwrap_or(path).rsplit_once(':').expect("a function");
        let sum = found.entry((name.to_owned(), failed.is_some())).or_default();
        *sum += weight.parse::<u64>().expect("a number");
    }
    let parts = |row: &HostRow| {
        [((row.name.clone(), false), row.self_ns), ((row.name.clone(), true), row.error_self_ns)]
    };
    assert_eq!(found, net.host.iter().flat_map(parts).filter(|(_, ns)| *ns > 0).collect());
}

/// Tables: what was recorded, and what of it is the tracer's.
fn tables_agree(trace: &Trace, (net, gross): (&Tally, &Tally)) {
    let (_, tables) = tables(trace);
    let mut found: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    let number = |row: &Row, column| row.get(column).and_then(long).unwrap_or(0) as u64;
    for row in &tables["calls"] {
        let sum = found.entry(text(row, "name")).or_default();
        let [time, own, cost, own_cost] =
            ["duration_ns", "self_ns", "tracing_ns", "self_tracing_ns"].map(|column| number(row, column));
        assert!(own_cost <= own && cost <= time && own - own_cost <= time - cost, "{row:?}");
        if row.get("error").is_none() {
            sum[0] += time;
            sum[1] += time - cost;
            sum[2] += own - own_cost;
        } else {
            sum[3] += time - cost;
        }
    }
    for ((name, sum), (with, without)) in found.iter().zip(sums(gross).values().zip(sums(net).values())) {
        assert_eq!(*sum, [with[1], without[1], without[2], without[3]], "{name}");
    }
}

/// Chrome's events have times as they were recorded.
fn chrome_agrees(trace: &Trace, gross: &Tally) {
    let mut bytes = Vec::new();
    chrome::write(trace, &chrome::Options::default(), &mut bytes, &|_| ControlFlow::Continue(()))
        .expect("memory takes it");
    let json: Value = serde_json::from_slice(&bytes).expect("JSON");
    let mut found = 0.0;
    for event in json["traceEvents"].as_array().expect("events").iter() {
        let inside = &event["args"]["ns inside them"];
        if event["ph"] != "X" && inside.is_null() {
            continue;
        }
        found += inside.as_f64().unwrap_or_else(|| event["dur"].as_f64().unwrap_or(0.0) * 1e3);
    }
    let [_, time, _, failed] = whole(gross);
    assert_eq!(found.round() as u64, time + failed);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_forms_and_groupings_have_the_same_sums(
        one in works(), other in works(), manifest in manifests()
    ) {
        let mut text = format!("{manifest}\n");
        for (thread, works) in [(1, &one), (2, &other)] {
            script(&mut text, &mut 100, thread, works);
        }
        let mut models = common::models();
        models.retain(|m| m.api == "toy" || m.api == "base");
        let trace = common::build_with(models, &text, |_| {});
        let (net, gross) = groupings_agree(&trace);
        stacks_agree(&trace, &net);
        tables_agree(&trace, (&net, &gross));
        chrome_agrees(&trace, &gross);
    }
}

/// A call that was interrupted while the tracer worked counts with what it says of itself, the others with the
/// mean of these; one that failed has enqueued nothing.
#[test]
fn a_call_is_charged_with_its_own_work() {
    let script = r#"manifest {"schema":2,"exit":{"code":0},"cost":{"call_ns":20,"inside_ns":4,"least_ns":2,"timing":[{"api":"toy","calls":3,"ns":300,"apart_calls":1,"apart_ns":50000,"collecting_ns":0}]}}
1000   1.1 > toyWrite queue=0x10 buffer=0xb size=64 data=0x7fff
1500   1.1 < toyWrite result=0
2000   1.1 > toyWrite queue=0x10 buffer=0xb size=64 data=0x7fff
52390  1.1 w toy ns=50000
52400  1.1 < toyWrite result=0
53000  1.1 > toyWrite queue=0x10 buffer=0xb size=64 data=0x7fff
53050  1.1 < toyWrite result=0
54000  1.1 > toyWrite queue=0x10 buffer=0xb size=64 data=0x7fff
54100  1.1 < toyWrite result=-5
"#;
    let trace = common::build(script);
    for reading in [Reading::Slices(1), Reading::Slices(2), Reading::InOrder] {
        let net = tally(&trace, &[], false, reading);
        let row = &net.host[0];
        // 500 - 104, 50400 - 50004, and of 50 what a call takes at least; of 100 the plain cost.
        assert_eq!((row.total_ns, row.min_ns, row.max_ns, row.error_ns), (396 + 396 + 2, 2, 396, 96));
        let tracing = net.tracing.expect("it is known");
        assert_eq!((tracing.timing_ns, tracing.collecting_ns), (37725, 0), "3 of the mean of 4");
    }
}
