//! However a trace is read for a tally, the result is the same.

mod common;

use hetrace_ctf::read::PacketReader;
use hetrace_model::Model;
use hetrace_report::tally::{By, Options, Query, Reading, Tally, aggregate};
use hetrace_trace::trace::{Exit, Manifest, Trace};
use proptest::prelude::*;

/// How sums are grouped, and whether they are gross.
const GROUPS: [(&[By], bool); 6] = [
    (&[], false),
    (&[By::Thread], false),
    (&[By::Error, By::Name], false),
    (&[By::Queue, By::Host], true),
    (&[By::Range], false),
    (&[By::Layer], false),
];

/// All ways to read a trace must agree on its sums, however they are grouped.
fn agree(trace: &Trace, what: &str) {
    for (by, gross) in GROUPS {
        let tally = |reading| {
            let query = Query { reading, by: by.to_vec(), gross, ..Query::default() };
            aggregate(trace, &Options { extended: true }, &query).expect("nobody stops it").tally()
        };
        let in_order = tally(Reading::InOrder);
        for reading in [Reading::Fastest, Reading::Slices(2), Reading::Slices(7)] {
            let other = tally(reading);
            assert!(in_order == other, "{reading:?} by {by:?}, {}\n{what}", difference(&in_order, &other));
        }
    }
}

/// The first lines of two tallies that differ.
fn difference(one: &Tally, other: &Tally) -> String {
    let [one, other] = [one, other].map(|tally| format!("{tally:#?}"));
    let lines = one.lines().zip(other.lines()).filter(|(one, other)| one != other);
    lines.take(8).map(|(one, other)| format!("in order: {}, so: {}\n", one.trim(), other.trim())).collect()
}

/// What a frame has.
#[derive(Clone, Copy, Debug)]
enum Frame {
    Packets(usize),
    Bytes(usize),
}

/// The same with compressed streams.
fn packed(models: &[Model], script: &str, of: Frame) -> Trace {
    let (class, files) = common::parts(models, script);
    let plain = hetrace_ctf::read::Trace::from_class(class.clone(), files.clone()).expect("a trace");
    let mut packed = Vec::new();
    for ((name, data), stream) in files.into_iter().zip(plain.streams()) {
        assert_eq!(stream.name(), name);
        let mut file = Vec::new();
        let mut frame = |data: &[u8]| file.extend(zstd::bulk::compress(data, 1).expect("compressed"));
        match of {
            Frame::Bytes(bytes) => data.chunks(bytes).for_each(&mut frame),
            Frame::Packets(number) => {
                let (mut packets, mut all) = (PacketReader::new(stream), Vec::new());
                while let Some(packet) = packets.next_packet() {
                    packet.expect("a packet");
                    all.push(packets.bytes().to_vec());
                }
                all.chunks(number).for_each(|several| frame(&several.concat()));
            }
        }
        packed.push((format!("{name}.zst"), file));
    }
    let ctf = hetrace_ctf::read::Trace::from_class(class, packed).expect("a trace");
    let manifest = Manifest { schema: 2, exit: Some(Exit::Code(0)), ..Manifest::default() };
    Trace::new(ctf, models.to_vec(), manifest)
}

/// Compressed streams are cut without looking at all of them.
fn packed_agree(models: &[Model], script: &str) {
    for frame in [Frame::Packets(1), Frame::Packets(3), Frame::Bytes(300)] {
        let trace = packed(models, script, frame);
        let tally = |reading| {
            let query = Query { reading, by: vec![By::Thread, By::Name], ..Query::default() };
            aggregate(&trace, &Options::default(), &query).expect("nobody stops it").tally()
        };
        let in_order = tally(Reading::InOrder);
        let slices = tally(Reading::Slices(3));
        assert_eq!(in_order, slices, "{frame:?} in a frame of {script}");
    }
}

/// The golden traces.
fn scripts() -> Vec<(String, String)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let paths = std::fs::read_dir(folder).expect("the folder").flatten().map(|e| e.path());
    let scripts = paths.filter(|p| p.extension().is_some_and(|e| e == "txt")).map(|path| {
        let text = std::fs::read_to_string(&path).expect("readable");
        (path.display().to_string(), text.split("\n== ").next().unwrap_or("").to_owned())
    });
    scripts.collect()
}

