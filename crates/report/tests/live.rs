//! A trace that is followed while it grows has, in the end, the tally of the finished one: whatever pieces it came in.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use hetrace_ctf::class::TraceClass;
use hetrace_ctf::read::{Part, Repeated};
use hetrace_ctf::tsdl::Growing;
use hetrace_model::Model;
use hetrace_report::tally::{By, Live, LiveText, Options, Picture, Query, Tally, aggregate};
use hetrace_trace::follow::Follower;
use hetrace_trace::trace::Trace;
use proptest::prelude::*;

/// A trace that somebody writes, piece by piece.
struct Writer {
    folder: tempdir::Folder,
    class: TraceClass,
    models: Vec<Model>,
    /// Name, bytes, and the begins and ends of its packets with their times.
    streams: Vec<Stream>,
    text: Growing,
    metadata: String,
    declared: BTreeSet<u64>,
    compress: bool,
    /// The part that is written, of a series.
    part: Option<u32>,
}

struct Stream {
    name: String,
    bytes: Vec<u8>,
    /// Where each packet ends, and when it begins.
    packets: Vec<(usize, u64)>,
    written: usize,
    /// Where it goes on in the part that is written.
    begin: usize,
    class: u64,
}

mod tempdir {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A folder that is removed in the end.
    pub struct Folder(PathBuf);

    impl Folder {
        pub fn make() -> Self {
            static NEXT: AtomicU32 = AtomicU32::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("hetrace-live-{}-{number}", std::process::id()));
            std::fs::create_dir_all(&path).expect("a folder");
            Self(path)
        }

