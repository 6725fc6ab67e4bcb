//! What is declared and when, also after a launcher was killed in the middle of it.

use std::fs;
use std::path::Path;

use hetrace_ctf::class::{EventClass, TraceClass};
use hetrace_ctf::write::form;
use hetrace_format::class::frame;
use tempfile::TempDir;

use super::*;
use crate::output::{Stream, TraceFolder};

const MODEL: &str = concat!(
    r#"{"api":"toy","registry":{"file":"toy.h","sha256":""},"interpose":{},"errors":"toyError","types":["#,
    r#"{"name":"toyError","kind":"int","size":4,"values":"toyError"}],"enums":[{"name":"toyError","values":["#,
    r#"["OK",0],["BAD",1],["WORSE",2],["WORST",3],["LOST",4]],"bits":false}],"info":{},"#,
    "\n\"functions\":[\n",
    r#"{"name":"toyInit","roles":[],"returns":"toyError","success":"return-zero","params":[]},"#,
    "\n",
    r#"{"name":"toyRun","roles":["launch"],"returns":"toyError","success":"return-zero","params":[]}"#,
    "\n]}\n"
);
/// Entry and exit of `toyInit` and `toyRun`.
const IDS: [u16; 4] = [32, 33, 35, 36];

struct Bed {
    scratch: TempDir,
    library: Found,
}

impl Bed {
    fn new() -> Self {
        let scratch = TempDir::new().expect("a scratch folder");
        fs::create_dir_all(scratch.path().join("t/hetrace/model")).expect("folders");
        let library = Found::of_model(&scratch.path().join("libtoy.so"), MODEL);
        Bed { scratch, library }
    }

    fn trace(&self) -> PathBuf {
        self.scratch.path().join("t")
    }

    fn begin(&self) -> Declarations {
        let class = frame([1; 16], form::clock_class([2; 16], 0), Vec::new());
        let apis = std::slice::from_ref(&self.library);
        Declarations::begin(self.trace(), Access::Owner, &class, apis).expect("metadata")
    }

    fn resume(&self, library: Result<Found, String>) -> io::Result<Declarations> {
        let apis = std::iter::once(("toy".into(), library));
        Declarations::resume(self.trace(), Access::Owner, apis)
    }

    /// Writes a packet with one record of each event.
    fn write(&self, declarations: Declarations, name: &str, ids: &[u16]) -> TraceFolder {
        let folder = TraceFolder::new(self.trace(), [1; 16], false).declaring(declarations);
        let mut stream = Stream::new(&folder, name.to_owned(), api_stream(0), 7);
        for (id, time) in ids.iter().zip(1..) {
            let body: &[u8] = if id % 3 == 0 { &1u32.to_le_bytes() } else { &[] };
            stream.record(*id, time).extend_from_slice(body);
        }
        stream.flush();
        folder
    }

    fn class(&self) -> TraceClass {
        hetrace_ctf::metadata::parse(&fs::read(self.trace().join("metadata")).expect("metadata"))
            .expect("whole")
    }

    /// Names of the declared events of the API, in their order.
    fn events(&self) -> Vec<String> {
        let class = self.class();
        let streams = class.streams.iter().filter(|s| s.id == u64::from(api_stream(0)));
        streams.flat_map(|stream| &stream.events).map(|e| e.name.clone()).collect()
    }

    fn has(&self, file: &str) -> bool {
        exists(&self.trace(), file)
    }
}

fn exists(folder: &Path, file: &str) -> bool {
    folder.join(file).exists()
}

#[test]
fn only_what_comes_is_declared_and_only_then() {
    let bed = Bed::new();
    let declarations = bed.begin();
    let streams = || bed.class().streams.iter().map(|stream| stream.id).collect::<Vec<_>>();
    assert_eq!(streams(), [u64::from(DEVICE_STREAM)], "an API that is not used takes no place");
    assert!(!bed.has("hetrace/model/toy.json"));
    let folder = bed.write(declarations, "a", &IDS[2..]);
    assert_eq!(bed.events(), ["toy:toyRun_entry", "toy:toyRun_exit"]);
    assert_eq!(streams(), [DEVICE_STREAM, api_stream(0)].map(u64::from), "each once");
    let models = folder.declarations().expect("they are its").models();
    assert_eq!(models, [FileAccount::of("hetrace/model/toy.json", MODEL.as_bytes())]);
    assert_eq!(fs::read_to_string(bed.trace().join("hetrace/model/toy.json")).expect("a model"), MODEL);
    let trace = hetrace_ctf::read::Trace::open(&bed.trace()).expect("a trace");
    let mut reader = trace.streams().next().expect("a stream");
    let mut named = Vec::new();
    while let Some(event) = reader.next_event() {
        let event = event.expect("an event");
        named.push((event.class().name.clone(), event.get("result").is_some()));
    }
    assert_eq!(named, [("toy:toyRun_entry".to_owned(), false), ("toy:toyRun_exit".to_owned(), true)]);
    // Another stream of the class has nothing that is new.
    let length = fs::metadata(bed.trace().join("metadata")).expect("metadata").len();
    let again = folder.declarations().expect("they are its").declare(api_stream(0), &IDS[2..]);
    assert!(again.is_ok());
    assert_eq!(fs::metadata(bed.trace().join("metadata")).expect("metadata").len(), length);
}

