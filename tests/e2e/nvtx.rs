//! NVTX: what its functions return to programs, and what of their marks, ranges and names
//! is recorded. `tests/programs/nvtx_client.h` does what NVTX's header does.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hetrace_ctf::Scalar;
use hetrace_ctf::class::Scope;
use hetrace_ctf::read::Trace;
use hetrace_tests::bed::{program, run};
use hetrace_tests::{Done, Platform, Traced, hetrace, trace};

/// A call, in the order in which the calls began.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    time: u64,
    thread: u64,
    name: String,
    /// Fields of entry and exit as text; numbers in decimal.
    fields: BTreeMap<String, String>,
}

impl Call {
    fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("-", |f| f)
    }

    /// The fields in this order, with a space between.
    fn all(&self, fields: &[&str]) -> String {
        fields.iter().map(|f| self.get(f)).collect::<Vec<_>>().join(" ")
    }
}

const FIELDS: &[&str] = &[
    "domain",
    "category",
    "color",
    "payload_type",
    "payload",
    "message",
    "registered",
    "id",
    "name",
    "string",
    "result",
    "identifier",
    "identifier_type",
    "thread_id",
    "stream",
    "device",
];

/// All calls of a trace with nothing lost.
fn calls(folder: &Path) -> Vec<Call> {
    let trace = Trace::open(folder).expect("a trace that opens");
    let mut calls: Vec<Call> = Vec::new();
    for mut stream in trace.streams() {
        let first = calls.len();
        while let Some(event) = stream.next_event() {
            let event = event.expect("no damage");
            let Some(name) = event.class().name.strip_prefix("nvtx:").map(str::to_owned) else { continue };
            let fields = FIELDS.iter().filter_map(|f| Some(((*f).to_owned(), shown(event.get(f)?))));
            if let Some(name) = name.strip_suffix("_entry") {
                let thread = event.get_in(Scope::PacketContext, "vtid").and_then(Scalar::as_u64);
                calls.push(Call {
                    time: event.timestamp().expect("a time"),
                    thread: thread.expect("a thread"),
                    name: name.to_owned(),
                    fields: fields.collect(),
                });
            } else {
                let entry = calls[first..].last_mut().expect("an entry before");
                assert_eq!(name, format!("{}_exit", entry.name));
                entry.fields.extend(fields);
            }
        }
        assert_eq!(stream.losses().events, 0);
    }
    calls.sort_by_key(|c| c.time);
    calls
}

fn shown(value: Scalar<'_>) -> String {
    match value {
        Scalar::Str(text) => text.to_owned(),
        value => value
            .as_u64()
            .map(|n| n.to_string())
            .or(value.as_i64().map(|n| n.to_string()))
            .unwrap_or_default(),
    }
}

/// The values of a field in all calls of one function.
fn values<'c>(calls: &'c [Call], name: &str, field: &str) -> Vec<&'c str> {
    calls.iter().filter(|c| c.name == name).map(|c| c.get(field)).collect()
}

fn nvtx(traced: &Traced) -> Vec<Call> {
    assert_eq!(traced.done.status, 0, "{}", traced.done.err);
    calls(&traced.folder)
}

const ANSWERS: &str = "domains differ 1\npush 0\npush 1\nother push 0\nother domain push 0\nother push 1\n\
    other pop 1\nother pop 0\nother pop of nothing -2\nother domain pop 0\npop 1\npop 0\n\
    pop of nothing -2\ndomain pop of nothing -2\nids differ 1\nresource 1\nuser 1\n";

/// What the whole of `nvtx_ranges` must leave, by whatever header it was built.
fn check_everything(done: &Done, calls: &[Call]) {
    assert_eq!(done.out, ANSWERS);
    check_payloads(calls);
    let io = check_domains(calls);
    assert_eq!(values(calls, "nvtxMark", "message"), ["", "plain", "über"]);
    check_nested(calls);
    check_started(calls, &io);
    // Objects.
    let resource =
        of(calls, "nvtxDomainResourceCreate", &["domain", "identifier_type", "identifier", "message"]);
    assert_eq!(resource, [format!("{io} {} {} a lock", 0x10001, 0x1234)]);
    assert_eq!(of(calls, "nvtxDomainSyncUserCreate", &["domain", "message"]), [format!("{io} Schloß")]);
    assert_eq!(of(calls, "nvtxNameOsThread", &["thread_id", "name"]), [format!("{} main", calls[0].thread)]);
}

