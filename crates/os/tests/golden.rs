//! The trace on disk: metadata as text, and events as this project's own reader gives them.
//! `BLESS=1` writes what is expected anew.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hetrace_ctf::class::{ClockClass, Scope};
use hetrace_ctf::read::{Merge, Part, Trace as Reader};
use hetrace_os::catalog::{TRACEPOINTS, Tracepoint};
use hetrace_os::event::{Event, Source};
use hetrace_os::form::{Environment, trace_class};
use hetrace_os::layout::Layout;
use hetrace_os::perf::record::Who;
use hetrace_os::stream::{Target, Trace};
use hetrace_os::{dump, own};

/// The descriptions of two tracepoints of Linux 6.18.
const SWITCH: &str = include_str!("golden/sched_switch.format");
const FORK: &str = include_str!("golden/sched_process_fork.format");

fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, found).expect("a golden file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{name} differs; BLESS=1 writes it anew");
}

fn begin(folder: &Path) -> Trace {
    let clock = ClockClass {
        uuid: Some([7; 16]),
        description: Some("Monotonic Clock".to_owned()),
        absolute: true,
        offset_seconds: 1_700_000_000,
        ..ClockClass::new("monotonic", 1_000_000_000)
    };
    let environment = Environment {
        host: "host".to_owned(),
        release: "6.18.0".to_owned(),
        version: "#1 SMP".to_owned(),
        recorded_by: "hetrace 0".to_owned(),
        recorded_with: "tracepoints".to_owned(),
        scope: "tree".to_owned(),
    };
    let class = trace_class([9; 16], clock, &environment);
    let make = Arc::new(|path: &Path| File::create_new(path));
    let to = Target {
        part: folder.join(Part::FILE).exists().then_some(1),
        ..Target::new(folder.into(), make, false)
    };
    Trace::begin(to, &class, &[0, 3, 4], 500).expect("a trace")
}

fn tracepoint(name: &str) -> &'static Tracepoint {
    TRACEPOINTS.iter().find(|t| t.name == name).expect("a tracepoint")
}

fn event(layout: &str, name: &str) -> Event {
    let of = tracepoint(name);
    Event::new(of.event, &Layout::parse(layout).expect("a layout"), of.renamed, of.added)
}

/// A record of a switch, as the layout above has it.
fn switch(from: u32, to: u32) -> Vec<u8> {
    let mut record = vec![0; 64];
    record[8..13].copy_from_slice(b"first");
    record[24..28].copy_from_slice(&from.to_ne_bytes());
    record[28..32].copy_from_slice(&120u32.to_ne_bytes());
    record[32..40].copy_from_slice(&1u64.to_ne_bytes());
    record[40..46].copy_from_slice(b"second");
    record[56..60].copy_from_slice(&to.to_ne_bytes());
    record[60..64].copy_from_slice(&130u32.to_ne_bytes());
    record
}

fn fork() -> Vec<u8> {
    let mut record = vec![0; 24];
    record[8..12].copy_from_slice(&(7 << 16 | 24u32).to_ne_bytes());
    record[12..16].copy_from_slice(&10u32.to_ne_bytes());
    record[16..20].copy_from_slice(&(6 << 16 | 31u32).to_ne_bytes());
    record[20..24].copy_from_slice(&11u32.to_ne_bytes());
    record.extend(b"parent\0child\0");
    record
}

/// Returns all packets and events as lines.
fn read(folder: &Path) -> String {
    let reader = Reader::open(folder).expect("a trace");
    let mut merge = Merge::new(&reader);
    let mut lines = String::new();
    while let Some(event) = merge.next_event() {
        let event = event.expect("an event");
        let cpu = event.get_in(Scope::PacketContext, "cpu_id").expect("a CPU");
        let (time, name) = (event.timestamp().expect("a time"), &event.class().name);
        lines += &format!("{time} {cpu:?} {name} {:?}\n", event.fields().expect("fields"));
    }
    lines += &format!("{:?}\n", merge.losses());
    lines
}

