//! `hetrace check`: every kind of damage is found and named, by it and by the reports; and no
//! command writes into the trace that it reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hetrace_tests::bed::{Done, Traced, copy, run};
use hetrace_tests::{Platform, hetrace, trace_with};
use serde_json::Value;
use tempfile::TempDir;

/// A trace with several packets per stream and stored contents.
fn traced(compressed: bool) -> &'static Traced {
    static PLAIN: OnceLock<Traced> = OnceLock::new();
    static COMPRESSED: OnceLock<Traced> = OnceLock::new();
    let options: &[&str] = &["-q", "-m", "full", "--sources", "--compress"];
    let (place, options) =
        if compressed { (&COMPRESSED, options) } else { (&PLAIN, &options[..options.len() - 1]) };
    place.get_or_init(|| {
        let traced = trace_with(Platform::Pocl, options, &["linked", "3000", "2", "2"]);
        assert_eq!(traced.done.status, 0, "{}", traced.done.err);
        traced
    })
}

fn hetrace_in(folder: &Path, arguments: &[&str]) -> Done {
    run(Command::new(hetrace()).args(arguments).current_dir(folder))
}

/// A copy of the trace as `trace` in a folder of its own.
fn copied(compressed: bool) -> (TempDir, PathBuf) {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("trace");
    copy(&traced(compressed).folder, &folder);
    (scratch, folder)
}

/// The stream of calls.
fn stream(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder).expect("a trace").flatten().map(|entry| entry.path());
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    entries.into_iter().find(|path| name(path).starts_with("opencl-")).expect("a stream of calls")
}

/// A file right below one of the trace's own folders.
fn own(folder: &Path, below: &str, ending: &str) -> PathBuf {
    let entries = fs::read_dir(folder.join("hetrace").join(below)).expect("a folder").flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().find(|path| path.to_string_lossy().ends_with(ending)).expect("a file")
}

/// The packets of a stream; of a compressed one its frames, which have one each.
fn packets(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).expect("a stream");
    let (mut rest, mut packets) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let size = match path.extension() {
            Some(_) => zstd::zstd_safe::find_frame_compressed_size(rest).expect("a frame"),
            None => u64::from_le_bytes(rest[56..64].try_into().expect("8 bytes")) as usize / 8,
        };
        let (packet, after) = rest.split_at(size);
        packets.push(packet.to_vec());
        rest = after;
    }
    assert!(packets.len() >= 4, "{} packets", packets.len());
    packets
}

fn without_packet(folder: &Path, which: impl Fn(usize) -> usize) {
    let stream = stream(folder);
    let mut packets = packets(&stream);
    packets.remove(which(packets.len()));
    fs::write(stream, packets.concat()).expect("written");
}

fn flip(path: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = fs::read(path).expect("a file");
    let at = at(bytes.len());
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("written");
}

/// What `check` has to find, and whether the reports, which do not look at contents, can.
struct Damage {
    name: &'static str,
    kind: &'static str,
    reported: bool,
    make: fn(&Path),
}

