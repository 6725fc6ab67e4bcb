//! Recording with a limit to what it may take: less is recorded of each call and command, and all are counted.

use std::collections::BTreeMap;

use hetrace_tests::counts::{complete, lines};
use hetrace_tests::{Expected, Platform, Seen, Traced, trace_with};

/// So little that every program needs more, however fast the machine is.
const NEXT_TO_NOTHING: [&str; 2] = ["--max-overhead", "0.01%"];

fn limited(command: &[&str]) -> Traced {
    trace_with(Platform::Pocl, &NEXT_TO_NOTHING, command)
}

fn check_complete(traced: &Traced) {
    complete(&traced.folder, &traced.done.out).unwrap_or_else(|why| panic!("{why}\n{}", traced.done.err));
}

/// Commands by kind as the program counted them: number and bytes.
fn commands(out: &str) -> BTreeMap<String, [u64; 2]> {
    let line = out.lines().find_map(|line| line.strip_prefix("COMMANDS ")).expect("a line of commands");
    let word = |word: &str| {
        let (name, counts) = word.split_once('=').expect("a count");
        let mut counts = counts.split('/').map(|n| n.parse().expect("a number"));
        (name.to_owned(), [counts.next().unwrap_or(0), counts.next().unwrap_or(0)])
    };
    line.split(' ').map(word).collect()
}

/// How many commands of each function there were, and their bytes, as the trace says, in any order.
fn counted(seen: &Seen) -> Vec<[u64; 2]> {
    let mut all: Vec<[u64; 2]> =
        seen.launches.values().map(|[launches, _, bytes]| [*launches, *bytes]).collect();
    all.sort_unstable();
    all
}

#[test]
fn every_call_and_command_is_counted() {
    for (threads, loops) in [("1", "6000"), ("5", "2000")] {
        let traced = limited(&["budget", loops, threads]);
        assert_eq!(traced.done.status, 0, "{}", traced.done.err);
        check_complete(&traced);
        let seen = traced.seen();
        assert!(seen.steps.iter().any(|(one_in, summed)| *one_in > 1 && *summed), "{:?}", seen.steps);
        let calls = seen.total()["clSetKernelArg"];
        let recorded =
            seen.entries.values().flatten().filter(|(_, name)| name == "clSetKernelArg").count() as u64;
        assert!(recorded < calls / 2, "{recorded} of {calls} recorded one by one");
        let (mut expected, found) =
            (commands(&traced.done.out).into_values().collect::<Vec<_>>(), counted(&seen));
        expected.sort_unstable();
        assert_eq!(found, expected);
        let timed = seen.commands.iter().filter(|c| c.name == "even").count() as u64;
        let even = seen.launches.iter().find(|((name, _), _)| name == "even").expect("launches").1;
        assert!(timed >= 1 && timed < even[0] / 2, "{timed} of {even:?}");
        assert_eq!(timed, even[1]);
    }
}

/// None of them lives long enough to come down by itself.
#[test]
fn threads_begin_where_others_ended() {
    let traced = limited(&["budget", "20", "200", "serial"]);
    check_complete(&traced);
    let seen = traced.seen();
    assert!(seen.steps.len() > 100 && seen.steps.iter().any(|(_, summed)| *summed), "{:?}", seen.steps);
    let recorded =
        seen.entries.values().flatten().filter(|(_, name)| name == "clSetKernelArg").count() as u64;
    let calls = seen.total()["clSetKernelArg"];
    assert!(recorded < calls / 2, "{recorded} of {calls} recorded one by one");
}

#[test]
fn calls_that_fail_are_recorded_in_full() {
    let traced = limited(&["budget", "6000"]);
    let errors = |name: &str| {
        let json = std::process::Command::new(hetrace_tests::hetrace())
            .args(["tally", "--json"])
            .arg(&traced.folder)
            .output()
            .expect("tally");
        let tally: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
        let rows = tally["host"].as_array().expect("rows").clone();
        rows.iter().find(|row| row["name"] == name).and_then(|row| row["errors"].as_u64()).expect("a row")
    };
    for name in ["clSetKernelArg", "clEnqueueNDRangeKernel", "clEnqueueReadBuffer"] {
        assert_eq!(errors(name), 60, "{name}");
    }
}

