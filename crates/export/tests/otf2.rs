//! Traces of the golden tests as OTF2 archives: read by a reader of our own, and by
//! `otf2-print` where it is installed (`otf2-tools`). `otf2/NAME.txt` is what it prints of
//! `crates/report/tests/golden/NAME.txt`; `BLESS=1 cargo test -p hetrace-export --test
//! otf2` writes these anew.

#[path = "../../report/tests/common/mod.rs"]
mod common;
#[path = "otf2/reader.rs"]
mod reader;

use std::cell::Cell;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_export::Error;
use hetrace_export::otf2::{self, Written};
use hetrace_trace::trace::Trace;
use proptest::prelude::*;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The part of a golden trace that is the trace.
fn script(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("readable");
    let end = text.find("\n== ").map_or(text.len(), |at| at + 1);
    text[..end].to_owned()
}

fn golden(name: &str) -> String {
    script(&here(&format!("../report/tests/golden/{name}.txt")))
}

/// Writes a trace and reads it.
fn export(trace: &Trace, folder: &Path) -> (Written, reader::Archive) {
    let written = otf2::write(trace, folder, &|_| ControlFlow::Continue(())).expect("memory takes it");
    let archive = reader::read(folder);
    assert_eq!(written.events, archive.events);
    assert_eq!(written.locations, archive.locations.len() as u64);
    let names = written.missing().into_iter().map(|(name, _, n)| (format!("HETRACE::{name}"), n.to_string()));
    assert_eq!(names.collect::<Vec<_>>(), archive.properties);
    (written, archive)
}

/// What `otf2-print` says of an archive; none where it is not installed. It must not complain.
fn printed(folder: &Path) -> Option<String> {
    let mut command = Command::new("otf2-print");
    let output = command.arg("-A").arg(folder.join("traces.otf2")).env("TZ", "UTC").output();
    let Ok(output) = output else {
        eprintln!("otf2-print is not installed (otf2-tools): the archive is not printed");
        return None;
    };
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && complaints.is_empty(), "otf2-print: {complaints}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    for wrong in ["INVALID <", "(INVALID)", "UNDEFINED <"] {
        assert!(!text.contains(wrong), "{text}");
    }
    Some(text)
}

/// Whether that is the version that the texts were written with.
fn prints_as_expected() -> bool {
    let output = Command::new("otf2-print").arg("--version").output();
    let known = output.is_ok_and(|o| String::from_utf8_lossy(&o.stdout).contains("version 3.0."));
    if !known {
        eprintln!("otf2-print 3.0 is not installed (otf2-tools): its texts are not compared");
    }
    known
}

const PRINTED: [&str; 12] = [
    "collectives",
    "collector",
    "device",
    "errors",
    "folds",
    "layers",
    "lost",
    "probe_ranges",
    "ranges",
    "stacks",
    "telemetry",
    "unfinished",
];

#[test]
fn otf2_print_shows_what_is_expected() {
    if !prints_as_expected() {
        return;
    }
    let mut wrong = Vec::new();
    for name in PRINTED {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join(name);
        export(&common::build(&golden(name)), &out);
        let Some(text) = printed(&out) else { return };
        let own = |line: &&str| !line.starts_with("Creator ") && !line.trim().is_empty();
        let text: String = text.lines().filter(own).map(|line| line.trim_end().to_owned() + "\n").collect();
        let path = here(&format!("tests/otf2/{name}.txt"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, text).expect("writable");
            continue;
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if let Some((a, b)) = expected.lines().zip(text.lines()).find(|(a, b)| a != b) {
            wrong.push(format!("{name}:\n  expected {a}\n  found    {b}"));
        } else if expected != text {
            wrong.push(format!("{name}: one is longer"));
        }
    }
    assert!(wrong.is_empty(), "{}\n(BLESS=1 to accept)", wrong.join("\n"));
}

#[test]
fn every_golden_trace_makes_a_sound_archive() {
    let mut seen = 0;
    for entry in fs::read_dir(here("../report/tests/golden")).expect("a folder") {
        let path = entry.expect("an entry").path();
        // Those with the model of a real API are all alike here, and large.
        if path.extension().is_none_or(|e| e != "txt") || script(&path).contains("# uses ") {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        export(&common::build(&script(&path)), &out);
        printed(&out);
        seen += 1;
    }
    assert!(seen > 15);
}

#[test]
fn collectives_have_all_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_, archive) = export(&common::build(&golden("collectives")), &folder.path().join("out"));
    assert_eq!((archive.by_kind[&22], archive.by_kind[&23]), (4, 4));
    let threads = archive.locations.iter().filter(|(kind, _)| *kind == 1);
    let threads: Vec<&str> = threads.map(|(_, name)| name.as_str()).collect();
    assert_eq!(threads, ["app (thread 1)", "app (thread 2)"]);
}