const DAMAGES: &[Damage] = &[
    Damage {
        name: "a stream deleted",
        kind: "stream-missing",
        reported: true,
        make: |folder| fs::remove_file(stream(folder)).expect("removed"),
    },
    Damage {
        name: "a stream emptied",
        kind: "stream-empty",
        reported: true,
        make: |folder| fs::write(stream(folder), b"").expect("written"),
    },
    Damage {
        name: "a stream copied",
        kind: "stream-copied",
        reported: true,
        make: |folder| {
            let stream = stream(folder);
            let name = stream.file_name().expect("a name").to_string_lossy().into_owned();
            _ = fs::copy(&stream, folder.join(format!("again-{name}"))).expect("copied");
        },
    },
    Damage {
        name: "the first packet missing",
        kind: "packets-missing",
        reported: true,
        make: |folder| without_packet(folder, |_| 0),
    },
    Damage {
        name: "a packet in between missing",
        kind: "packets-missing",
        reported: true,
        make: |folder| without_packet(folder, |n| n / 2),
    },
    Damage {
        name: "the last packet missing",
        kind: "packets-missing",
        reported: true,
        make: |folder| without_packet(folder, |n| n - 1),
    },
    Damage {
        name: "a packet there twice",
        kind: "packet-repeated",
        reported: true,
        make: |folder| {
            let stream = stream(folder);
            let mut packets = packets(&stream);
            packets.insert(2, packets[1].clone());
            fs::write(stream, packets.concat()).expect("written");
        },
    },
    Damage {
        name: "cut in a packet",
        kind: "truncated",
        reported: true,
        make: |folder| {
            let stream = stream(folder);
            let packets = packets(&stream);
            let end = packets[..2].concat().len() + packets[2].len() / 2;
            let bytes = fs::read(&stream).expect("a stream");
            fs::write(stream, &bytes[..end]).expect("written");
        },
    },
    Damage {
        name: "a model gone",
        kind: "file-missing",
        reported: true,
        make: |folder| fs::remove_file(own(folder, "model", "opencl.json")).expect("removed"),
    },
    Damage {
        name: "a model changed",
        kind: "file-changed",
        reported: true,
        make: |folder| {
            let model = own(folder, "model", "opencl.json");
            let text = fs::read_to_string(&model).expect("a model").replacen("clFinish", "clFlinch", 1);
            fs::write(model, text).expect("written");
        },
    },
    Damage {
        name: "the metadata changed",
        kind: "file-changed",
        reported: true,
        make: |folder| {
            let metadata = folder.join("metadata");
            let text = fs::read_to_string(&metadata).expect("metadata");
            fs::write(metadata, text.replacen("procname = \"", "procname = \" ", 1).replacen(" = ", "= ", 1))
                .expect("written");
        },
    },
    Damage {
        name: "a stored content longer",
        kind: "blob-changed",
        reported: true,
        make: |folder| {
            let blob = own(folder, "blobs", "");
            let text = [fs::read(&blob).expect("a blob"), b"more".to_vec()].concat();
            fs::write(blob, text).expect("written");
        },
    },
    Damage {
        name: "a stored content changed",
        kind: "blob-changed",
        reported: false,
        make: |folder| flip(&own(folder, "blobs", ""), |len| len / 2),
    },
    Damage {
        name: "the manifest gone",
        kind: "manifest-missing",
        reported: true,
        make: |folder| fs::remove_file(folder.join("hetrace/manifest.json")).expect("removed"),
    },
    Damage {
        name: "the manifest cut",
        kind: "manifest-damaged",
        reported: true,
        make: |folder| {
            let manifest = folder.join("hetrace/manifest.json");
            let bytes = fs::read(&manifest).expect("a manifest");
            fs::write(manifest, &bytes[..bytes.len() / 2]).expect("written");
        },
    },
];

/// What `check --json` says, and its status.
fn check(folder: &Path, trace: &str) -> (i32, Value, String) {
    let done = hetrace_in(folder, &["check", "--json", trace]);
    (done.status, serde_json::from_str(&done.out).unwrap_or_default(), done.err)
}

fn kinds(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.filter_map(|finding| finding["kind"].as_str()).collect()
}

/// That `check` and the reports find a damage; gives what they did not, if any.
fn shortcomings(scratch: &Path, trace: &str, damage: &Damage) -> Vec<String> {
    let mut wrong = Vec::new();
    let (status, report, err) = check(scratch, trace);
    if status != 1 || !kinds(&report).contains(&damage.kind) || report["sound"] != false {
        wrong.push(format!("{}: check {status}: {:#} {err}", damage.name, report["findings"]));
    }
    let text = hetrace_in(scratch, &["check", trace]);
    if text.status != 1 || !text.out.contains(" finding") {
        wrong.push(format!("{}: check: {}", damage.name, text.out));
    }
    for command in
        [&["tally"][..], &["tally", "--csv"], &["print"], &["why"], &["lint"], &["timeline", "-o", "-"]]
    {
        let done = hetrace_in(scratch, &[command, &[trace]].concat());
        if done.err.contains("hetrace: ") != damage.reported {
            wrong.push(format!("{}: {command:?} ({}): {}", damage.name, done.status, done.err));
        }
    }
    let tally = hetrace_in(scratch, &["tally", "--json", trace]);
    let tally: Value = serde_json::from_str(&tally.out).unwrap_or_default();
    let reported = tally["differences"].as_u64().is_some_and(|n| n > 0) || tally["manifest_missing"] == true;
    if reported != damage.reported {
        wrong.push(format!("{}: tally --json: {}", damage.name, tally["differences"]));
    }
    wrong
}

