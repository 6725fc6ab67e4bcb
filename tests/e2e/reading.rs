//! What all commands that read a trace have in common: the trace they take, how they
//! end when nobody reads or Ctrl-C is pressed, and what they say of losses.

use std::fs;
use std::io::{PipeReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use hetrace_tests::bed::{Done, Traced, copy, run};
use hetrace_tests::{Platform, hetrace, trace};
use serde_json::{Value, json};

/// Commands that print what they read, in each of their forms.
const READERS: &[&[&str]] = &[
    &["tally"],
    &["tally", "--json"],
    &["tally", "--csv"],
    &["tally", "--markdown"],
    &["print"],
    &["print", "--events"],
    &["print", "-c"],
    &["postmortem"],
    &["why"],
    &["why", "--json"],
    &["lint"],
    &["lint", "--json"],
    &["lint", "--sarif"],
    &["export", "-f", "chrome", "-o", "-"],
    &["export", "-f", "folded", "-o", "-"],
    &["timeline", "-o", "-"],
];

fn small() -> &'static Traced {
    static TRACED: OnceLock<Traced> = OnceLock::new();
    TRACED.get_or_init(|| trace(Platform::Pocl, &["linked", "300", "2", "2"]))
}

fn line(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(hetrace());
    command.args(arguments).current_dir(folder);
    command
}

/// A trace that takes long: each stream of a small one, many times.
fn long(to: &Path) {
    let small = &small().folder;
    copy(small, to);
    for entry in fs::read_dir(small).expect("a trace").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "metadata" && entry.path().is_file() {
            for n in 0..500 {
                let again = to.join(format!("{name}_again{n}"));
                std::os::unix::fs::symlink(to.join(&name), again).expect("a link");
            }
        }
    }
}

/// Starts a command whose output is a pipe, and waits until it catches Ctrl-C.
fn start(command: &mut Command) -> (Child, PipeReader) {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut child =
        command.stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).spawn().expect("hetrace starts");
    // Its end of the pipe is the child's alone.
    command.stdout(Stdio::null());
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let text = fs::read_to_string(&status).ok()?;
        let caught = text.lines().find_map(|l| l.strip_prefix("SigCgt:"))?.trim().to_owned();
        Some(u64::from_str_radix(&caught, 16).ok()? & 2 != 0)
    };
    while !catches().unwrap_or(false) {
        assert!(child.try_wait().expect("a child").is_none(), "{command:?} ended before it was asked to");
        std::thread::sleep(Duration::from_millis(1));
    }
    (child, reader)
}

fn interrupt(child: &Child) {
    let done = run(Command::new("kill").arg("-INT").arg(child.id().to_string()));
    assert_eq!(done.status, 0, "{}", done.err);
}

fn end(child: Child) -> Done {
    let done = child.wait_with_output().expect("a child");
    // A status of its own: it was not killed.
    let status = done.status.code().unwrap_or(-1);
    Done { status, out: String::new(), err: String::from_utf8_lossy(&done.stderr).into_owned() }
}

#[test]
fn a_folder_without_traces_is_named_as_such() {
    let folder = tempfile::tempdir().expect("scratch");
    for reader in READERS {
        let done = run(&mut line(reader, folder.path()));
        assert_eq!((done.status, done.out.as_str()), (125, ""), "{reader:?}");
        assert!(done.err.contains("record one with `hetrace run"), "{reader:?}: {}", done.err);
    }
}

#[test]
fn the_newest_trace_is_taken() {
    let folder = tempfile::tempdir().expect("scratch");
    let other = trace(Platform::Pocl, &["ending", "hang"]);
    // By name and by the time of the folders, the other one is the last.
    copy(&small().folder, &folder.path().join("a"));
    copy(&other.folder, &folder.path().join("b"));
    let old = SystemTime::now() - Duration::from_secs(100);
    let metadata = fs::File::options().append(true).open(folder.path().join("b/metadata")).expect("a file");
    metadata.set_modified(old).expect("a time");
    for reader in READERS {
        let newest = run(&mut line(reader, folder.path()));
        let named = run(line(reader, folder.path()).arg("a"));
        assert!(!named.out.is_empty(), "{reader:?}: {}", named.err);
        assert_eq!(newest.out, named.out, "{reader:?}");
        assert_ne!(named.out, run(line(reader, folder.path()).arg("b")).out, "{reader:?}");
    }
}