/// Two ranks: each sends to the other in a group with a kernel; a second message has no receiver,
/// and a third is of another size than what is received.
fn messages() -> String {
    let mut script = String::from("0 1.1 * function function=1 name=\"mesh\"\n");
    for rank in 0..2u64 {
        let (who, comm, peer) = (format!("{0}.{0}", rank + 1), rank + 10, 1 - rank);
        let group = 100 * (rank + 1);
        script += &format!(
            "0 {who} * queue queue={number} handle=0x10 device=1 api=\"toy\"\n\
             10 {who} > meshInit nranks=2 id={{internal=\"x\"}} rank={rank}\n\
             20 {who} < meshInit result=0 comm=[{comm}]\n\
             {group} {who} > meshStart\n\
             {} {who} < meshStart result=0\n\
             {} {who} > meshSend count=8 datatype=MESH_FLOAT peer={peer} comm={comm} stream=0x10\n\
             {} {who} < meshSend result=0\n\
             {} {who} > meshRecv count=8 datatype=MESH_FLOAT peer={peer} comm={comm} stream=0x10\n\
             {} {who} < meshRecv result=0\n\
             {} {who} > meshEnd\n\
             {} {who} > toyLaunch queue=0x10\n\
             {} {who} < toyLaunch result=0\n\
             {} {who} < meshEnd result=0\n\
             300 {who} * kernel function=1 queue={number} cause_tid={number} cause_before={} duration=50\n",
            group + 1,
            group + 2,
            group + 3,
            group + 4,
            group + 5,
            group + 6,
            group + 7,
            group + 8,
            group + 9,
            300 - group - 7,
            number = rank + 1,
        );
        let count = 4 + rank;
        let what = if rank == 0 { "meshSend" } else { "meshRecv" };
        script += &format!(
            "400 {who} > {what} count={count} datatype=MESH_FLOAT peer={peer} comm={comm} stream=0x10\n\
             410 {who} > toyLaunch queue=0x10\n\
             415 {who} < toyLaunch result=0\n\
             420 {who} < {what} result=0\n\
             430 {who} * kernel function=1 queue={number} cause_tid={number} cause_before=20 duration=9\n",
            number = rank + 1,
        );
    }
    script += "500 1.1 > meshSend count=1 datatype=MESH_FLOAT peer=1 comm=10 stream=0x10\n\
               510 1.1 < meshSend result=0\n\
               520 1.1 > meshSend count=1 datatype=MESH_FLOAT peer=1 comm=10 stream=0x10\n\
               530 1.1 < meshSend result=MESH_BROKEN\n";
    script
}

#[test]
fn sends_and_receives_that_belong_together_are_messages() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let (written, archive) = export(&common::build(&messages()), &out);
    // Those that fail are none.
    assert_eq!(written.left.unmatched, 3);
    let mut messages = archive.messages.clone();
    messages.sort_unstable();
    assert_eq!(
        messages,
        [(0, false, 0, 1, 32), (0, true, 0, 1, 32), (1, false, 0, 0, 32), (1, true, 0, 0, 32)]
    );
    let Some(text) = printed(&out) else { return };
    // Asked for in the call, done when the kernel is.
    let lines = |kind: &str| -> Vec<Vec<String>> {
        let lines = text.lines().filter(|line| line.split_whitespace().next() == Some(kind));
        lines.map(|line| line.split_whitespace().take(3).map(str::to_owned).collect()).collect()
    };
    assert_eq!(lines("MPI_ISEND"), [["MPI_ISEND", "0", "102"], ["MPI_ISEND", "1", "202"]]);
    assert_eq!(
        lines("MPI_IRECV_REQUEST"),
        [["MPI_IRECV_REQUEST", "0", "104"], ["MPI_IRECV_REQUEST", "1", "204"]]
    );
    for kind in ["MPI_ISEND_COMPLETE", "MPI_IRECV"] {
        assert_eq!(lines(kind), [[kind, "0", "350"], [kind, "1", "350"]]);
    }
}