/// Fields of all calls of one function.
fn of(calls: &[Call], name: &str, fields: &[&str]) -> Vec<String> {
    calls.iter().filter(|c| c.name == name).map(|c| c.all(fields)).collect()
}

/// Payloads: the bits of the member that is meant, and nothing beside them.
fn check_payloads(calls: &[Call]) {
    let bits = [
        (1, 0xfedc_ba98_7654_3210, "u64"),
        (2, -5i64 as u64, "i64"),
        (3, 0.1f64.to_bits(), "f64"),
        (4, 4_000_000_000, "u32"),
        (5, u64::from(-7i32 as u32), "i32"),
        (6, u64::from(1.5f32.to_bits()), "f32"),
    ];
    let expected: Vec<String> = bits.iter().map(|(t, b, m)| format!("{t} {b} {m} 0")).collect();
    assert_eq!(of(calls, "nvtxMarkEx", &["payload_type", "payload", "message", "registered"]), expected);
}

/// Domains, categories and registered texts: handles that lead to names. Returns the handle of the
/// domain `app.io`.
fn check_domains(calls: &[Call]) -> String {
    let domains = of(calls, "nvtxDomainCreate", &["name", "result"]);
    let [(io, "app.io"), (wide, "Größe")] = named(&domains)[..] else { panic!("{domains:?}") };
    assert!(io != "0" && wide != "0" && io != wide);
    assert_eq!(of(calls, "nvtxNameCategory", &["category", "name"]), ["1 setup"]);
    let categories = of(calls, "nvtxDomainNameCategory", &["domain", "category", "name"]);
    assert_eq!(categories, [format!("{io} 2 files"), format!("{wide} 2 Güter")]);
    let texts = of(calls, "nvtxDomainRegisterString", &["string", "result"]);
    let [(first, "registered"), (second, "é")] = named(&texts)[..] else { panic!("{texts:?}") };
    assert!(first != "0" && second != "0" && first != second);
    let green = 0xff00_aa00u32;
    assert_eq!(
        of(calls, "nvtxDomainMarkEx", &["domain", "category", "color", "registered", "message"]),
        [
            format!("{io} 2 {green} 0 colour and category"),
            // Of a struct that ends before its message.
            format!("{io} 2 {green} 0 "),
            format!("{io} 0 0 0 Größe € 😀"),
            format!("{io} 0 0 {first} "),
            format!("{io} 0 0 {second} "),
        ]
    );
    io.to_owned()
}

/// Nested ranges of two threads.
fn check_nested(calls: &[Call]) {
    let main = calls[0].thread;
    let ranges = |own: bool| -> Vec<String> {
        let of_thread = calls.iter().filter(|c| (c.thread == main) == own);
        let here = of_thread.filter(|c| c.name.contains("RangePush") || c.name.contains("RangePop"));
        here.map(|c| format!("{} {} {}", c.name, c.get("message"), c.get("result"))).collect()
    };
    assert_eq!(
        ranges(true),
        [
            "nvtxRangePush outer 0",
            "nvtxRangePushEx inner 1",
            "nvtxRangePop - 1",
            "nvtxRangePop - 0",
            "nvtxRangePop - -2",
            "nvtxDomainRangePop - -2",
            // Never popped.
            "nvtxRangePush left open 0",
        ]
    );
    assert_eq!(
        ranges(false),
        [
            "nvtxRangePush other 0",
            "nvtxDomainRangePushEx other, in the domain 0",
            "nvtxRangePush öther 1",
            "nvtxRangePop - 1",
            "nvtxRangePop - 0",
            "nvtxRangePop - -2",
            "nvtxDomainRangePop - 0",
        ]
    );
}

