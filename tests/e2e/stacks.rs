//! The native stacks of calls: each as the C library finds it at the same time.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, Trace};
use hetrace_tests::bed::{Done, run};
use hetrace_tests::{Platform, hetrace};
use serde_json::Value;
use tempfile::TempDir;

/// What is around a frame where there are more, and where nobody knows how to go on.
const CUT: u64 = 2;
const LOST: u64 = 3;
/// Frames that are recorded, unless another number is asked for.
const DEPTH: usize = 64;

/// The program, which is compiled in several ways.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/programs/stacks.c");

/// A module, and an address that its file has.
type Place = (String, u64);

/// A call as the program saw it: what kind of stack it is, and its frames, the innermost first.
#[derive(Debug, Clone)]
struct Reported {
    kind: String,
    frames: Vec<Place>,
}

/// A program that was run under trace, and what it says of its calls.
struct Ran {
    done: Done,
    folder: PathBuf,
    reported: BTreeMap<u64, Reported>,
    _scratch: TempDir,
}

/// Compiles the program of stacks with these options, and runs it.
fn ran(flags: &[&str], options: &[&str]) -> Ran {
    let scratch = TempDir::new().expect("a scratch folder");
    let [binary, folder, reported] = ["stacks", "trace", "reported"].map(|name| scratch.path().join(name));
    let mut compile = Command::new("cc");
    compile
        .args(["-std=gnu11", "-D_GNU_SOURCE", "-g", "-fno-optimize-sibling-calls"])
        .args(flags)
        .arg(SOURCE);
    let compiled = run(compile.arg("-o").arg(&binary).args(["-lOpenCL", "-lpthread", "-ldl"]));
    assert_eq!(compiled.status, 0, "cc: run scripts/install-deps.sh: {}", compiled.err);
    let mut command = Command::new(hetrace());
    command.arg("run").arg("-o").arg(&folder).args(options).arg("--").arg(&binary).arg(&reported);
    let done = run(command.envs(Platform::Pocl.environment(scratch.path())));
    assert_eq!(done.status, 0, "{flags:?} {options:?}: {}", done.err);
    let text = std::fs::read_to_string(&reported).expect("what it says");
    let reported = text.lines().map(line).collect();
    Ran { done, folder, reported, _scratch: scratch }
}

/// A line of the program: number, kind, places.
fn line(line: &str) -> (u64, Reported) {
    let mut words = line.split(' ');
    let number = words.next().and_then(|word| word.parse().ok()).expect("a number");
    let kind = words.next().expect("a kind").to_owned();
    let place = |word: &str| {
        let (module, offset) = word.rsplit_once("+0x").expect("a place");
        (module.to_owned(), u64::from_str_radix(offset, 16).expect("an offset"))
    };
    (number, Reported { kind, frames: words.map(place).collect() })
}

/// Of each call of the trace the frames, the innermost first, and what is around the outermost one.
fn calls(folder: &Path) -> BTreeMap<u64, (Vec<Place>, u64)> {
    let trace = Trace::open(folder).expect("a trace");
    let number =
        |event: &Event<'_, '_>, name: &str| event.get(name).and_then(Scalar::as_u64).expect("a number");
    let mut modules: HashMap<u64, String> = HashMap::new();
    let mut frames: HashMap<u64, [u64; 3]> = HashMap::new();
    let mut calls = BTreeMap::new();
    for mut stream in trace.streams() {
        let mut announced = None;
        while let Some(event) = stream.next_event() {
            let event = event.expect("an event");
            assert!(event.get_in(Scope::PacketContext, "vpid").is_some());
            match event.class().name.as_str() {
                "native:module" => {
                    let path = event.get("path").and_then(Scalar::as_str).expect("a path").to_owned();
                    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
                    let known = modules.insert(number(&event, "module"), name.clone());
                    assert!(known.is_none_or(|known| known == name), "an id has one meaning");
                }
                "native:frame" => {
                    let frame = ["around", "module", "address"].map(|name| number(&event, name));
                    let known = frames.insert(number(&event, "stack"), frame);
                    assert!(known.is_none_or(|known| known == frame), "an id has one meaning");
                }
                "opencl:stack" => announced = Some(number(&event, "stack")),
                "opencl:clGetPlatformIDs_entry" => {
                    let stack = announced.take().expect("a call without a stack");
                    calls.insert(number(&event, "num_entries"), stack);
                }
                _ => {}
            }
        }
    }
    let whole = |mut id: u64| {
        let mut all = Vec::new();
        while let Some([around, module, address]) = frames.get(&id) {
            all.push((modules.get(module).cloned().unwrap_or("?".to_owned()), *address));
            id = *around;
        }
        (all, id)
    };
    // One of the loader's own, which the program does not see.
    calls.retain(|number, _| *number > 0);
    calls.into_iter().map(|(call, id)| (call, whole(id))).collect()
}

