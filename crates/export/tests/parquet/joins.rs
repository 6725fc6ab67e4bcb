//! What rows of different tables have in common: causes, waits, operations among ranks, ranks.

use std::collections::BTreeMap;

use hetrace_export::parquet::{Options, export};

use parquet::record::Field;

use super::read::{Row, long, number, path, table_of, text};
use super::{ALL, GO_ON, common, script, tables};

/// Where the clock of made traces begins.
const EPOCH: i64 = 1_700_000_000_000_000_000;

/// The names of calls by their ids.
fn names(calls: &[Row]) -> BTreeMap<String, String> {
    calls.iter().map(|c| (number(c, "call_id"), text(c, "name"))).collect()
}

#[test]
fn waits_are_joined_to_what_they_waited_for() {
    let trace = common::build(
        "0   1.1 * queue queue=1 handle=0x10 device=1 api=\"toy\"\n\
         0   1.1 * queue queue=2 handle=0x20 device=1 api=\"toy\"\n\
         0   1.1 * device device=1 handle=0xd name=\"Toy GPU\"\n\
         0   1.1 * function function=1 name=\"one\"\n\
         10  1.1 > toyLaunch queue=0x10\n\
         20  1.1 < toyLaunch result=0\n\
         30  1.1 > toyLaunch queue=0x20\n\
         40  1.1 < toyLaunch result=0\n\
         50  1.1 * kernel function=1 queue=1 cause_tid=1 cause_before=40 duration=20\n\
         60  1.1 * kernel function=1 queue=2 cause_tid=1 cause_before=30 duration=30\n\
         90  1.1 * fill queue=1 duration=100\n\
         95  1.1 * copy queue=1 duration=900\n\
         80  1.1 > toyFinish queue=0x10\n\
         200 1.1 < toyFinish result=0\n\
         300 1.1 > toyFinish queue=0x20\n\
         310 1.1 < toyFinish result=TOY_INVALID\n\
         320 1.1 > toyFinish queue=0x20\n\
         330 1.1 < toyFinish result=0\n",
    );
    let (_, tables) = tables(&trace);
    let columns = ["wait_start_ns", "end_ns", "wait_end_ns"];
    // Without the distance to 1970.
    let time = |c: &Row, name: &str| {
        c.get(name).and_then(long).map_or("-".to_owned(), |ns| (ns - EPOCH).to_string())
    };
    let waits: Vec<String> = tables["commands"]
        .iter()
        .map(|c| format!("{} {}", text(c, "kind"), columns.map(|name| time(c, name)).join(" ")))
        .collect();
    // Done before it was waited for, waited for too late by a call that did not fail, waited for
    // really, and never.
    assert_eq!(waits, ["kernel 80 70 200", "kernel 320 90 330", "fill 80 190 200", "copy - 995 -"]);
    let by_id: BTreeMap<String, &Row> = tables["calls"].iter().map(|c| (number(c, "call_id"), c)).collect();
    let mut on = Vec::new();
    for command in &tables["commands"] {
        let Some(wait) = by_id.get(&number(command, "wait_call_id")) else { continue };
        assert_eq!(number(wait, "start_ns"), number(command, "wait_start_ns"));
        assert_eq!(number(wait, "end_ns"), number(command, "wait_end_ns"));
        on.push(number(wait, "waited_command_id") == number(command, "command_id"));
    }
    assert_eq!(on, [false, false, true]);
}

/// Ranges between probes in the program's code have rows as others do, and calls inside of one have it as their range.
#[test]
fn ranges_between_probes_have_rows() {
    let (_, tables) = tables(&script("probe_ranges"));
    let row = |r: &Row| {
        let [style, message] = ["style", "message"].map(|c| text(r, c));
        (style, message, number(r, "tid"), number(r, "duration_ns"))
    };
    let rows: Vec<_> = tables["ranges"].iter().map(row).collect();
    let step = |duration: &str| {
        ("probed".to_owned(), "app:step (entry..return)".to_owned(), "1".to_owned(), duration.to_owned())
    };
    assert_eq!(rows.iter().filter(|r| **r == step("90000")).count(), 12, "{rows:?}");
    assert_eq!(rows.iter().filter(|r| **r == step("-")).count(), 1, "{rows:?}");
    let io = ("probed".to_owned(), "io:read (start..done)".to_owned(), "7".to_owned(), "1145000".to_owned());
    assert!(rows.len() == 14 && rows.contains(&io), "{rows:?}");
    let calls = &tables["calls"];
    assert!(calls.iter().all(|c| text(c, "range") == "app:step (entry..return)"), "{calls:?}");
}

