//! How fast a long trace is read. `cargo test --release -p hetrace-report --test speed -- --ignored --nocapture`

mod common;

use std::time::Instant;

use hetrace_report::{print, tally, timeline};

/// Calls of each of the threads.
const CALLS: u64 = 1_000_000;
const THREADS: u64 = 4;

fn timed<T>(what: &str, events: u64, work: impl FnOnce() -> T) -> T {
    let before = Instant::now();
    let result = work();
    let ns = before.elapsed().as_nanos() as f64;
    println!("{what}: {:.1} ns per event", ns / events as f64);
    result
}

#[test]
#[ignore = "takes a while"]
fn speed() {
    let trace = common::long(common::models(), THREADS, CALLS);
    let events = THREADS * CALLS * 2;
    let mut cursor = trace.cursor();
    let mut seen = 0;
    timed("merge alone", events, || {
        while cursor.next_item().is_some() {
            seen += 1;
        }
    });
    assert_eq!(seen, events);
    for stream in trace.ctf().streams() {
        let mut stream = stream;
        timed("one stream alone", CALLS * 2, || while stream.next_event().is_some() {});
    }
    let tally = timed("tally", events, || tally::tally(&trace, &tally::Options::default()));
    assert_eq!(tally.host.iter().map(|r| r.calls).sum::<u64>(), THREADS * CALLS);
    let mut toy = common::models();
    toy.retain(|m| m.api == "toy");
    let alone = common::long(toy, THREADS, CALLS);
    timed("tally of one API", events, || tally::tally(&alone, &tally::Options::default()));
    let mut sink = std::io::sink();
    timed("print", events, || print::print(&trace, &print::Options::default(), &mut sink).expect("a sink"));
    let options = timeline::Options::default();
    timed("timeline", events, || timeline::timeline(&trace, &options, &mut sink).expect("a sink"));
    let options = timeline::Options { arguments: false, ..timeline::Options::default() };
    timed("timeline without arguments", events, || {
        timeline::timeline(&trace, &options, &mut sink).expect("a sink")
    });
}
