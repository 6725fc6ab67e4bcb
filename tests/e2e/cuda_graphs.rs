//! Nodes of graphs where recording has a budget: all are counted, some launches' are timed, and the program notices nothing.

#[path = "cuda/run.rs"]
mod run;

use std::collections::BTreeMap;
use std::process::Command as Process;

use hetrace_tests::hetrace;
use run::{Op, Run, run_with};
use serde_json::Value;

/// Runs `graphs.c` with a budget.
fn limited(budget: &str, command: &[&str], environment: &[(&str, &str)]) -> Run {
    let options = ["--buffer", "8192", "--max-overhead", budget];
    let run = run_with(&options, "auto", &[&["graphs"], command].concat(), environment);
    assert_eq!(run.done.status, 0, "{}{}", run.done.out, run.done.err);
    assert!(run.done.out.contains(&format!("{} done", command[0])), "{}", run.done.out);
    run.check_no_misuse();
    run
}

/// What devices did, but for events: how often, and how many bytes, by kind and kernel.
fn done(ops: &[Op]) -> BTreeMap<(String, String), [u64; 2]> {
    let mut done: BTreeMap<(String, String), [u64; 2]> = BTreeMap::new();
    for op in ops.iter().filter(|op| op.kind != "event") {
        let is_kernel = op.kind == "kernel";
        let name = if is_kernel { op.name.clone() } else { String::new() };
        let sums = done.entry((op.kind.clone(), name)).or_default();
        sums[0] += 1;
        sums[1] += if is_kernel { 0 } else { op.bytes };
    }
    done
}

/// The tables of a run.
fn tables(run: &Run) -> Value {
    let json = Process::new(hetrace()).args(["tally", "--json"]).arg(&run.files("trace")[0]).output();
    serde_json::from_slice(&json.expect("tally").stdout).expect("JSON")
}

/// The same as [`done`], as the tables have it; and the calls and times of graphs that were timed as a whole.
fn counted(run: &Run) -> (BTreeMap<(String, String), [u64; 2]>, u64) {
    let (mut found, mut whole) = (BTreeMap::new(), 0);
    for row in tables(run)["device"].as_array().expect("rows") {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let calls = row["calls"].as_u64().expect("a count");
        if text("kind") == "graph" {
            whole += calls;
            continue;
        }
        let sums: &mut [u64; 2] = found.entry((text("kind"), text("symbol"))).or_default();
        sums[0] += calls;
        sums[1] += row["bytes"].as_u64().unwrap_or(0);
    }
    (found, whole)
}

/// By kernel, and of all other commands together: nothing says what a command was of which none was timed, but a kernel's name.
fn by_name(counted: BTreeMap<(String, String), [u64; 2]>) -> BTreeMap<String, [u64; 2]> {
    counted.into_iter().fold(BTreeMap::new(), |mut sums, ((_, name), [calls, bytes])| {
        let sum = sums.entry(name).or_default();
        *sum = [sum[0] + calls, sum[1] + bytes];
        sums
    })
}

/// How often the program, and all who were with it, called a function of the driver.
fn calls(run: &Run, name: &str) -> u64 {
    let counts = std::fs::read_to_string(&run.files("counts.")[0]).expect("counts");
    let line = counts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    line.unwrap_or(0)
}

/// Nothing of ours is left: of each executable that is made one is ended, and of each copy and graph.
fn check_all_ended(run: &Run, graphs: u64) {
    assert_eq!(calls(run, "cuGraphInstantiateWithFlags"), calls(run, "cuGraphExecDestroy"));
    assert_eq!(calls(run, "cuGraphClone") + graphs, calls(run, "cuGraphDestroy"));
}

#[test]
fn all_nodes_are_counted_and_some_are_timed() {
    let run = limited("2%", &["chain", "2000"], &[]);
    let (found, whole) = counted(&run);
    assert_eq!((&found, whole), (&done(&run.ops()), 0));
    assert_eq!(found[&("kernel".to_owned(), "k300".to_owned())][0], 2000 * 13);
    let seen = run.seen();
    let of = |name: &str| seen.commands.iter().filter(|c| c.name == name).collect::<Vec<_>>();
    // 13 of each launch that was timed: the first, and some more.
    let timed = of("k300").len();
    assert!((2 * 13..26_000 / 2).contains(&timed) && timed % 13 == 0, "{timed}");
    // What is timed is what they take on the device, and 200 ns at most beside it.
    for (name, takes) in [("k300", 300), ("k2000", 2000)] {
        for command in of(name) {
            let took = command.end - command.start;
            assert!((takes - 100..takes + 100).contains(&took), "{command:?}");
        }
    }
    let tables = tables(&run);
    let rows = tables["device"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["symbol"] == "k2000").expect("the kernel");
    let total = row["total_ns"].as_u64().expect("a total");
    assert_eq!(row["calls"], 14_000, "{row}");
    assert!((27_000_000..=29_000_000).contains(&total), "{row}: 14,000 of 2 us are 28 ms");
    check_all_ended(&run, 1);
}

#[test]
fn nodes_have_the_numbers_of_their_graph() {
    let run = limited("100", &["diamond", "8"], &[]);
    let details = run.details();
    let nodes: BTreeMap<u64, usize> = details.iter().fold(BTreeMap::new(), |mut nodes, detail| {
        assert!(detail.node[0] > 0, "{detail:?}");
        *nodes.entry(detail.node[1]).or_default() += 1;
        nodes
    });
    assert_eq!(nodes, BTreeMap::from([(1, 8), (2, 8), (3, 8), (4, 8), (5, 8)]));
    assert_eq!(counted(&run).0, done(&run.ops()));
}