#[test]
fn a_filter_that_lets_nothing_through_is_reported() {
    let folder = tempfile::tempdir().expect("scratch");
    let drawn = folder.path().join("none.pftrace").display().to_string();
    let lines: [&[&str]; 3] = [
        &["print", "--tid", "1"],
        &["print", "--filter", "nothing"],
        &["timeline", "--pid", "1", "-o", &drawn],
    ];
    for options in lines {
        let done = run(line(options, &small().folder).arg("."));
        assert_eq!(done.status, 0, "{options:?}");
        assert!(options[0] != "print" || done.out.is_empty(), "{options:?}: {}", done.out);
        assert!(done.err.contains("no events match the filter"), "{options:?}: {}", done.err);
    }
    let done = run(line(&["tally", "--filter", "nothing"], &small().folder).arg("."));
    assert!(done.out.contains("No events match the filter"), "{}", done.out);
}

#[test]
fn a_reader_that_has_gone_is_no_error() {
    for reader in READERS {
        let (gone, writer) = std::io::pipe().expect("a pipe");
        drop(gone);
        let child = line(reader, &small().folder)
            .arg(".")
            .stdout(writer)
            .stderr(Stdio::piped())
            .spawn()
            .expect("hetrace starts");
        let done = end(child);
        assert_eq!((done.status, done.err.as_str()), (0, ""), "{reader:?}");
    }
}

#[test]
fn ctrl_c_ends_a_wait_for_a_reader() {
    let folder = tempfile::tempdir().expect("scratch");
    let long_trace = folder.path().join("long");
    long(&long_trace);
    for reader in READERS.iter().filter(|reader| reader[0] == "print") {
        let (child, mut pipe) = start(line(reader, folder.path()).arg("long"));
        // The pipe holds less than the trace has lines: it waits, now or soon.
        let mut some = [0; 100];
        pipe.read_exact(&mut some).expect("lines");
        interrupt(&child);
        let done = end(child);
        assert_eq!((done.status, done.err.lines().last()), (130, Some("hetrace: stopped")), "{reader:?}");
    }
}

#[test]
fn ctrl_c_ends_long_work_and_leaves_no_file() {
    let folder = tempfile::tempdir().expect("scratch");
    let long_trace = folder.path().join("long");
    long(&long_trace);
    let lines: [&[&str]; 9] = [
        &["tally"],
        &["tally", "--by", "thread"],
        &["tally", "--save", "sums"],
        &["why"],
        &["lint"],
        &["export", "-f", "parquet"],
        &["export", "-f", "otf2"],
        &["timeline"],
        &["pack"],
    ];
    for reader in lines {
        let (child, mut pipe) = start(line(reader, folder.path()).arg("long"));
        interrupt(&child);
        let done = end(child);
        assert_eq!((done.status, done.err.lines().last()), (130, Some("hetrace: stopped")), "{reader:?}");
        let mut out = String::new();
        pipe.read_to_string(&mut out).expect("text");
        assert_eq!(out, "", "{reader:?}: half a report");
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["long"]);
}

#[test]
fn every_report_says_what_was_lost() {
    let folder = tempfile::tempdir().expect("scratch");
    copy(&small().folder, folder.path());
    let path = folder.path().join("hetrace/manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).expect("a manifest")).expect("JSON");
    manifest["losses"]["records"] = json!(4711);
    manifest["losses"]["calls"] = json!(2333);
    manifest["losses"]["device_commands"] = json!(77);
    fs::write(&path, manifest.to_string()).expect("written");
    for reader in READERS {
        let done = run(line(reader, folder.path()).arg("."));
        // Lines and tables that programs read have no room for it: it is reported beside them.
        let said = done.out + &done.err;
        assert!(said.contains("4711"), "{reader:?} does not report lost events: {said}");
    }
    for (command, object) in [("tally", ""), ("why", "missing"), ("lint", "missing")] {
        let done = run(line(&[command, "--json"], folder.path()).arg("."));
        let report: Value = serde_json::from_str(&done.out).expect("one JSON object");
        let missing = if object.is_empty() { &report } else { &report[object] };
        assert_eq!(missing["lost_events"], 4711, "{command}");
        assert_eq!(missing["lost_calls"], 2333, "{command}");
    }
}
