//! Aggregates: parts add up to the whole, files come back as they were, and
//! damaged ones are refused.

mod common;

use std::fmt::Write;

use hetrace_report::print;
use hetrace_report::tally::{
    Aggregate, By, FileError, Options, QUANTILE_ERROR, Query, Tally, TextOptions, aggregate,
};
use proptest::prelude::*;

/// What a process does: durations of calls and commands, and whether a call fails.
type Done = Vec<(u64, u64, bool)>;

/// What recording took.
const COST: &str = "manifest {\"schema\":2,\"cost\":{\"call_ns\":30,\"inside_ns\":12}}\n";

/// Processes with a device, a queue and a kernel each, one after the other's ids.
fn script(processes: &[(usize, &Done)]) -> String {
    let mut text = COST.to_owned();
    for (number, done) in processes {
        let pid = 100 + number;
        let n = number + 1;
        let _ = writeln!(
            text,
            "0 {pid}.1 * device device={n} handle=0xd name=\"Toy GPU\" uuid=\"GPU-{}\"",
            n % 2
        );
        let _ = writeln!(text, "0 {pid}.1 * queue queue={n} handle=0x10 device={n} api=\"toy\"");
        let _ = writeln!(text, "0 {pid}.1 * function function={n} name=\"_Z4stepPf\" registers=32");
        let mut time = 10;
        for (call, command, fails) in *done {
            let _ = writeln!(text, "{time} {pid}.1 > toyLaunch queue=0x10 kernel=0x3 dims=1 global=[64]");
            time += call;
            let result = if *fails { -5 } else { 0 };
            let _ = writeln!(text, "{time} {pid}.1 < toyLaunch result={result}");
            let _ = writeln!(
                text,
                "{time} {pid}.1 * kernel function={n} queue={n} cause_tid=1 cause_before={call} duration={command} global=[64]"
            );
            let _ = writeln!(text, "{time} {pid}.1 * write queue={n} duration={call} bytes=4096 to=device");
            time += 1 + command;
        }
    }
    text
}

fn sums(processes: &[(usize, &Done)], by: &[By]) -> Aggregate {
    let trace = common::build(&script(processes));
    let query = Query { by: by.to_vec(), ..Query::default() };
    aggregate(&trace, &Options::default(), &query).expect("nobody stops it")
}

/// Without what is of each trace.
fn plain(aggregate: &Aggregate) -> Tally {
    let mut tally = aggregate.tally();
    tally.traces.clear();
    tally.duration_ns = 0;
    // So are shares of it.
    tally.utilization.clear();
    tally
}