#[test]
fn nodes_that_wait_for_several_begin_when_the_last_one_has_ended() {
    let run = limited("100", &["diamond", "50"], &[]);
    assert_eq!(counted(&run), (done(&run.ops()), 0));
    for command in run.seen().commands {
        // The fake device does one thing after the other, so those that wait for the same one have the other's time, too.
        let took = command.end - command.start;
        let takes = command.name.trim_start_matches('k').parse::<u64>().expect("a number");
        assert!(took + 100 >= takes && took <= 13_000 + 200, "{command:?}");
        assert!(command.name != "k700" || took < 900, "{command:?}");
    }
    check_all_ended(&run, 1);
}

#[test]
fn what_the_program_changes_is_changed() {
    for mode in ["set", "update", "enabled"] {
        for budget in ["100", "1%"] {
            let run = limited(budget, &[mode, "40"], &[]);
            let (found, whole) = counted(&run);
            match budget {
                "100" => assert_eq!((found, whole), (done(&run.ops()), 0), "{mode}"),
                _ => assert_eq!(by_name(found), by_name(done(&run.ops())), "{mode} {budget}"),
            }
            check_sizes(&run, mode);
            assert_eq!(
                calls(&run, "cuGraphInstantiateWithFlags"),
                calls(&run, "cuGraphExecDestroy"),
                "{mode}"
            );
        }
    }
}

/// What was timed ran with the blocks that the program wants at that time.
fn check_sizes(run: &Run, mode: &str) {
    let of = |name: &str, blocks: u64| {
        run.ops().iter().filter(|op| op.name == name && op.blocks == blocks).count() as u64
    };
    match mode {
        // Before the first launch, and in every second round.
        "set" => assert_eq!((of("k4000", 7), of("k1500", 9)), (40 + 40 + 20, 20)),
        "update" => assert_eq!((of("k300", 1), of("k900", 1)), (4 * (40 + 20), 4 * (80 + 20))),
        _ => assert_eq!(of("k300", 1), 4 * 40 + 3 * 40 + 4 * 40),
    }
}

#[test]
fn an_executable_does_not_run_beside_itself() {
    let run = limited("100", &["streams", "60"], &[]);
    assert_eq!(counted(&run).0, done(&run.ops()));
    let mut ops: Vec<Op> = run.ops().into_iter().filter(|op| op.kind == "kernel").collect();
    ops.sort_by_key(|op| op.start);
    assert_eq!(ops.len(), 60 * 3 * 4);
    for pair in ops.windows(2) {
        assert!(pair[1].start >= pair[0].end, "{pair:?}");
    }
    check_all_ended(&run, 1);
}

#[test]
fn graphs_end_while_they_run() {
    let run = limited("100", &["destroy", "50"], &[]);
    assert_eq!(counted(&run).0, done(&run.ops()));
    assert!(run.seen().commands.len() > 50, "their nodes are timed nevertheless");
    let [made, ended] = ["cuGraphInstantiateWithFlags", "cuGraphExecDestroy"].map(|name| calls(&run, name));
    // Of the last one nobody has asked since.
    assert!(made > 50 && made - ended <= 3, "{made} {ended}");
    assert_eq!(calls(&run, "cuGraphClone") + 50, calls(&run, "cuGraphDestroy"));
}

#[test]
fn contexts_end_before_their_graphs() {
    for budget in ["100", "1%"] {
        let run = limited(budget, &["contexts", "30"], &[]);
        assert_eq!(by_name(counted(&run).0), by_name(done(&run.ops())), "{budget}");
    }
}

#[test]
fn a_child_leaves_its_parents_graphs_alone() {
    limited("100", &["fork", "20"], &[]);
}

#[test]
fn what_can_not_be_timed_is_named_and_counted_and_timed_as_a_whole() {
    for (mode, environment, why) in [
        ("alloc", "FAKE_CUDA_NOTHING", "nodes that a second graph can't have"),
        ("chain", "FAKE_CUDA_REFUSES_CLONE", "the driver refused"),
        ("chain", "FAKE_CUDA_REFUSES_TWIN", "the driver refused"),
        ("chain", "FAKE_CUDA_EDGES", "programmatic dependencies"),
    ] {
        let run = limited("100", &[mode, "40"], &[(environment, "1")]);
        let (found, whole) = counted(&run);
        assert_eq!(by_name(found), by_name(done(&run.ops())), "{environment}");
        let notes = run.manifest()["notes"].to_string();
        let of = notes.split("device times: nodes of 1 graphs").nth(1).unwrap_or_else(|| panic!("{notes}"));
        assert!(of.contains(why), "{notes}");
        assert!(whole >= 39, "{environment}: {whole} as a whole");
        assert!(run.seen().commands.iter().all(|c| c.kind == "graph"), "{environment}");
    }
}

#[test]
fn with_no_room_in_the_budget_graphs_are_as_they_were() {
    let run = limited("0.01%", &["chain", "300"], &[]);
    assert_eq!(by_name(counted(&run).0), by_name(done(&run.ops())));
}
