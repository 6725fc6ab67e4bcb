//! Cutting traces, compared with what a simple reading of the rules says.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use common::calls::{self, Step};
use common::{babeltrace, events, files, go_on};
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Merge, Trace};
use hetrace_edit::{Error, Form, PackOptions, Window, pack, trim};
use hetrace_trace::spans::{Visitor, walk};
use proptest::prelude::*;

/// What the rules say is in a window, with all that an event says.
fn expected(path: &Path, window: &Window) -> BTreeSet<String> {
    let trace = Trace::open(path).unwrap();
    let mut merge = Merge::new(&trace);
    let mut first = None;
    let mut all = BTreeSet::new();
    let mut open: BTreeMap<(i64, i64), Vec<(String, String)>> = BTreeMap::new();
    let mut began = false;
    let has = |wanted: &[i64], id: i64| wanted.is_empty() || wanted.contains(&id);
    while let Some(event) = merge.next_event() {
        let event = event.unwrap();
        let time = event.timestamp().unwrap();
        let since = time - *first.get_or_insert(time);
        let (from, to) = (window.from.unwrap_or(0), window.to.unwrap_or(u64::MAX));
        let id = |name| event.get_in(Scope::PacketContext, name).unwrap().as_i64().unwrap();
        let (pid, tid) = (id("vpid"), id("vtid"));
        let name = event.class().name.as_str();
        let chosen = has(&window.pids, pid) && has(&window.tids, tid);
        if since >= from && !began {
            began = true;
            for calls in open.values() {
                all.extend(calls.iter().map(|(_, line)| line.clone()));
            }
        }
        let number = |field| event.get(field).and_then(|v| v.as_i64());
        if event.stream_name().contains("names") {
            all.insert(common::line(&event));
        } else if name.starts_with("device:") {
            let runs = since < from && since as i64 + number("duration").unwrap() > from as i64;
            let thread = has(&window.pids, pid) && has(&window.tids, number("cause_tid").unwrap());
            if (since >= from && since < to || runs) && thread {
                all.insert(common::line(&event));
            }
        } else if name.ends_with("error_text") {
            if since < to {
                all.insert(common::line(&event));
            }
        } else {
            if since >= from && since < to && chosen {
                all.insert(common::line(&event));
            }
            if chosen && since < from {
                let stack = open.entry((pid, tid)).or_default();
                match name.strip_suffix("_entry") {
                    Some(function) => stack.push((function.to_owned(), common::line(&event))),
                    None => {
                        let function = name.strip_suffix("_exit").unwrap();
                        assert_eq!(stack.pop().unwrap().0, function);
                    }
                }
            }
        }
    }
    if !began {
        for calls in open.into_values() {
            all.extend(calls.into_iter().map(|(_, line)| line));
        }
    }
    all
}

fn window(from: Option<u64>, to: Option<u64>) -> Window {
    Window { from, to, ..Window::default() }
}

fn set(path: &Path) -> BTreeSet<String> {
    let all = events(path);
    let set: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!(set.len(), all.len(), "an event is there twice");
    set
}

fn a_few() -> Vec<Step> {
    (0..200).map(|n| Step { thread: n % 4, wait: 1000 + u64::from(n) * 37, deeper: n % 3 != 2 }).collect()
}

#[test]
fn whether_anything_was_chosen_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from");
    calls::write(&from, &a_few(), 7);
    for (at, (window, matched)) in [
        (Window::default(), true),
        (Window { pids: vec![999_999], ..Window::default() }, false),
        (Window { apis: vec!["nosuch".to_owned()], ..Window::default() }, false),
        (window(None, Some(0)), false),
    ]
    .into_iter()
    .enumerate()
    {
        let done = trim(&from, &dir.path().join(format!("to-{at}")), &window, Form::Plain, &go_on).unwrap();
        assert_eq!(done.matched, matched, "{window:?}");
    }
}

