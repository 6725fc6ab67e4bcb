//! What babeltrace2 makes of the same traces. Skipped where it is not installed.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_ctf::read::{Merge, Trace};
use hetrace_ctf::tsdl;
use hetrace_ctf::write::{PacketError, PacketWriter, StreamIdentity, form};

/// Lines and messages of babeltrace2.
fn babeltrace(dir: &Path) -> Option<(Vec<String>, String)> {
    // Without trace and process names, which it takes from `env`.
    let output = Command::new("babeltrace2")
        .args(["--no-delta", "--clock-cycles", "--fields=loglevel", "--names=payload,context"])
        .arg(dir)
        .env("TZ", "UTC")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: babeltrace2 cannot be run: {error}");
            return None;
        }
    };
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{messages}");
    let lines = String::from_utf8_lossy(&output.stdout).lines().map(without_level).collect();
    Some((lines, messages))
}

fn ours(dir: &Path) -> Vec<String> {
    let trace = Trace::open(dir).unwrap();
    let mut merge = Merge::new(&trace);
    let mut lines = Vec::new();
    while let Some(event) = merge.next_event() {
        lines.push(common::pretty(&event.unwrap()));
    }
    lines
}

/// A folder of its own under the build's temporary one.
fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn assert_same(ours: &[String], theirs: &[String]) {
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn reads_what_we_write() {
    let dir = folder("written");
    std::fs::write(dir.join("metadata"), tsdl::print(&common::class())).unwrap();
    for instance in 0..3 {
        std::fs::write(dir.join(format!("s{instance}")), common::stream(instance, 4, 9)).unwrap();
    }
    let ours = ours(&dir);
    assert_eq!(ours.len(), 3 * 4 * 9 * 2);
    let Some((theirs, messages)) = babeltrace(&dir) else {
        return;
    };
    assert_same(&ours, &theirs);
    // Nothing but the events that the demo says it has lost.
    let lines: Vec<_> = messages.lines().filter(|l| !l.trim().is_empty()).collect();
    assert!(lines.iter().all(|l| l.contains("discarded 7 events")), "{messages}");
    assert_eq!(lines.len(), 3, "one per stream: {messages}");
}

#[test]
fn a_whole_trace_gives_no_warning_and_gaps_keep_the_time() {
    let dir = folder("gaps");
    std::fs::write(dir.join("metadata"), tsdl::print(&common::class())).unwrap();
    let mut writer = PacketWriter::new(StreamIdentity { uuid: common::UUID, ..StreamIdentity::default() });
    let gaps = [
        0,
        1,
        form::MAX_GAP - 1,
        form::MAX_GAP - 1,
        form::MAX_GAP - 1,
        form::MAX_GAP,
        7,
        1 << 32,
        (1 << 32) - 1,
        5 << 40,
        1,
    ];
    let (mut bytes, mut now, mut times) = (Vec::new(), common::START, Vec::new());
    for gap in gaps {
        now += gap;
        times.push(now);
        if let Err(error) = writer.event(0, now, &[]) {
            assert!(matches!(error, PacketError::Clock { .. }) && gap >= form::MAX_GAP);
            bytes.extend_from_slice(writer.finish(8));
            writer.event(0, now, &[]).unwrap();
        }
    }
    bytes.extend_from_slice(writer.finish(8));
    std::fs::write(dir.join("s"), &bytes).unwrap();

    let trace = Trace::open(&dir).unwrap();
    let (mut merge, mut read) = (Merge::new(&trace), Vec::new());
    while let Some(event) = merge.next_event() {
        read.push(event.unwrap().timestamp().unwrap());
    }
    assert_eq!(read, times);
    let ours = ours(&dir);
    let Some((theirs, messages)) = babeltrace(&dir) else {
        return;
    };
    assert_eq!(messages, "");
    assert_same(&ours, &theirs);
}

#[test]
fn reads_lttng_as_we_do() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lttng-ust");
    let Some((theirs, messages)) = babeltrace(&dir) else {
        return;
    };
    assert_eq!(messages, "");
    let theirs: Vec<String> = theirs.iter().map(|line| with_empty_text(line)).collect();
    assert_same(&ours(dir.as_path()), &theirs);
}

/// babeltrace2 2.0.4 shows a text sequence of no characters as the text before.
fn with_empty_text(line: &str) -> String {
    match line.split_once("_stxt_length = 0, stxt = \"") {
        Some((before, text)) => {
            let after = text.split_once('"').unwrap().1;
            format!("{before}_stxt_length = 0, stxt = \"\"{after}")
        }
        None => line.into(),
    }
}

/// Drops the log level between time and name: ours are numbers without names.
fn without_level(line: &str) -> String {
    let (start, rest) = line.split_at(line.find("] ").unwrap() + 2);
    // `TRACE_INFO (6) name: …`
    match rest.split_once(") ") {
        Some((level, rest)) if !level.contains(':') => format!("{start}{rest}"),
        _ => line.into(),
    }
}

/// Tracers that share no code with anybody here: see the notes beside the data.
#[test]
fn reads_barectf_as_we_do() {
    for name in ["trace-le", "trace-be"] {
        same_lines(&format!("barectf/{name}"), 24);
    }
}

#[test]
fn reads_perf_as_we_do() {
    same_lines("perf", 10);
}

fn same_lines(name: &str, events: usize) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let ours = ours(&dir);
    assert_eq!(ours.len(), events);
    let Some((theirs, messages)) = babeltrace(&dir) else {
        return;
    };
    assert_eq!(messages, "");
    assert_same(&ours, &theirs);
}

/// babeltrace2 as the writer: its metadata, and the streams it makes of ours.
#[test]
fn we_read_what_it_writes() {
    let (from, to) = (folder("converted-from"), folder("converted-to").join("trace"));
    std::fs::write(from.join("metadata"), tsdl::print(&common::class())).unwrap();
    std::fs::write(from.join("s"), common::stream(0, 3, 5)).unwrap();
    let path = |dir: &Path| dir.to_str().unwrap().to_owned();
    let params = format!("path=\"{}\",assume-single-trace=true", path(&to));
    let status = Command::new("babeltrace2")
        .args([path(&from), "-c".into(), "sink.ctf.fs".into(), "-p".into(), params])
        .output();
    let Ok(output) = status else {
        eprintln!("skipped: babeltrace2 cannot be run");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let payloads = |dir: &Path| {
        let trace = Trace::open(dir).unwrap();
        let mut merge = Merge::new(&trace);
        let mut payloads = Vec::new();
        while let Some(event) = merge.next_event() {
            let event = event.unwrap();
            let payload = event.fields().unwrap();
            payloads.push((event.ns_from_origin(), event.class().name.clone(), payload));
        }
        payloads
    };
    assert_eq!(payloads(&to), payloads(&from));
}