#[test]
fn golden_traces() {
    let scripts = scripts();
    assert!(scripts.len() > 60);
    for (path, script) in &scripts {
        // A tally asks nothing of functions that do not occur.
        let models = common::models_that_occur(script);
        agree(&common::build_with(models, script, |_| {}), path);
    }
}

/// One step of a thread.
#[derive(Clone, Debug)]
enum Step {
    Enter(usize),
    Exit(usize),
    Poll(u8),
    /// Calls that were added up: of which function, and since when.
    Sum(usize, u8),
    /// From now on the thread's calls are added up, or are not.
    Budget(bool),
    Command(u8),
    /// A command that the thread's call so many ns before has enqueued.
    Caused(u8),
    Packet,
    /// The ids are another thread's from now on.
    Again,
    Lose,
    Skip,
}

/// Name, what is passed, what comes back.
type Function = (&'static str, &'static str, &'static str);

const CALLS: &[Function] =
    &[("toyFinish", "queue=0x1", "result=0"), ("toyFree", "address=0x1", ""), ("baseSubmit", "", "result=0")];

/// Ranges of two domains, started ones that any thread ends, collectives alone and in groups, and calls that
/// enqueue.
const MARKS: &[Function] = &[
    ("toyLaunch", "queue=0x1", "result=0"),
    ("toyFinish", "queue=0x1", "result=0"),
    ("zonePush", "message=\"a\"", "result=0"),
    ("zonePush", "registered=0x6 domain=0x5", "result=0"),
    ("zonePop", "", "result=0"),
    ("zonePop", "domain=0x5", "result=0"),
    ("zoneStart", "message=\"c\"", "result=7"),
    ("zoneStart", "message=\"d\"", "result=8"),
    ("zoneEnd", "id=7", ""),
    ("zoneEnd", "id=8", ""),
    ("zoneMark", "message=\"m\"", ""),
    ("zoneDomain", "name=\"solver\"", "result=0x5"),
    ("zoneString", "domain=0x5 string=\"step\"", "result=0x6"),
    ("zoneThread", "thread_id=2 name=\"worker\"", ""),
    ("meshInit", "nranks=2 id={internal=\"one\"} rank=0", "result=0 comm=[0xa]"),
    ("meshAllReduce", "count=10 datatype=MESH_FLOAT comm=0xa stream=0x1", "result=0"),
    ("meshSend", "count=5 datatype=MESH_HALF peer=1 comm=0xa stream=0x1", "result=0"),
    ("meshStart", "", "result=0"),
    ("meshEnd", "", "result=0"),
];

/// Memory of a runtime and of a driver below it, so that calls with a part in it are inside of others.
const MEMORY: &[Function] = &[
    ("cudaMalloc", "size=100", "result=0 devPtr=[0xa000]"),
    ("cudaMalloc", "size=50", "result=0 devPtr=[0xb000]"),
    ("cudaFree", "devPtr=0xa000", "result=0"),
    ("cudaSetDevice", "device=1", "result=0"),
    ("cudaDeviceReset", "", "result=0"),
    ("cudaDeviceSynchronize", "", "result=0"),
    ("cuMemAlloc_v2", "bytesize=64", "result=0 dptr=[0xa000]"),
    ("cuMemAlloc_v2", "bytesize=7", "result=0 dptr=[0xc000]"),
    ("cuMemFree_v2", "dptr=0xa000", "result=0"),
    ("cuMemFree_v2", "dptr=0xc000", "result=0"),
    ("cuCtxSetCurrent", "ctx=0xc2", "result=0"),
    ("cuCtxPushCurrent_v2", "ctx=0xc3", "result=0"),
    ("cuCtxPopCurrent_v2", "", "result=0 pctx=[0xc3]"),
];

/// What stands at the begin of each script: queues, devices and functions.
const DEFINED: &str = "\
    0 1.1 * device device=1 handle=0xd name=\"Toy\"\n\
    0 1.1 * queue queue=1 handle=0x1 device=1 api=\"toy\"\n\
    0 1.1 * queue queue=2 handle=0x2 device=1 api=\"toy\"\n\
    0 1.1 * function function=1 name=\"step\"\n";

fn step(lossy: bool, functions: usize) -> impl Strategy<Value = Step> {
    let rare = if lossy { 1 } else { 0 };
    prop_oneof![
        12 => (0..functions).prop_map(Step::Enter),
        14 => (0..functions).prop_map(Step::Exit),
        5 => prop_oneof![
            2 => (1u8..9).prop_map(Step::Poll),
            2 => (0usize..3, any::<u8>()).prop_map(|(function, back)| Step::Sum(function, back)),
            1 => any::<bool>().prop_map(Step::Budget),
        ],
        2 => (1u8..3).prop_map(Step::Command),
        3 => (0u8..90).prop_map(Step::Caused),
        6 => Just(Step::Packet),
        1 => Just(Step::Again),
        rare => Just(Step::Lose),
        rare => Just(Step::Skip),
    ]
}

fn api_of(function: &str) -> &str {
    let end = function.find(char::is_uppercase).unwrap_or(function.len());
    &function[..end]
}

fn lines(functions: &[Function], steps: &[(u8, u8, Step, bool)], proper: bool) -> String {
    // What recording costs, so much that it is more than some calls.
    let cost = r#"{"call_ns":9.6,"inside_ns":4.4,"fold_ns":3,"fold_inside_ns":1}"#;
    let mut script = format!("manifest {{\"schema\":2,\"exit\":{{\"code\":0}},\"cost\":{cost}}}\n{DEFINED}");
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); 4];
    let mut files: Vec<String> = Vec::new();
    let mut again = [0; 4];
    let mut time = 0u64;
    for (thread, distance, step, fails) in steps {
        let thread = usize::from(*thread % 4);
        let (pid, tid) = (1 + thread / 2, 1 + thread % 3);
        time += u64::from(*distance);
        let api = |function: usize| api_of(functions[function].0);
        let mut event = |api: &str, text: String| {
            let file = format!("{api}-{pid}-{tid}{}", ["", "-b", "-c", "-a"][again[thread] % 4]);
            if !files.contains(&file) {
                files.push(file.clone());
            }
            script += &format!("{time} {pid}.{tid}@{file} {text}\n");
        };
        match step {
            Step::Enter(function) => {
                open[thread].push(*function);
                let (name, passed, _) = functions[*function];
                event(api(*function), format!("> {name} {passed}"));
            }
            Step::Exit(function) => {
                let function = if proper { open[thread].pop() } else { Some(*function) };
                if let Some(function) = function {
                    let (name, _, back) = functions[function];
                    let fails = *fails && !name.starts_with("zone");
                    let back = if fails { failing(name, back, *distance) } else { back.to_owned() };
                    event(api(function), format!("< {name} {back}"));
                }
            }
            Step::Poll(_) | Step::Sum(..) | Step::Budget(_) => event("toy", of_toy(step, time)),
            Step::Command(queue) => {
                script += &format!("{time} {pid}.{pid} * kernel function=1 queue={queue} duration=7\n");
            }
            Step::Again => {
                again[thread] += 1;
                open[thread].clear();
            }
            Step::Caused(before) => {
                let (what, times) = command(*before);
                script += &format!(
                    "{time} {pid}.{pid} * {what} queue=1 cause_tid={tid} cause_before={before} {times}\n"
                );
            }
            Step::Packet => files.iter().for_each(|file| script += &format!("packet {file}\n")),
            Step::Lose => files.iter().take(1).for_each(|file| script += &format!("lose 2 {file}\n")),
            Step::Skip => files.iter().take(1).for_each(|file| script += &format!("skip {file}\n")),
        }
    }
    script
}

