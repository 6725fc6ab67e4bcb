//! What recording took is taken off exactly: of programs whose true times are known, traced by a
//! tracer that takes a known time.

mod common;

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_report::tally::{Options, Query, Reading, Tally, TextOptions, TracingRow, aggregate};
use hetrace_trace::spans::{At, Call, Fold, Visitor, walk};
use proptest::prelude::*;

/// Of a recorded call: before, between and after its time stamps (the half of what is between on
/// each side of the real function), and of a folded poll.
const BEFORE: u64 = 7;
const HALF: u64 = 4;
const AFTER: u64 = 6;
const FOLD: u64 = 9;
const FOLD_INSIDE: u64 = 3;
const MANIFEST: &str = r#"manifest {"schema":2,"exit":{"code":0},"cost":{"call_ns":21,"inside_ns":8,"fold_ns":9,"fold_inside_ns":3}}"#;

/// What a program does.
#[derive(Clone, Debug)]
enum Work {
    /// Nothing of interest, for so long.
    Itself(u64),
    /// A call of one of the functions.
    Call(usize, Vec<Work>),
    /// So many equal calls of so long each, recorded in full before.
    Polls(u64, u64),
}

const FUNCTIONS: [(&str, &str, &str); 3] = [
    ("toyFinish", " queue=0x1", " result=0"),
    ("toyFree", " address=0x1", ""),
    ("baseSubmit", "", " result=0"),
];

fn work() -> impl Strategy<Value = Vec<Work>> {
    let leaf = prop_oneof![
        (0u64..50).prop_map(Work::Itself),
        (1u64..5, 0u64..9).prop_map(|(n, each)| Work::Polls(n, each))
    ];
    let tree = leaf.prop_recursive(5, 60, 6, |inner| {
        let inside = prop::collection::vec(inner.clone(), 0..6);
        prop_oneof![1 => inner, 3 => (0..FUNCTIONS.len(), inside).prop_map(|(f, all)| Work::Call(f, all))]
    });
    prop::collection::vec(tree, 1..8)
}

/// The program under trace, in words, and the truth of each call in the order of their ends:
/// how long it takes without a tracer, and how much of that by itself.
#[derive(Default)]
struct Traced {
    now: u64,
    text: String,
    truth: Vec<(u64, u64)>,
}

impl Traced {
    fn event(&mut self, text: &str) {
        self.text += &format!("{} 1.1 {text}\n", self.now);
    }

    /// How long the work takes without a tracer, and what of that is outside of calls.
    fn all(&mut self, work: &[Work]) -> (u64, u64) {
        let (mut time, mut own) = (0, 0);
        for one in work {
            match one {
                Work::Itself(ns) => {
                    self.now += ns;
                    (time, own) = (time + ns, own + ns);
                }
                Work::Call(function, inside) => {
                    let (name, passed, back) = FUNCTIONS[*function];
                    self.now += BEFORE;
                    self.event(&format!("> {name}{passed}"));
                    self.now += HALF;
                    let (whole, by_itself) = self.all(inside);
                    self.now += HALF;
                    self.event(&format!("< {name}{back}"));
                    self.now += AFTER;
                    self.truth.push((whole, by_itself));
                    time += whole;
                }
                Work::Polls(count, each) => {
                    let first = self.now;
                    self.now += count * (each + FOLD);
                    let total = count * (each + FOLD_INSIDE);
                    let last = self.now;
                    self.event(&format!("~ toyPoll count={count} first={first} last={last} total={total}"));
                    self.truth.push((count * each, count * each));
                    time += count * each;
                }
            }
        }
        (time, own)
    }
}

/// What a walk finds of calls and runs: without and with what recording took.
#[derive(Default)]
struct Found {
    net: Vec<(u64, u64)>,
    /// Own times as recorded, and what of them is the tracer's.
    own: u64,
    cost: u64,
    outermost: u64,
}

impl Visitor for Found {
    type Break = std::convert::Infallible;