/// Whether frames are those that the C library has found, but for the innermost one, which made both calls.
fn is_same(frames: &[Place], reported: &[Place]) -> bool {
    let innermost = |frames: &[Place]| frames.first().map(|(module, _)| module.clone());
    let pairs = frames.iter().zip(reported).skip(1);
    // What a signal interrupted is at the instruction itself, all else inside of the one that returns there.
    innermost(frames) == innermost(reported)
        && pairs
            .into_iter()
            .all(|(own, their)| own.0 == their.0 && (own.1 + 1 == their.1 || own.1 == their.1))
}

/// Each call of the trace has the stack that the program saw, up to a depth.
fn agree(ran: &Ran, depth: usize) {
    let calls = calls(&ran.folder);
    assert_eq!(calls.keys().collect::<Vec<_>>(), ran.reported.keys().collect::<Vec<_>>(), "each call once");
    let mut kinds = BTreeMap::new();
    for (number, reported) in &ran.reported {
        let (frames, around) = &calls[number];
        let what = format!(
            "call {number}, {}: {frames:x?}, then {around}, and not {:x?}",
            reported.kind, reported.frames
        );
        *kinds.entry(reported.kind.as_str()).or_insert(0) += 1;
        match reported.kind.as_str() {
            "all" | "cut" if reported.frames.len() > depth => {
                assert_eq!((frames.len(), *around), (depth, CUT), "{what}");
                assert!(is_same(frames, &reported.frames), "{what}");
            }
            "all" => {
                assert_eq!((frames.len(), *around), (reported.frames.len(), 0), "{what}");
                assert!(is_same(frames, &reported.frames), "{what}");
            }
            // The C library goes no further than code without a table.
            "open" => {
                assert!(is_same(&frames[..1], &reported.frames), "{what}");
                assert_eq!((frames[1].0.as_str(), *around), ("?", 0), "{what}");
                assert!(
                    frames.len() > 4 && frames.iter().any(|(module, _)| module.contains("libc")),
                    "{what}"
                );
            }
            "lost" => assert_eq!((frames.len(), *around), (2, LOST), "{what}"),
            kind => panic!("kind {kind}"),
        }
    }
    assert!(kinds["all"] >= 15 && kinds["cut"] == 1 && kinds["open"] == 1 && kinds["lost"] == 1, "{kinds:?}");
}

#[test]
fn every_call_has_the_stack_that_the_c_library_finds() {
    for flags in [
        &["-O2", "-fomit-frame-pointer"][..],
        &["-O2", "-fno-omit-frame-pointer"],
        &["-O0"],
        &["-O2", "-no-pie", "-fcf-protection=none"],
        &["-O3", "-march=native"],
    ] {
        let ran = ran(flags, &["--stacks"]);
        agree(&ran, DEPTH);
        assert!(ran.done.err.contains("Native stacks of some calls end early"), "{}", ran.done.err);
    }
}

#[test]
fn stacks_are_as_deep_as_was_asked_for() {
    for depth in [3, 128] {
        let ran = ran(&["-O2"], &[&format!("--stacks={depth}")]);
        let calls = calls(&ran.folder);
        let deepest = calls.values().map(|(frames, _)| frames.len()).max();
        assert_eq!(deepest, Some(depth));
        assert!(calls.values().all(|(frames, around)| frames.len() == depth || *around != CUT));
    }
    let ran = ran(&["-O2"], &[]);
    let metadata = std::fs::read_to_string(ran.folder.join("metadata")).expect("metadata");
    assert!(
        !metadata.contains("native:") && !metadata.contains(":stack"),
        "nothing is recorded that nobody asked for"
    );
}

/// What a command says of a trace.
fn said(folder: &Path, line: &[&str]) -> String {
    let done = run(Command::new(hetrace()).args(line).arg(folder));
    assert_eq!(done.status, 0, "{line:?}: {}", done.err);
    done.out
}

/// The line of the program with this text.
fn line_of(text: &str) -> usize {
    let source = std::fs::read_to_string(SOURCE).expect("the program");
    source.lines().position(|line| line.contains(text)).expect("the text") + 1
}

