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

/// Each launch of a graph is in one sum of times: that of the graphs, or those of their nodes. Times are what devices took.
fn check_launches_once(run: &Run, whole: u64) {
    let tables = tables(run);
    let rows = tables["device"].as_array().expect("rows");
    let sum = |of: &str| rows.iter().map(|row| row[of].as_u64().unwrap_or(0)).sum::<u64>();
    assert!(whole == 0 || sum("of_graphs") > 0, "{rows:?}");
    for row in rows {
        let of = |name: &str| row[name].as_u64().unwrap_or(0);
        assert!(of("of_graphs") <= of("in_graph") && of("of_graphs") <= of("untimed"), "{row}");
        assert!(of("calls") > of("untimed") || of("total_ns") == 0, "{row}");
    }
    // Traffic has the same.
    let moved = |table: &str| -> u64 {
        let rows = tables[table].as_array().expect("rows").iter();
        let moves = |row: &&Value| ["read", "write", "copy", "fill"].map(Value::from).contains(&row["name"]);
        rows.filter(moves).map(|row| row["of_graphs"].as_u64().unwrap_or(0)).sum()
    };
    assert_eq!(moved("device"), moved("traffic"));
}

#[test]
fn nodes_have_the_numbers_of_their_graph() {
    let run = limited("100", &["row", "8"], &[]);
    let details = run.details();
    let nodes: BTreeMap<u64, usize> = details.iter().fold(BTreeMap::new(), |mut nodes, detail| {
        assert!(detail.node[0] > 0, "{detail:?}");
        *nodes.entry(detail.node[1]).or_default() += 1;
        nodes
    });
    assert_eq!(nodes, BTreeMap::from([(1, 8), (2, 8), (3, 8), (4, 8)]));
    assert_eq!(counted(&run).0, done(&run.ops()));
}

#[test]
fn nodes_of_graphs_that_the_driver_gives_no_numbers_are_nodes() {
    let run = limited("2%", &["chain", "2000"], &[("FAKE_CUDA_NO_IDS", "1")]);
    assert_eq!(counted(&run), (done(&run.ops()), 0));
    assert!(run.details().iter().all(|detail| detail.node == [1, detail.node[1]]), "all of one graph");
    let tables = tables(&run);
    let mut rows = tables["device"].as_array().expect("rows").iter();
    let row = rows.find(|row| row["symbol"] == "k2000").expect("the kernel");
    assert_eq!((&row["in_graph"], row.get("of_graphs")), (&row["calls"], None), "{row}");
    assert!(row["total_error_ns"].as_f64() > Some(0.0), "what their events may add is stated: {row}");
}

#[test]
fn nodes_that_wait_for_several_begin_when_the_last_one_has_ended() {
    let run = limited("100", &["row", "50"], &[]);
    assert_eq!(counted(&run), (done(&run.ops()), 0));
    for command in run.seen().commands {
        // What the events take is not in it.
        let took = command.end - command.start;
        let takes = command.name.trim_start_matches('k').parse::<u64>().expect("a number");
        assert!((takes - 100..takes + 100).contains(&took), "{command:?}");
    }
    check_all_ended(&run, 1);
}

#[test]
fn times_of_nodes_are_not_made_of_times_of_commands_that_are_none() {
    let run = limited("0.01%", &["beside", "300"], &[]);
    let (found, whole) = counted(&run);
    assert_eq!((found, whole), (done(&run.ops()), 300));
    check_launches_once(&run, whole);
    let tables = tables(&run);
    let row = |kind: &str, symbol: &str| {
        let mut rows = tables["device"].as_array().expect("rows").iter();
        let is = |row: &&Value| row["kind"] == kind && row["symbol"].as_str().unwrap_or_default() == symbol;
        rows.find(is).unwrap_or_else(|| panic!("{kind} {symbol}: {tables}")).clone()
    };
    for (row, nodes) in [(row("fill", ""), 300), (row("write", ""), 300), (row("kernel", "k2000"), 7 * 300)] {
        assert_eq!(
            (&row["calls"], &row["of_graphs"]),
            (&Value::from(nodes + 1), &Value::from(nodes)),
            "{row}"
        );
        assert!(row.get("unseen").is_none() && row.get("total_error_ns").is_none(), "{row}");
        assert_eq!(row["total_ns"], row["max_ns"], "of the one that was timed: {row}");
    }
    let k300 = row("kernel", "k300");
    assert_eq!((&k300["of_graphs"], &k300["total_ns"]), (&Value::from(13 * 300), &Value::from(0)));
}

#[test]
fn nodes_that_may_run_beside_each_other_are_left() {
    let run = limited("100", &["diamond", "40"], &[]);
    let (found, whole) = counted(&run);
    assert_eq!((found, whole), (done(&run.ops()), 40));
    let rows = tables(&run);
    for row in rows["device"].as_array().expect("rows").iter().filter(|row| row["kind"] == "kernel") {
        assert_eq!((&row["of_graphs"], &row["untimed"]), (&row["calls"], &row["calls"]), "{row}");
    }
    check_launches_once(&run, whole);
    assert!(run.seen().commands.iter().all(|c| c.kind == "graph"));
    let notes = run.manifest()["notes"].to_string();
    assert!(notes.contains("nodes of 1 graphs are counted and not timed, with 40 launches timed as a whole: nodes that may run beside each other"), "{notes}");
    check_all_ended(&run, 1);
}

#[test]
fn an_error_of_times_of_nodes_is_stated() {
    let run = limited("100", &["chain", "50"], &[]);
    let tables = tables(&run);
    for row in tables["device"].as_array().expect("rows").iter().filter(|row| row["kind"] == "kernel") {
        let of = |name: &str| row[name].as_f64().unwrap_or_else(|| panic!("{name}: {row}"));
        // As long as an event takes, 700 ns, and a step of the clock.
        let each = of("total_error_ns") / (of("calls") - of("untimed"));
        assert!((650.0..1000.0).contains(&each), "{row}: {each}");
    }
}

#[test]
fn what_the_program_changes_is_changed() {
    for mode in ["set", "update", "enabled"] {
        for budget in ["100", "1%"] {
            let run = limited(budget, &[mode, "40"], &[]);
            let (found, whole) = counted(&run);
            assert_eq!(found, done(&run.ops()), "{mode} {budget}");
            check_launches_once(&run, whole);
            // Between a change that the driver refused and the next one that it took.
            let expected = if mode == "update" { 40 } else { 0 };
            assert!(whole == expected || budget != "100", "{mode}: {whole}");
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
        assert_eq!(counted(&run).0, done(&run.ops()), "{budget}");
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
        assert_eq!(found, done(&run.ops()), "{environment}");
        let notes = run.manifest()["notes"].to_string();
        let of = notes.split("device times: nodes of 1 graphs").nth(1).unwrap_or_else(|| panic!("{notes}"));
        assert!(of.contains(why), "{notes}");
        assert!(whole >= 39, "{environment}: {whole} as a whole");
        check_launches_once(&run, whole);
        assert!(run.seen().commands.iter().all(|c| c.kind == "graph"), "{environment}");
    }
}

#[test]
fn with_no_room_in_the_budget_graphs_are_as_they_were() {
    let run = limited("0.01%", &["chain", "300"], &[]);
    assert_eq!(counted(&run).0, done(&run.ops()));
}