fn all_are_found(compressed: bool, packed: bool) {
    let (scratch, folder) = copied(compressed);
    let sound = |trace: &str| {
        let (status, report, err) = check(scratch.path(), trace);
        assert_eq!((status, &report["complete"]), (0, &Value::Bool(true)), "{report:#} {err}");
        for command in ["tally", "print", "why", "lint"] {
            assert_eq!(hetrace_in(scratch.path(), &[command, trace]).err, "", "{command}");
        }
    };
    sound("trace");
    drop(folder);
    let mut wrong = Vec::new();
    for damage in DAMAGES {
        let (scratch, folder) = copied(compressed);
        (damage.make)(&folder);
        if packed {
            let done = hetrace_in(scratch.path(), &["pack", "trace", "--remove"]);
            assert_eq!(done.status, 0, "{}: {}", damage.name, done.err);
        }
        wrong.extend(shortcomings(scratch.path(), if packed { "trace.tar" } else { "trace" }, damage));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_damage_is_found() {
    all_are_found(false, false);
}

#[test]
fn every_damage_of_a_compressed_trace_is_found() {
    all_are_found(true, false);
}

#[test]
fn every_damage_of_a_packed_trace_is_found() {
    all_are_found(false, true);
}

/// A byte that changes no count and no size.
#[test]
fn changed_bytes_are_found() {
    for compressed in [false, true] {
        let (scratch, folder) = copied(compressed);
        // The name of the thread in the head of the second packet, or something in its frame.
        let first = packets(&stream(&folder))[0].len();
        flip(&stream(&folder), |_| first + 90);
        let (status, report, _) = check(scratch.path(), "trace");
        assert_eq!(status, 1, "{report:#}");
        assert!(compressed || kinds(&report) == ["stream-changed"], "{report:#}");
    }
    // The same in the file that a trace was packed into.
    let (scratch, _) = copied(false);
    assert_eq!(hetrace_in(scratch.path(), &["pack", "trace"]).status, 0);
    flip(&scratch.path().join("trace.tar"), |len| len * 2 / 3);
    assert_eq!(check(scratch.path(), "trace.tar").0, 1);
}

/// Traces made of traces are as complete as these.
#[test]
fn traces_made_of_traces_have_accounts() {
    let (scratch, _) = copied(false);
    let folder = scratch.path();
    copy(&traced(true).folder, &folder.join("other"));
    for (line, made) in [
        (&["pack", "trace"][..], "trace.tar"),
        (&["unpack", "trace.tar", "-o", "unpacked"], "unpacked"),
        (&["trim", "trace", "-o", "all"], "all"),
        (&["trim", "trace", "--from", "1ms", "--to", "60ms", "-o", "part", "--compress"], "part"),
        (&["merge", "trace", "other", "-o", "both"], "both"),
        (&["merge", "part", "other", "-o", "parts", "--compress"], "parts"),
    ] {
        let done = hetrace_in(folder, line);
        assert_eq!(done.status, 0, "{line:?}: {}", done.err);
        let (status, report, err) = check(folder, made);
        assert_eq!((status, &report["complete"]), (0, &Value::Bool(true)), "{line:?}: {report:#} {err}");
        let manifest = fs::read_to_string(folder.join(made).join("hetrace/manifest.json"));
        if let Ok(manifest) = manifest {
            let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
            let streams = manifest["written"]["account"]["streams"].as_array().expect("streams").len();
            assert_eq!(report["streams"], streams, "{line:?}");
        }
    }
    // A part of a trace that lacks something says so, as it is sound itself.
    fs::remove_file(stream(&folder.join("trace"))).expect("removed");
    let done = hetrace_in(folder, &["trim", "trace", "-o", "rest"]);
    assert!(done.err.contains("the stream is missing"), "{}", done.err);
    assert_eq!(check(folder, "rest").0, 0);
    let tally = hetrace_in(folder, &["tally", "rest"]);
    assert!(tally.out.contains("missing in the whole trace: opencl-"), "{}", tally.out);
}

/// What other tools made of the files is the same trace.
#[test]
fn compression_is_no_difference() {
    let (scratch, folder) = copied(true);
    for entry in fs::read_dir(&folder).expect("a trace").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "zst") {
            let plain = zstd::decode_all(&fs::read(&path).expect("a stream")[..]).expect("frames");
            fs::write(path.with_extension(""), plain).expect("written");
            fs::remove_file(path).expect("removed");
        }
    }
    assert_eq!(check(scratch.path(), "trace").0, 0);
    assert_eq!(hetrace_in(scratch.path(), &["tally", "trace"]).err, "");
    // Both are too much.
    let stream = stream(&folder);
    let packed = zstd::encode_all(&fs::read(&stream).expect("a stream")[..], 1).expect("compressed");
    fs::write(format!("{}.zst", stream.display()), packed).expect("written");
    let (status, report, _) = check(scratch.path(), "trace");
    assert_eq!((status, kinds(&report)), (1, vec!["stream-twice"]));
}