    fn exit(&mut self, _: At<'_>, call: &Call, _: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        let net_own = call.own.saturating_sub(call.own_cost);
        self.net.push((call.net_duration(), net_own));
        self.own += call.own;
        self.cost += call.own_cost;
        self.outermost += if call.depth == 0 { call.duration() } else { 0 };
        ControlFlow::Continue(())
    }

    fn fold(&mut self, _: At<'_>, fold: &Fold, _: &Event<'_, '_>) -> ControlFlow<Self::Break> {
        let net = fold.total.saturating_sub(fold.cost);
        self.net.push((net, net));
        self.own += fold.total;
        self.cost += fold.cost;
        self.outermost += if fold.depth == 0 { fold.total } else { 0 };
        ControlFlow::Continue(())
    }
}

fn found(script: &str) -> (Found, Tally) {
    let mut models = common::models();
    models.retain(|m| m.api == "toy" || m.api == "base");
    let trace = common::build_with(models, script, |_| {});
    let mut found = Found::default();
    let ControlFlow::Continue(_) = walk(&trace, &mut found);
    let tally = |gross| {
        let query = Query { reading: Reading::Slices(3), gross, ..Query::default() };
        aggregate(&trace, &Options::default(), &query).expect("nobody stops it").tally()
    };
    let (net, gross) = (tally(false), tally(true));
    let own = |tally: &Tally| tally.host.iter().map(|row| row.self_ns).sum::<u64>();
    let cost = |tally: &Tally| tally.host.iter().map(|row| row.self_cost_ns).sum::<u64>();
    assert_eq!((own(&gross), own(&net) + cost(&net)), (found.own, found.own));
    assert!(cost(&net) >= cost(&gross) && net.host.iter().all(|row| row.self_ns <= row.total_ns));
    if found.cost <= found.own {
        assert_eq!(net.tracing.as_ref().map_or(0, |tracing| tracing.inside_ns), found.cost);
    }
    for (with, without) in gross.host.iter().flat_map(|g| net.host.iter().map(move |n| (g, n))) {
        if with.name == without.name {
            assert_eq!(with.total_ns, without.total_ns + without.cost_ns, "{}", with.name);
            assert_eq!(with.self_ns, without.self_ns + without.self_cost_ns, "{}", with.name);
        }
    }
    (found, net)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_is_the_time_without_a_tracer(work in work()) {
        let mut traced = Traced { now: 100, ..Traced::default() };
        traced.all(&work);
        let (found, tally) = found(&format!("{MANIFEST}\n{}", traced.text));
        prop_assert_eq!(&found.net, &traced.truth);
        prop_assert_eq!(found.own, found.outermost);
        let truth = traced.truth.iter().map(|(_, own)| own).sum::<u64>();
        let left = tally.host.iter().map(|row| row.self_ns).sum::<u64>();
        let taken = tally.host.iter().map(|row| row.self_cost_ns).sum::<u64>();
        prop_assert_eq!((left, taken, left + taken), (truth, found.cost, found.outermost));
        let tracing = tally.tracing.expect("it is known");
        prop_assert_eq!(tracing.inside_ns, found.cost);
        let of_all = tally.host.iter().map(|r| (r.calls - r.folded) * (BEFORE + 2 * HALF + AFTER) + r.folded * FOLD);
        prop_assert_eq!(tracing.total_ns, of_all.sum::<u64>());
        prop_assert!(tracing.inside_ns <= tracing.total_ns);
    }

    /// Where calls took less than recording them is said to take, nothing is below nothing, and
    /// nothing is lost: what was taken off and what is left are what was recorded.
    #[test]
    fn what_is_left_and_what_was_taken_off_are_the_whole(work in work(), quicker in 1u64..5) {
        let mut traced = Traced { now: 100, ..Traced::default() };
        traced.all(&work);
        // As if the machine had been quicker while the program ran than when it was measured.
        let lines = traced.text.lines().filter(|line| !line.contains('~')).map(|line| {
            let (time, rest) = line.split_once(' ').expect("a time");
            format!("{} {rest}\n", time.parse::<u64>().expect("a number") / quicker)
        });
        let (found, _) = found(&format!("{MANIFEST}\n{}", lines.collect::<String>()));
        prop_assert_eq!(found.own, found.outermost);
    }
}

