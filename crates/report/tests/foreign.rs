//! What `print` makes of traces of other tracers, in CTF 1.8 and CTF 2: the test data of the reader,
//! beside it as text (`golden_foreign/*.txt`).
//!
//! `BLESS=1 cargo test -p hetrace-report --test foreign` writes the texts anew; read the difference
//! before you believe it.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use hetrace_ctf::metadata;
use hetrace_report::print::{Filter, Form, Options, print_some};
use hetrace_trace::trace::{Manifest, Trace};

/// Lines of a trace that are compared.
const LINES: usize = 40;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/data").join(name)
}

fn open(name: &str) -> Trace {
    let (mut class, mut streams) = (None, Vec::new());
    for entry in fs::read_dir(data(name)).expect("the folder") {
        let path = entry.expect("an entry").path();
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        let bytes = fs::read(&path).expect("readable");
        match file.as_str() {
            "metadata" => class = Some(metadata::parse(&bytes).expect("metadata")),
            // Who made the trace, and what is in it.
            name if name.contains('.') => {}
            _ => streams.push((file, bytes)),
        }
    }
    streams.sort();
    let ctf = hetrace_ctf::read::Trace::from_class(class.expect("metadata"), streams).expect("a trace");
    Trace::new(ctf, Vec::new(), Manifest::default())
}

fn printed(trace: &Trace, filter: &Filter) -> String {
    let (options, mut out) = (Options { form: Form::Events, ..Options::default() }, Vec::new());
    let go_on = |_| ControlFlow::Continue(());
    let summary = print_some(trace, &options, filter, &go_on, &mut out).expect("memory takes it");
    assert!(summary.is_some(), "nobody stops it");
    String::from_utf8(out).expect("text")
}

#[test]
fn golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_foreign");
    for name in ["ctf2", "lttng-ust", "perf", "barectf/trace-be"] {
        let all = printed(&open(name), &Filter::default());
        let mut shown: String = all.lines().take(LINES).map(|line| format!("{line}\n")).collect();
        if all.lines().count() > LINES {
            shown += &format!("({} more lines)\n", all.lines().count() - LINES);
        }
        let path = folder.join(name.replace('/', "-") + ".txt");
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &shown).expect("writable");
        }
        assert_eq!(shown, fs::read_to_string(&path).expect("readable"), "{name} (BLESS=1 to accept)");
    }
}

/// A process without a thread, as LTTng has it where only `vpid` was asked for.
const PROCESS_ALONE: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
trace { major = 1; minor = 8; byte_order = le; };
stream { event.context := struct { u32 vpid; integer { size = 64; align = 8; base = hex; } ip; }; };
event { name = "it"; fields := struct { u32 n; }; };
"#;

#[test]
fn a_process_is_known_without_its_thread() {
    let class = metadata::parse(PROCESS_ALONE.as_bytes()).expect("metadata");
    let mut stream = Vec::new();
    for (pid, n) in [(7u32, 1u32), (8, 2), (7, 3)] {
        stream.extend(pid.to_le_bytes());
        stream.extend((0x1000 + u64::from(n)).to_le_bytes());
        stream.extend(n.to_le_bytes());
    }
    let ctf = hetrace_ctf::read::Trace::from_class(class, vec![("s".to_owned(), stream)]).expect("a trace");
    let trace = Trace::new(ctf, Vec::new(), Manifest::default());
    let of_seven = Filter { pids: vec![7], ..Filter::default() };
    assert_eq!(
        printed(&trace, &of_seven),
        "0.000000000 7:0 it: {ip=0x1001} n=1\n0.000000000 7:0 it: {ip=0x1003} n=3\n"
    );
}

/// The process of a whole trace, as LTTng has it with buffers for each process: with the thread in each event, and without.
#[test]
fn a_process_of_the_whole_trace_is_that_of_its_events() {
    let metadata = |context: &str| {
        format!(
            r#"/* CTF 1.8 */
typealias integer {{ size = 32; align = 8; signed = false; }} := u32;
trace {{ major = 1; minor = 8; byte_order = le; }};
env {{ domain = "ust"; vpid = 4711; procname = "app"; }};
stream {{ {context} }};
event {{ name = "it"; fields := struct {{ u32 n; }}; }};
"#
        )
    };
    for (context, words, thread) in [("", 1, 0), ("event.context := struct { u32 vtid; };", 2, 9)] {
        let class = metadata::parse(metadata(context).as_bytes()).expect("metadata");
        let event: Vec<u8> = [9u32, 5][2 - words..].iter().flat_map(|word| word.to_le_bytes()).collect();
        let streams = vec![("s".to_owned(), event)];
        let ctf = hetrace_ctf::read::Trace::from_class(class, streams).expect("a trace");
        let trace = Trace::new(ctf, Vec::new(), Manifest::default());
        for (pid, shown) in [(4711, format!("0.000000000 4711:{thread} it: n=5\n")), (1, String::new())] {
            let filter = Filter { pids: vec![pid], ..Filter::default() };
            assert_eq!(printed(&trace, &filter), shown);
        }
    }
}