/// A report of a part is of the part's time, though it has calls and definitions from before.
#[test]
fn a_part_is_as_long_as_its_window() {
    struct Nothing;
    impl Visitor for Nothing {
        type Break = ();
    }
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    calls::write(&trace, &a_few(), 7);
    let duration = |path: &Path| {
        let trace = hetrace_trace::trace::Trace::open(path).unwrap();
        let ControlFlow::Continue(summary) = walk(&trace, &mut Nothing) else { panic!("nothing stops it") };
        summary.duration()
    };
    let whole = duration(&trace);
    let (part, inner) = (dir.path().join("part"), dir.path().join("inner"));
    trim(&trace, &part, &window(Some(100_000), None), Form::Plain, &go_on).unwrap();
    assert_eq!(duration(&part), whole - 100_000);
    // Of a part of a part, what begins last counts; its times are since the part's first event. Commands may end
    // behind it.
    trim(&part, &inner, &window(Some(200_000), Some(300_000)), Form::Plain, &go_on).unwrap();
    assert!((1..=whole - 200_000).contains(&duration(&inner)), "{}", duration(&inner));
}

#[test]
fn a_window_has_what_is_in_it_and_what_that_needs() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    calls::write(&trace, &a_few(), 7);
    let all = set(&trace).len();
    for (index, (from, to)) in [(0, 50_000), (100_000, 300_000), (300_001, 300_002)].into_iter().enumerate() {
        let part = dir.path().join(format!("part-{index}"));
        let window = window(Some(from), Some(to));
        let done = trim(&trace, &part, &window, Form::Plain, &go_on).unwrap();
        let events = set(&part);
        assert_eq!(events, expected(&trace, &window));
        assert!(!events.is_empty() && events.len() < all);
        assert_eq!(done.problems, [""; 0]);
        let manifest = fs::read_to_string(part.join("hetrace/manifest.json")).unwrap();
        assert!(manifest.contains("\"of\":\"trace\"") && manifest.contains("\"from_ns\""), "{manifest}");
        let Some(lines) = babeltrace(&part) else { continue };
        assert_eq!(lines.len(), events.len());
        let whole: BTreeSet<_> = babeltrace(&trace).unwrap().into_iter().collect();
        assert!(lines.iter().all(|line| whole.contains(line)));
    }
}

#[test]
fn insides_of_kernels_are_left_out_and_that_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, part) = (dir.path().join("whole"), dir.path().join("part"));
    calls::write(&whole, &a_few(), 7);
    fs::create_dir(whole.join("inside")).unwrap();
    fs::write(whole.join("inside/7-0.pool"), "").unwrap();
    trim(&whole, &part, &window(Some(0), None), Form::Plain, &go_on).unwrap();
    let manifest = fs::read_to_string(part.join("hetrace/manifest.json")).unwrap();
    assert!(manifest.contains("inside of kernels: left out") && !part.join("inside").exists(), "{manifest}");
}

#[test]
fn threads_and_apis_are_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    calls::write(&trace, &a_few(), 7);
    let chosen = Window { pids: vec![1], tids: vec![11], ..window(Some(100_000), Some(900_000)) };
    let part = dir.path().join("part");
    trim(&trace, &part, &chosen, Form::Plain, &go_on).unwrap();
    let events = set(&part);
    assert_eq!(events, expected(&trace, &chosen));
    assert!(
        events.iter().any(|e| e.contains("device:kernel")) && events.iter().any(|e| e.contains("_entry"))
    );
    // Of an API that is not there, only what defines and commands of unknown queues is.
    let none = dir.path().join("none");
    trim(&trace, &none, &Window { apis: vec!["other".into()], ..Window::default() }, Form::Plain, &go_on)
        .unwrap();
    assert!(set(&none).iter().all(|e| e.contains("names") || e.contains("error_text")));
    let toy = dir.path().join("toy");
    trim(&trace, &toy, &Window { apis: vec!["toy".into()], ..Window::default() }, Form::Plain, &go_on)
        .unwrap();
    assert_eq!(set(&toy), set(&trace));
}