        pub fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

impl Writer {
    fn new(script: &str, compress: bool) -> Self {
        let models = common::models_that_occur(script);
        let (class, files) = common::parts(&models, script);
        let whole = hetrace_ctf::read::Trace::from_class(class.clone(), files.clone()).expect("a trace");
        let streams = files.into_iter().enumerate().map(|(index, (name, bytes))| {
            let packets = whole.heads(index).expect("heads");
            let packets = packets
                .map(|head| ((head.offset + head.size) as usize, head.timestamp_begin.expect("a begin")));
            let mut reader = whole.stream(index).expect("a stream");
            let first = reader.next_event().expect("an event").expect("one that can be read");
            let class = first.stream_class().id;
            Stream { name, bytes, packets: packets.collect(), written: 0, begin: 0, class }
        });
        let streams = streams.collect();
        let mut frame = class.clone();
        frame.streams.iter_mut().for_each(|stream| stream.events.clear());
        let (text, metadata) = Growing::begin(&frame);
        let folder = tempdir::Folder::make();
        fs::create_dir_all(folder.path().join("hetrace/model")).expect("a folder");
        let manifest = script.lines().find_map(|line| line.strip_prefix("manifest "));
        fs::write(folder.path().join("hetrace/manifest.json"), manifest.unwrap_or(r#"{"schema":2}"#))
            .expect("a manifest");
        let declared = BTreeSet::new();
        let part = None;
        let writer = Self { folder, class, models, streams, text, metadata, declared, compress, part };
        writer.write_metadata();
        writer
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Where the trace is that is written: the folder, or that of a part.
    fn trace(&self) -> PathBuf {
        self.part.map_or_else(|| self.path().to_owned(), |part| self.path().join(Part::name(part)))
    }

    fn write_metadata(&self) {
        fs::write(self.trace().join("metadata"), &self.metadata).expect("metadata");
    }

    /// Begins the first or the next part: what follows goes there. Nothing is repeated.
    fn go_over(&mut self) {
        let old = self.trace();
        self.part = Some(self.part.unwrap_or(0) + 1);
        let hidden = self.path().join(".next");
        fs::create_dir_all(hidden.join("hetrace/model")).expect("a folder");
        let mut part = Part { number: self.part.unwrap_or(0), ..Part::default() };
        for stream in &mut self.streams {
            stream.begin = stream.written;
            let packets = stream.packets.iter().filter(|(end, _)| *end <= stream.written).count() as u64;
            part.earlier.insert(stream.name.clone(), Repeated { bytes: 0, packets });
        }
        fs::write(hidden.join(Part::FILE), part.to_text()).expect("what it repeats");
        fs::copy(old.join("hetrace/manifest.json"), hidden.join("hetrace/manifest.json"))
            .expect("a manifest");
        for model in fs::read_dir(old.join("hetrace/model")).expect("models").flatten() {
            fs::copy(model.path(), hidden.join("hetrace/model").join(model.file_name())).expect("a model");
        }
        fs::copy(old.join("metadata"), hidden.join("metadata")).expect("metadata");
        if part.number == 1 {
            fs::remove_file(old.join("metadata")).expect("no trace");
            fs::remove_dir_all(old.join("hetrace")).expect("no trace");
        }
        fs::rename(hidden, self.trace()).expect("a name");
    }

    /// Declares the events of a stream class, and writes the models that they need.
    fn declare(&mut self, id: u64) {
        if !self.declared.insert(id) {
            return;
        }
        let class = self.class.streams.iter().find(|class| class.id == id).expect("a class");
        for model in &self.models {
            if class.events.iter().any(|event| event.name.starts_with(&format!("{}:", model.api))) {
                let json = serde_json::to_string(model).expect("JSON");
                let path = self.trace().join(format!("hetrace/model/{}.json", model.api));
                fs::write(path, json).expect("a model");
            }
        }
        for event in &class.events {
            self.metadata += &self.text.event(id, event);
        }
        self.write_metadata();
    }

    /// Writes all that is before a time, and of each stream some more bytes.
    fn write(&mut self, until: u64, more: &mut impl FnMut() -> usize) {
        for at in 0..self.streams.len() {
            let stream = &self.streams[at];
            let needed = stream.packets.iter().filter(|(_, begin)| *begin < until).map(|(end, _)| *end).max();
            let mut end =
                needed.unwrap_or(0).max(stream.written).saturating_add(more()).min(stream.bytes.len());
            if self.part.is_some() {
                // A part ends with a whole packet.
                let whole = stream.packets.iter().map(|(whole, _)| *whole).filter(|whole| *whole <= end);
                end = whole.max().unwrap_or(0);
            }
            let path = self.trace().join(&stream.name);
            if end > stream.written {
                self.declare(self.streams[at].class);
                let stream = &mut self.streams[at];
                stream.written = end;
                if self.compress {
                    // A frame per packet; the last may be cut.
                    let mut begin = stream.begin;
                    let mut out = Vec::new();
                    for (packet, _) in stream.packets.iter().filter(|(packet, _)| *packet > stream.begin) {
                        let frame = zstd::bulk::compress(&stream.bytes[begin..*packet], 1).expect("a frame");
                        let whole = *packet <= end;
                        if !whole && self.part.is_some() {
                            break;
                        }
                        let part = if whole { frame.len() } else { frame.len() / 2 };
                        out.extend_from_slice(&frame[..part]);
                        begin = *packet;
                        if !whole {
                            break;
                        }
                    }
                    fs::write(path.with_extension("zst"), out).expect("a stream");
                } else {
                    fs::write(path, &stream.bytes[stream.begin..end]).expect("a stream");
                }
            }
        }
    }

    fn finish(&mut self) {
        self.write(u64::MAX, &mut || usize::MAX);
    }
}

/// Follows a trace up to its end.
fn take_all(live: &mut Live, follower: &mut Follower, until: Option<u64>) {
    while live.follow(follower, until).expect("it can be followed").more {}
}

fn finished(live: &mut Live, follower: &mut Follower) -> Picture {
    take_all(live, follower, None);
    follower.steps_mut().finish(live);
    live.picture(follower, None, true)
}

/// What both say.
fn shared(tally: &Tally) -> serde_json::Value {
    // Energy takes telemetry, which is in the finished trace's tally only.
    let mut device = tally.device.clone();
    device.iter_mut().for_each(|row| row.energy = None);
    serde_json::json!({
        "host": tally.host, "device": device, "traffic": tally.traffic, "apis": tally.apis,
        "errors": tally.errors, "lost": [tally.lost_events, tally.lost_packets],
        "unfinished": tally.unfinished_calls, "orphans": tally.orphaned_exits, "untimed": tally.untimed_commands,
        "duration": tally.duration_ns, "queues": tally.queues, "unknown": tally.unknown,
        "tracing": tally.tracing,
    })
}

/// Goes through a script with these times between pieces, and compares.
fn check(script: &str, times: &[u64], by: &[By], compress: bool, more: impl FnMut() -> usize) {
    check_parts(script, times, by, (compress, false), more);
}

/// The same; with a new part at some of the times, if that is asked for.
fn check_parts(
    script: &str,
    times: &[u64],
    by: &[By],
    (compress, in_parts): (bool, bool),
    mut more: impl FnMut() -> usize,
) {
    let mut writer = Writer::new(script, compress);
    if in_parts {
        writer.go_over();
    }
    let mut follower = Follower::open(writer.path()).expect("a trace");
    let mut live = Live::new(follower.trace(), by.to_vec());
    let mut events = 0;
    for time in times {
        writer.write(*time, &mut more);
        // One or two more, before somebody looks.
        for _ in 0..if in_parts { more() % 3 } else { 0 } {
            writer.go_over();
        }
        take_all(&mut live, &mut follower, Some(*time));
        let now = live.picture(&follower, Some(*time), false);
        assert!(now.events >= events, "{} after {events}", now.events);
        events = now.events;
    }
    writer.finish();
    let last = finished(&mut live, &mut follower);
    assert_eq!(last.unreadable, Vec::<String>::new());
    let trace = Trace::open(writer.path()).expect("a trace");
    let query = Query { by: by.to_vec(), ..Query::default() };
    let whole = aggregate(&trace, &Options::default(), &query).expect("nobody stops it").tally();
    let (followed, whole) = (shared(&last.tally), shared(&whole));
    let [followed, whole] = [followed, whole].map(|all| serde_json::to_string_pretty(&all).expect("JSON"));
    let differ = followed.lines().zip(whole.lines()).filter(|(a, b)| a != b).take(8).collect::<Vec<_>>();
    assert!(followed == whole, "{differ:#?} at {times:?} of\n{script}");
}

/// Calls of two threads in two APIs, in each other, with packets of all sizes; with losses, if asked for.
fn program(choices: &[u8], losses: bool) -> String {
    let mut script = String::from(
        "0 1.1 * device device=1 handle=0xd name=\"Toy GPU\"\n0 1.1 * queue queue=1 handle=0x10 device=1 api=\"toy\"\n\
         0 1.1 * function function=1 name=\"add\"\n",
    );
    let functions = ["toy toyFinish", "base baseWait", "toy toyLaunch", "base baseSubmit"];
    let mut open: [Vec<&str>; 2] = [Vec::new(), Vec::new()];
    let mut seen = BTreeSet::new();
    for (at, choice) in choices.iter().enumerate() {
        let time = 100 * (at as u64 + 1);
        let thread = usize::from(*choice) % 2;
        let function = functions[usize::from(*choice / 2) % 4];
        let line = |sign: &str, function: &str, rest: &str| {
            let (api, name) = function.split_once(' ').expect("two words");
            format!("{time} 1.{}@{api}{thread} {sign} {name} {rest}\n", thread + 1)
        };
        let file = |function: &str| format!("{}{thread}", function.split_once(' ').expect("two words").0);
        match choice / 8 {
            0..=12 if open[thread].len() < 4 => {
                script += &line(">", function, "");
                seen.insert(file(function));
                open[thread].push(function);
            }
            0..=24 => {
                if let Some(function) = open[thread].pop() {
                    script += &line("<", function, if choice % 5 == 0 { "result=-5" } else { "result=0" });
                }
            }
            25 | 26 => script += &format!("{time} 1.1 * kernel function=1 queue=1 cause_tid=1 duration=40\n"),
            27 if losses => {
                if let Some(file) = seen.iter().nth(usize::from(*choice) % seen.len().max(1)) {
                    script += &format!("lose 3 {file}\n");
                }
            }
            _ => {
                if let Some(file) = seen.iter().nth(usize::from(*choice) % seen.len().max(1)) {
                    script += &format!("packet {file}\n");
                }
            }
        }
    }
    script
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_pieces_give_the_tally_of_the_whole(
        choices in prop::collection::vec(any::<u8>(), 1..300),
        mut times in prop::collection::vec(0u64..31_000, 0..12),
        more in prop::collection::vec(0usize..600, 1..40),
        losses in any::<bool>(),
        compress in any::<bool>(),
        by in prop::sample::select(vec![vec![], vec![By::Thread], vec![By::Name, By::Process]]),
    ) {
        times.sort_unstable();
        let mut at = 0;
        let next = || {
            at += 1;
            more[at % more.len()]
        };
        check(&program(&choices, losses), &times, &by, compress, next);
    }

    #[test]
    fn a_series_of_parts_gives_the_tally_of_the_whole(
        choices in prop::collection::vec(any::<u8>(), 1..300),
        mut times in prop::collection::vec(0u64..31_000, 0..12),
        more in prop::collection::vec(0usize..600, 1..40),
        compress in any::<bool>(),
        by in prop::sample::select(vec![vec![], vec![By::Thread], vec![By::Name, By::Process]]),
    ) {
        times.sort_unstable();
        let mut at = 0;
        let next = || {
            at += 1;
            more[at % more.len()]
        };
        check_parts(&program(&choices, false), &times, &by, (compress, true), next);
    }
}

#[test]
fn the_golden_traces_give_their_tallies() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut checked = 0;
    for entry in fs::read_dir(folder).expect("golden traces") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // What is cut or goes back is not what a launcher leaves while it writes; kernels' traces are not followed.
        let skipped = ["hard_late.txt"];
        let text = fs::read_to_string(&path).expect("a golden trace");
        let script = text.split("\n== ").next().unwrap_or_default();
        let odd = ["\ncut ", " cpu0 ", "steps back"].iter().any(|odd| script.contains(odd));
        if !name.ends_with(".txt") || skipped.contains(&&*name) || odd || name == "empty.txt" {
            continue;
        }
        let last = |line: &str| line.split(' ').next()?.parse::<u64>().ok();
        let mut times: Vec<u64> = script.lines().filter_map(last).collect();
        times.sort_unstable();
        times.dedup();
        println!("{name}");
        check(script, &times, &[], false, || 0);
        checked += 1;
    }
    assert!(checked > 40, "{checked} golden traces");
}

/// A program in the middle of its work: compared with `golden_live/NAME.txt`; `BLESS=1` writes that anew.
fn looks_like(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden_live").join(name);
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, shown).expect("a golden file");
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(golden, shown, "{}", path.display());
}

const WORK: &str = r#"manifest {"schema":2,"command":["./work","-n"],"start_ns":0}
0ms 1.1 * device device=1 handle=0xd name="Toy GPU"
0ms 1.1 * queue queue=1 handle=0x10 device=1 api="toy"
0ms 1.1 * function function=1 name="add"
0ms 1.1 * function function=2 name="\u{1b}[2Jmul"
1ms 1.1 > toyLaunch queue=0x10
2ms 1.1 < toyLaunch result=0
3ms 1.1 > toyFinish queue=0x10
4ms 1.2 > toyLaunch queue=0x10
5ms 1.2 < toyLaunch result=-5
40ms 1.1 * kernel function=1 queue=1 duration=20000000
60ms 1.1 < toyFinish result=0
packet toy1.1
lose 3 toy1.1
1070ms 1.1 > toyBuild
1080ms 1.1 > baseWait
1090ms 1.2 > toyLaunch queue=0x10
1091ms 1.2 < toyLaunch result=0
1500ms 1.1 * kernel function=2 queue=1 duration=300000000
"#;

#[test]
fn a_picture_shows_rates_shares_losses_and_open_calls() {
    let script = WORK
        .replace("toy1.1", "toy")
        .replace(" 1.1 > toy", " 1.1@toy > toy")
        .replace(" 1.1 < toy", " 1.1@toy < toy");
    let mut writer = Writer::new(&script.replace("\\u{1b}", "\u{1b}"), false);
    let mut follower = Follower::open(writer.path()).expect("a trace");
    let mut live = Live::new(follower.trace(), Vec::new());
    writer.write(1_000_000_000, &mut || 0);
    take_all(&mut live, &mut follower, Some(1_000_000_000));
    let first = live.picture(&follower, Some(1_000_000_000), false);
    writer.finish();
    take_all(&mut live, &mut follower, Some(2_000_000_000));
    let second = live.picture(&follower, Some(2_000_000_000), false);
    let title = "hetrace top | process 7 | ./work".to_owned();
    let plain = LiveText { title, ..LiveText::default() };
    looks_like("first.txt", &first.text(&plain));
    looks_like("second.txt", &second.text(&plain));
    let small = LiveText { colour: true, width: Some(60), height: Some(14), ..plain.clone() };
    let text = second.text(&small);
    assert!(text.lines().count() <= 14, "{text}");
    looks_like("small.txt", &text.replace('\x1b', "␛"));
    let full = LiveText { height: Some(30), ..plain };
    assert!(second.text(&full).lines().count() <= 30);
    looks_like("line.txt", &(second.line() + "\n"));
    let json = serde_json::to_value(&second).expect("JSON");
    assert_eq!(json["interval_ns"], 1_000_000_000);
    assert_eq!(json["open_calls"][0]["name"], "baseWait");
}

#[test]
fn what_is_no_stream_of_the_trace_breaks_only_itself() {
    let script = "1 1.1@a > toyFinish\n2 1.1@a < toyFinish result=0\n3 1.2@b > toyFinish\n4 1.2@b < toyFinish result=0\n";
    let mut writer = Writer::new(script, false);
    let mut follower = Follower::open(writer.path()).expect("a trace");
    let mut live = Live::new(follower.trace(), Vec::new());
    fs::write(writer.path().join("noise"), [0xa5; 5000]).expect("a file");
    fs::write(writer.path().join("zeros"), [0; 5000]).expect("a file");
    fs::write(writer.path().join("noise2.zst"), [0xa5; 5000]).expect("a file");
    std::os::unix::fs::symlink("/dev/zero", writer.path().join("link")).expect("a link");
    fs::create_dir(writer.path().join("folder")).expect("a folder");
    writer.finish();
    take_all(&mut live, &mut follower, Some(10));
    // A file that becomes shorter says so, and what was read of it stays.
    fs::write(writer.path().join("a"), [1, 2, 3]).expect("a file");
    let last = finished(&mut live, &mut follower);
    let broken: Vec<&str> = last.unreadable.iter().filter_map(|why| why.split(':').next()).collect();
    assert!(broken.contains(&"noise") && broken.contains(&"zeros") && broken.contains(&"a"), "{broken:?}");
    assert!(!broken.contains(&"link") && !broken.contains(&"folder") && !broken.contains(&"b"), "{broken:?}");
    let calls: u64 = last.tally.host.iter().map(|row| row.calls).sum();
    assert_eq!(calls, 2);
}

#[test]
fn memory_is_flat_and_each_look_costs_what_is_new() {
    // 400 packets of one thread: between looks nothing is kept of those that are read.
    let mut script = String::new();
    for n in 0..4000 {
        script += &format!("{} 1.1@toy > toyFinish\n{} 1.1@toy < toyFinish result=0\n", 10 * n, 10 * n + 5);
        if n % 10 == 9 {
            script += "packet toy\n";
        }
    }
    let mut writer = Writer::new(&script, false);
    let mut follower = Follower::open(writer.path()).expect("a trace");
    let mut live = Live::new(follower.trace(), Vec::new());
    let mut bytes = 0;
    for time in (0..40_000).step_by(1000) {
        writer.write(time, &mut || 0);
        let look = live.follow(&mut follower, Some(time)).expect("it can be followed");
        bytes += look.bytes;
        assert!(follower.kept_bytes() < 4096, "{}", follower.kept_bytes());
    }
    writer.finish();
    let last = finished(&mut live, &mut follower);
    assert!(bytes < last.bytes && last.bytes == writer.streams[0].bytes.len() as u64);
    assert_eq!(last.tally.host[0].calls, 4000);
}
