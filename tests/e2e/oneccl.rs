//! oneCCL's C interface: two ranks on a fake of it, made from the model.

use std::collections::BTreeMap;

use hetrace_tests::each::each_once;
use hetrace_tests::fake_oneccl::programs;
use hetrace_tests::ran::Ran;

fn ranks() -> Ran {
    let folder = programs().to_str().expect("text");
    let ran = Ran::new(&["-m", "full"], &programs().join("ranks"), &[], &[("LD_LIBRARY_PATH", folder)]);
    assert_eq!(ran.done.status, 0, "{}", ran.bare.out);
    ran
}

#[test]
fn each_function_once() {
    each_once("oneccl", "libccl.so.2", "oneccl");
}

#[test]
fn two_ranks() {
    let ran = ranks();
    let out = &ran.bare.out;
    for rank in 0..2 {
        let expected = format!("rank {rank} of 2, refused 4 5, errno 42: invalid argument\n");
        assert!(out.contains(&expected), "{out}");
    }
    let mut counted = BTreeMap::new();
    let lines = out.lines().filter_map(|line| line.strip_prefix("calls ")?.split_once(' '));
    lines.for_each(|(name, n)| {
        *counted.entry(name.to_owned()).or_insert(0) += n.parse::<u64>().expect("a count")
    });
    assert_eq!(counted["onecclAllReduce"], 6);
    assert_eq!(ran.recorded_of("oneccl"), counted);
    ran.expect_calls(&[
        "onecclGetVersion(version=[20220200]) = onecclSuccess",
        "onecclGetUniqueId(uniqueId=[",
        "onecclCommInitRank(comm=[0x…nranks=2, …rank=0) = onecclSuccess",
        "onecclCommCount(comm=0x…size=[2])",
        "onecclAllReduce(…count=1000, datatype=onecclFloat32, reduction_op=onecclMax, comm=0x",
        "onecclAllGather(…sendcount=500, datatype=onecclInt32, comm=0x",
        "onecclBroadcast(…count=64, datatype=onecclBfloat16, root=1, comm=0x",
        "onecclAllToAllV(…datatype=onecclFloat32, comm=0x",
        "onecclSend(…count=256, datatype=onecclFloat32, peer=1, comm=0x",
        "onecclCommSplit(comm=0x…color=7, key=0, newcomm=[0x",
        "= onecclInvalidArgument \"invalid argument\"",
        "onecclGroupEnd() = onecclInvalidUsage \"invalid usage\"",
        "rank=1) = onecclSuccess",
    ]);
    let mut errors = ran.errors();
    errors.retain(|name, _| name.starts_with("oneccl"));
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(errors["onecclGroupEnd"], "onecclInvalidUsage");
}

/// What each operation moved: in `tally`, by communicator.
#[test]
fn operations_among_ranks() {
    let ran = ranks();
    let tally = ran.tally();
    let rows = tally["collectives"].as_array().expect("collectives").iter();
    let mut operations: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for row in rows {
        let sum = operations.entry(row["operation"].as_str().unwrap_or("").to_owned()).or_default();
        sum.0 += row["calls"].as_u64().unwrap_or(0);
        sum.1 += row["bytes"].as_u64().unwrap_or(0);
    }
    // Each rank reduces 1000 numbers, 10 in the half, and asks for 10 of a type that is none.
    assert_eq!(operations["all-reduce"], (6, 2 * (4000 + 40)), "{operations:?}");
    assert_eq!(operations["all-gather"], (2, 2 * 2 * 2000), "{operations:?}");
    assert_eq!(operations["broadcast"], (2, 2 * 128), "{operations:?}");
    assert_eq!(operations["all-to-all"].0, 2, "{operations:?}");
    let text = ran.findings(&["tally"]);
    assert!(text.contains("Collectives | "), "{text}");
    assert!(!ran.findings(&["lint"]).contains("onecclComm_t"), "all are released");
}
