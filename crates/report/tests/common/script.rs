//! A script to a trace.

use std::collections::{BTreeMap, HashSet};

use hetrace_ctf::class::TraceClass;
use hetrace_ctf::write::{Encoder, PacketWriter, StreamIdentity};
use hetrace_trace::trace::{Exit, Manifest, Trace};

use hetrace_model::Model;

use super::{kernel, models, schema, value};

/// Device events that have a file of their own.
const DEFINITIONS: [&str; 5] = ["device", "property", "queue", "function", "launches"];

struct Stream {
    writer: PacketWriter,
    ids: (i64, i64),
    bytes: Vec<u8>,
    last: u64,
    cut: usize,
    skip_packet: bool,
}

impl Stream {
    fn finish_packet(&mut self) {
        if !self.writer.is_empty() {
            let packet = self.writer.finish(8);
            if !std::mem::take(&mut self.skip_packet) {
                self.bytes.extend_from_slice(packet);
            }
        }
    }
}

struct Script {
    class: TraceClass,
    streams: BTreeMap<String, Stream>,
    manifest: Manifest,
    /// Events of the kernel, by CPU.
    kernel: BTreeMap<u32, Vec<kernel::Event>>,
}

/// Builds the trace that a script describes.
///
/// APIs beside `toy` are only there if the script names them. `# uses opencl` takes the
/// real model of that API, and no other.
pub fn build(text: &str) -> Trace {
    build_with(models_of(text), text, |_| {})
}

/// The APIs of a script.
pub fn models_of(text: &str) -> Vec<Model> {
    let real: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# uses ")).collect();
    if !real.is_empty() {
        return real.into_iter().map(super::real_model).collect();
    }
    let mut models = models();
    models.retain(|m| m.api == "toy" || text.contains(&m.api));
    models
}

/// The same, of which real models have no functions but those that occur: for reports that ask nothing of others.
pub fn models_that_occur(text: &str) -> Vec<Model> {
    let mut models = models_of(text);
    if text.contains("# uses ") {
        let words: HashSet<&str> = text.split_whitespace().collect();
        models.iter_mut().for_each(|model| model.functions.retain(|f| words.contains(f.name.as_str())));
    }
    models
}

/// The same with these APIs, and streams that `damage` may change.
pub fn build_with(models: Vec<Model>, text: &str, damage: impl FnMut(&mut Vec<u8>)) -> Trace {
    Assembled::new(models, text).trace(damage)
}

/// Metadata and stream files, for those who want a trace on disk.
pub fn parts(models: &[Model], text: &str) -> (TraceClass, Vec<(String, Vec<u8>)>) {
    let (script, files) = assemble(models, text);
    (script.class, files)
}

/// What a script describes, for those who want to damage it in more than one way: most of the work is done once.
pub struct Assembled {
    models: Vec<Model>,
    script: Script,
    files: Vec<(String, Vec<u8>)>,
}

impl Assembled {
    pub fn new(models: Vec<Model>, text: &str) -> Self {
        let (script, files) = assemble(&models, text);
        Self { models, script, files }
    }

    /// A trace with streams that `damage` may change.
    pub fn trace(&self, mut damage: impl FnMut(&mut Vec<u8>)) -> Trace {
        let mut files = self.files.clone();
        files.iter_mut().for_each(|(_, bytes)| damage(bytes));
        let Script { class, manifest, kernel, .. } = &self.script;
        let ctf = hetrace_ctf::read::Trace::from_class(class.clone(), files).expect("a trace");
        let mut trace = Trace::new(ctf, self.models.clone(), manifest.clone());
        if !kernel.is_empty() {
            trace.join_system(kernel::system(kernel));
        }
        trace
    }
}

