//! The Python stacks of calls: each as the program saw it itself.
//!
//! All interpreters are tested that are found: `python3`, `python3.9` to `python3.14`, and those named in
//! `HETRACE_PYTHONS` (paths with colons between them).

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Event, Trace};
use hetrace_ctf::{Scalar, read};
use hetrace_tests::bed::{Done, program, run};
use hetrace_tests::{Platform, hetrace};
use serde_json::Value;
use tempfile::TempDir;

/// File, line, function and its first line.
type Frame = (String, u64, String, u64);
/// The frames, the innermost first.
type Stack = Vec<Frame>;
/// When a thread announced a stack; or none, and the number of the call that it entered.
type Step = (u64, Option<u64>, u64);

/// An interpreter of this machine.
#[derive(Debug, Clone)]
struct Python {
    path: PathBuf,
    minor: u64,
    prefix: PathBuf,
    /// Its library, if it has one.
    library: Option<PathBuf>,
}

/// The interpreters of this machine.
fn pythons() -> &'static [Python] {
    static FOUND: OnceLock<Vec<Python>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let about = "import os, sys, sysconfig; v = sysconfig.get_config_var; print(sys.executable, sys.version_info[1], \
                     sys.prefix, os.path.join(v('LIBDIR') or '', v('INSTSONAME') or ''), sep='\\n')";
        let named = std::env::var("HETRACE_PYTHONS").unwrap_or_default();
        let own = (9..=14).map(|minor| format!("python3.{minor}")).chain(["python3".to_owned()]);
        let mut found: Vec<Python> = Vec::new();
        for name in named.split(':').filter(|name| !name.is_empty()).map(str::to_owned).chain(own) {
            let Ok(said) = Command::new(&name).args(["-c", about]).output() else { continue };
            if !said.status.success() {
                continue;
            }
            let said = String::from_utf8(said.stdout).expect("text");
            let [path, minor, prefix, library] = said.lines().collect::<Vec<_>>()[..] else { continue };
            let path = PathBuf::from(path).canonicalize().expect("an interpreter");
            let minor = minor.parse().expect("a number");
            let library = Some(PathBuf::from(library)).filter(|path| path.to_string_lossy().contains(".so"));
            let library = library.filter(|path| path.exists());
            if (9..=14).contains(&minor) && found.iter().all(|known| known.path != path) {
                found.push(Python { path, minor, prefix: prefix.into(), library });
            }
        }
        let versions: Vec<_> = found.iter().map(|python| format!("3.{}", python.minor)).collect();
        eprintln!("CPython {}", versions.join(", "));
        assert!(!found.is_empty(), "no python3: run scripts/install-deps.sh");
        found
    })
}

/// A program that was run under trace, and what it says of its calls.
struct Ran {
    done: Done,
    folder: PathBuf,
    reported: HashMap<u64, Vec<Stack>>,
    scratch: TempDir,
}

/// Runs a command line that writes its stacks into a file `reported`.
fn traced(options: &[&str], line: impl FnOnce(&Path) -> Command) -> Ran {
    let scratch = TempDir::new().expect("a scratch folder");
    let (folder, reported) = (scratch.path().join("trace"), scratch.path().join("reported"));
    let program = line(&reported);
    let mut command = Command::new(hetrace());
    command.arg("run").arg("-o").arg(&folder).args(options).arg("--");
    command.arg(program.get_program()).args(program.get_args());
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let done = run(command.envs(Platform::Pocl.environment(scratch.path())));
    let text = std::fs::read_to_string(&reported).unwrap_or_default();
    let mut all: HashMap<u64, Vec<Stack>> = HashMap::new();
    for line in text.lines() {
        let reported: (u64, Stack) = serde_json::from_str(line).expect("a number and a stack");
        all.entry(reported.0).or_default().push(reported.1);
    }
    Ran { done, folder, reported: all, scratch }
}

/// Runs parts of the program; all of them if none is named.
fn parts(python: &Python, options: &[&str], parts: &[&str]) -> Ran {
    let ran = traced(options, |reported| {
        let mut line = Command::new(&python.path);
        line.arg(program("py_stacks.py")).arg(reported).args(parts);
        line
    });
    assert_eq!(ran.done.status, 0, "{python:?} {parts:?}: {}", ran.done.err);
    ran
}

