//! Thousands of streams take a time that grows with their number, and not with its square.

mod common;

use std::fmt::Write;
use std::time::Duration;

use hetrace_report::tally::{Options, Query, Reading, aggregate};
use hetrace_trace::trace::{Exit, Manifest, Trace};
use rustix::time::{ClockId, clock_gettime};

/// So many copies of one stream, as of a folder in which somebody has copied it.
fn copies(number: usize) -> Trace {
    let mut script = String::new();
    for call in 0..40 {
        // One call inside of another, so that calls of all streams are open at a time.
        let at = 100 * call + 100;
        for (time, what) in [(0, "> toyFinish queue=0x1"), (10, "> toyFree address=0x1"), (20, "< toyFree")] {
            writeln!(script, "{} 1.1 {what}", at + time).expect("a text");
        }
        writeln!(script, "{} 1.1 < toyFinish result=0", at + 30).expect("a text");
    }
    let models = common::models_of(&script);
    let (class, files) = common::parts(&models, &script);
    let (name, bytes) = files.first().expect("a stream");
    let files = (0..number).map(|n| (format!("{name}-{n:05}"), bytes.clone())).collect();
    let ctf = hetrace_ctf::read::Trace::from_class(class, files).expect("a trace");
    let manifest = Manifest { schema: 2, exit: Some(Exit::Code(0)), ..Manifest::default() };
    Trace::new(ctf, models, manifest)
}

/// Processor time of a tally, which what else the machine does is not in. One slice is done by the
/// calling thread.
fn cost(trace: &Trace, reading: Reading) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let before = now();
    let query = Query { reading, ..Query::default() };
    let tally = aggregate(trace, &Options::default(), &query).expect("nobody stops it").tally();
    assert!(tally.host.iter().map(|row| row.calls).sum::<u64>() > 0);
    now() - before
}

#[test]
fn copies_of_a_stream_take_linear_time() {
    const FACTOR: u32 = 10;
    let (few, many) = (copies(200), copies(200 * FACTOR as usize));
    for reading in [Reading::Fastest, Reading::InOrder] {
        let few = (0..3).map(|_| cost(&few, reading)).min().expect("three");
        let many = cost(&many, reading);
        // With its square it would be 100 times as much.
        assert!(many < few * 4 * FACTOR, "{reading:?}: {few:?} and {many:?}");
    }
}