fn assemble(models: &[Model], text: &str) -> (Script, Vec<(String, Vec<u8>)>) {
    let manifest = Manifest { schema: 2, exit: Some(Exit::Code(0)), ..Manifest::default() };
    // Real models have hundreds of functions, for each of which three events would be declared.
    let words: HashSet<&str> = text.split_whitespace().collect();
    let all = !text.contains("# uses ");
    let mut class = schema::trace(models, |function| all || words.contains(function));
    // As in traces, where only what occurs is declared.
    if !text.contains(":budget_step") && !text.contains(" s ") {
        class.streams.iter_mut().for_each(|s| s.events.retain(|e| !e.name.ends_with(":budget_step")));
    }
    if !text.contains(" q sample ") {
        class.streams.retain(|stream| stream.events.iter().all(|event| event.name != "cpu:sample"));
    }
    let mut script = Script { class, streams: BTreeMap::new(), manifest, kernel: BTreeMap::new() };
    for line in text.lines() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            script.line(line);
        }
    }
    let mut files = Vec::new();
    for (name, mut stream) in std::mem::take(&mut script.streams) {
        stream.finish_packet();
        let keep = stream.bytes.len().saturating_sub(stream.cut);
        stream.bytes.truncate(keep);
        files.push((name, stream.bytes));
    }
    (script, files)
}

impl Script {
    fn line(&mut self, line: &str) {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        match first {
            "manifest" => {
                self.manifest = Manifest::parse(rest.as_bytes()).expect("a manifest");
            }
            "packet" => self.stream(rest).finish_packet(),
            "lose" => {
                let (n, file) = rest.split_once(' ').expect("lose N FILE");
                let n = value::number(n) as u64;
                self.stream(file).writer.discard(n);
            }
            "skip" => {
                let stream = self.stream(rest);
                stream.finish_packet();
                stream.skip_packet = true;
            }
            "cut" => {
                let (n, file) = rest.split_once(' ').expect("cut N FILE");
                self.stream(file).cut = value::number(n) as usize;
            }
            time => self.event(value::number(time) as u64, rest),
        }
    }

    fn stream(&mut self, file: &str) -> &mut Stream {
        self.streams.get_mut(file).unwrap_or_else(|| panic!("no file {file} yet"))
    }

    /// `PID.TID[@FILE] SIGN NAME key=value…`, or `cpuN NAME key=value…`
    fn event(&mut self, time: u64, text: &str) {
        let mut words = words(text).into_iter();
        let mut word = || words.next().unwrap_or_else(|| panic!("incomplete: {text}"));
        let who = word();
        if let Some(cpu) = who.strip_prefix("cpu") {
            let event = (time, word(), words.map(pair).collect());
            self.kernel.entry(value::number(cpu) as u32).or_default().push(event);
            return;
        }
        let (sign, name) = (word(), word());
        let given: Vec<_> = words.map(pair).collect();
        let (ids, file) = who.split_once('@').unwrap_or((&who, ""));
        let (pid, tid) = ids.split_once('.').expect("PID.TID");
        let ids = (value::number(pid), value::number(tid));
        let ends = event_name(&sign, &name);
        let fits = |e: &&hetrace_ctf::class::EventClass| e.name.ends_with(&ends);
        let (stream_class, class) = self
            .class
            .streams
            .iter()
            .find_map(|s| Some((s, s.events.iter().find(fits)?)))
            .unwrap_or_else(|| panic!("no event {ends}"));
        let mut encoder = Encoder::new();
        encoder.structure(&class.fields, &value::fields(&class.fields, &given)).expect("fits");
        let api = class.name.split(':').next().unwrap_or("");
        let file = match (file, sign.as_str()) {
            ("", "*") if DEFINITIONS.contains(&&*name) => format!("device-{pid}-names"),
            ("", "n" | "p") => format!("device-{pid}-names"),
            ("", "*" | "#") => format!("device-{pid}"),
            ("", "^") => "telemetry-1".to_owned(),
            ("", "q") => "samples-1".to_owned(),
            ("", _) => format!("{api}-{pid}-{tid}"),
            (file, _) => file.to_owned(),
        };
        let (stream_class, class) = (stream_class.id as u32, class.id as u16);
        let stream = self.stream_at(stream_class, file, ids, time);
        stream.writer.event(class, time, &encoder.into_bytes()).expect("fits in a packet");
    }