#[test]
fn each_is_declared_as_if_all_were() {
    let bed = Bed::new();
    let folder = bed.write(bed.begin(), "a", &IDS);
    let declarations = folder.declarations().expect("they are its");
    let others = [
        calls::UNKNOWN_ID,
        calls::ERROR_TEXT_ID,
        calls::OWN_WORK_ID,
        calls::BUDGET_STEP_ID,
        calls::PY_STACK_ID,
        calls::STACK_ID,
        999,
    ];
    declarations.declare(api_stream(0), &others).expect("declared");
    declarations.declare(api_stream(0), &[34, 37]).expect("folds, too");
    declarations.declare(DEVICE_STREAM, &[64, 87, 9999]).expect("declared");
    let model: Model = serde_json::from_str(MODEL).expect("a model");
    let by_id = |mut events: Vec<EventClass>| {
        events.sort_by_key(|event| event.id);
        events
    };
    assert_eq!(by_id(bed.class().streams[1].events.clone()), by_id(calls::classes(&model)));
    let all = hetrace_format::class::device_stream(&[&model]).events;
    let declared: Vec<_> = all.into_iter().filter(|e| [64, 87].contains(&e.id)).collect();
    assert_eq!(bed.class().streams[0].events, declared);
}

#[test]
fn another_goes_on_where_a_killed_launcher_was_in_the_middle_of_it() {
    let whole = |bed: &Bed| fs::read(bed.trace().join("metadata")).expect("metadata");
    let before = Bed::new();
    before.begin();
    let begin = whole(&before).len();
    before.write(before.resume(Ok(before.library.clone())).expect("resumed"), "a", &IDS[..2]);
    let text = whole(&before);
    for end in (begin..=text.len()).step_by(7).chain([text.len()]) {
        let bed = Bed::new();
        fs::write(bed.trace().join("metadata"), &text[..end]).expect("metadata");
        bed.write(bed.resume(Ok(bed.library.clone())).expect("resumed"), "b", &IDS);
        let mut events = bed.events();
        events.sort();
        let all = ["toy:toyInit_entry", "toy:toyInit_exit", "toy:toyRun_entry", "toy:toyRun_exit"];
        assert_eq!(events, all, "cut at {end}");
    }
}

#[test]
fn what_cannot_be_declared_is_not_written_and_that_is_said() {
    let bed = Bed::new();
    bed.begin();
    let lost = || bed.resume(Err("the library was replaced".to_owned())).expect("resumed");
    let folder = bed.write(lost(), "a", &IDS);
    assert!(!bed.has("a") && bed.events().is_empty());
    let refused = folder.refused();
    assert!(refused.len() == 1 && refused[0].why == "the library was replaced", "{refused:?}");
    // What was declared before can be written all the same.
    bed.write(bed.resume(Ok(bed.library.clone())).expect("resumed"), "b", &IDS[..2]);
    bed.write(lost(), "c", &IDS[..2]);
    assert!(bed.has("b") && bed.has("c"));
}

#[test]
fn a_library_that_was_rebuilt_in_its_place_is_noticed() {
    let bed = Bed::new();
    let declarations = bed.begin();
    let other = MODEL.replace("toyRun", "toyGun");
    fs::write(bed.scratch.path().join("libtoy.so"), other).expect("a file");
    let folder = bed.write(declarations, "a", &IDS);
    assert!(!bed.has("a"));
    let why = &folder.refused()[0].why;
    assert!(why.contains("libtoy.so") && why.contains("not that of its index"), "{why}");
}

#[test]
fn a_pipe_in_place_of_the_metadata_is_not_waited_for() {
    let bed = Bed::new();
    let made =
        std::process::Command::new("mkfifo").arg(bed.trace().join("metadata")).status().expect("mkfifo");
    assert!(made.success());
    let error = bed.resume(Ok(bed.library.clone())).expect_err("no metadata");
    assert_eq!(error.to_string(), "metadata is no plain file");
}