/// Ranges that another thread ends, that overlap, and that are never ended.
fn check_started(calls: &[Call], io: &str) {
    let main = calls[0].thread;
    let started = of(calls, "nvtxRangeStart", &["message", "result"]);
    let [(across, "across threads"), (overlaps, "überlappt"), (open, "never ended")] = named(&started)[..]
    else {
        panic!("{started:?}")
    };
    let ends: Vec<(&str, bool)> =
        calls.iter().filter(|c| c.name == "nvtxRangeEnd").map(|c| (c.get("id"), c.thread == main)).collect();
    assert_eq!(ends, [(across, false), (overlaps, true)]);
    let in_domain = of(calls, "nvtxDomainRangeStartEx", &["domain", "message", "result"]);
    let ended = of(calls, "nvtxDomainRangeEnd", &["domain", "id"]);
    let [(id, _)] = named(&in_domain)[..] else { panic!("{in_domain:?}") };
    assert_eq!(ended, [format!("{io} {id}")]);
    assert!(![across, overlaps, id].contains(&open) && open != "0");
}

/// `NAME … RESULT` as result and name.
fn named(lines: &[String]) -> Vec<(&str, &str)> {
    lines.iter().filter_map(|l| l.rsplit_once(' ')).map(|(name, result)| (result, name)).collect()
}

#[test]
fn everything_returns_its_result_and_is_recorded() {
    let traced = trace(Platform::Pocl, &["nvtx_ranges"]);
    let calls = nvtx(&traced);
    check_everything(&traced.done, &calls);
    assert_eq!(traced.manifest()["losses"]["records"], 0);
    assert!(!traced.manifest()["notes"].to_string().contains("NVTX"));
    for (name, field, expected) in [
        ("nvtxNameCuDevice", "device", "1 cu device"),
        ("nvtxNameCuStream", "stream", "43968 cu stream"),
        ("nvtxNameCudaDevice", "device", "2 cuda device"),
        ("nvtxNameCudaStream", "stream", "43968 cuda stream"),
    ] {
        let call = calls.iter().find(|c| c.name == name).expect(name);
        assert_eq!(call.all(&[field, "name"]), expected);
    }
    for name in [
        "CuContext",
        "CuEvent",
        "CudaEvent",
        "ClDevice",
        "ClContext",
        "ClCommandQueue",
        "ClMemObject",
        "ClSampler",
        "ClProgram",
        "ClEvent",
    ] {
        assert_eq!(values(&calls, &format!("nvtxName{name}"), "name").len(), 1, "{name}");
    }
}

#[test]
fn other_readers_see_the_same() {
    let traced = trace(Platform::Pocl, &["nvtx_ranges"]);
    let events = 2 * nvtx(&traced).len();
    let reader = run(Command::new("babeltrace2").arg(&traced.folder));
    assert_eq!(reader.err, "");
    assert_eq!(reader.out.lines().count(), events);
    assert!(reader.out.contains(
        "payload_type = ( \"NVTX_PAYLOAD_TYPE_FLOAT\" : container = 6 ), payload = 1069547520, message = \"f32\""
    ));
    assert!(reader.out.contains("message = \"Größe € 😀\""));
    let print = run(Command::new(hetrace()).arg("print").arg(&traced.folder));
    assert_eq!(print.status, 0, "{}", print.err);
    assert!(print.out.contains("nvtxRangePush(message=\"left open\") = 0"), "{}", print.out);
    assert!(print.out.contains("color=0xff00aa00, payload_type=NVTX_PAYLOAD_UNKNOWN, payload=0"));
}

#[test]
fn each_copy_of_the_header_gets_the_functions() {
    let traced = trace(Platform::Pocl, &["nvtx_ranges", "copies"]);
    assert_eq!(traced.done.out, "right 8\n");
    let calls = nvtx(&traced);
    assert_eq!(values(&calls, "nvtxRangePush", "message"), ["copy"; 800]);
    assert_eq!(values(&calls, "nvtxRangePop", "result").len(), 800);
}

#[test]
fn a_forked_child_goes_on_where_it_was() {
    let traced = trace(Platform::Pocl, &["nvtx_ranges", "fork"]);
    assert_eq!(traced.done.out, "push 0\nchild push 1\nchild pop 1\nchild pop 0\npop 0\n");
    let seen = traced.seen();
    let mut counts: Vec<u64> = seen.calls.values().map(|c| c.values().sum()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [2, 3]);
}

