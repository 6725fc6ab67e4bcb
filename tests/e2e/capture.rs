//! What only a tracer of this API can show: sources, builds, arguments,
//! properties, and contents of buffers.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Trace;
use hetrace_tests::bed::run;
use hetrace_tests::{Expected, Platform, Traced, bare, trace, trace_with};

/// Elements of the test program's buffers.
const N: i32 = 1024;

/// An event `object:…`: its fields as text.
#[derive(Debug, Clone)]
struct Object {
    what: String,
    fields: BTreeMap<String, String>,
}

impl Object {
    fn get(&self, field: &str) -> &str {
        self.fields.get(field).unwrap_or_else(|| panic!("no {field} in {self:?}"))
    }

    fn number(&self, field: &str) -> u64 {
        self.get(field).parse().unwrap_or_else(|_| panic!("{field} is no number in {self:?}"))
    }
}

fn objects(traced: &Traced) -> Vec<Object> {
    let mut objects = Vec::new();
    let trace = Trace::open(&traced.folder).expect("a trace that opens");
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            let event = event.expect("an event");
            let Some(what) = event.class().name.strip_prefix("object:") else { continue };
            let mut fields = BTreeMap::new();
            for field in &event.class().fields.fields {
                let name = &*field.name;
                let value = match event.get(name) {
                    Some(Scalar::Str(text)) => text.to_owned(),
                    Some(scalar) => match (scalar.as_u64(), scalar.as_i64()) {
                        (Some(n), _) => n.to_string(),
                        (None, n) => n.unwrap_or_default().to_string(),
                    },
                    None => continue,
                };
                fields.insert(name.to_owned(), value);
            }
            objects.push(Object { what: what.to_owned(), fields });
        }
    }
    objects
}

fn of_kind(objects: &[Object], what: &str) -> Vec<Object> {
    objects.iter().filter(|o| o.what == what).cloned().collect()
}

fn content(traced: &Traced, hash: &str) -> Vec<u8> {
    std::fs::read(traced.folder.join("hetrace/blobs").join(hash)).expect("a stored content")
}

fn blobs(traced: &Traced) -> usize {
    std::fs::read_dir(traced.folder.join("hetrace/blobs")).map_or(0, Iterator::count)
}

fn bytes(element: impl Fn(i32) -> i32) -> Vec<u8> {
    (0..N).flat_map(|i| element(i).to_le_bytes()).collect()
}

const ALL: &[&str] =
    &["--sources", "--build-logs", "--kernel-args", "--properties", "--capture-buffers", "*"];

#[test]
fn without_options_there_is_nothing() {
    let traced = trace(Platform::Pocl, &["buffers"]);
    assert!(objects(&traced).is_empty());
    assert_eq!(blobs(&traced), 0);
}

/// Checks the contents that launches 1 and 2 of `scale` find and leave.
fn check_contents(platform: Platform, mode: &str, waited: u64) {
    let traced = trace_with(platform, &["--capture-buffers", "sca*@1..2"], &["buffers", mode]);
    assert_eq!(traced.done.out, bare(platform, &["buffers", mode]).out, "results are unchanged");
    let objects = objects(&traced);
    assert!(of_kind(&objects, "not_captured").is_empty(), "{objects:?}");
    let mut seen = BTreeSet::new();
    for o in of_kind(&objects, "buffer") {
        assert_eq!(o.get("kernel_name"), "scale");
        assert_eq!((o.number("size"), o.number("stored")), (4096, 4096));
        assert_eq!(o.number("waited"), waited, "{o:?}");
        let (launch, argument) = (o.number("launch"), o.number("argument"));
        seen.insert((launch, argument, o.get("when").to_owned()));
        // Launch n adds (n + 2) * i to what was 7 * i.
        let launches = launch + u64::from(o.get("when") == "after");
        let factor = 7 + (0..launches as i32).map(|n| n + 2).sum::<i32>();
        let expected = if argument == 0 { bytes(|i| i) } else { bytes(|i| i * factor) };
        assert!(content(&traced, o.get("hash")) == expected, "{o:?}");
    }
    let wanted: BTreeSet<_> = [1, 2]
        .iter()
        .flat_map(|l| [(*l, 0), (*l, 1)])
        .flat_map(|(l, a)| [(l, a, "before".to_owned()), (l, a, "after".to_owned())])
        .collect();
    assert_eq!(seen, wanted);
    assert_eq!(blobs(&traced), 4, "each content is stored once: one input, three outputs");
    let commands = traced.seen().commands;
    assert_eq!(
        commands.iter().filter(|c| c.kind == "read").count(),
        1,
        "ours are no commands of the program"
    );
    assert_eq!(Expected::parse(&traced.done.out).total(), traced.seen().total());
}