/// Without times of devices, a receive is done when its call is, but not before it is sent; of a
/// process that lost records nothing is said.
#[test]
fn messages_without_devices_and_with_losses() {
    let call = |time: u64, rank: u64, what: &str| {
        let (who, comm, peer) = (format!("{0}.{0}", rank + 1), rank + 10, 1 - rank);
        format!(
            "{time} {who} > {what} count=8 datatype=MESH_FLOAT peer={peer} comm={comm} stream=0x10\n\
             {} {who} < {what} result=0\n",
            time + 5
        )
    };
    let init = |rank: u64| {
        let (who, comm) = (format!("{0}.{0}", rank + 1), rank + 10);
        format!(
            "10 {who} > meshInit nranks=2 id={{internal=\"x\"}} rank={rank}\n20 {who} < meshInit result=0 comm=[{comm}]\n"
        )
    };
    let script = init(0) + &init(1) + &call(100, 1, "meshRecv") + &call(200, 0, "meshSend");
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let (written, archive) = export(&common::build(&script), &out);
    assert_eq!((archive.messages.len(), written.left.unmatched), (2, 0));
    if let Some(text) = printed(&out) {
        let time = |kind: &str| {
            let line =
                text.lines().find(|line| line.split_whitespace().next() == Some(kind)).expect("an event");
            line.split_whitespace().nth(2).expect("a time").to_owned()
        };
        assert_eq!((time("MPI_ISEND_COMPLETE"), time("MPI_IRECV")), ("205".to_owned(), "200".to_owned()));
    }
    let lossy = "manifest {\"schema\":2,\"exit\":{\"code\":0},\"losses\":{\"threads\":[{\"pid\":2,\"tid\":2,\"records\":1}]}}\n";
    let out = folder.path().join("lossy");
    let (written, archive) = export(&common::build(&(lossy.to_owned() + &script)), &out);
    assert_eq!((archive.messages.len(), written.left.unmatched), (0, 2));
}

#[test]
fn processes_of_a_job_are_called_after_their_ranks() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let (_, archive) = export(&common::build(&golden("ranks")), &out);
    let mut named: Vec<&str> = archive.locations.iter().map(|(_, name)| name.as_str()).collect();
    named.sort_unstable();
    let expected = ["app (thread 1)", "app (thread 4)", "rank 4: app (thread 2)", "rank 5: app (thread 3)"];
    assert_eq!(named, expected);
    if let Some(text) = printed(&out) {
        assert!(text.contains("\"rank 4: python3 (process 2)\""), "{text}");
    }
}

#[test]
fn copies_are_accesses() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "
        0    1.1 * queue queue=1 handle=0x10 device=1 api=\"toy\"
        10   1.1 > toyFinish
        20   1.1 < toyFinish
        100  1.1 * copy queue=1 cause_tid=1 cause_before=90 duration=10 bytes=64 from=pinned to=device
        200  1.1 * copy queue=1 cause_tid=1 cause_before=190 duration=10 bytes=64 from=device to=pageable
        300  1.1 * read queue=1 cause_tid=1 cause_before=290 duration=10 bytes=64
        400  1.1 * copy queue=1 cause_tid=1 cause_before=390 duration=10 bytes=64 from=device to=device
        500  1.1 * copy queue=1 cause_tid=1 cause_before=490 duration=10 bytes=64 from=device to=peer peer=[2]
        600  7.7 * write queue=9 cause_tid=7 cause_before=590 duration=10 bytes=64
    ";
    let (written, archive) = export(&common::build(script), &folder.path().join("out"));
    printed(&folder.path().join("out"));
    let kinds = [46, 47, 49].map(|kind| archive.by_kind.get(&kind).copied().unwrap_or(0));
    assert_eq!(kinds, [2, 1, 3]);
    assert_eq!(written.left.alone, 1, "process 7 has no thread");
}