/// What a trace says of the calls with numbers of their own: each call's number, and its stack if that is known. The
/// outer one is none if nothing is said of it.
fn calls(folder: &Path) -> Vec<(u64, Option<u64>, Stack)> {
    let trace = Trace::open(folder).expect("a trace");
    let mut frames: HashMap<u64, (u64, Frame)> = HashMap::new();
    let mut calls = Vec::new();
    let number =
        |event: &Event<'_, '_>, name: &str| event.get(name).and_then(Scalar::as_u64).expect("a number");
    let text = |event: &Event<'_, '_>, name: &str| {
        event.get(name).and_then(Scalar::as_str).expect("a text").to_owned()
    };
    // A thread goes on in another stream when its ring is full.
    let mut threads: BTreeMap<(u64, u64), Vec<Step>> = BTreeMap::new();
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            let event: read::Event<'_, '_> = event.expect("an event");
            let context =
                |name| event.get_in(Scope::PacketContext, name).and_then(Scalar::as_u64).unwrap_or(0);
            let (who, time) = ((context("vpid"), context("vtid")), event.timestamp().unwrap_or(0));
            match event.class().name.as_str() {
                "python:frame" => {
                    let frame = (
                        text(&event, "file"),
                        number(&event, "line"),
                        text(&event, "name"),
                        number(&event, "first_line"),
                    );
                    let known =
                        frames.insert(number(&event, "stack"), (number(&event, "around"), frame.clone()));
                    assert!(known.is_none_or(|(_, known)| known == frame), "an id has one meaning");
                }
                "opencl:py_stack" => {
                    threads.entry(who).or_default().push((time, Some(number(&event, "stack")), 0));
                }
                "opencl:clGetPlatformIDs_entry" => {
                    threads.entry(who).or_default().push((time, None, number(&event, "num_entries")));
                }
                _ => {}
            }
        }
    }
    for events in threads.values_mut() {
        events.sort_by_key(|(time, ..)| *time);
        let mut said = None;
        for (_, stack, entries) in events {
            if stack.is_some() {
                said = *stack;
            } else {
                calls.push((*entries, said.take()));
            }
        }
    }
    let whole = |id: Option<u64>| {
        let mut next = frames.get(&id.unwrap_or(0));
        std::iter::from_fn(|| {
            let (around, frame) = next?;
            next = frames.get(around);
            Some(frame.clone())
        })
        .collect::<Stack>()
    };
    calls.into_iter().map(|(call, id)| (call, id, whole(id))).collect()
}

/// Each call of the trace has the stack that the program saw, and each that it saw is there.
fn agree(ran: &Ran, folder: &Path, what: &str) -> usize {
    let calls = calls(folder);
    let reported: usize = ran.reported.values().map(Vec::len).sum();
    assert_eq!(calls.len(), reported, "{what}: each call once\n{}", ran.done.err);
    assert!(reported > 0, "{what}");
    for (call, id, stack) in &calls {
        let expected =
            ran.reported.get(call).unwrap_or_else(|| panic!("{what}: call {call} was not reported"));
        assert!(
            expected.contains(stack),
            "{what}: call {call}, stack {id:x?}:\n{stack:?}\nand not\n{expected:?}"
        );
    }
    calls.len()
}

#[test]
fn every_call_has_the_stack_that_the_program_saw() {
    for python in pythons() {
        let ran = parts(python, &["--py-stacks"], &[]);
        assert!(agree(&ran, &ran.folder, &format!("{python:?}")) > 300);
        assert!(!ran.done.err.contains("not known"), "{}", ran.done.err);
    }
}

#[test]
fn in_small_rings_and_within_a_budget_a_stack_is_right_or_not_there() {
    for python in pythons() {
        for options in [
            &["--py-stacks", "--buffer", "4"][..],
            &["--py-stacks", "--buffer", "4", "--on-full", "block"],
            &["--py-stacks", "--max-overhead", "0.1"],
        ] {
            let ran = parts(python, options, &["threads", "deep", "threads"]);
            let calls = calls(&ran.folder);
            for (call, id, stack) in &calls {
                let expected = &ran.reported[call];
                let incomplete = stack.last().is_none_or(|(.., function, _)| {
                    function != "<module>" && function != "Thread._bootstrap" && function != "_bootstrap"
                });
                assert!(
                    expected.contains(stack) || incomplete,
                    "{options:?}: call {call} {id:x?}: {stack:?}"
                );
            }
            if options.contains(&"block") {
                agree(&ran, &ran.folder, "blocking");
            }
        }
    }
}

