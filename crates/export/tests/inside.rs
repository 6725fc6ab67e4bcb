//! Insides of kernels as a trace of its own: that readers read it, and what is in it.

#[path = "../../report/tests/common/mod.rs"]
mod common;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::process::Command;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::EnvValue;
use hetrace_ctf::read::{Merge, Trace};
use hetrace_export::Error;
use hetrace_export::inside::write;
use hetrace_trace::inside::Described;

#[test]
fn each_multiprocessor_has_a_stream_on_the_hosts_clock() {
    let trace = common::inside::trace();
    let folder = tempfile::tempdir().expect("a folder");
    let written = write(&trace, folder.path(), &|_| ControlFlow::Continue(())).expect("written");
    // Two launches of eight warps with six entries each, of which seven were lost.
    assert_eq!((written.events, written.unplaced), (2 * 48 - 7, 0));
    let back = Trace::open(folder.path()).expect("a trace");
    assert_eq!((back.stream_count(), back.class().env("inside_version")), (2, Some(&EnvValue::Int(1))));
    assert_eq!(back.class().clocks, trace.ctf().class().clocks);
    assert_ne!(back.class().uuid, trace.ctf().class().uuid);
    // The graph and the sites are in the metadata.
    let Some(EnvValue::Str(json)) = back.class().env("inside_kernel_4096") else {
        panic!("{:?}", back.class().env)
    };
    let kernel: Described = serde_json::from_str(json).expect("a kernel");
    assert_eq!(Some(&kernel), trace.inside().and_then(|inside| inside.kernels.get(&4096)));
    let (mut kinds, mut first) = (BTreeMap::new(), None);
    let mut events = Merge::new(&back);
    while let Some(event) = events.next_event() {
        let event = event.expect("an event");
        *kinds.entry(event.class().name.clone()).or_insert(0) += 1;
        let number = |name: &str| event.get(name).and_then(Scalar::as_u64);
        if event.class().name == "inside:sum" {
            assert_eq!(
                (number("repeats"), number("basic_block"), number("site")),
                (Some(40), Some(1), Some(0))
            );
            assert_eq!((number("lanes"), number("taken")), (Some(0xff), Some(0xff)));
        }
        first.get_or_insert((number("grid"), number("kernel"), number("block_x"), number("warp")));
    }
    assert_eq!(first, Some((Some(1), Some(4096), Some(0), Some(0))));
    let count = |name: &str| kinds.get(name).copied().unwrap_or(0);
    assert_eq!(
        (count("inside:begin"), count("inside:sum"), count("inside:branch"), count("inside:end")),
        (16, 15, 30, 28)
    );
}

#[test]
fn babeltrace2_reads_it() {
    let trace = common::inside::trace();
    let folder = tempfile::tempdir().expect("a folder");
    write(&trace, folder.path(), &|_| ControlFlow::Continue(())).expect("written");
    let Ok(done) = Command::new("babeltrace2").arg(folder.path()).output() else {
        eprintln!("skipped: babeltrace2 is not installed");
        return;
    };
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && err.is_empty(), "{err}");
    assert_eq!(out.lines().count(), 2 * 48 - 7);
    assert!(out.lines().next().is_some_and(|line| line.contains("inside:begin")), "{out}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("nowhere");
    let written = write(&common::inside::trace(), &missing, &|_| ControlFlow::Continue(()));
    assert!(matches!(written, Err(Error::Io { .. })));
}