#[test]
fn metadata_and_events_are_as_expected() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = begin(folder.path());
    let (switched, forked) = (event(SWITCH, "sched_switch"), event(FORK, "sched_process_fork"));
    let ids = [&switched, &forked].map(|e| trace.declare(&e.name, &e.fields).expect("a number"));
    let put = |trace: &mut Trace, cpu, which: usize, time, record: &[u8]| {
        let source = Source { record, who: Who { pid: 9, tid: 10 }, child_pid: 9 };
        let event = [&switched, &forked][which];
        trace.event(cpu, ids[which], time, source.who, |bytes| event.encode(&source, bytes))
    };
    assert!(!put(&mut trace, 0, 0, 1_000, &switch(0, 10)));
    assert!(!put(&mut trace, 1, 1, 1_500, &fork()));
    // Longer than the short form of a header shows.
    assert!(!put(&mut trace, 0, 0, 9_000_000_000, &switch(10, 0)));
    // Earlier than the one before: it gets that one's time, and is counted by the caller.
    assert!(put(&mut trace, 0, 0, 8_999_999_000, &switch(0, 11)));
    // A record that is too short is no event.
    assert!(!put(&mut trace, 0, 0, 9_000_000_500, &switch(0, 11)[..60]));
    trace.discard(0, 5);
    assert!(!put(&mut trace, 0, 0, 9_000_002_000, &switch(11, 0)));
    for (name, fields) in own::classes() {
        trace.declare(name, &fields);
    }
    trace.declare(dump::PROCESS, &dump::thread_fields());
    trace.declare(dump::DISK, &dump::disk_fields());
    trace.finish(20_000_000_000);
    let written = trace.written();
    assert_eq!((written.events, written.dropped, written.unwritten), (5, 5, 0));
    compare("metadata.tsdl", &fs::read_to_string(folder.path().join("metadata")).expect("metadata"));
    compare("events.txt", &read(folder.path()));
}

#[test]
fn what_cannot_be_written_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut trace = begin(folder.path());
    let switched = event(SWITCH, "sched_switch");
    let id = trace.declare(&switched.name, &switched.fields).expect("a number");
    // Something is there already.
    fs::create_dir(folder.path().join("channel0_0")).expect("a folder");
    let record = switch(0, 10);
    for cpu in [0, 1] {
        let source = Source { record: &record, ..Source::default() };
        trace.event(cpu, id, 1_000, source.who, |bytes| switched.encode(&source, bytes));
    }
    trace.flush_all();
    let written = trace.written();
    assert_eq!((written.events, written.unwritten), (1, 1));
    assert!(written.error.is_some());
}

/// Makes the folder of a part, as the launcher does.
fn part(folder: &Path, number: u32) -> PathBuf {
    let folder = folder.join(Part::name(number)).join("kernel");
    std::fs::create_dir_all(folder.join("hetrace")).expect("a folder");
    let text = Part { number, ..Part::default() }.to_text();
    std::fs::write(folder.join(Part::FILE), text).expect("a file");
    folder
}

#[test]
fn a_part_has_what_is_declared_before_and_says_what_it_repeats() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folders = [1, 2].map(|number| part(scratch.path(), number));
    let mut trace = begin(&folders[0]);
    let id = trace.declare("sched_wait", &Default::default()).expect("a number");
    let none = |_: &mut Vec<u8>| true;
    assert!(!trace.event(0, id, 600, Who::default(), none));
    trace.discard(0, 3);
    let (written, account) = trace.leave(1000);
    assert_eq!((written.events, written.dropped, account.expect("an account").streams.len()), (1, 3, 3));
    trace.go_over(folders[1].clone(), 2, 1000);
    let dump = trace.declare("dump", &Default::default()).expect("a number");
    trace.event(0, dump, 1000, Who::default(), none);
    trace.repeated();
    trace.event(0, id, 1200, Who::default(), none);
    trace.event(1, id, 1100, Who::default(), none);
    let (written, account) = trace.leave(2000);
    assert_eq!((written.events, written.dropped), (2, 0));
    let account = account.expect("an account");
    assert!(account.files.iter().any(|file| file.name == Part::FILE));
    let said = Part::of(&folders[1]).expect("a part");
    let repeated = said.earlier["channel0_0"];
    assert_eq!((said.number, repeated.packets, said.earlier.len()), (2, 1, 1));
    let text = |folder: &Path| read(folder);
    assert!(text(&folders[0]).contains("600 ") && !text(&folders[0]).contains("1200"));
    let second = text(&folders[1]);
    let times: Vec<&str> = second.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(times[..3], ["1000", "1100", "1200"], "{second}");
    let stream = std::fs::read(folders[1].join("channel0_0")).expect("a stream");
    assert!((repeated.bytes as usize) < stream.len());
}

#[test]
fn metadata_that_can_not_be_written_is_tried_again() {
    let scratch = tempfile::tempdir().expect("a folder");
    let folders = [1, 2].map(|number| part(scratch.path(), number));
    let mut trace = begin(&folders[0]);
    let id = trace.declare("sched_wait", &Default::default()).expect("a number");
    trace.leave(1000);
    trace.go_over(folders[1].clone(), 2, 1000);
    // A folder in its place, for now.
    let metadata = folders[1].join("metadata");
    std::fs::create_dir(&metadata).expect("a folder");
    trace.repeated();
    trace.event(0, id, 1100, Who::default(), |_| true);
    trace.flush_all();
    assert_eq!(trace.written().unwritten, 1);
    std::fs::remove_dir(&metadata).expect("removed");
    trace.event(0, id, 1200, Who::default(), |_| true);
    let (written, _) = trace.leave(2000);
    assert_eq!((written.events, written.unwritten), (1, 1));
    let read = read(&folders[1]);
    assert!(read.starts_with("1200 ") && read.contains("events: 1"), "{read}");
}