#[test]
fn without_the_option_nothing_of_it_is_recorded() {
    let ran = parts(&pythons()[0], &[], &["nested"]);
    let calls = calls(&ran.folder);
    assert!(!calls.is_empty() && calls.iter().all(|(_, id, _)| id.is_none()), "{calls:?}");
}

#[test]
fn what_is_made_of_a_trace_has_its_stacks() {
    let ran = parts(&pythons()[0], &["--py-stacks"], &["nested", "executed", "threads"]);
    let path = |name: &str| ran.scratch.path().join(name);
    for (name, line) in
        [("trimmed", &["trim", "--from", "0"][..]), ("packed", &["pack"]), ("merged", &["merge"])]
    {
        let mut command = Command::new(hetrace());
        command.args(line).arg("-o").arg(path(name)).arg(&ran.folder);
        if name == "merged" {
            let other = parts(&pythons()[0], &["--py-stacks"], &["nested"]);
            command.arg(&other.folder);
            let done = run(&mut command);
            assert_eq!(done.status, 0, "{}", done.err);
            assert_eq!(calls(&path(name)).iter().filter(|(.., stack)| stack.is_empty()).count(), 0);
            continue;
        }
        let done = run(&mut command);
        assert_eq!(done.status, 0, "{name}: {}", done.err);
        let mut folder = path(name);
        if name == "packed" {
            let unpacked = path("unpacked");
            let done = run(Command::new(hetrace()).arg("unpack").arg("-o").arg(&unpacked).arg(&folder));
            assert_eq!(done.status, 0, "{}", done.err);
            folder = unpacked;
        }
        agree(&ran, &folder, name);
    }
}

#[test]
fn an_interpreter_may_begin_late_and_end_early() {
    for python in pythons() {
        let Some(library) = &python.library else {
            eprintln!("SKIPPED: {} has no shared library", python.path.display());
            continue;
        };
        let ran = traced(&["--py-stacks"], |reported| {
            let source = program("py_stacks.py").display().to_string();
            let code = format!(
                "import sys; sys.argv = ['x', {reported:?}, 'nested', 'generators', 'threads']\n\
                 exec(compile(open({source:?}, encoding='utf-8').read(), {source:?}, 'exec'))"
            );
            let mut line = Command::new(program("embed_python"));
            line.arg(library).arg(code).env("PYTHONHOME", &python.prefix);
            line
        });
        assert_eq!(ran.done.status, 0, "{python:?}: {}", ran.done.err);
        let (own, others): (Vec<_>, Vec<_>) =
            calls(&ran.folder).into_iter().partition(|(call, ..)| *call > 60000);
        let own: Vec<_> = own.into_iter().map(|(call, id, _)| (call, id)).collect();
        assert_eq!(
            own,
            (60001..=60005).map(|call| (call, Some(0))).collect::<Vec<_>>(),
            "they are of no Python code"
        );
        assert!(others.len() > 20);
        for (call, id, stack) in others {
            assert!(ran.reported[&call].contains(&stack), "{python:?}: {call} {id:x?}: {stack:?}");
        }
    }
}

#[test]
fn in_sub_interpreters_a_stack_is_right_or_unknown() {
    for python in pythons() {
        let ran = traced(&["--py-stacks"], |reported| {
            let mut line = Command::new(&python.path);
            line.arg(program("py_stacks.py")).arg(reported).arg("subinterpreters");
            line
        });
        if ran.done.status != 0 {
            // In 3.12 ctypes does not load there.
            assert!(ran.done.err.contains("does not support loading in subinterpreters"), "{}", ran.done.err);
            continue;
        }
        let calls = calls(&ran.folder);
        for (call, id, stack) in &calls {
            let unknown = python.minor < 12 && *id == Some(1);
            assert!(ran.reported[call].contains(stack) || unknown, "{python:?}: {call} {id:x?}: {stack:?}");
        }
        assert!(calls.iter().any(|(.., stack)| !stack.is_empty()));
        assert_eq!(python.minor < 12, ran.done.err.contains("sub-interpreters"), "{}", ran.done.err);
    }
}

/// The line of the program with a mark.
fn line_of(mark: &str) -> usize {
    let text = std::fs::read_to_string(program("py_work.py")).expect("the program");
    let mark = format!("# LINE {mark}");
    1 + text.lines().position(|line| line.ends_with(&mark)).expect("a line")
}