#[test]
fn runs_that_others_cross_have_a_location_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    // Each toyPoll of the run had a baseWait inside, and the latter's record comes first.
    let script = "
        0    1.1 > toyPoll event=0x9
        10   1.1 > baseWait event=0x9
        20   1.1 < baseWait result=0
        30   1.1 < toyPoll result=0
        1000 1.1 ~ baseWait count=50 first=110 last=900 total=100
        1001 1.1 ~ toyPoll count=50 first=100 last=910 total=500
        2000 1.1 ~ toyPoll count=2 first=1500 last=1900 total=300
    ";
    let (_, archive) = export(&common::build(script), &folder.path().join("out"));
    let named: Vec<&str> = archive.locations.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(named, ["app (thread 1)", "app (thread 1): runs of equal calls"]);
    assert_eq!(archive.events_by_location, [8, 2]);
}

#[test]
fn threads_that_drive_several_ranks_are_the_first_of_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut script = String::new();
    for rank in 0..3 {
        let (at, comm) = (rank * 100, rank + 10);
        script += &format!(
            "{at} 1.1 > meshInit nranks=4 id={{internal=\"x\"}} rank={rank}\n\
             {} 1.1 < meshInit result=0 comm=[{comm}]\n\
             {} 1.1 > meshAllReduce count=8 datatype=MESH_FLOAT comm={comm} stream=0x10\n\
             {} 1.1 < meshAllReduce result=0\n",
            at + 10,
            at + 20,
            at + 30,
        );
    }
    let out = folder.path().join("out");
    let (_, archive) = export(&common::build(&script), &out);
    // Ranks from 0 on until one is needed that no location stands for.
    let named: Vec<&str> = archive.locations.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(named, ["app (thread 1)", "rank 0", "rank 1", "rank 2", "rank 3"]);
    printed(&out);
}

#[test]
fn long_traces_have_many_chunks() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = common::long(common::models(), 2, 60_000);
    let (written, archive) = export(&trace, &folder.path().join("out"));
    assert_eq!((written.events, archive.chunks), (240_000, 4));
    assert_eq!(written.missing(), []);
    printed(&folder.path().join("out"));
}

#[test]
fn a_range_whose_id_another_one_got_ends_with_the_trace() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "
        10 1.1 > zoneStart message=\"one\"
        20 1.1 < zoneStart result=7
        30 1.1 > zoneStart message=\"two\"
        40 1.1 < zoneStart result=7
        50 1.2 > zoneEnd id=7
        60 1.2 < zoneEnd
    ";
    let (written, archive) = export(&common::build(script), &folder.path().join("out"));
    assert_eq!((written.left.unended, archive.events), (1, 4));
}

#[test]
fn calls_say_how_many_bytes_they_allocate_and_move() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "# uses opencl
        200 1.1 > clCreateBuffer context=0xc1 size=64
        210 1.1 < clCreateBuffer result=0xb1
        300 1.1 > clEnqueueWriteBuffer command_queue=0xf1 buffer=0xb1 size=48
        310 1.1 < clEnqueueWriteBuffer result=0
        400 1.1 > clFinish command_queue=0xf1
        410 1.1 < clFinish result=0
    ";
    let out = folder.path().join("out");
    let (_, archive) = export(&common::build(script), &out);
    assert_eq!(archive.bytes, [64, 48]);
    printed(&out);
}

/// More than a process may have files open.
#[test]
fn there_may_be_many_locations() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = common::long(common::models(), 3000, 1);
    let (written, _) = export(&trace, &folder.path().join("out"));
    assert_eq!((written.locations, written.events), (3000, 6000));
}

#[test]
fn it_stops_when_asked_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let trace = common::long(common::models(), 1, 60_000);
    let result = otf2::write(&trace, &out, &|_| ControlFlow::Break(()));
    assert!(matches!(result, Err(Error::Stopped)));
    assert!(!out.exists());
}

/// A line, after its time, of a trace that may make little sense.
fn any_line(time: u64, who: &str, what: usize, n: u64) -> String {
    match what {
        20 => format!(
            "1.1 * kernel function={} queue={} cause_tid=1 duration={n} graph=[{}] node=[1]",
            n % 2,
            n % 4,
            n % 2
        ),
        21 => format!("2.5 * graph queue=2 cause_tid=5 duration={n} graph=[1] node=[0]"),
        22 => format!("1.1 * copy queue=1 cause_tid={} duration={n} bytes={n} from=pinned to=device", n % 3),
        23 => format!("9.9 ^ power device={} milliwatts={n}", n % 3),
        _ => any_call(time, who, what, n),
    }
}