/// Counters of a program have a row for each change, with what they count then.
#[test]
fn counters_have_rows() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden/ranges_itt.txt");
    let text_of = std::fs::read_to_string(path).expect("readable");
    let (_, tables) = tables(&common::build(text_of.split("\n== ").next().unwrap_or("")));
    let row = |r: &Row| {
        let value = match r.get("value") {
            Some(Field::Double(value)) => Some(value.to_string()),
            _ => None,
        };
        (text(r, "domain"), text(r, "name"), value.unwrap_or_default())
    };
    let rows: Vec<_> = tables["counters"].iter().map(row).collect();
    let bytes: Vec<&str> = rows.iter().filter(|r| r.1 == "bytes").map(|r| &*r.2).collect();
    assert_eq!(bytes[..2], ["40", "45"], "{rows:?}");
}

#[test]
fn operations_among_ranks_have_rows() {
    let (_, tables) = tables(&script("collectives"));
    let names = names(&tables["calls"]);
    let row = |c: &Row| {
        let [call, launch] = ["call_id", "launch_call_id"].map(|id| names.get(&number(c, id)).cloned());
        let [rank, size, peer, bytes] =
            ["comm_rank", "comm_size", "peer_rank", "bytes"].map(|n| number(c, n));
        let (operation, element) = (text(c, "operation"), text(c, "element"));
        let launch = launch.unwrap_or("-".to_owned());
        format!("{} in {launch}: {operation} {element} {bytes} {rank}/{size} {peer}", call.expect("a call"))
    };
    let rows: Vec<String> = tables["collectives"].iter().map(row).collect();
    let expected = [
        "meshAllReduce in meshAllReduce: all-reduce MESH_FLOAT 4000 0/2 -",
        "meshAllReduce in meshAllReduce: all-reduce MESH_FLOAT 4000 1/2 -",
        "meshSend in meshEnd: send MESH_HALF 1000 0/2 1",
        "meshRecv in meshEnd: receive MESH_HALF 1000 0/2 1",
        "meshAllGather in -: all-gather MESH_INT8 10 -/- -",
        "meshAllReduce in -: all-reduce MESH_INT8 1 0/2 -",
    ];
    assert_eq!(rows, expected);
    let same = |c: &&Row| text(c, "communicator") == text(&tables["collectives"][0], "communicator");
    assert_eq!(tables["communicators"].len(), 3);
    assert_eq!(tables["communicators"].iter().filter(same).count(), 2);
    let launches: Vec<String> = tables["collectives"].iter().map(|c| number(c, "launch_call_id")).collect();
    let of = |c: &Row| launches.iter().filter(|l| **l == number(c, "launch_call_id")).count();
    assert_eq!(tables["commands"].iter().map(of).collect::<Vec<_>>(), [1, 1, 2]);
}

#[test]
fn ranks_are_those_of_the_job_or_what_is_said() {
    let trace = script("ranks");
    let folder = tempfile::tempdir().expect("a folder");
    let found = Options { rank: None, ..ALL };
    export(&trace, &found, GO_ON, folder.path()).expect("an export");
    // The lowest names the files.
    assert!(path(folder.path(), "calls", 4).exists());
    let table = |name: &str| table_of(folder.path(), name, 4);
    for name in ["calls", "processes"] {
        for row in table(name) {
            let expected = match number(&row, "pid").as_str() {
                "2" => "4",
                "3" => "5",
                _ => "-",
            };
            assert_eq!(number(&row, "job_rank"), expected, "{name}");
        }
    }
    let [process] =
        &table("processes").into_iter().filter(|p| number(p, "pid") == "3").collect::<Vec<_>>()[..]
    else {
        panic!("one process");
    };
    assert_eq!(["job_size", "local_rank"].map(|c| number(process, c)), ["8", "1"]);
    assert_eq!(text(&table("trace")[0], "job_variable"), "RANK");
    export(&trace, &Options { rank: Some(9), ..ALL }, GO_ON, folder.path()).expect("an export");
    let calls = table_of(folder.path(), "calls", 9);
    assert!(!calls.is_empty() && calls.iter().all(|c| long(&c["job_rank"]) == Some(9)));
}