#[test]
fn a_killed_program_has_all_its_calls_in_the_trace() {
    let traced = limited(&["budget", "5000", "3", "kill"]);
    assert_eq!(traced.done.status, 137);
    check_complete(&traced);
    // Of commands those are missing that were counted since the last report of counts, and it is known how many.
    let said: u64 = counted(&traced.seen()).iter().map(|[commands, _]| commands).sum();
    let all: u64 = commands(&traced.done.out).values().map(|[commands, _]| commands).sum();
    let lost = traced.manifest()["losses"]["device_commands"].as_u64().expect("a count");
    assert_eq!(said + lost, all, "{said} and {lost} of {all}");
}

#[test]
fn a_forked_child_has_its_own_calls() {
    let traced = limited(&["budget", "4000", "1", "fork"]);
    assert_eq!(traced.done.status, 0, "{}", traced.done.err);
    check_complete(&traced);
}

#[test]
fn a_child_does_not_count_its_parents_commands() {
    let traced = limited(&["budget", "4000", "1", "exit"]);
    assert_eq!(traced.done.status, 0, "{}", traced.done.err);
    let mut expected = commands(&traced.done.out).into_values().collect::<Vec<_>>();
    expected.sort_unstable();
    assert_eq!(counted(&traced.seen()), expected);
}

#[test]
fn commands_of_calls_that_are_not_recorded_have_the_budget_too() {
    let options = [&NEXT_TO_NOTHING[..], &["--exclude", "cl*"]].concat();
    let traced = trace_with(Platform::Pocl, &options, &["budget", "4000"]);
    let seen = traced.seen();
    assert!(seen.steps.iter().any(|(one_in, _)| *one_in > 1), "{:?}", seen.steps);
    let mut expected = commands(&traced.done.out).into_values().collect::<Vec<_>>();
    expected.sort_unstable();
    assert_eq!(counted(&seen), expected);
    assert!((seen.commands.len() as u64) < expected.iter().map(|[n, _]| n).sum::<u64>() / 2);
}

#[test]
fn every_program_has_all_its_calls_counted() {
    for line in lines().iter().filter(|line| line.command[0] != "budget") {
        let traced = limited(&line.command);
        assert_eq!(traced.done.status, line.end, "{:?}: {}", line.command, traced.done.err);
        complete(&traced.folder, &traced.done.out).unwrap_or_else(|why| panic!("{:?}: {why}", line.command));
    }
}

#[test]
fn what_can_be_afforded_is_recorded_in_full() {
    let traced = trace_with(Platform::Pocl, &["--max-overhead", "100"], &["budget", "1000"]);
    let seen = traced.seen();
    assert!(seen.steps.is_empty(), "{:?}", seen.steps);
    assert_eq!(seen.total(), Expected::parse(&traced.done.out).total());
    let commands: u64 = commands(&traced.done.out).values().map(|[n, _]| n).sum();
    assert_eq!(seen.commands.len() as u64, commands);
    assert_eq!(traced.manifest()["max_overhead"], 100.0);
}

#[test]
fn sampled_times_are_for_opencl_too() {
    let traced = trace_with(Platform::Pocl, &["--device-times", "sampled:10"], &["budget", "2001"]);
    let seen = traced.seen();
    check_complete(&traced);
    let of = |name: &str| seen.commands.iter().filter(|c| c.name == name).count();
    // The first, and one of each ten after it.
    assert!((200..=201).contains(&of("even")), "{}", of("even"));
    assert_eq!(seen.launches.iter().find(|((name, _), _)| name == "even").expect("launches").1[0], 2001);
    // Others than launches are not sampled.
    assert_eq!(seen.commands.iter().filter(|c| c.kind == "read").count(), 1001);
}