/// Many calls in one record, and a step of a budget.
fn of_toy(step: &Step, time: u64) -> String {
    match step {
        Step::Poll(count) => {
            let (first, total) = (time.saturating_sub(5), time.min(3));
            format!("~ toyPoll count={count} first={first} last={time} total={total}")
        }
        Step::Sum(function, back) => {
            // A function that programs poll, too.
            let name = ["toyFinish", "toyPoll", "toyFree"][*function];
            let first = time.saturating_sub(u64::from(*back) * 4);
            let total = (time - first) / 2;
            format!("~ {name} count=3 first={first} last={time} total={total} added_up=1")
        }
        Step::Budget(summed) => {
            format!("s toy one_in=4 summed={} spent_ppm=30000 budget_ppm=20000", u8::from(*summed))
        }
        other => panic!("{other:?} is of threads"),
    }
}

/// What a function that fails returns, of three codes one.
fn failing(name: &str, back: &str, which: u8) -> String {
    // One of them is a state and no failure.
    let codes = match name.starts_with("cu") {
        true => ["result=2", "result=1", "result=600"],
        false => ["result=-5", "result=5", "result=-30"],
    };
    back.replacen("result=0", codes[usize::from(which) % 3], 1)
}

/// A command and its times: all kinds of fields and lists, and of both memory kinds.
fn command(before: u8) -> (String, &'static str) {
    let what = match before % 5 {
        0 => "read function=[1] bytes=4096 from=device to=host".to_owned(),
        1 => format!("copy bytes={before} from=device to=device peer=[1] status=[-3]"),
        2 => "kernel function=1 global=[64,2] local=[8,1] shared=[128]".to_owned(),
        3 => "kernel function=1 global=[64] graph=[4] node=[2] weight=[10]".to_owned(),
        _ => "untimed kind=marker times_error=-2".to_owned(),
    };
    let times = if before % 5 == 4 { "" } else { "queued_before=5 submitted_before=2 duration=40" };
    (what, times)
}