    /// The stream of a file, made where there is none, ready for an event of this thread at this time.
    fn stream_at(&mut self, stream_class: u32, file: String, ids: (i64, i64), time: u64) -> &mut Stream {
        let identity = StreamIdentity {
            uuid: [9; 16],
            stream_id: stream_class,
            stream_instance_id: instance(&file),
            vpid: ids.0 as i32,
            vtid: ids.1 as i32,
            procname: *b"app\0\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        let stream = self.streams.entry(file).or_insert_with(|| Stream {
            writer: PacketWriter::new(identity),
            ids,
            bytes: Vec::new(),
            last: 0,
            cut: 0,
            skip_packet: false,
        });
        if stream.ids != ids || stream.last > time {
            stream.finish_packet();
        }
        // A writer goes forward only; a clock that steps back is another writer's.
        if stream.ids != ids || stream.last > time {
            stream.writer = PacketWriter::new(identity);
            stream.ids = ids;
        }
        stream.last = time;
        stream
    }
}

/// `key=value`.
fn pair(word: String) -> (String, String) {
    let (key, value) = word.split_once('=').unwrap_or_else(|| panic!("{word}: key=value"));
    (key.to_owned(), value.to_owned())
}

/// How the name of the event ends that a line with this sign means.
fn event_name(sign: &str, name: &str) -> String {
    let suffix = match sign {
        ">" => "_entry",
        "<" => "_exit",
        "~" => "_fold",
        "*" | "?" | "!" | "^" | "w" | "s" | "#" | "n" | "p" | "k" | "y" | "q" => "",
        other => panic!("no sign {other}"),
    };
    match sign {
        "*" => format!("device:{name}"),
        "?" => format!("{name}:unknown"),
        "!" => format!("{name}:error_text"),
        "^" => format!("telemetry:{name}"),
        "w" => format!("{name}:own_work"),
        "s" => format!("{name}:budget_step"),
        "#" => format!("object:{name}"),
        "n" => format!("native:{name}"),
        "q" => format!("cpu:{name}"),
        "p" => format!("python:{name}"),
        "k" => format!("{name}:stack"),
        "y" => format!("{name}:py_stack"),
        _ => format!(":{name}{suffix}"),
    }
}

/// What distinguishes a file's stream from others of its class, which independent readers would join.
fn instance(file: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    file.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Splits at spaces outside of quotes.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut quoted) = (vec![String::new()], false);
    for c in text.chars() {
        quoted ^= c == '"';
        match words.last_mut() {
            Some(word) if c != ' ' || quoted => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// A trace of many equal calls, made without a script: a call takes 100 ns, and
/// threads are a little apart.
pub fn long(models: Vec<Model>, threads: u64, calls: u64) -> Trace {
    let class = schema::trace(&models, |_| true);
    let id = |name: &str| {
        let events = class.streams.iter().flat_map(|s| &s.events);
        events.filter(|e| e.name == name).map(|e| e.id as u16).next().expect("an event")
    };
    let (entry, exit) = (id("toy:toySetArg_entry"), id("toy:toySetArg_exit"));
    // kernel, index, size, the length of the value and the value
    let mut passed = vec![3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    passed.extend([0xa0; 8]);
    let mut files = Vec::new();
    for thread in 0..threads {
        let identity = StreamIdentity {
            uuid: [9; 16],
            stream_id: 1,
            stream_instance_id: thread,
            vpid: 1,
            vtid: 1 + thread as i32,
            procname: *b"app\0\0\0\0\0\0\0\0\0\0\0\0\0",
        };
        let (mut writer, mut bytes) = (PacketWriter::new(identity), Vec::new());
        for call in 0..calls {
            let start = 1_000_000 + call * 300 + thread * 7;
            writer.event(entry, start, &passed).expect("fits");
            writer.event(exit, start + 100, &0i32.to_le_bytes()).expect("fits");
            if writer.len() > 256 * 1024 {
                bytes.extend_from_slice(writer.finish(4096));
            }
        }
        bytes.extend_from_slice(writer.finish(4096));
        files.push((format!("toy-1-{thread}"), bytes));
    }
    let ctf = hetrace_ctf::read::Trace::from_class(class, files).expect("a trace");
    Trace::new(ctf, models, Manifest { schema: 2, exit: Some(Exit::Code(0)), ..Manifest::default() })
}