#[test]
fn reports_name_functions_files_and_lines() {
    let ran = ran(&["-O2"], &["--stacks"]);
    let call = line_of("clGetPlatformIDs(number++");
    let printed = said(&ran.folder, &["print"]);
    let numbered: Vec<&str> = printed.lines().filter(|line| !line.contains("num_entries=0")).collect();
    let calls: Vec<&&str> = numbered.iter().filter(|line| line.contains("clGetPlatformIDs(")).collect();
    assert_eq!(calls.len(), ran.reported.len(), "{printed}");
    assert!(calls.iter().all(|line| line.ends_with(&format!("  at stacks.c:{call} in call"))), "{printed}");
    assert!(!printed.contains("native:") && !printed.contains(":stack"), "{printed}");

    let tables: Value =
        serde_json::from_str(&said(&ran.folder, &["tally", "--by", "line", "--json"])).expect("JSON");
    assert!(tables.to_string().contains(&format!("stacks.c:{call} call")), "{tables}");

    let folded = said(&ran.folder, &["export", "-f", "folded", "-o", "-"]);
    let main = line_of("qsort(numbers");
    let sorted = folded.lines().find(|line| line.contains(";compare ("));
    let sorted = sorted.unwrap_or_else(|| panic!("{folded}"));
    let frames: Vec<&str> = sorted.split(';').collect();
    let place = |frame: &str| {
        frames.iter().position(|found| *found == frame).unwrap_or_else(|| panic!("{frame}: {sorted}"))
    };
    let (outer, inner) =
        (place(&format!("main (stacks.c:{main})")), place(&format!("call (stacks.c:{call})")));
    assert!(outer < inner && frames[inner - 1].starts_with("compare ("), "{sorted}");
    assert!(frames[inner + 1].starts_with("opencl:clGetPlatformIDs"), "{sorted}");
    assert!(
        folded.contains("[deeper than recorded]") && folded.contains("[could not be unwound further]"),
        "{folded}"
    );

    let findings: Value = serde_json::from_str(&said(&ran.folder, &["lint", "--json"])).expect("JSON");
    let sarif: Value = serde_json::from_str(&said(&ran.folder, &["lint", "--sarif"])).expect("JSON");
    let text = findings.to_string();
    assert!(text.contains("\"function\":\"leak\"") && text.contains("\"module\":\"stacks\""), "{text}");
    let text = sarif.to_string();
    let leak = line_of("clCreateBuffer(context");
    assert!(text.contains("stacks.c\"") && text.contains(&format!("\"startLine\":{leak}")), "{text}");
}

/// Calls of C and Python in turn, by ctypes.
const MIXED: &str = r#"
import ctypes
cl, libc = ctypes.CDLL("libOpenCL.so.1"), ctypes.CDLL(None)
count = ctypes.c_uint()
def leaf():
    cl.clGetPlatformIDs(0, None, ctypes.byref(count))
def compare(one, other):
    leaf()
    return 0
def outer():
    numbers = (ctypes.c_int * 2)(2, 1)
    libc.qsort(numbers, 2, 4, ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(compare))
outer()
"#;

#[test]
fn python_frames_stand_among_native_ones() {
    let scratch = TempDir::new().expect("a scratch folder");
    let [source, folder] = ["mixed.py", "trace"].map(|name| scratch.path().join(name));
    std::fs::write(&source, MIXED).expect("a program");
    let mut command = Command::new(hetrace());
    command.args(["run", "--stacks", "--py-stacks", "-o"]).arg(&folder).args(["--", "python3"]).arg(&source);
    let done = run(command.envs(Platform::Pocl.environment(scratch.path())));
    assert_eq!(done.status, 0, "{}", done.err);
    let folded = said(&folder, &["export", "-f", "folded", "-o", "-"]);
    let path =
        folded.lines().find(|line| line.contains("leaf (mixed.py")).unwrap_or_else(|| panic!("{folded}"));
    let frames: Vec<&str> = path.split(';').collect();
    let place = |start: &str| frames.iter().position(|frame| frame.starts_with(start));
    let of = [
        "<module> (mixed.py:13)",
        "outer (mixed.py:12)",
        "compare (mixed.py:8)",
        "leaf (mixed.py:6)",
        "opencl:",
    ];
    let places: Vec<Option<usize>> = of.iter().map(|start| place(start)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {path}");
    // What calls the function from Python is native again, and the interpreter's own functions are not there.
    let inside = frames.get(places[3].expect("leaf") + 1..places[4].expect("the call")).expect("frames");
    assert!(inside.iter().any(|frame| frame.contains("ffi")), "{path}");
    assert!(!path.contains("_PyEval_EvalFrameDefault"), "{path}");
    let printed = said(&folder, &["print"]);
    assert!(printed.contains("  at mixed.py:6 in leaf"), "{printed}");
}
