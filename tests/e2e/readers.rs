//! Independent readers open what we write.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use hetrace_ctf::read::Trace;
use hetrace_tests::bed::run;
use hetrace_tests::{Platform, hetrace, trace, trace_with};

/// Events that babeltrace2 prints, which must have nothing to complain about.
fn babeltrace(folder: &Path) -> String {
    let done = run(Command::new("babeltrace2").arg(folder));
    assert_eq!(done.status, 0, "{}", done.err);
    assert_eq!(done.err, "", "babeltrace2 has something to say");
    done.out
}

#[test]
fn babeltrace2_reads_every_event_without_a_warning() {
    for program in [
        &["linked", "50"][..],
        &["queues"],
        &["kernels"],
        &["transparent"],
        &["threads"],
        &["polls", "kernel", "1000"],
    ] {
        let traced = trace(Platform::Both, program);
        let out = babeltrace(&traced.folder);
        assert_eq!(out.lines().count() as u64, traced.seen().events, "{program:?}");
    }
}

/// Names of the events in a trace's streams, and of those in its metadata, both sorted.
fn events(folder: &Path) -> (Vec<String>, Vec<String>) {
    let trace = Trace::open(folder).expect("a trace");
    let declared = trace.class().streams.iter().flat_map(|s| &s.events).map(|e| e.name.clone());
    let (mut there, mut declared) = (BTreeSet::new(), declared.collect::<Vec<_>>());
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            there.insert(event.expect("an event").class().name.clone());
        }
    }
    declared.sort();
    (there.into_iter().collect(), declared)
}

#[test]
fn a_trace_describes_what_it_contains() {
    // All libraries are preloaded, whether the machine has their APIs or not.
    let traced = trace_with(Platform::Pocl, &["--interpose", "preload"], &["linked", "1"]);
    let (there, declared) = events(&traced.folder);
    assert!(there.contains(&"opencl:clFinish_exit".to_owned()), "{there:?}");
    assert_eq!(declared, there);
    let models = std::fs::read_dir(traced.folder.join("hetrace/model")).expect("models");
    let models: Vec<_> = models.map(|entry| entry.expect("a file").file_name()).collect();
    assert_eq!(models, ["opencl.json"]);
}

#[test]
fn merged_traces_have_the_events_of_all() {
    let one = trace(Platform::Pocl, &["linked", "1"]);
    let other = trace(Platform::Pocl, &["polls", "user", "50"]);
    let scratch = tempfile::tempdir().expect("scratch");
    let merged = scratch.path().join("merged");
    let done =
        run(Command::new(hetrace()).arg("merge").args([&one.folder, &other.folder]).arg("-o").arg(&merged));
    assert_eq!(done.status, 0, "{}", done.err);
    assert_eq!(babeltrace(&merged).lines().count() as u64, one.seen().events + other.seen().events);
    let mut all = [events(&one.folder).0, events(&other.folder).0].concat();
    all.sort();
    all.dedup();
    // Each event once, as they are of one API in both.
    assert_eq!(events(&merged), (all.clone(), all));
}

#[test]
fn names_and_values_are_readable() {
    let out = babeltrace(&trace(Platform::Pocl, &["linked", "1"]).folder);
    for part in [
        "opencl:clSetKernelArg_entry:",
        "arg_index = 0",
        "opencl:clEnqueueNDRangeKernel_entry:",
        "global_work_size = [",
        "result = ( \"CL_SUCCESS\" : container = 0 )",
        "procname = \"linked\"",
        "device:kernel:",
        "device:read:",
    ] {
        assert!(out.contains(part), "no `{part}` in\n{}", &out[..out.len().min(3000)]);
    }
}

#[test]
fn compressed_streams_are_plain_streams_to_zstd() {
    let traced = trace_with(Platform::Pocl, &["--compress"], &["linked", "200"]);
    let ours = traced.seen().events;
    for entry in std::fs::read_dir(&traced.folder).expect("a trace") {
        let path = entry.expect("a file").path();
        if path.extension().is_some_and(|e| e == "zst") {
            let done = run(Command::new("zstd").args(["-q", "-d", "--rm"]).arg(&path));
            assert_eq!(done.status, 0, "{}", done.err);
        }
    }
    assert_eq!(babeltrace(&traced.folder).lines().count() as u64, ours);
}