/// What a run of `nvtx_payloads` must have left, whatever header it was built with.
fn payloads_are_there(out: &Path) {
    let print = run(Command::new(hetrace()).args(["print"]).arg(out));
    for part in [
        "nvtxPayloadSchemaRegister(domain=0x1, name=\"about\", type=1, flags=0, \
         entries=\"uint64 communicator @0; int ranks @8; int ? @12\", num_entries=3, static_size=16, schema_id=0)",
        "nvtxPayloadEnumRegister(domain=0x1, name=\"operation\", entries=\"Sum = 0; Max = 2\", num_entries=2, \
         size_of_enum=4, schema_id=0)",
        "nvtxRangePopPayload(domain=0x1, schema_id=16777221, \
         payload=[88 77 66 55 44 33 22 11 02 00 00 00 01 00 00 00], size=16, count=1) = 0",
        "nvtxMarkPayload(domain=0x1, schema_id=16777221, payload=[], size=0, count=1)",
    ] {
        assert!(print.out.contains(part), "{part}\n{}", print.out);
    }
    let tally = run(Command::new(hetrace()).args(["tally", "--json"]).arg(out));
    let tables: serde_json::Value = serde_json::from_str(&tally.out).expect("JSON");
    let ranges = tables["ranges"].as_array().expect("rows");
    let row = |r: &serde_json::Value| Some((r["name"].as_str()?.to_owned(), r["calls"].as_u64()?));
    let mut counts: Vec<(String, u64)> = ranges.iter().filter_map(row).collect();
    counts.sort();
    let expected =
        [("", 1), ("", 1), ("after", 1), ("init", 1)].map(|(name, calls)| (name.to_owned(), calls));
    assert_eq!(counts, expected);
    assert!(!run(Command::new(hetrace()).arg("tally").arg(out)).out.contains("UNFINISHED"), "{}", tally.out);
}

#[test]
fn payloads_with_schemas_begin_and_end_ranges() {
    let scratch = tempfile::tempdir().expect("scratch");
    let out = scratch.path().join("trace");
    let bare = run(Command::new(program("nvtx_payloads")).env_remove("NVTX_INJECTION64_PATH"));
    assert_eq!(bare.out, "schemas 1 1\nlevels 1\n");
    let line = ["run", "-q", "-o"];
    let done = run(Command::new(hetrace()).args(line).arg(&out).arg("--").arg(program("nvtx_payloads")));
    assert_eq!((done.status, done.out), (0, bare.out), "{}", done.err);
    payloads_are_there(&out);
}

#[test]
fn what_is_not_recorded_returns_its_result_all_the_same() {
    let scratch = tempfile::tempdir().expect("scratch");
    let out = scratch.path().join("trace");
    let line = ["run", "-q", "--exclude", "nvtx*", "-o"];
    let done = run(Command::new(hetrace()).args(line).arg(&out).arg("--").arg(program("nvtx_ranges")));
    assert_eq!(done.out, ANSWERS);
    assert_eq!(calls(&out), []);
}

