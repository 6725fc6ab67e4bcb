//! Together with LTTng: the same program traced by both at once, read as one.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{program, run};
use hetrace_tests::hetrace;

/// An LTTng-UST interposer (`bench/lttng-peer`) is preloaded, so it sees each
/// call before we, the layer below it, do, and its end after us. In a merged
/// trace with a true common time line the four events of a call stand so.
#[test]
#[ignore = "needs install-deps.sh --full"]
fn events_of_both_tracers_nest_in_true_order() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the root");
    let peer = root.join("bench/lttng-peer");
    let made = run(Command::new("make").arg("-s").arg("-C").arg(&peer));
    assert_eq!(made.status, 0, "{}\nrun scripts/install-deps.sh --full", made.err);
    let scratch = tempfile::tempdir().expect("scratch");
    let (theirs, ours) = (scratch.path().join("lttng"), scratch.path().join("hetrace"));
    let done = run(Command::new(peer.join("run.sh"))
        .args(["-m", "on", "-o"])
        .arg(&theirs)
        .arg(hetrace())
        .args(["run", "-q", "-o"])
        .arg(&ours)
        .arg("--")
        .arg(program("linked"))
        .arg("50"));
    assert_eq!(done.status, 0, "{}", done.err);
    let merged = run(Command::new("babeltrace2").args([&theirs, &ours]));
    assert_eq!((merged.status, merged.err.as_str()), (0, ""));
    let finishes: Vec<&str> = merged.out.lines().filter(|l| l.contains("clFinish")).collect();
    assert_eq!(finishes.len(), 4 * 50);
    for call in finishes.chunks(4) {
        let ours: Vec<bool> = call.iter().map(|l| l.contains("opencl:")).collect();
        assert_eq!(ours, [false, true, true, false], "{call:#?}");
    }
}