type Steps = Vec<(u8, u8, Step, bool)>;

fn steps(lossy: bool, functions: &[Function]) -> impl Strategy<Value = Steps> + use<> {
    let step = step(lossy, functions.len());
    prop::collection::vec((any::<u8>(), 0u8..40, step, prop::bool::weighted(0.1)), 1..200)
}

fn of_script(script: &str, apis: &[&str]) {
    let mut models = common::models();
    models.retain(|m| apis.contains(&m.api.as_str()));
    agree(&common::build_with(models, script, |_| {}), script);
}

fn calls(steps: &Steps, proper: bool) {
    of_script(&lines(CALLS, steps, proper), &["toy", "base"]);
}

fn marks(steps: &Steps, proper: bool) {
    of_script(&lines(MARKS, steps, proper), &["toy", "zone", "mesh"]);
}

/// Memory, with the models that the libraries of both APIs carry.
fn memory(steps: &Steps, proper: bool) {
    static MODELS: std::sync::LazyLock<Vec<Model>> = std::sync::LazyLock::new(|| {
        // Of models of hundreds of functions, those that occur.
        let mut models = ["cuda", "cudart"].map(common::real_model);
        for model in &mut models {
            model.functions.retain(|f| MEMORY.iter().any(|(name, ..)| *name == f.name));
        }
        let toy = common::models().into_iter().filter(|m| m.api == "toy");
        models.into_iter().chain(toy).collect()
    });
    let script = lines(MEMORY, steps, proper);
    let trace = common::build_with(MODELS.clone(), &script, |_| {});
    agree(&trace, &script);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn memory_of_nested_calls(steps in steps(false, MEMORY)) {
        memory(&steps, true);
    }

    #[test]
    fn memory_of_any_events(steps in steps(true, MEMORY)) {
        memory(&steps, false);
    }

    #[test]
    fn memory_with_losses(steps in steps(true, MEMORY)) {
        memory(&steps, true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compressed(steps in steps(true, CALLS), lossy: bool) {
        let mut steps = steps;
        steps.retain(|(_, _, step, _)| lossy || !matches!(step, Step::Lose | Step::Skip));
        let mut models = common::models();
        models.retain(|m| m.api == "toy" || m.api == "base");
        packed_agree(&models, &lines(CALLS, &steps, true));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nested_calls(steps in steps(false, CALLS)) {
        calls(&steps, true);
    }

    #[test]
    fn any_events(steps in steps(true, CALLS)) {
        calls(&steps, false);
    }

    #[test]
    fn lost_events(steps in steps(true, CALLS)) {
        calls(&steps, true);
    }

    #[test]
    fn ranges_and_collectives(steps in steps(false, MARKS)) {
        marks(&steps, true);
    }

    #[test]
    fn marks_of_any_events(steps in steps(false, MARKS)) {
        marks(&steps, false);
    }

    #[test]
    fn marks_with_losses(steps in steps(true, MARKS)) {
        marks(&steps, true);
    }
}

/// A stream of another tracer, whose events show all bits of the clock, so that its time can go
/// back within a packet.
fn full_clock(events: &[(u8, u64)]) -> Trace {
    let metadata = b"/* CTF 1.8 */
        typealias integer { size = 8; align = 8; } := u8;
        typealias integer { size = 32; align = 8; } := u32;
        typealias integer { size = 64; align = 8; } := u64;
        trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; }; };
        clock { name = c; };
        typealias integer { size = 64; align = 8; map = clock.c.value; } := stamp;
        stream {
            packet.context := struct { u32 vpid; u32 vtid; };
            event.header := struct { u8 id; stamp timestamp; };
        };
        event { name = \"x:work_entry\"; id = 0; fields := struct { u64 pad; }; };
        event { name = \"x:work_exit\"; id = 1; fields := struct { u64 pad; }; };";
    let mut bytes = Vec::new();
    bytes.extend(0xc1fc_1fc1u32.to_le_bytes());
    bytes.extend([1u32, 2].map(u32::to_le_bytes).concat());
    for (id, time) in events {
        bytes.push(*id);
        bytes.extend(time.to_le_bytes());
        bytes.extend([0; 8]);
    }
    let ctf = hetrace_ctf::read::Trace::from_parts(metadata, vec![("x".to_owned(), bytes)]).expect("a trace");
    Trace::new(ctf, Vec::new(), hetrace_trace::trace::Manifest::default())
}

#[test]
fn a_clock_that_steps_back_within_a_packet() {
    let call = |start: u64| [(0, start), (1, start + 5)];
    let mut events: Vec<(u8, u64)> = (1..1000u64).flat_map(|n| call(n * 10)).collect();
    assert_eq!(Summed::of(&full_clock(&events)), Summed { calls: 999, total: 999 * 5, steps: 0 });
    events.extend([(0, 20_000), (1, 300)]);
    events.extend((1..1000u64).flat_map(|n| call(n * 10)));
    let trace = full_clock(&events);
    assert_eq!(Summed::of(&trace), Summed { calls: 1999, total: 1998 * 5, steps: 2 });
    agree(&trace, "a clock that steps back");
}

#[test]
fn traces_of_others_lack_no_manifest() {
    let trace = full_clock(&[(0, 10), (1, 20)]);
    let report = hetrace_report::why::why(&trace, &hetrace_report::why::Options::default());
    assert!(!report.missing.manifest_missing);
    let sums = aggregate(&trace, &Options::default(), &Query::default()).expect("nobody stops it");
    assert!(!sums.tally().manifest_missing);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn streams_of_several_threads(
        big: bool,
        cpus in prop::collection::vec(
            prop::collection::vec(
                (any::<u8>(), prop_oneof![20 => 0u32..50, 1 => any::<u32>()], any::<u8>(),
                 prop::bool::weighted(0.1), prop::bool::weighted(0.1)),
                1..120,
            ),
            1..4,
        ),
    ) {
        let trace = common::cpus::trace(big, &cpus);
        let sums = aggregate(&trace, &Options::default(), &Query::default()).expect("nobody stops it").tally();
        prop_assert_eq!(sums.damaged, 0, "{:?}", sums.damages);
        agree(&trace, &format!("big: {big}, {cpus:?}"));
    }
}

#[derive(Debug, PartialEq)]
struct Summed {
    calls: u64,
    total: u64,
    steps: u64,
}

impl Summed {
    fn of(trace: &Trace) -> Self {
        let sums = aggregate(trace, &Options::default(), &Query::default()).expect("nobody stops it").tally();
        let row = sums.host.first().expect("a row");
        Self { calls: row.calls, total: row.total_ns, steps: sums.steps_back }
    }
}

/// Slices begin in packets of commands, too.
#[test]
fn slices_begin_within_packets_of_commands() {
    for each_packet in [7, 1000] {
        let mut script = DEFINED.to_owned();
        for step in 0..300u64 {
            let (what, times) = command((step % 90) as u8);
            let time = step * 100;
            script += &format!("{time} 1.1 > toyLaunch queue=0x1\n{} 1.1 < toyLaunch result=0\n", time + 5);
            script += &format!("{} 1.1 * {what} queue=1 cause_tid=1 cause_before=6 {times}\n", time + 6);
            if step % each_packet == 0 {
                script += "packet device-1\npacket toy-1-1\n";
            }
        }
        of_script(&script, &["toy"]);
    }
}

/// A record may claim to stand for as many calls as it likes.
#[test]
fn runs_of_more_calls_than_can_be_counted() {
    let most = i64::MAX;
    let mut script = format!("{DEFINED}10 1.1 > toyFinish queue=0x1\n20 1.1 < toyFinish result=0\n");
    for run in 0..3 {
        let at = 100 + run * 50;
        script += &format!("{at} 1.1 ~ toyPoll count={most} first={} last={at} total={most}\n", at - 9);
        script += &format!("{} 1.1 > toyPoll event=0x1\n{} 1.1 < toyPoll result=0\n", at + 1, at + 4);
        script += &format!("{} 1.1 > toyFinish queue=0x1\n{} 1.1 < toyFinish result=-5\n", at + 11, at + 19);
        script += "packet toy-1-1\n";
    }
    of_script(&script, &["toy"]);
}

/// The launch that most are like is found, whichever came first.
#[test]
fn kernels_of_many_shapes() {
    let mut script = DEFINED.to_owned();
    for launch in 0..500u64 {
        // Of four launches one is like others, and all of these come late.
        let size = if launch > 200 && launch % 4 == 0 { 7 } else { 1000 + launch };
        script += &format!(
            "{} 1.1 * kernel function=1 queue=1 global=[{size}] local=[1] duration=7\n",
            launch * 10
        );
        if launch % 20 == 19 {
            script += "packet device-1\n";
        }
    }
    of_script(&script, &["toy"]);
    let tally = hetrace_report::tally::tally(&common::build(&script), &Options::default());
    let launch = tally.device[0].launch.as_ref().expect("a launch");
    assert_eq!((launch.items.as_slice(), launch.calls, launch.shapes), (&[7][..], 74, 427));
}

/// What APIs say of a code does not depend on who reads it first.
#[test]
fn texts_of_one_code() {
    let mut script = DEFINED.to_owned();
    for (tid, time) in [(1, 100), (2, 10), (3, 50)] {
        script += &format!(
            "{time} 1.{tid} > toyFinish queue=0x1\n{time} 1.{tid} ! toy code=-5 text=\"text {tid}\"\n"
        );
        script += &format!("{} 1.{tid} < toyFinish result=-5\n", time + 5);
    }
    of_script(&script, &["toy"]);
}

/// What is damaged where slices meet is damaged once.
#[test]
fn damage_where_slices_meet() {
    let mut script = DEFINED.to_owned();
    let time = |call: u64| 0x1_0000 + call * 0x100;
    for call in 0..60 {
        let at = time(call);
        script += &format!("{at} 1.1 > toyFinish queue=0x1\n{} 1.1 < toyFinish result=0\n", at + 5);
        script += &format!("{} 1.1 * kernel function=1 queue=1 duration=7\n", at + 7);
        if call % 5 == 4 {
            script += "packet toy-1-1\npacket device-1\n";
        }
    }
    let whole =
        common::Assembled::new(common::models().into_iter().filter(|m| m.api == "toy").collect(), &script);
    for (call, offset) in (0..60).flat_map(|call| [(call, 0), (call, 5), (call, 7)]) {
        let event = ((time(call) + offset) as u32).to_le_bytes();
        let mut hit = 0;
        let trace = whole.trace(|bytes| {
            // Before the clock of an event is its id, which is of none then.
            for at in (80..bytes.len() - 4).filter(|at| bytes[*at..at + 4] == event).collect::<Vec<_>>() {
                if bytes[at - 1] == 0 {
                    bytes[at - 1] = 0xff;
                    hit += 1;
                }
            }
        });
        assert!(hit > 0);
        agree(&trace, &format!("call {call} with damage at {offset}"));
    }
}

/// Two APIs may have ranges and communicators: neither pops those of the other, nor means its handles.
#[test]
fn ranges_and_communicators_of_two_apis() {
    let mut models = common::models();
    models.retain(|m| m.api == "zone" || m.api == "mesh");
    let text =
        serde_json::to_string(&models).expect("models").replace("zone", "area").replace("mesh", "grid");
    models.extend(serde_json::from_str::<Vec<Model>>(&text).expect("models"));
    let mut script = String::new();
    let mut call = |time: u64, name: &str, passed: &str, back: &str| {
        script += &format!("{time} 1.1 > {name} {passed}\n{} 1.1 < {name} {back}\n", time + 1);
    };
    call(10, "zonePush", "message=\"outer\"", "result=0");
    call(20, "areaPush", "message=\"other\"", "result=0");
    call(30, "zonePop", "", "result=0");
    call(40, "areaPop", "", "result=0");
    call(50, "zoneStart", "message=\"started\"", "result=7");
    call(60, "areaEnd", "id=7", "");
    call(70, "zoneEnd", "id=7", "");
    call(80, "meshInit", "nranks=2 id={internal=\"one\"} rank=0", "result=0 comm=[0xa]");
    call(90, "gridInit", "nranks=4 id={internal=\"two\"} rank=0", "result=0 comm=[0xa]");
    call(100, "meshAllReduce", "count=10 datatype=MESH_FLOAT comm=0xa stream=0x1", "result=0");
    // A call of one inside of a call of the other.
    script += "110 1.1 > areaPush message=\"outside\"\n";
    script += "112 1.1 > zonePush message=\"inside\"\n114 1.1 < zonePush result=0\n";
    script += "116 1.1 < areaPush result=0\n120 1.1 > areaPop\n121 1.1 < areaPop result=0\n";
    let trace = common::build_with(models, &script, |_| {});
    agree(&trace, &script);
    let tally = hetrace_report::tally::tally(&trace, &Options::default());
    let mut ranges: Vec<_> = tally.ranges.iter().map(|r| (r.name.as_str(), r.total_ns)).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [("other", 19), ("outer", 19), ("outside", 4), ("started", 19)]);
    assert_eq!((tally.unmatched_range_ends, tally.open_ranges.len()), (1, 1));
    let sizes: Vec<_> = tally.collectives.iter().map(|row| (row.operation.as_str(), row.size)).collect();
    assert_eq!(sizes, [("all-reduce", Some(2))]);
}

/// An API whose commands nobody times says so where some were enqueued, and only there.
#[test]
fn commands_that_nobody_times_are_said() {
    let notes = |script: &str| {
        let mut models = common::models();
        models.retain(|m| m.api == "base");
        models.iter_mut().for_each(|m| m.untimed = Some("nobody looks".to_owned()));
        let titles: Vec<String> = models.iter().map(|m| m.title.clone()).collect();
        let trace = common::build_with(models, script, |_| {});
        let notes = hetrace_report::tally::tally(&trace, &Options::default()).notes.join("\n");
        (notes, format!("{}: commands on devices have no times: nobody looks.", titles[0]))
    };
    let (said, expected) = notes("100 1.1 > baseSubmit\n200 1.1 < baseSubmit result=0\n");
    assert!(said.contains(&expected), "{said}");
    let (said, expected) = notes("100 1.1 > baseSubmit\n200 1.1 < baseSubmit result=7\n");
    assert!(!said.contains(&expected), "a call that failed has enqueued nothing: {said}");
}
