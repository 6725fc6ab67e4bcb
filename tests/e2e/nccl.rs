//! NCCL: ranks in processes of their own on a library that meets and launches as the real
//! one does, and a rank that never comes; the same ranks on a fake of AMD's RCCL, above a fake HIP.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hetrace_ctf::Value;
use hetrace_tests::called::{Call, Called};
use hetrace_tests::{Done, Seen, fake, fake_hip, fake_nccl, fake_rccl, hetrace};
use tempfile::TempDir;

/// A run of `tests/programs/nccl/ranks.c` under trace.
struct Run {
    done: Done,
    scratch: TempDir,
    called: Called,
    seen: Seen,
}

/// What a rank has said of itself.
struct Rank {
    number: i64,
    pid: u32,
    comms: Vec<i64>,
    polls: u64,
}

fn ranks(mode: &str) -> Run {
    run(fake_nccl::library(), fake::driver(), mode)
}

/// Ranks of RCCL.
fn rccl(mode: &str) -> Run {
    run(fake_rccl::library(), fake_hip::programs(), mode)
}

/// Ranks on the library in a folder, above what lies in another.
fn run(library: &Path, below: &Path, mode: &str) -> Run {
    let scratch = TempDir::new().expect("a scratch folder");
    let trace = scratch.path().join("trace");
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "--buffer", "8192", "--device-times", "events", "-o"]).arg(&trace);
    line.arg("--").arg(library.join("ranks")).arg(mode);
    let folders = [library, below].map(|f| f.display().to_string());
    line.env("LD_LIBRARY_PATH", folders.join(":")).env("TMPDIR", scratch.path());
    line.env("FAKE_CUDA_DEVICES", "2");
    let done = hetrace_tests::bed::run(&mut line);
    assert_eq!(done.status, 0, "{mode}: {}{}", done.out, done.err);
    let seen = Seen::read(&trace);
    assert!(seen.damage.is_empty() && seen.discarded == 0 && seen.disorder == 0, "{mode}");
    Run { done, scratch, called: Called::read(&trace), seen }
}

impl Run {
    fn ranks(&self) -> Vec<Rank> {
        let mut ranks: Vec<Rank> = self.done.out.lines().filter_map(Rank::parse).collect();
        ranks.sort_by_key(|r| r.number);
        ranks
    }

    /// What a report shows.
    fn report(&self, command: &str) -> String {
        let trace = self.scratch.path().join("trace");
        let done = hetrace_tests::bed::run(Command::new(hetrace()).arg(command).arg(trace));
        assert_eq!(done.status, 0, "{command}: {}", done.err);
        done.out
    }

    /// Every kernel's driver call lies in the NCCL call that launched it: names of those
    /// and of the kernels, in order.
    fn launches(&self, pid: u32) -> Vec<(String, String)> {
        let (nccl, cuda) = (self.called.of("nccl", pid), self.called.of("cuda", pid));
        let mut commands: Vec<_> = self.seen.commands.iter().filter(|c| c.pid == pid).collect();
        commands.sort_by_key(|c| c.cause);
        let mut launches = Vec::new();
        for command in commands {
            let driver = cuda.iter().find(|c| c.begin == command.cause && c.tid == command.cause_tid);
            let driver = driver.unwrap_or_else(|| panic!("no call of {command:?}"));
            assert_eq!(driver.name, "cuLaunchKernel");
            let cause = nccl.iter().find(|c| c.holds(driver)).expect("an NCCL call around it");
            let kernel = command.name.trim_start_matches(|c: char| !c.is_lowercase());
            let kernel = kernel.strip_suffix("24ncclDevKernelArgsStorageILm4096EE").expect("a whole name");
            launches.push((cause.name.clone(), kernel.to_owned()));
        }
        launches
    }
}

impl Rank {
    fn parse(line: &str) -> Option<Rank> {
        let words: Vec<&str> = line.split(' ').collect();
        let ["rank", number, "pid", pid, "comm", rest @ ..] = &words[..] else { return None };
        let handle = |w: &&str| i64::from_str_radix(w.trim_start_matches("0x"), 16).ok();
        let polls = rest.iter().position(|w| *w == "polls").map(|i| rest[i + 1]);
        Some(Rank {
            number: number.parse().ok()?,
            pid: pid.parse().ok()?,
            comms: rest.iter().filter(|w| w.starts_with("0x")).filter_map(handle).collect(),
            polls: polls.map_or(0, |p| p.parse().expect("a count")),
        })
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::Str(text)) => text.clone(),
        Some(Value::Struct(members)) => text(members.first().map(|(_, v)| v)),
        Some(Value::Array(items)) => text(items.first()),
        _ => String::new(),
    }
}