#[test]
fn buffers_are_stored_before_and_after_a_launch() {
    check_contents(Platform::Pocl, "order", 1);
    check_contents(Platform::Pocl, "outoforder", 1);
    check_contents(Platform::Oclgrind, "order", 1);
}

#[test]
fn a_launch_that_waits_for_the_program_does_not_hang() {
    check_contents(Platform::Pocl, "gated", 0);
    check_contents(Platform::Oclgrind, "gated", 0);
}

#[test]
fn long_buffers_are_cut_and_that_is_said() {
    let options = ["--capture-buffers", "scale@0", "--capture-size", "1k"];
    let traced = trace_with(Platform::Pocl, &options, &["buffers"]);
    let objects = objects(&traced);
    for what in ["buffer", "truncated"] {
        let cut = of_kind(&objects, what);
        assert_eq!(cut.len(), 4, "{what}");
        assert!(cut.iter().all(|o| o.number("stored") == 1024));
    }
    let first = &of_kind(&objects, "buffer")[0];
    assert_eq!(first.number("size"), 4096);
    assert_eq!(content(&traced, first.get("hash")), bytes(|i| i)[..1024]);
    let said = &of_kind(&objects, "truncated")[0];
    assert_eq!((said.get("what"), said.number("length")), ("buffer", 4096));
}

#[test]
fn what_cannot_be_stored_is_named() {
    let traced = trace_with(Platform::Pocl, &["--capture-buffers", "scale"], &["buffers", "kinds"]);
    let objects = objects(&traced);
    let reasons: Vec<(u64, u64, String)> = of_kind(&objects, "not_captured")
        .iter()
        .map(|o| (o.number("launch"), o.number("argument"), o.get("reason").to_owned()))
        .collect();
    assert_eq!(
        reasons,
        [
            (0, 1, "its flags forbid the host to read it".to_owned()),
            (1, 1, "shared virtual memory".to_owned())
        ]
    );
    // A part of a buffer is read as such; a retained one lives on.
    let sizes: Vec<(u64, u64, u64)> = of_kind(&objects, "buffer")
        .iter()
        .filter(|o| o.get("when") == "before")
        .map(|o| (o.number("launch"), o.number("argument"), o.number("size")))
        .collect();
    assert_eq!(sizes, [(0, 0, 2048), (1, 0, 2048), (2, 0, 4096), (2, 1, 2048)]);
    let image = trace_with(Platform::Pocl, &["--capture-buffers", "sample"], &["kernels"]);
    let image = of_kind(&self::objects(&image), "not_captured");
    assert_eq!(image.iter().map(|o| o.get("reason")).collect::<Vec<_>>(), ["image"]);
}

#[test]
fn equal_sources_are_stored_once() {
    let traced = trace_with(Platform::Pocl, &["--sources"], &["buffers", "builds"]);
    let sources = of_kind(&objects(&traced), "source");
    assert_eq!(sources.len(), 3);
    assert_eq!(sources[0].get("hash"), sources[1].get("hash"), "in whatever pieces it came");
    assert_ne!(sources[0].get("program"), sources[1].get("program"));
    assert_eq!(blobs(&traced), 2);
    let text = content(&traced, sources[0].get("hash"));
    assert_eq!(text.len() as u64, sources[0].number("length"));
    assert!(text.starts_with(b"__kernel void scale("));
}

#[test]
fn binaries_are_stored() {
    let traced = trace_with(Platform::Pocl, &["--sources"], &["kernels"]);
    let binaries = of_kind(&objects(&traced), "binary");
    assert_eq!(binaries.len(), 1);
    let stored = content(&traced, binaries[0].get("hash"));
    assert_eq!(stored.len() as u64, binaries[0].number("length"));
}

#[test]
fn logs_of_failing_and_of_asynchronous_builds_are_there() {
    for platform in [Platform::Pocl, Platform::Oclgrind] {
        let traced = trace_with(platform, &["--build-logs"], &["buffers", "builds"]);
        assert_eq!(traced.done.out, bare(platform, &["buffers", "builds"]).out);
        let objects = objects(&traced);
        let options: Vec<_> =
            of_kind(&objects, "build_options").iter().map(|o| o.get("text").to_owned()).collect();
        assert_eq!(options, ["-DBY_CALLBACK", "-DBROKEN"]);
        let logs = of_kind(&objects, "build_log");
        assert_eq!(logs.len(), 2, "{logs:?}");
        assert_eq!((logs[0].get("status"), logs[0].get("result")), ("success", "0"));
        assert_eq!((logs[1].get("status"), logs[1].get("result")), ("error", "-11"));
        // Longer than a record: a file has it.
        assert!(logs[1].number("length") > 4095, "{logs:?}");
        let text = content(&traced, logs[1].get("hash"));
        assert_eq!(text.len() as u64, logs[1].number("length"));
        assert!(String::from_utf8_lossy(&text).contains("no_such_name_0_xxxx"));
    }
}

