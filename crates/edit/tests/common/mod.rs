//! Traces in folders, and what is in them.
#![allow(dead_code, reason = "each test file uses some of it")]

#[path = "../../../ctf/tests/common/mod.rs"]
pub mod demo;

pub mod calls;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Merge, StreamReader, Trace};
use hetrace_ctf::tsdl;
use hetrace_ctf::write::{Encoder, PacketWriter, StreamIdentity};

/// Goes on always.
pub fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Writes a trace of the demo with streams of so many packets and events.
pub fn write(folder: &Path, streams: &[(u64, u64)]) {
    fs::create_dir_all(folder.join("hetrace/model")).unwrap();
    fs::write(folder.join("metadata"), tsdl::print(&demo::class())).unwrap();
    for (index, (packets, events)) in streams.iter().enumerate() {
        let bytes = demo::stream(index as u64, *packets, *events);
        fs::write(folder.join(format!("s-{index}")), bytes).unwrap();
    }
}

/// A stream of the demo that is longer than its values go. Before each packet an event
/// was lost.
pub fn long(packets: u64, events: u64) -> Vec<u8> {
    let identity = StreamIdentity { uuid: demo::UUID, vpid: 1, vtid: 2, ..StreamIdentity::default() };
    let (mut writer, mut bytes) = (PacketWriter::new(identity), Vec::new());
    let mut encoder = Encoder::new();
    encoder.structure(&demo::all_kinds(), &demo::all_kinds_value(7)).unwrap();
    let payload = encoder.into_bytes();
    for packet in 0..packets {
        for event in 0..events {
            writer.event(65535, demo::START + packet * 1_000_000 + event * 10, &payload).unwrap();
        }
        writer.discard(1);
        bytes.extend_from_slice(writer.finish(64));
    }
    bytes
}

/// All files below a folder.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let inside = self::files(&path).into_iter();
            files.extend(inside.map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

/// All that an event says.
pub fn line(event: &hetrace_ctf::read::Event<'_, '_>) -> String {
    let stream = event.stream_name().trim_end_matches(".zst");
    let scopes = [Scope::StreamEventContext, Scope::EventContext, Scope::EventFields];
    let values: Vec<_> = scopes.iter().map(|&scope| event.value(scope)).collect();
    format!("{stream} {:?} {} {values:?}", event.timestamp(), event.class().name)
}

/// All events of some streams, in the order of time.
pub fn events_of<'t>(readers: impl IntoIterator<Item = StreamReader<'t>>) -> Vec<String> {
    let mut merge = Merge::of(readers);
    let mut lines = Vec::new();
    while let Some(event) = merge.next_event() {
        lines.push(line(&event.expect("no damage")));
    }
    assert_eq!(merge.losses().packets, 0);
    lines
}

/// All events of a trace, in the order of time.
pub fn events(path: &Path) -> Vec<String> {
    events_of(Trace::open(path).unwrap().streams())
}

/// What a tool prints; none if it is not installed.
pub fn tool(name: &str, args: &[&str]) -> Option<String> {
    let output = match Command::new(name).args(args).env("TZ", "UTC").output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: {name} cannot be run: {error}");
            return None;
        }
    };
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{name}: {messages}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What babeltrace2 prints of a trace.
pub fn babeltrace(folder: &Path) -> Option<Vec<String>> {
    let args = ["--no-delta", "--clock-cycles", "--names=payload,context", folder.to_str().unwrap()];
    Some(tool("babeltrace2", &args)?.lines().map(str::to_owned).collect())
}
