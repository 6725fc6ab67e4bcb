//! Insides of kernels in all reports, side by side: `golden_inside/kernel.txt` is a script of the host's side and what is made of
//! it, together with the records of `common/inside.rs`. `BLESS=1` writes the reports anew; read the difference before you believe it.

mod common;

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;

use common::inside::recording;
use hetrace_report::print::{Filter, print_inside};
use hetrace_report::tally::{InsideRows, Query, Tally, TextOptions, roofs_of};
use hetrace_report::{print, tally, timeline, why};
use hetrace_trace::inside::Inside;
use hetrace_trace::trace::Trace;

fn script() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_inside/kernel.txt");
    let text = std::fs::read_to_string(&path).expect("readable");
    (path, text)
}

fn trace() -> Trace {
    common::inside::trace()
}

fn tallied(trace: &Trace) -> Tally {
    let all = tally::tally(trace, &tally::Options::default());
    let rows = InsideRows::of(&Inside::of(&recording()), &Query::default(), roofs_of(trace));
    Tally { inside: Some(rows.compared(&all.device)), ..all }
}

fn drawn(trace: &Trace, options: &timeline::Options) -> Vec<u8> {
    let mut bytes = Vec::new();
    timeline::timeline(trace, options, &mut bytes).expect("memory takes it");
    bytes
}

fn printed(trace: &Trace, filter: &Filter) -> String {
    let mut out = Vec::new();
    let go_on = |_| ControlFlow::Continue(());
    print_inside(trace, &print::Options::default(), filter, &go_on, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

#[test]
fn reports_show_what_is_inside() {
    let (path, text) = script();
    let script = text.split("\n== ").next().unwrap_or("");
    let trace = trace();
    let why = why::why(&trace, &why::Options::default());
    let json = serde_json::to_string_pretty(&why.inside).expect("JSON");
    let tally = tallied(&trace).render(&TextOptions::default());
    let from = tally.find("Inside spin").expect("the kernel");
    let mut made = script.trim_end().to_owned();
    for (name, report) in [
        ("tally --inside", &tally[from..]),
        ("why", &why.render(&why::TextOptions::default())),
        ("why --json", &(json + "\n")),
        ("print --inside", &printed(&trace, &Filter::default())),
        ("timeline", &common::perfetto::read(&drawn(&trace, &timeline::Options::default()))),
    ] {
        let _ = write!(made, "\n\n== {name}\n{}", report.trim_end());
    }
    made.push('\n');
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &made).expect("writable");
    } else {
        assert_eq!(made, text, "BLESS=1 to accept");
    }
}

/// No more lanes than a warp has, in each block and over all of them.
#[test]
fn lost_ends_leave_no_more_lanes_active_than_there_are() {
    let tables = tallied(&trace());
    let row = &tables.inside.as_ref().expect("rows").kernels[0];
    assert!(row.ended < row.begun, "{row:?}");
    assert!(row.active.is_some_and(|active| active <= 1.0), "{:?}", row.active);
    assert!(row.blocks.iter().all(|block| block.lanes <= 32 * block.visits), "{:?}", row.blocks);
}

#[test]
fn printed_records_are_those_that_are_asked_for() {
    let trace = trace();
    let all = printed(&trace, &Filter::default());
    let lines = |filter: Filter| printed(&trace, &filter).lines().count();
    // Eight warps with six entries each; of the second launch five are lost.
    assert_eq!(all.lines().count(), 2 * 48 - 2 - 5, "{all}");
    assert_eq!(lines(Filter { names: vec!["spin".to_owned()], ..Filter::default() }), all.lines().count());
    assert_eq!(lines(Filter { names: vec!["gemm*".to_owned()], ..Filter::default() }), 0);
    assert_eq!(lines(Filter { pids: vec![8], ..Filter::default() }), 0);
    assert_eq!(lines(Filter { to: Some(2_000_000), ..Filter::default() }), 48);
}

/// Thread blocks and warps on rows of their multiprocessors, within their kernel; no more of them than was asked for.
#[test]
fn a_timeline_is_bounded_and_says_what_it_left_out() {
    let trace = trace();
    let slices = |slices: u64| {
        let options = timeline::Options { inside_slices: slices, ..timeline::Options::default() };
        let drawing = common::perfetto::parse(&drawn(&trace, &options));
        common::perfetto::check(&drawing);
        let of = |word: &str| -> std::collections::HashSet<u64> {
            drawing.tracks().filter(|track| track.name.contains(word)).map(|track| track.uuid).collect()
        };
        let (rows, all) = (of("SM "), of("inside kernels"));
        let begun = drawing.events().filter(|event| event.kind == 1 && rows.contains(&event.track));
        let said: Vec<String> = drawing
            .events()
            .filter(|event| all.contains(&event.track))
            .map(|event| event.name.clone())
            .collect();
        (begun.count(), said)
    };
    assert_eq!(slices(1_000), (2 * (4 + 8), vec![]));
    let (number, said) = slices(7);
    assert_eq!(number, 7);
    assert_eq!(
        said,
        ["inside:0 thread blocks and 5 warps not drawn", "inside:4 thread blocks and 8 warps not drawn"]
    );
    let unasked = common::build(script().1.split("\n== ").next().unwrap_or(""));
    assert!(
        !common::perfetto::read(&drawn(&unasked, &timeline::Options::default())).contains("inside kernels")
    );
}

/// A window begins and ends within a launch.
#[test]
fn a_window_has_what_is_open_in_it() {
    let trace = trace();
    let options =
        timeline::Options { from: Some(1_030_000), to: Some(1_050_000), ..timeline::Options::default() };
    let drawing = common::perfetto::parse(&drawn(&trace, &options));
    common::perfetto::check(&drawing);
    let rows: Vec<u64> = drawing.tracks().filter(|t| t.name.contains("SM ")).map(|t| t.uuid).collect();
    assert!(!rows.is_empty());
    let on_rows = drawing.events().filter(|event| rows.contains(&event.track));
    let times: Vec<u64> = on_rows.map(|event| event.time).collect();
    assert!(times.iter().all(|time| (1_030_000..=1_050_000).contains(time)), "{times:?}");
}