fn processes() -> impl Strategy<Value = Vec<Done>> {
    let call = (1u64..1 << 29, 0u64..1 << 29, any::<bool>());
    prop::collection::vec(prop::collection::vec(call, 1..12), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn halves_add_up(all in processes(), by in 0usize..4) {
        let by: &[By] = [&[][..], &[By::Process], &[By::Device, By::Name], &[By::Error, By::Thread]][by];
        let numbered: Vec<(usize, &Done)> = all.iter().enumerate().collect();
        let whole = sums(&numbered, by);
        let mut halves: Vec<Aggregate> = (0..2)
            .map(|half| {
                let own: Vec<_> = numbered.iter().copied().filter(|(n, _)| n % 2 == half).collect();
                let bytes = sums(&own, by).to_bytes().expect("numbers");
                Aggregate::from_bytes(&bytes).expect("what was written")
            })
            .collect();
        let other = halves.pop().expect("two");
        let mut merged = halves.pop().expect("two");
        merged.merge(other).expect("alike");
        prop_assert_eq!(plain(&merged), plain(&whole));
    }

    #[test]
    fn percentiles_are_as_near_as_promised(all in prop::collection::vec(1u64..1 << 50, 1..300)) {
        let done: Done = all.iter().map(|ns| (*ns % (1 << 30) + 1, 0, false)).collect();
        let mut calls: Vec<u64> = done.iter().map(|(call, ..)| *call).collect();
        calls.sort_unstable();
        let tally = sums(&[(0, &done)], &[]).tally();
        for (part, estimate) in [(0.5, tally.host[0].p50_ns), (0.99, tally.host[0].p99_ns)] {
            let truth = calls[((calls.len() as f64 * part).ceil() as usize).max(1) - 1];
            prop_assert!(truth.abs_diff(estimate) as f64 <= truth as f64 * QUANTILE_ERROR);
        }
    }
}

#[test]
fn damaged_files_are_refused() {
    let done: Done = (1..40).map(|n| (n * 1000, n * 77, n % 5 == 0)).collect();
    let sums = sums(&[(0, &done), (1, &done)], &[]);
    let bytes = sums.to_bytes().expect("numbers");
    assert_eq!(Aggregate::from_bytes(&bytes).expect("whole"), sums);
    assert!(bytes.len() < 16 * 1024, "{} bytes", bytes.len());
    for at in 0..bytes.len() {
        for flip in [1u8, 0x20, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            assert!(Aggregate::from_bytes(&damaged).is_err(), "byte {at} ^ {flip}");
        }
        assert!(Aggregate::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert!(matches!(Aggregate::from_bytes(b"{}"), Err(FileError::NoAggregate)));
    let newer = b"hetrace aggregate 9 0000000000000000\n{}\n";
    let error = Aggregate::from_bytes(newer).expect_err("newer").to_string();
    assert!(error.contains("form 9"), "{error}");
}

#[test]
fn those_that_are_not_alike_are_not_added() {
    let done: Done = vec![(10, 20, false)];
    let (mut one, other) = (sums(&[(0, &done)], &[]), sums(&[(0, &done)], &[By::Process]));
    let error = one.merge(other).expect_err("not alike").to_string();
    assert!(error.contains("api,name") && error.contains("process"), "{error}");
    // One machine is all that it can be of.
    assert!(one.distinguish(&[By::Host]) && !one.clone().distinguish(&[By::Thread]));
    assert_eq!(one.tally().host[0].group.host.as_deref(), Some("-"));
}

#[test]
fn what_tracing_took_adds_up_or_is_not_mixed() {
    let of = |script: &str, gross| {
        let query = Query { gross, ..Query::default() };
        let sums = aggregate(&common::build(script), &Options::default(), &query).expect("nobody stops it");
        // As a file has them.
        Aggregate::from_bytes(&sums.to_bytes().expect("numbers")).expect("what was written")
    };
    let call = "10 1.1 > toyFree address=0x1\n110 1.1 < toyFree\n";
    let known = |gross| of(&format!("{COST}{call}"), gross);
    let unknown = of(call, false);
    assert!(known(false).merge(known(true)).expect_err("not alike").to_string().contains("--gross"));
    for (mut one, other) in [(known(false), unknown.clone()), (unknown.clone(), known(false))] {
        one.merge(other).expect("alike");
        let tally = one.tally();
        assert_eq!((tally.host[0].total_ns, tally.host[0].cost_ns), (88 + 100, 12));
        let tracing = tally.tracing.clone().expect("known of one");
        assert_eq!(
            (tracing.calls, tracing.total_ns, tracing.inside_ns, tracing.unknown_traces),
            (1, 30, 12, 1)
        );
        let text = tally.render(&TextOptions::default());
        assert!(
            text.contains("overhead: about 30 ns: 1 call, 30 ns each (of 1 of 2 traces it is not known)"),
            "{text}"
        );
    }
    let mut both = unknown.clone();
    both.merge(unknown).expect("alike");
    assert_eq!(both.tally().tracing, None);
}

/// Files of before it was measured.
#[test]
fn the_first_form_is_read() {
    let call = "10 1.1 > toyFree address=0x1\n110 1.1 < toyFree\n";
    let sums =
        aggregate(&common::build(call), &Options::default(), &Query::default()).expect("nobody stops it");
    let bytes = String::from_utf8(sums.to_bytes().expect("numbers")).expect("text");
    let first = bytes.replacen("aggregate 2 ", "aggregate 1 ", 1);
    assert_eq!(Aggregate::from_bytes(first.as_bytes()).expect("the same but for its head"), sums);
}

/// Whatever became of the bytes, whatever is asked for.
#[test]
fn damaged_traces_never_panic() {
    let done: Done = (1..12).map(|n| (n * 10, n * 7, n % 5 == 0)).collect();
    let script = script(&[(0, &done), (1, &done)]);
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let whole = common::Assembled::new(common::models(), &script);
    for round in 0..200 {
        let trace = whole.trace(|bytes| {
            for _ in 0..random(8) {
                let (at, value) = (random(bytes.len()), random(256) as u8);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
        });
        let by = By::ALL.into_iter().filter(|by| (round >> (*by as usize)) & 1 == 1).collect();
        let query = Query { by, names: vec!["*a*".to_owned()], from: Some(round * 7), ..Query::default() };
        let sums = aggregate(&trace, &Options { extended: round % 2 == 0 }, &query).expect("nobody stops it");
        let options = TextOptions { stats: true, top: Some(2), ..TextOptions::default() };
        let _ = sums.tally().render(&options);
        let bytes = sums.to_bytes().expect("numbers");
        assert_eq!(Aggregate::from_bytes(&bytes).expect("whole"), sums);
        let filter =
            print::Filter { names: query.names.clone(), from: query.from, ..print::Filter::default() };
        let go_on = |_| std::ops::ControlFlow::Continue(());
        let options = print::Options { form: print::Form::Tree, ..print::Options::default() };
        print::print_some(&trace, &options, &filter, &go_on, &mut std::io::sink()).expect("a sink");
    }
}