#[test]
fn what_is_no_trace_is_unusable() {
    let (scratch, folder) = copied(false);
    for name in ["nowhere", "trace/hetrace"] {
        let done = hetrace_in(scratch.path(), &["check", name]);
        assert_eq!((done.status, done.out.as_str()), (2, ""), "{name}");
        assert!(done.err.starts_with("hetrace: "), "{}", done.err);
    }
    fs::write(folder.join("metadata"), "/* CTF 1.8 */ trace {").expect("written");
    let (status, report, _) = check(scratch.path(), "trace");
    assert_eq!((status, kinds(&report)), (2, vec!["file-size"]));
    assert!(report["unusable"].is_string(), "{report:#}");
}

/// A first manifest, as a launcher that was killed leaves it, and one of an older hetrace.
#[test]
fn without_an_account_it_says_so() {
    let (scratch, folder) = copied(false);
    let path = folder.join("hetrace/manifest.json");
    let mut manifest = traced(false).manifest();
    manifest["written"].as_object_mut().expect("written").remove("account");
    fs::write(&path, manifest.to_string()).expect("written");
    let done = hetrace_in(scratch.path(), &["check", "trace"]);
    assert_eq!(done.status, 0, "{}", done.out);
    assert!(done.out.contains("completeness cannot be verified"), "{}", done.out);
    assert_eq!(hetrace_in(scratch.path(), &["tally", "trace"]).err, "");
    manifest["exit"] = Value::Null;
    fs::write(&path, manifest.to_string()).expect("written");
    let (status, report, _) = check(scratch.path(), "trace");
    assert_eq!((status, kinds(&report)), (1, vec!["unfinished"]));
}

/// Every file of a folder with its content.
fn contents(folder: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
    let mut paths: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => contents(&path, all),
            false => all.push((path.clone(), fs::read(&path).expect("a file"))),
        }
    }
}

#[test]
fn nothing_is_written_into_the_trace_that_is_read() {
    let (scratch, folder) = copied(false);
    assert_eq!(hetrace_in(scratch.path(), &["pack", "trace"]).status, 0);
    std::os::unix::fs::symlink("trace", scratch.path().join("link")).expect("a link");
    std::os::unix::fs::symlink("trace/hetrace/new", scratch.path().join("saved")).expect("a link");
    let mut before = Vec::new();
    contents(&folder, &mut before);
    let packed = fs::read(scratch.path().join("trace.tar")).expect("packed");
    for line in [
        &["timeline", "trace", "-o", "trace/x"][..],
        &["timeline", "trace", "-o", "link/x"],
        &["timeline", "link", "-o", "trace/hetrace/x"],
        &["timeline", "trace", "-o", "link/../trace/x"],
        &["export", "-f", "chrome", "trace", "-o", "trace/x"],
        &["export", "-f", "parquet", "trace", "-o", "trace"],
        &["export", "-f", "otf2", "link", "-o", "trace/hetrace/blobs/x"],
        &["trim", "trace", "-o", "trace/x"],
        &["merge", "trace", "link", "-o", "trace/x"],
        &["pack", "trace", "-o", "trace/x.tar"],
        &["tally", "trace", "--save", "trace/x"],
        &["tally", "trace", "--save", "saved"],
        &["tally", "trace.tar", "--save", "trace.tar"],
    ] {
        let done = hetrace_in(scratch.path(), line);
        assert_eq!(done.status, 125, "{line:?}: {}", done.out);
        assert!(done.err.contains("choose a place outside"), "{line:?}: {}", done.err);
    }
    // The place that is taken without -o may be inside, too.
    for line in [&["timeline", "."][..], &["export", "-f", "folded", "."], &["pack", "."]] {
        let done = hetrace_in(&folder, line);
        assert!(done.status == 125 && done.err.contains("choose a place outside"), "{line:?}: {}", done.err);
    }
    let mut after = Vec::new();
    contents(&folder, &mut after);
    assert!(before == after, "the trace was changed");
    assert!(packed == fs::read(scratch.path().join("trace.tar")).expect("packed"));
}