#[test]
fn compiling_and_linking_have_logs_too() {
    let traced = trace_with(Platform::Pocl, &["--build-logs"], &["kernels"]);
    let logs = of_kind(&objects(&traced), "build_log");
    for (step, status) in [("build", "error"), ("compile", "success"), ("link", "success")] {
        assert!(logs.iter().any(|l| l.get("step") == step && l.get("status") == status), "{step} {status}");
    }
    let failed = logs.iter().find(|l| l.get("status") == "error").expect("a failed build");
    assert!(failed.get("text").contains("no_such_name"), "{failed:?}");
}

#[test]
fn arguments_have_names_where_the_platform_reports_them() {
    let traced = trace_with(Platform::Pocl, &["--kernel-args"], &["buffers"]);
    let objects = objects(&traced);
    let kernels = of_kind(&objects, "kernel");
    let counts: Vec<_> = kernels.iter().map(|k| (k.get("name"), k.number("arguments"))).collect();
    assert_eq!(counts, [("scale", 3), ("other", 2)]);
    let of_scale: Vec<_> =
        of_kind(&objects, "kernel_arg").into_iter().filter(|a| a.get("kernel_name") == "scale").collect();
    let shown: Vec<[&str; 5]> = of_scale
        .iter()
        .map(|a| ["name", "type", "address", "access", "qualifiers"].map(|field| a.get(field)))
        .collect();
    assert_eq!(
        shown,
        [
            ["in", "int*", "global", "none", "const restrict"],
            ["out", "int*", "global", "none", "-"],
            ["factor", "int", "private", "none", "-"]
        ]
    );
    assert!(of_scale.iter().all(|a| a.get("kernel") == kernels[0].get("kernel")));
    // PoCL does not report those of a build with options but without
    // -cl-kernel-arg-info, and we add no options.
    let traced = trace_with(Platform::Pocl, &["--kernel-args"], &["kernels"]);
    let all = of_kind(&self::objects(&traced), "kernel_arg");
    let unknown: Vec<&Object> = all.iter().filter(|a| a.get("kernel_name") == "everything").collect();
    assert_eq!(unknown.len(), 12);
    assert!(unknown.iter().all(|a| a.get("name") == "unknown" && a.get("address") == "unknown"));
}

#[test]
fn properties_are_all_there_once() {
    check_properties(Platform::Pocl, "Portable Computing Language");
    check_properties(Platform::Oclgrind, "Oclgrind");
}

fn check_properties(platform: Platform, name: &str) {
    let traced = trace_with(platform, &["--properties"], &["linked", "1"]);
    let properties = of_kind(&objects(&traced), "property");
    for (kind, least) in [("platform", 5), ("device", 60)] {
        let of_kind: Vec<_> = properties.iter().filter(|p| p.get("kind") == kind).collect();
        let handles: BTreeSet<_> = of_kind.iter().map(|p| p.get("object")).collect();
        let queries: BTreeSet<_> = of_kind.iter().map(|p| p.number("query")).collect();
        assert_eq!(handles.len(), 1);
        assert!(queries.len() == of_kind.len() && queries.len() >= least, "{kind}: {of_kind:?}");
    }
    let text = |query: u64| properties.iter().find(|p| p.number("query") == query).map(|p| p.get("text"));
    // CL_PLATFORM_NAME, CL_DEVICE_MAX_COMPUTE_UNITS
    assert_eq!(text(0x902), Some(name));
    assert!(text(0x1002).is_some_and(|n| n.parse::<u32>().is_ok_and(|n| n > 0)));
}

#[test]
fn the_list_of_properties_is_the_models() {
    let source = include_str!("../../apis/opencl/src/capture/properties.rs");
    let model: serde_json::Value =
        serde_json::from_str(include_str!("../../apis/opencl/src/generated/model.json")).expect("JSON");
    for (name, group) in [("PLATFORM", "cl_platform_info"), ("DEVICE", "cl_device_info")] {
        let (_, list) = source.split_once(&format!("const {name}: ")).expect("the list");
        let (list, _) = list.split_once("];").expect("its end");
        let ours: BTreeSet<u64> =
            list.split("0x").skip(1).filter_map(|n| u64::from_str_radix(n.get(..4)?, 16).ok()).collect();
        let groups = model["enums"].as_array().expect("enumerations");
        let values = groups.iter().find(|g| g["name"] == group).expect(group)["values"].as_array();
        let theirs = values.expect("values").iter().filter_map(|v| v[1].as_u64()).collect();
        assert_eq!(ours, theirs, "{group}");
    }
}