#[test]
fn losses_in_the_window_stay() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, part) = (dir.path().join("trace"), dir.path().join("part"));
    fs::create_dir(&trace).unwrap();
    fs::write(trace.join("metadata"), hetrace_ctf::tsdl::print(&common::demo::class())).unwrap();
    // One event is lost before each of 20 packets, which are a millisecond long; the
    // twelfth packet is missing.
    let stream = common::long(20, 100);
    let size = stream.len() / 20;
    fs::write(trace.join("s"), [&stream[..11 * size], &stream[12 * size..]].concat()).unwrap();
    trim(&trace, &part, &window(Some(4_000_500), Some(15_000_500)), Form::Plain, &go_on).unwrap();
    let trace = Trace::open(&part).unwrap();
    let mut merge = Merge::new(&trace);
    let mut packets = BTreeSet::new();
    while let Some(event) = merge.next_event() {
        packets.insert(event.unwrap().packet().seq_num.unwrap());
    }
    assert_eq!(packets, (4..=15).filter(|n| *n != 11).collect());
    assert_eq!((merge.losses().packets, merge.losses().damaged), (1, 0));
    // Of packets 4 to 15.
    assert_eq!(merge.losses().events, 12);
}

#[test]
fn a_call_whose_exit_was_lost_is_not_open() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, part) = (dir.path().join("trace"), dir.path().join("part"));
    // Calls of one thread, one after the other, each event in a packet of its own: an error's text, entry, exit, ...
    let steps = |n: u32| Step { thread: 0, wait: 1000, deeper: n.is_multiple_of(2) };
    calls::write(&trace, &(0..12).map(steps).collect::<Vec<_>>(), 1);
    let path = trace.join("toy-0");
    let stream = fs::read(&path).unwrap();
    let size = stream.len() / 13;
    fs::write(&path, [&stream[..2 * size], &stream[3 * size..]].concat()).unwrap();
    // The first exit is missing. The third call begins at 4000 and is open at 4500.
    let done = trim(&trace, &part, &window(Some(4500), None), Form::Plain, &go_on).unwrap();
    assert_eq!(done.problems, [""; 0]);
    let calls = events(&part);
    let entries: Vec<_> = calls.iter().filter(|e| e.contains("_entry")).collect();
    assert_eq!(entries.len(), 4, "{entries:?}");
}

#[test]
fn lttng_traces_can_be_cut() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/data/lttng-ust");
    let dir = tempfile::tempdir().unwrap();
    let whole = dir.path().join("whole");
    trim(&data, &whole, &Window::default(), Form::Plain, &go_on).unwrap();
    let all = events(&data);
    assert_eq!(events(&whole), all);
    // From the middle event to the end, and the rest: every event is in one of them.
    let trace = Trace::open(&data).unwrap();
    let mut merge = Merge::new(&trace);
    let mut times = Vec::new();
    while let Some(event) = merge.next_event() {
        times.push(event.unwrap().ns_from_origin().unwrap());
    }
    let middle = (times[times.len() / 2] - times[0]) as u64;
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    trim(&data, &a, &window(None, Some(middle)), Form::Plain, &go_on).unwrap();
    trim(&data, &b, &window(Some(middle), None), Form::Plain, &go_on).unwrap();
    let (first, second) = (set(&a), set(&b));
    assert!(!first.is_empty() && !second.is_empty());
    assert_eq!(first.union(&second).cloned().collect::<BTreeSet<_>>(), all.into_iter().collect());
    let Some(lines) = babeltrace(&b) else { return };
    assert_eq!(lines.len(), second.len());
}

#[test]
fn other_forms_can_be_cut() {
    // Bit fields in awkward places, both byte orders.
    for name in ["barectf/trace-le", "barectf/trace-be", "ctf2", "perf"] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/data").join(name);
        let dir = tempfile::tempdir().unwrap();
        let trace = Trace::open(&data).unwrap();
        let mut merge = Merge::new(&trace);
        let (mut times, mut lines) = (Vec::new(), BTreeMap::new());
        while let Some(event) = merge.next_event() {
            let Ok(event) = event else { continue };
            let time = event.ns_from_origin();
            times.extend(time);
            *lines.entry((time, common::line(&event))).or_insert(0) += 1;
        }
        assert!(times.len() > 2, "{name}");
        let middle = times[times.len() / 2];
        let part = dir.path().join("part");
        match trim(&data, &part, &window(Some((middle - times[0]) as u64), None), Form::Plain, &go_on) {
            Err(Error::Refused { .. }) => eprintln!("{name}: refused"),
            done => {
                done.unwrap();
                lines.retain(|(time, _), _| time.is_none_or(|time| time >= middle));
                let trace = Trace::open(&part).unwrap();
                let mut merge = Merge::new(&trace);
                let mut found = BTreeMap::new();
                while let Some(event) = merge.next_event() {
                    let event = event.unwrap();
                    *found.entry((event.ns_from_origin(), common::line(&event))).or_insert(0) += 1;
                }
                assert_eq!(found, lines, "{name}");
            }
        }
    }
}