/// A collective as one line: what it does, on how much of what, and with whom.
fn line(call: &Call) -> String {
    let number = |names: [&str; 3]| names.iter().find_map(|n| call.number(n));
    let mut out = format!("{} {:?}", call.name, number(["count", "sendcount", "recvcount"]));
    for name in ["datatype", "op"] {
        out += &call.label(name).map_or(String::new(), |l| format!(" {l}"));
    }
    number(["root", "peer", ""]).map_or(out.clone(), |n| format!("{out} {n}"))
}

#[test]
fn two_ranks() {
    let run = ranks("work");
    let found = run.ranks();
    assert_eq!(found.len(), 2);
    let mut ids = Vec::new();
    for rank in &found {
        let calls = run.called.of("nccl", rank.pid);
        assert!(calls.iter().all(|c| c.end.is_some() && c.label("result") == Some("ncclSuccess")));
        let names: Vec<&str> = calls.iter().map(|c| c.name.as_str()).collect();
        let world =
            ["ncclCommInitRank", "ncclCommCount", "ncclCommUserRank", "ncclAllReduce", "ncclAllReduce"];
        assert_eq!(names[..5], world);
        let more = ["ncclAllGather", "ncclBroadcast", "ncclReduceScatter", "ncclGroupStart", "ncclSend"];
        assert_eq!(names[5..10], more);
        let grouped = ["ncclGroupStart", "ncclRecv", "ncclGroupEnd", "ncclGroupEnd", "ncclCommSplit"];
        assert_eq!(names[10..15], grouped);
        assert_eq!(names[15..18], ["ncclCommUserRank", "ncclReduce", "ncclCommSplit"]);
        assert!(names[18..].iter().all(|n| n.starts_with("ncclComm")));

        let init = calls[0];
        assert_eq!((init.number("nranks"), init.number("rank")), (Some(2), Some(rank.number)));
        assert_eq!(init.list("comm"), [rank.comms[0]]);
        ids.push(init.fields["commId"].clone());
        let collectives = calls.iter().filter(|c| c.fields.contains_key("datatype"));
        let lines: Vec<String> = collectives.map(|c| line(c)).collect();
        let peer = 1 - rank.number;
        let expected = [
            "ncclAllReduce Some(1000) ncclFloat32 ncclSum".to_owned(),
            "ncclAllReduce Some(3) ncclFloat64 ncclMax".to_owned(),
            "ncclAllGather Some(500) ncclInt32".to_owned(),
            "ncclBroadcast Some(64) ncclInt8 1".to_owned(),
            "ncclReduceScatter Some(128) ncclFloat32 ncclAvg".to_owned(),
            format!("ncclSend Some(256) ncclFloat32 {peer}"),
            format!("ncclRecv Some(256) ncclFloat32 {peer}"),
            "ncclReduce Some(32) ncclFloat32 ncclSum 0".to_owned(),
        ];
        assert_eq!(lines, expected);

        let splits: Vec<&&Call> = calls.iter().filter(|c| c.name == "ncclCommSplit").collect();
        assert_eq!((splits[0].number("color"), splits[0].number("key")), (Some(7), Some(-rank.number)));
        assert_eq!(splits[0].list("newcomm"), [rank.comms[1]]);
        // Rank 0 asked for no colour, and got nothing.
        let third = rank.comms.get(2).copied().unwrap_or(0);
        assert_eq!((third == 0, splits[1].list("newcomm")), (rank.number == 0, vec![third]));
        let reduce = calls.iter().find(|c| c.name == "ncclReduce").expect("a reduction");
        assert_eq!(reduce.number("comm"), Some(rank.comms[1]), "in the half");

        let launches = run.launches(rank.pid);
        let launches: Vec<(&str, &str)> = launches.iter().map(|(c, k)| (c.as_str(), k.as_str())).collect();
        let expected = [
            ("ncclAllReduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
            ("ncclAllReduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
            ("ncclAllGather", "ncclDevKernel_AllGather_RING_LL"),
            ("ncclBroadcast", "ncclDevKernel_Broadcast_RING_LL"),
            ("ncclReduceScatter", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL"),
            ("ncclGroupEnd", "ncclDevKernel_SendRecv"),
            ("ncclReduce", "ncclDevKernel_Reduce_Sum_f32_RING_LL"),
        ];
        assert_eq!(launches, expected);
    }
    let id = run.called.calls.iter().find(|c| c.name == "ncclGetUniqueId").expect("an id");
    let made = Value::Array(vec![ids[0].clone()]);
    assert_eq!((&ids[0], id.fields.get("uniqueId")), (&ids[1], Some(&made)));
    let tally = run.report("tally");
    assert!(tally.contains("Collectives | 3 communicators | 5 ranks"), "{tally}");
}

/// Ids are binary, and handles of forked processes are the same: neither may mix them up.
#[test]
fn two_worlds_of_two_ranks() {
    let run = ranks("worlds");
    let mut ids: Vec<&Value> = Vec::new();
    for rank in run.ranks() {
        let calls = run.called.of("nccl", rank.pid);
        let id = &calls[0].fields["commId"];
        if !ids.contains(&id) {
            ids.push(id);
        }
        assert_eq!(run.launches(rank.pid).len(), 1);
    }
    assert_eq!(ids.len(), 2, "{ids:?}");
    let tally = run.report("tally");
    assert!(tally.contains("Collectives | 2 communicators | 4 ranks"), "{tally}");
}

#[test]
fn what_nccl_refuses_and_says() {
    let run = ranks("errors");
    let mut failed = BTreeMap::new();
    for c in run.called.calls.iter().filter(|c| c.api == "nccl") {
        if let Some(label) = c.label("result").filter(|l| *l != "ncclSuccess") {
            *failed.entry((c.name.as_str(), label.to_owned())).or_insert(0) += 1;
        }
    }
    let of = |name, error: &str| (name, error.to_owned());
    let expected = BTreeMap::from([
        (of("ncclAllReduce", "ncclInvalidArgument"), 2),
        (of("ncclAllReduce", "ncclInvalidUsage"), 1),
        (of("ncclCommInitRank", "ncclInvalidArgument"), 1),
        (of("ncclGroupEnd", "ncclInvalidArgument"), 1),
        (of("ncclGroupEnd", "ncclInvalidUsage"), 1),
        (of("ncclSend", "ncclInvalidArgument"), 1),
    ]);
    assert_eq!(failed, expected);
    let said = |code| run.called.errors.get(&("nccl".to_owned(), code)).map(String::as_str);
    assert_eq!((said(4), said(5)), (Some("invalid argument"), Some("invalid usage")));
    assert_eq!((said(0), said(8)), (None, None), "nothing of codes that are not known");
    // Only what was not refused has launched: the call behind a profiling library.
    let pid = run.called.calls[0].pid;
    let launches = run.launches(pid);
    assert_eq!(launches.len(), 1);
    assert_eq!(launches[0].0, "pncclAllReduce");
    assert_eq!(run.seen.total()["pncclAllReduce"], 1);
    let tally = run.report("tally");
    assert!(tally.contains("invalid argument") && tally.contains("invalid usage"), "{tally}");
}

#[test]
fn a_communicator_that_is_made_in_the_background() {
    let run = ranks("nonblocking");
    for rank in run.ranks() {
        let calls = run.called.of("nccl", rank.pid);
        let init = calls.iter().find(|c| c.name == "ncclCommInitRankConfig").expect("the call");
        assert_eq!(init.label("result"), Some("ncclInProgress"));
        // A handle that is in use already, though the call has not ended well yet.
        assert_eq!(init.list("comm"), rank.comms);
        let Some(Value::Array(configs)) = init.fields.get("config") else { panic!("no configuration") };
        assert_eq!(configs[0].get("blocking"), Some(&Value::Signed(0)));
        // As much of it was read as it said that it had: the rest is of a newer version.
        assert_eq!(configs[0].get("size"), Some(&Value::Unsigned(72)));
        assert_eq!(configs[0].get("nvlsHostMode"), Some(&Value::Signed(0)));
        assert_eq!(text(init.fields.get("config_netName")), "Socket");
        assert_eq!(run.seen.calls[&rank.pid]["ncclCommGetAsyncError"], rank.polls);
    }
    let tally = run.report("tally");
    assert!(!tally.contains("operation in progress"), "a state is no failure: {tally}");
    assert!(tally.contains("Collectives | 1 communicator | 2 ranks"), "{tally}");
}

#[test]
fn one_process_with_two_communicators() {
    let run = ranks("one-process");
    let rank = &run.ranks()[0];
    let calls = run.called.of("nccl", rank.pid);
    let init = calls.iter().find(|c| c.name == "ncclCommInitAll").expect("the call");
    assert_eq!((init.list("devlist"), init.list("comm")), (vec![1, 0], rank.comms.clone()));
    // Four collectives on two communicators: one launch for each.
    let launches = run.launches(rank.pid);
    let expected = ("ncclGroupEnd".to_owned(), "ncclDevKernel_Generic_1".to_owned());
    assert_eq!(launches, vec![expected; 2]);
}

#[test]
fn a_rank_that_does_not_come_to_a_collective() {
    let run = ranks("late");
    let found = run.ranks();
    let called = |rank: &Rank| run.called.of("nccl", rank.pid).last().map(|c| c.name.clone());
    assert_eq!(called(&found[0]).as_deref(), Some("ncclAllReduce"));
    assert_eq!(called(&found[1]).as_deref(), Some("ncclCommInitRank"));
    // Killed: the launch was recorded, its end was not, and the wait has no end.
    let driver = run.called.of("cuda", found[0].pid);
    let last = driver.last().expect("calls");
    assert_eq!((last.name.as_str(), last.end), ("cuStreamSynchronize", None));
    assert!(run.seen.commands.is_empty(), "{:?}", run.seen.commands);
    let manifest = hetrace_tests::counts::manifest(&run.scratch.path().join("trace"));
    assert_eq!(manifest["losses"]["commands_in_flight"], 1);
    let (tally, print) = (run.report("tally"), run.report("print"));
    assert!(tally.contains("Unfinished collectives"), "{tally}");
    assert!(tally.contains("cuStreamSynchronize"), "{tally}");
    assert!(print.contains("<no end"), "{print}");
}

#[test]
fn a_rank_that_never_comes() {
    let run = ranks("absent");
    let init = run.called.calls.iter().find(|c| c.name == "ncclCommInitRank").expect("the call");
    assert_eq!((init.end, init.number("nranks"), init.number("rank")), (None, Some(2), Some(0)));
    let (tally, print) = (run.report("tally"), run.report("print"));
    assert!(tally.contains("UNFINISHED") && tally.contains("ncclCommInitRank"), "{tally}");
    assert!(print.contains("<no end"), "{print}");
}

/// To us RCCL is a copy of NCCL above HIP.
#[test]
fn two_ranks_of_rccl() {
    let run = rccl("work");
    let found = run.ranks();
    assert_eq!(found.len(), 2);
    for rank in &found {
        let calls = run.called.of("nccl", rank.pid);
        assert!(calls.iter().all(|c| c.end.is_some() && c.label("result") == Some("ncclSuccess")));
        assert_eq!(calls[0].name, "ncclCommInitRank");
        assert_eq!(calls[0].list("comm"), [rank.comms[0]]);
        let hip = run.called.of("hip", rank.pid);
        let launches: Vec<_> = hip.iter().filter(|c| c.name == "hipLaunchKernel").collect();
        let above = |launch: &&Call| calls.iter().find(|c| c.holds(launch)).map(|c| c.name.as_str());
        let above: Vec<_> =
            launches.into_iter().map(|launch| above(launch).expect("a call around it")).collect();
        let expected = [
            "ncclAllReduce",
            "ncclAllReduce",
            "ncclAllGather",
            "ncclBroadcast",
            "ncclReduceScatter",
            "ncclGroupEnd",
            "ncclReduce",
        ];
        assert_eq!(above, expected);
    }
    let tally = run.report("tally");
    assert!(tally.contains("Collectives | 3 communicators | 5 ranks"), "{tally}");
}

/// What RCCL does by calling others of its functions is one operation.
#[test]
fn what_only_rccl_has() {
    let run = rccl("own");
    for rank in &run.ranks() {
        let calls = run.called.of("nccl", rank.pid);
        let find = |name: &str| calls.iter().filter(|c| c.name == name).collect::<Vec<_>>();
        assert_eq!(line(find("ncclAllToAll")[0]), "ncclAllToAll Some(300) ncclFloat32");
        assert_eq!(find("ncclAllToAllv")[0].label("datatype"), Some("ncclFloat8e5m2"));
        let [good, bad] = find("ncclAllReduceWithBias")[..] else { panic!("two of them") };
        assert_eq!(line(good), "ncclAllReduceWithBias Some(50) ncclFloat32 ncclSum");
        assert_eq!(bad.label("result"), Some("ncclInvalidArgument"));
        let load = find("mscclLoadAlgo")[0];
        assert_eq!(text(load.fields.get("mscclAlgoFilePath")), "all-to-all.xml");
        assert_eq!(find("mscclUnloadAlgo").len(), 1);
        assert_eq!(find("ncclSend").len(), 0, "what the library calls of itself is its own");
    }
    let tally: serde_json::Value = serde_json::from_str(&{
        let trace = run.scratch.path().join("trace");
        hetrace_tests::bed::run(Command::new(hetrace()).args(["tally", "--json"]).arg(trace)).out
    })
    .expect("JSON");
    let rows = tally["collectives"].as_array().expect("collectives").iter();
    let mut operations: Vec<_> =
        rows.map(|r| (r["operation"].as_str().unwrap_or(""), r["calls"].as_u64().unwrap_or(0))).collect();
    operations.sort_unstable();
    assert_eq!(operations, [("all-reduce", 4), ("all-to-all", 2), ("all-to-all", 2)], "{tally:#}");
}