/// What a command says of a trace.
fn said(folder: &Path, line: &[&str]) -> String {
    let done = run(Command::new(hetrace()).args(line).arg(folder));
    assert_eq!(
        done.err.replace("hetrace: ", "").lines().filter(|line| line.contains("rror")).count(),
        0,
        "{}",
        done.err
    );
    done.out
}

/// A trace of the program whose lines have marks.
fn worked() -> Ran {
    let ran = traced(&["--py-stacks"], |_| {
        let mut line = Command::new(&pythons()[0].path);
        line.arg(program("py_work.py"));
        line
    });
    assert_eq!(ran.done.status, 0, "{}", ran.done.err);
    ran
}

#[test]
fn calls_commands_and_paths_have_their_lines() {
    let ran = worked();
    let folder = &ran.folder;
    let [write, upload, refresh, finish] = ["write", "upload", "refresh", "finish"].map(line_of);

    let printed = said(folder, &["print"]);
    let of = |function: &str| printed.lines().filter(|line| line.contains(function)).collect::<Vec<_>>();
    let writes = of("clEnqueueWriteBuffer(");
    assert_eq!(writes.len(), 4, "{printed}");
    assert!(
        writes.iter().all(|line| line.ends_with(&format!("  at py_work.py:{write} in write"))),
        "{writes:?}"
    );
    assert!(of("clFinish(")[0].ends_with(&format!("  at py_work.py:{finish} in main")), "{printed}");
    assert!(!printed.contains("py_stack") && !printed.contains("python:"), "{printed}");

    let tables: Value =
        serde_json::from_str(&said(folder, &["tally", "--by", "line", "--json"])).expect("JSON");
    let of_line = |table: &str, line: &str| {
        let rows = tables[table].as_array().expect("rows").iter();
        rows.filter(|row| row["line"] == *line).cloned().collect::<Vec<_>>()
    };
    let line = format!("py_work.py:{write} write");
    assert_eq!(of_line("host", &line)[0]["calls"], 4, "{tables}");
    assert_eq!(
        of_line("device", &line)[0]["calls"],
        4,
        "commands come to it by the call that enqueued them: {tables}"
    );

    let folded = said(folder, &["export", "-f", "folded", "--weight", "bytes", "-o", "-"]);
    let path = |caller: &str, line: usize| {
        format!(
            "main (py_work.py:{line});{caller};write (py_work.py:{write});opencl:clEnqueueWriteBuffer;[device] write"
        )
    };
    let main_of = |caller: &str| {
        let text = std::fs::read_to_string(program("py_work.py")).expect("the program");
        1 + text.lines().position(|line| line == format!("    {caller}(queue, buffer)")).expect("a line")
    };
    for (caller, line, bytes) in [("upload", upload, 4096), ("refresh", refresh, 303)] {
        let path = path(&format!("{caller} (py_work.py:{line})"), main_of(caller));
        assert!(
            folded.lines().any(|line| line.contains(&path) && line.ends_with(&format!(" {bytes}"))),
            "{path}\n{folded}"
        );
    }
}

#[test]
fn lint_names_file_and_line() {
    let ran = worked();
    let (folder, make) = (&ran.folder, line_of("make"));
    let lint: Value =
        serde_json::from_str(&said(folder, &["lint", "--json", "--rule", "leak"])).expect("JSON");
    let call = &lint["findings"][0]["occurrences"][0]["calls"][0];
    assert_eq!(call["python"][0]["line"], make, "{lint}");
    assert_eq!(
        (&call["python"][0]["function"], &call["python"][1]["function"]),
        (&"make".into(), &"main".into())
    );
    let text = said(folder, &["lint", "--rule", "leak"]);
    assert!(text.contains(&format!("py_work.py:{make} in make")), "{text}");
    let sarif: Value =
        serde_json::from_str(&said(folder, &["lint", "--sarif", "--rule", "leak"])).expect("JSON");
    let result = &sarif["runs"][0]["results"][0];
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], make, "{result}");
    let uri = place["artifactLocation"]["uri"].as_str().expect("a URI");
    assert!(uri.starts_with("file:///") && uri.ends_with("/tests/programs/py_work.py"), "{uri}");
    assert_eq!(result["stacks"][0]["frames"].as_array().map(Vec::len), Some(3), "{result}");
}