#[test]
fn programs_do_not_notice_and_readers_do_not_complain() {
    for (platform, program) in [
        (Platform::Both, &["kernels"][..]),
        (Platform::Both, &["transparent"]),
        (Platform::Both, &["queues"]),
        (Platform::Both, &["images"]),
        (Platform::Pocl, &["callbacks", "8"]),
        (Platform::Both, &["forks", "fork-after"]),
        (Platform::Both, &["threads"]),
        (Platform::Both, &["errno_signal"]),
        (Platform::Oclgrind, &["buffers", "kinds"]),
    ] {
        let traced = trace_with(platform, ALL, program);
        assert_eq!(traced.done.status, 0, "{program:?}: {}", traced.done.err);
        if matches!(program[0], "kernels" | "transparent" | "images") {
            assert_eq!(traced.done.out, bare(platform, program).out, "{program:?}");
        }
        let seen = traced.seen();
        assert!(seen.damage.is_empty() && seen.disorder == 0, "{program:?}: {:?}", seen.damage);
        assert_eq!(seen.total(), Expected::parse(&traced.done.out).total(), "{program:?}");
        assert!(!objects(&traced).is_empty(), "{program:?}");
        let done = run(Command::new("babeltrace2").arg(&traced.folder));
        assert_eq!((done.status, &*done.err), (0, ""), "{program:?}");
        assert_eq!(done.out.lines().count() as u64, seen.events, "{program:?}");
    }
}

#[test]
fn options_work_in_every_mode() {
    let options = [ALL, &["--mode", "minimal", "--no-device"]].concat();
    let traced = trace_with(Platform::Pocl, &options, &["buffers"]);
    let whats: BTreeSet<String> = objects(&traced).into_iter().map(|o| o.what).collect();
    for what in ["source", "build_options", "build_log", "kernel", "kernel_arg", "property", "buffer"] {
        assert!(whats.contains(what), "no {what} in {whats:?}");
    }
    assert!(!traced.seen().total().contains_key("clSetKernelArg"), "hooks record no calls");
}

/// What was hashed: bytes, bytes hashed, error.
fn hashed(traced: &Traced) -> Vec<(u64, u64, u64)> {
    let sent = of_kind(&objects(traced), "sent");
    sent.iter().map(|o| (o.number("length"), o.number("hashed"), o.number("error"))).collect()
}

#[test]
fn what_is_sent_is_hashed_when_asked_for() {
    const BYTES: u64 = 1 << 20;
    let traced = trace_with(Platform::Pocl, &["--hash-copies"], &["resend", "changed"]);
    assert_eq!(hashed(&traced), [(BYTES, BYTES, 0); 10]);
    let sent = of_kind(&objects(&traced), "sent");
    let hashes: BTreeSet<&str> = sent.iter().map(|o| o.get("content_hash")).collect();
    assert_eq!(hashes.len(), 10, "all differ by one int");
    let shown = run(Command::new(hetrace_tests::hetrace()).arg("print").arg(&traced.folder)).out;
    assert!(shown.contains("object:sent") && shown.contains("content_hash=0x"), "{shown}");
    assert!(hashed(&trace(Platform::Pocl, &["resend", "changed"])).is_empty(), "off by default");
    let outside = ["--hash-copies", "--delay", "1h"];
    assert!(hashed(&trace_with(Platform::Pocl, &outside, &["resend", "changed"])).is_empty(), "no window");
    let excluded = ["--hash-copies", "--exclude", "clEnqueueWriteBuffer"];
    assert!(hashed(&trace_with(Platform::Pocl, &excluded, &["resend", "changed"])).is_empty(), "excluded");
}

#[test]
fn what_cannot_be_hashed_is_said_and_fails_as_ever() {
    const BYTES: u64 = 1 << 20;
    let traced = trace_with(Platform::Pocl, &["--hash-copies"], &["resend", "null"]);
    assert_eq!(hashed(&traced), [(BYTES, 0, 14), (BYTES, BYTES, 0)]);
    assert_eq!(traced.done.out, bare(Platform::Pocl, &["resend", "null"]).out);
    let traced = trace_with(Platform::Pocl, &["--hash-copies"], &["resend", "long"]);
    assert_eq!(hashed(&traced), [(65 << 20, 0, 7)]);
    assert!(traced.done.err.contains("more than 64 MiB are not hashed"), "{}", traced.done.err);
    let traced = trace_with(Platform::Pocl, &["--hash-copies"], &["resend", "bad"]);
    assert_eq!(hashed(&traced), [(BYTES, 0, 14)]);
    let done = bare(Platform::Pocl, &["resend", "bad"]);
    assert_eq!((traced.done.status, &traced.done.out), (done.status, &done.out), "{}", traced.done.err);
    assert_ne!(done.status, 0);
}