/// A line of a call.
fn any_call(time: u64, who: &str, what: usize, n: u64) -> String {
    let early = n.min(time);
    match what {
        0 => format!("{who} > toyFinish queue={n}"),
        1 => format!("{who} < toyFinish result={}", n % 3),
        2 => format!("{who} > toyLaunch queue={n}"),
        3 => format!("{who} < toyLaunch result=0"),
        4 => format!("{who} > baseSubmit"),
        5 => format!("{who} < baseSubmit result=0"),
        6 => format!("{who} ~ toyPoll count={n} first={early} last={} total=9", time + n % 5),
        7 => format!("{who} ~ baseWait count={n} first={early} last={time} total=1"),
        8 => format!("{who} > zonePush domain={} message=\"m{n}\"", n % 3),
        9 => format!("{who} < zonePush result=0"),
        10 => format!("{who} > zonePop domain={}", n % 3),
        11 => format!("{who} < zonePop result=0"),
        12 => format!("{who} > zoneStart message=\"s\""),
        13 => format!("{who} < zoneStart result={}", n % 4),
        14 => format!("{who} > zoneEnd id={}", n % 4),
        15 => format!("{who} > zoneMark message=\"\""),
        16 => format!("{who} > meshInit nranks={} id={{internal=\"x\"}} rank={}", n % 5, n % 7),
        17 => format!("{who} < meshInit result=0 comm=[{}]", n % 3),
        18 => {
            format!("{who} > meshAllReduce count={n} datatype=MESH_FLOAT comm={} stream=0x10", n % 3)
        }
        19 => format!("{who} < meshAllReduce result={}", n % 2),
        24 | 25 => {
            let what = if what == 24 { "meshSend" } else { "meshRecv" };
            let (peer, comm) = (n % 3, n % 4);
            format!(
                "{who} > {what} count=1 datatype=MESH_FLOAT peer={peer} comm={comm} stream=0x10\n\
                 {time} {who} < {what} result={}",
                n % 41 / 40
            )
        }
        _ => unreachable!("no call has the number {what}"),
    }
}

/// A trace that may make little sense.
fn any_script() -> impl Strategy<Value = String> {
    let lines = prop::collection::vec((0u64..400, 0usize..6, 0usize..26, 0u64..300), 0..60);
    lines.prop_map(|mut lines| {
        lines.sort_by_key(|line| line.0);
        let mut script = String::from(
            "0 1.1 * device device=1 handle=0xd name=\"Toy GPU\" uuid=\"0-1\"\n\
             0 1.1 * queue queue=1 handle=0x10 device=1 api=\"toy\"\n\
             0 2.5 * queue queue=2 handle=0x10 device=7 api=\"zone\"\n\
             0 1.1 * function function=1 name=\"_Z4stepPf\"\n\
             0 9.9 ^ device device=1 index=0 uuid=\"GPU-0-1\" name=\"Toy GPU\"\n",
        );
        for (time, who, what, n) in lines {
            let who = ["1.1", "1.2", "2.1", "2.5", "1.1@ring", "2.5@ring"][who];
            // A file is of one API.
            let who = if what < 4 { who } else { who.trim_end_matches("@ring") };
            let line = any_line(time, who, what, n);
            script += &format!("{time} {line}\n");
            if n % 41 == 7 && who.contains('@') {
                script += "lose 1 ring\npacket ring\n";
            }
        }
        script
    })
}

thread_local! {
    static CASES: Cell<u32> = const { Cell::new(0) };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// However little sense a trace makes, the archive does; `otf2-print` takes each fourth.
    #[test]
    fn any_trace_makes_a_sound_archive(
        script in any_script(),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        let harm = |bytes: &mut Vec<u8>| for (at, byte) in &damage {
            let at = at.checked_rem(bytes.len()).unwrap_or(0);
            if let Some(place) = bytes.get_mut(at) {
                *place = *byte;
            }
        };
        export(&common::build_with(common::models(), &script, harm), &out);
        if CASES.replace(CASES.get() + 1).is_multiple_of(4) {
            printed(&out);
        }
    }
}