#[test]
fn nothing_is_left_of_what_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, part) = (dir.path().join("trace"), dir.path().join("part"));
    calls::write(&trace, &a_few(), 7);
    let stop = |_| ControlFlow::Break(());
    assert!(matches!(trim(&trace, &part, &Window::default(), Form::Plain, &stop), Err(Error::Stopped)));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert!(matches!(
        trim(&trace, &trace, &Window::default(), Form::Plain, &go_on),
        Err(Error::Exists { .. })
    ));
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Now and then longer than the clock of an event's header goes.
    let wait = prop_oneof![9 => 0u64..2000, 1 => 0u64..6_000_000_000];
    let step =
        (0u32..4, wait, any::<bool>()).prop_map(|(thread, wait, deeper)| Step { thread, wait, deeper });
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn parts_make_the_whole(
        steps in steps(),
        packet in 1u64..9,
        cuts in [0.0..1.2f64, 0.0..1.2, 0.0..1.2],
        packed in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut trace = dir.path().join("trace");
        calls::write(&trace, &steps, packet);
        let before = files(&trace);
        if packed {
            let file = dir.path().join("trace.tar");
            pack(&trace, &file, &PackOptions::default(), &go_on).unwrap();
            trace = file;
        }
        let all = set(&trace);
        // Nothing cut: the same bytes.
        let whole = dir.path().join("whole");
        trim(&trace, &whole, &Window::default(), Form::Plain, &go_on).unwrap();
        let mut after = files(&whole);
        after.remove("hetrace/manifest.json");
        prop_assert_eq!(&after, &before);
        prop_assert_eq!(&set(&whole), &all);

        let length: u64 = steps.iter().map(|s| s.wait).sum();
        let mut cuts = cuts.map(|cut| (cut * length as f64) as u64);
        cuts.sort();
        let [a, b, c] = cuts;
        let part = |name: &str, from, to| {
            let path = dir.path().join(name);
            let window = window(Some(from), Some(to));
            trim(&trace, &path, &window, Form::Plain, &go_on).unwrap();
            let part = set(&path);
            assert_eq!(part, expected(&trace, &window));
            part
        };
        let (ab, bc, ac) = (part("ab", a, b), part("bc", b, c), part("ac", a, c));
        let union: BTreeSet<_> = ab.union(&bc).cloned().collect();
        prop_assert_eq!(union, ac);
    }
}

/// Compressed streams have the same events, in frames of about a megabyte.
#[test]
fn streams_can_be_compressed() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, plain, packed) =
        (dir.path().join("trace"), dir.path().join("plain"), dir.path().join("packed"));
    common::write(&trace, &[(1, 3)]);
    fs::write(trace.join("s-1"), common::long(60, 1000)).unwrap();
    let all = trim(&trace, &plain, &Window::default(), Form::Plain, &go_on).unwrap();
    let done = trim(&trace, &packed, &Window::default(), Form::Compressed, &go_on).unwrap();
    assert!(done.bytes < all.bytes / 2, "{} of {} bytes", done.bytes, all.bytes);
    assert_eq!(events(&packed), events(&trace));
    let (plain, packed) = (files(&plain), files(&packed));
    for name in ["s-0", "s-1"] {
        let bytes = zstd::decode_all(&packed[&format!("{name}.zst")][..]).unwrap();
        assert!(bytes == plain[name], "{name}");
    }
    let frames = packed["s-1.zst"].windows(4).filter(|w| *w == 0xfd2f_b528_u32.to_le_bytes()).count();
    let least = plain["s-1"].len() >> 20;
    assert!(least > 1 && frames > least, "{frames} frames of {} bytes", plain["s-1"].len());
}