/// A trace of before this was measured, and one whose manifest has nonsense.
#[test]
fn of_an_unknown_cost_nothing_is_taken_off() {
    let script = "10 1.1 > toyFree address=0x1\n20 1.1 < toyFree\n";
    for (manifest, expected) in [
        (r#"manifest {"schema":2,"exit":{"code":0}}"#, 0),
        (r#"manifest {"schema":2,"exit":{"code":0},"cost":{"call_ns":5,"inside_ns":-3}}"#, 1),
        (r#"manifest {"schema":2,"exit":{"code":0},"cost":{"call_ns":1e9}}"#, 1),
    ] {
        let (found, tally) = found(&format!("{manifest}\n{script}"));
        assert_eq!((found.net, found.cost), (vec![(10, 10)], 0));
        assert_eq!(tally.tracing, None);
        let notes = tally.notes.iter().filter(|n| n.contains("as they were recorded"));
        assert_eq!(notes.count(), expected, "{manifest}: {:?}", tally.notes);
    }
}

/// What a report states of tracing, of a trace with such a member `timing` in its manifest.
fn stated(timing: &str, calls: &str) -> (TracingRow, serde_json::Value, String) {
    let cost = format!(r#""call_ns":30,"cold_ns":100,"inside_ns":10,"timing":[{timing}]"#);
    let script = format!("manifest {{\"schema\":2,\"exit\":{{\"code\":0}},\"cost\":{{{cost}}}}}\n{calls}");
    let sums = aggregate(&common::build(&script), &Options::default(), &Query::default());
    let tally = sums.expect("nobody stops it").tally();
    let row = tally.tracing.clone().expect("it is known");
    let json = serde_json::to_value(&row).expect("numbers");
    (row, json, tally.render(&TextOptions::default()))
}

#[test]
fn what_is_stated_is_the_sum_of_its_parts() {
    let launches: String = (0..2)
        .map(|n| {
            let at = 10_000 * n;
            format!(
                "{at} 1.1 > toyLaunch queue=0x1 kernel=0x2 dims=1 global=[64]\n{} 1.1 < toyLaunch result=0 event=[0x9]\n",
                at + 900
            )
        })
        .collect();
    let wait = "30000 1.1 > toyFinish queue=0x1\n35000 1.1 < toyFinish result=0\n";
    let timing = r#"{"api":"toy","calls":2,"ns":500,"collecting_ns":100,"driver_ns":7000,"loading_ns":20000,
        "setup_ns":30000,"collector_start_ns":400000,"collector_ns":500000,"collector_apart_ns":9}"#
        .replace('\n', "");
    let (row, json, text) = stated(&timing, &format!("{launches}{wait}"));
    // The call that takes microseconds finds the recorder's code gone from the nearest caches.
    assert_eq!((row.calls, row.calls_ns), (3, 30 + 30 + 100));
    assert_eq!([row.timing_ns, row.collecting_ns, row.driver_ns], [500, 100, 7000]);
    assert_eq!([row.loading_ns, row.setup_ns, row.collector_ns], [20_000, 30_000, 900_000]);
    assert_eq!(row.total_ns, 160 + 957_600);
    assert_eq!([row.least_ns, row.most_ns], [90 + 957_600, 300 + 957_600]);
    let parts: u64 =
        ["calls_ns", "timing_ns", "collecting_ns", "driver_ns", "loading_ns", "setup_ns", "collector_ns"]
            .map(|part| json[part].as_u64().expect(part))
            .iter()
            .sum();
    assert_eq!(json["total_ns"], parts);
    for part in ["7.00 µs in the driver for timing", "20.0 µs starting libraries", "30.0 µs making memory"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains("the collector's work in each launch. `hetrace"), "{text}");
}

/// Its interval is that of the calibration.
#[test]
fn a_collectors_part_in_calls_is_said_to_be_calibrated() {
    let call = "10 1.1 > toyFree address=0x1\n110 1.1 < toyFree\n";
    let timing = r#"{"api":"toy","collector_ns":1000,"collector_calls_ns":[600000,1000000,1500000]}"#;
    let (row, json, text) = stated(timing, call);
    assert_eq!((row.total_ns, row.collector_calls_ns), (1_001_030, 1_000_000));
    assert_eq!([row.least_ns, row.most_ns], [601_030, 1_501_100]);
    assert_eq!(json["collector_calls_ns"], 1_000_000);
    assert!(text.contains("about in its part of calls (calibrated, not measured here)"), "{text}");
    assert!(text.contains("Not in it: the dynamic loader's work, caches beyond the nearest."), "{text}");
}

/// A call that hands something to a driver was seen to take more than can be measured without one; how much more here is
/// not known, so it is in no sum.
#[test]
fn what_calls_among_drivers_may_take_is_in_the_interval() {
    let of = |call: &str| stated(r#"{"api":"toy"}"#, call).0;
    let launch = "10 1.1 > toyLaunch queue=0x1 kernel=0x2 dims=1 global=[64]\n";
    let long = of(&format!("{launch}5010 1.1 < toyLaunch result=0\n"));
    assert_eq!([long.least_ns, long.total_ns, long.most_ns], [30, 100, 100 + 260]);
    // One that returns at once has displaced nothing, and a wait hands nothing over.
    let quick = of(&format!("{launch}910 1.1 < toyLaunch result=0\n"));
    assert_eq!([quick.least_ns, quick.total_ns, quick.most_ns], [30, 30, 100]);
    let wait = of("10 1.1 > toyFinish queue=0x1\n5010 1.1 < toyFinish result=0\n");
    assert_eq!([wait.least_ns, wait.total_ns, wait.most_ns], [30, 100, 100]);
}

#[test]
fn a_program_without_commands_has_no_part_for_them() {
    let call = "10 1.1 > toyFree address=0x1\n110 1.1 < toyFree\n";
    let (row, json, text) = stated(r#"{"api":"toy","loading_ns":2000,"setup_ns":3000}"#, call);
    assert_eq!((row.total_ns, row.calls_ns), (5030, 30));
    for part in ["timing_ns", "collecting_ns", "driver_ns", "collector_ns", "collector_apart_ns"] {
        assert_eq!(json.get(part), None, "{json}");
    }
    assert!(
        !text.contains("commands")
            && text.contains("Not in it: the dynamic loader's work, caches beyond the nearest."),
        "{text}"
    );
}

/// Traces of before had none for calls behind other work.
#[test]
fn without_a_figure_for_cold_caches_there_is_no_interval() {
    let (_, tally) = found(&format!("{MANIFEST}\n10 1.1 > toyFree address=0x1\n9010 1.1 < toyFree\n"));
    let row = tally.tracing.clone().expect("it is known");
    assert_eq!([row.total_ns, row.least_ns, row.most_ns], [21; 3]);
    let text = tally.render(&TextOptions::default());
    assert!(text.contains("Not in it: the dynamic loader's work, caches beyond the nearest."), "{text}");
}

#[test]
fn what_the_tracer_gave_to_devices_is_no_part_of_it() {
    let call = "10 1.1 > toyFree address=0x1\n110 1.1 < toyFree\n";
    let timing = r#"{"api":"toy","own_commands":5,"own_bytes":2048,"own_device_ns":7000}"#;
    let (row, json, text) = stated(timing, call);
    assert_eq!((row.total_ns, row.own_commands, row.own_bytes, row.own_device_ns), (30, 5, 2048, 7000));
    assert_eq!(json["own_device_ns"], 7000);
    let said =
        "On devices: 5 commands of the tracer's own (fills, copies), 2.05 kB in 7.00 µs (in no table).";
    assert!(text.contains(said), "{text}");
}