#[test]
fn a_tool_of_the_user_stays() {
    let scratch = tempfile::tempdir().expect("scratch");
    let out = scratch.path().join("trace");
    let mut line = Command::new(hetrace());
    line.args(["run", "-o"]).arg(&out).args(["--", "sh", "-c", "echo $NVTX_INJECTION64_PATH"]);
    let done = run(line.env("NVTX_INJECTION64_PATH", "/nowhere/tool.so"));
    assert_eq!(done.out.lines().next(), Some("/nowhere/tool.so"));
    assert!(
        done.err.contains("NVTX is not traced: NVTX_INJECTION64_PATH is already set to /nowhere/tool.so"),
        "{}",
        done.err
    );
    let text = std::fs::read_to_string(out.join("hetrace/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let ways = manifest["interposition"].as_array().expect("a list");
    assert!(ways.iter().any(|w| w["api"] == "nvtx" && w["way"] == "left"), "{ways:?}");
    assert!(manifest["notes"].to_string().contains("/nowhere/tool.so"));
}

/// A package of PyPI, unpacked into a folder.
fn package(folder: &Path, what: &str) {
    let pip = ["-m", "pip", "install", "-q", "--no-deps", "--target"];
    let done = run(Command::new("python3").args(pip).arg(folder).arg(what));
    assert_eq!(done.status, 0, "{what}: {}", done.err);
}

fn traced_command(scratch: &Path, command: &mut Command) -> (Done, Vec<Call>) {
    let out = scratch.join("trace");
    let _ = std::fs::remove_dir_all(&out);
    let mut line = Command::new(hetrace());
    line.args(["run", "-q", "-o"]).arg(&out).arg("--").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        line.env(name, value.unwrap_or_default());
    }
    let done = run(&mut line);
    assert_eq!(done.status, 0, "{}", done.err);
    let calls = calls(&out);
    (done, calls)
}

#[test]
#[ignore = "downloads NVTX's headers"]
fn the_real_header_says_the_same() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (package_name, include) in [
        ("nvidia-nvtx==13.4.92", "nvidia/cu13/include"),
        ("nvidia-nvtx-cu12==12.0.76", "nvidia/nvtx/include"),
    ] {
        let folder = scratch.path().join(package_name);
        package(&folder, package_name);
        let include = folder.join(include);
        let built = with_real_header(scratch.path(), "nvtx_ranges", &include);
        let (done, calls) = traced_command(scratch.path(), &mut Command::new(&built));
        check_everything(&done, &calls);
        // The extension is younger.
        if include.join("nvtx3/nvToolsExtPayload.h").exists() {
            let built = with_real_header(scratch.path(), "nvtx_payloads", &include);
            let out = scratch.path().join("payloads");
            let done = run(Command::new(hetrace()).args(["run", "-q", "-o"]).arg(&out).arg("--").arg(built));
            assert_eq!((done.status, done.out.as_str()), (0, "schemas 1 1\nlevels 1\n"), "{}", done.err);
            payloads_are_there(&out);
            std::fs::remove_dir_all(&out).expect("removed");
        }
    }
}

/// A test program built with NVTX's own header.
fn with_real_header(scratch: &Path, name: &str, include: &Path) -> std::path::PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name).with_extension("c");
    let built = scratch.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-D_GNU_SOURCE", "-DNVTX_REAL", "-pthread", "-I"]);
    let done = run(compiler.arg(include).arg("-o").arg(&built).arg(source).arg("-ldl"));
    assert_eq!(done.status, 0, "{name}: {}", done.err);
    built
}

const PYTHON: &str = r#"
import threading, nvtx
with nvtx.annotate("outer", color=0x00ff00, domain="py", category="cat", payload=42):
    with nvtx.annotate("inner é", domain="py", payload=1.5): pass
id = nvtx.start_range("start", domain="py")
thread = threading.Thread(target=nvtx.end_range, args=[id]); thread.start(); thread.join()
nvtx.mark("mark", payload=-3)
"#;

#[test]
#[ignore = "downloads Python's package"]
fn pythons_package_goes_the_same_way() {
    let scratch = tempfile::tempdir().expect("scratch");
    let folder = scratch.path().join("packages");
    package(&folder, "nvtx");
    let (_, calls) = traced_command(
        scratch.path(),
        Command::new("python3").args(["-c", PYTHON]).env("PYTHONPATH", &folder),
    );
    let texts: BTreeMap<&str, &str> = calls
        .iter()
        .filter(|c| c.name == "nvtxDomainRegisterString")
        .map(|c| (c.get("result"), c.get("string")))
        .collect();
    let message = |name: &str| -> Vec<&str> {
        values(&calls, name, "registered")
            .iter()
            .map(|r| texts.get(r).copied().unwrap_or("unknown"))
            .collect()
    };
    assert_eq!(message("nvtxDomainRangePushEx"), ["outer", "inner é"]);
    assert_eq!(values(&calls, "nvtxDomainRangePushEx", "result"), ["0", "1"]);
    assert_eq!(values(&calls, "nvtxDomainRangePushEx", "payload_type"), ["2", "3"]);
    assert_eq!(values(&calls, "nvtxDomainRangePop", "result"), ["1", "0"]);
    assert_eq!(message("nvtxDomainMarkEx"), ["mark"]);
    let ids = values(&calls, "nvtxDomainRangeStartEx", "result");
    assert_eq!(values(&calls, "nvtxDomainRangeEnd", "id"), ids);
    assert_ne!(ids, ["0"]);
}
