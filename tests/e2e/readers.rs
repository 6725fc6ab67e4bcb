//! Independent readers open what we write.

use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::{Platform, trace, trace_with};

/// Events that babeltrace2 prints, which must have nothing to complain about.
fn babeltrace(folder: &std::path::Path) -> String {
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
