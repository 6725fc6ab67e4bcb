//! Time lines in parts, windows of them, and what is in memory.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::ControlFlow;

use hetrace_report::timeline::{Drawn, Error, Options, Part, Parts, timeline_in_parts};
use hetrace_trace::trace::Trace;

use super::common;
use common::perfetto::{self, Drawing};

/// Files in memory.
#[derive(Default)]
pub struct Files {
    pub whole: Vec<Vec<u8>>,
    now: Vec<u8>,
}

impl Write for Files {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.now.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Parts for Files {
    fn next(&mut self, done: &Part) -> io::Result<()> {
        self.whole.push(std::mem::take(&mut self.now));
        assert_eq!(done.number as usize, self.whole.len());
        Ok(())
    }
}

/// A time line's files, each checked.
pub fn draw(trace: &Trace, options: &Options) -> (Drawn, Vec<Vec<u8>>) {
    let mut files = Files::default();
    let drawn = timeline_in_parts(trace, options, &mut files, &|_| ControlFlow::Continue(()));
    let drawn = drawn.expect("memory takes it");
    let mut files = Files { now: Vec::new(), whole: [files.whole, vec![files.now]].concat() }.whole;
    files.truncate(drawn.parts.len());
    for (file, part) in files.iter().zip(&drawn.parts) {
        let found = perfetto::check(&perfetto::parse(file));
        assert_eq!(part.bytes, file.len() as u64);
        assert_eq!(part.slices, found.slices as u64);
        assert!(part.from <= part.to);
    }
    let joined = drawn.parts.windows(2).all(|pair| pair[0].to == pair[1].from);
    assert!(joined, "one part ends where the next begins");
    (drawn, files)
}

/// By name, how many slices have begun in the file, and how long they are in it; of runs of equal
/// calls the number only.
fn slices(drawing: &Drawing) -> BTreeMap<String, (u64, u64)> {
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(&str, u64)>> = BTreeMap::new();
    let mut events: Vec<_> = drawing.events().collect();
    events.sort_by_key(|event| event.time);
    for event in events {
        let row = open.entry(event.track).or_default();
        match event.kind {
            1 => {
                row.push((&event.name, event.time));
                let new = !event.notes.contains(" continued, ");
                sums.entry(event.name.clone()).or_default().0 += u64::from(new);
            }
            2 => {
                let (name, begin) = row.pop().expect("a beginning");
                // Of a run that is reported later, what was before the file is not in it.
                let time = if name.ends_with("(folded)") { 0 } else { event.time - begin };
                sums.entry(name.to_owned()).or_default().1 += time;
            }
            _ => {}
        }
    }
    sums
}

pub fn golden() -> Vec<(String, Trace)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "txt") {
            let text = std::fs::read_to_string(&path).expect("readable");
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            all.push((name, common::build(text.split("\n== ").next().unwrap_or(""))));
        }
    }
    let program = include_str!("program.txt").split("\n== ").next().unwrap_or("");
    all.push(("program".to_owned(), common::build_with(super::all_models(), program, |_| {})));
    all.push(("telemetry-alone".to_owned(), super::telemetry::trace()));
    all
}

/// However small the parts are, together they have what one file has.
#[test]
fn parts_are_the_whole() {
    for (name, trace) in golden() {
        let whole = Options { part_bytes: u64::MAX, part_slices: u64::MAX, ..Options::default() };
        let (_, files) = draw(&trace, &whole);
        let Some(file) = files.first() else { continue };
        let whole = slices(&perfetto::parse(file));
        for part_slices in [1, 3, 10] {
            let (drawn, files) = draw(&trace, &Options { part_slices, ..Options::default() });
            let mut sum: BTreeMap<String, (u64, u64)> = BTreeMap::new();
            for file in &files {
                for (name, (count, time)) in slices(&perfetto::parse(file)) {
                    let sum = sum.entry(name).or_default();
                    (sum.0, sum.1) = (sum.0 + count, sum.1 + time);
                }
            }
            assert_eq!(sum, whole, "{name} in {} parts", drawn.parts.len());
        }
    }
}

#[test]
fn a_part_is_whole_by_itself() {
    let script = "
        # uses opencl
        0    1.1 * device device=1 handle=0x1 ordinal=0 name=\"Toy GPU\"
        0    1.1 * queue queue=1 handle=0x10 device=1 api=\"opencl\"
        100  1.1 > clCreateBuffer context=0xc size=4096
        110  1.1 < clCreateBuffer result=0xb1
        200  1.1 > clFlush command_queue=0x10
        300  1.1 < clFlush result=0
        400  1.1 > clEnqueueNDRangeKernel command_queue=0x10
        410  1.1 < clEnqueueNDRangeKernel result=0
        420  1.1 > clFinish command_queue=0x10
        500  1.1 * kernel queue=1 cause_tid=1 cause_before=100 duration=400
        600  1.2 > clFlush command_queue=0x10
        610  1.2 < clFlush result=0
        1000 1.1 < clFinish result=0
        1100 1.1 > clReleaseMemObject memobj=0xb1
        1110 1.1 < clReleaseMemObject result=0";
    let script: String = script.lines().map(|line| line.trim_start().to_owned() + "\n").collect();
    let trace = common::build(&script);
    let (drawn, files) = draw(&trace, &Options { part_slices: 6, ..Options::default() });
    assert_eq!(drawn.parts.len(), 2);
    let text = perfetto::read(&files[1]);
    let has = |line: &str| assert!(text.lines().any(|l| l.starts_with(line)), "{line}\n{text}");
    has("track [process 1 app]");
    has("counter [device memory] of Toy GPU");
    // The kernel and the call that waits for it go on, and the arrow between them is there.
    has("610 > [queue 1 of context 1 (0x10)] kernel:kernel (flow 1) continued, ns since it began=110");
    has("610 > [thread 1/1 app] opencl:clFinish continued, ns since it began=190");
    has("1000 ! [thread 1/1 app] opencl:command done (flow 1 ends)");
    has("610 = [device memory] 4096");
    has("1100 = [device memory] 0");
    has("610 = [queue 1 of context 1 (0x10): commands in flight] 1");
    has("900 = [queue 1 of context 1 (0x10): commands in flight] 0");
    let first = perfetto::read(&files[0]);
    assert!(first.contains("610 < [queue 1 of context 1 (0x10)] goes on=in the next part"), "{first}");
    assert!(first.contains("110 = [device memory] 4096"), "{first}");
}

#[test]
fn memory_is_what_is_not_freed() {
    let script = "
        # uses opencl
        100 1.1 > clCreateBuffer context=0xc size=1000
        110 1.1 < clCreateBuffer result=0xb1
        120 1.1 > clCreateBuffer context=0xc size=500
        130 1.1 < clCreateBuffer result=0xb2
        140 1.1 > clRetainMemObject memobj=0xb1
        150 1.1 < clRetainMemObject result=0
        160 1.1 > clReleaseMemObject memobj=0xb1
        170 1.1 < clReleaseMemObject result=0
        180 1.1 > clReleaseMemObject memobj=0xb2
        190 1.1 < clReleaseMemObject result=-38
        200 1.1 > clReleaseMemObject memobj=0xb2
        210 1.1 < clReleaseMemObject result=0
        220 1.1 > clCreateBuffer context=0xc size=7
        230 1.1 < clCreateBuffer result=0x0 errcode_ret=-61
        240 1.1 > clReleaseMemObject memobj=0xb1
        250 1.1 < clReleaseMemObject result=0";
    let script: String = script.lines().map(|line| line.trim_start().to_owned() + "\n").collect();
    let (_, files) = draw(&common::build(&script), &Options::default());
    let drawing = perfetto::parse(&files[0]);
    let values = drawing.events().filter(|event| event.kind == 4).map(|event| (event.time, event.value));
    let expected = [(110, 1000.0), (130, 1500.0), (200, 1000.0), (240, 0.0)];
    assert_eq!(values.collect::<Vec<_>>(), expected);
}

#[test]
fn a_window_begins_and_ends_in_the_middle() {
    let mut script = String::new();
    for i in 0..100 {
        let (at, end) = (i * 100, i * 100 + 50);
        script += &format!("{at} 1.1 > toyFinish queue=0x1\n{end} 1.1 < toyFinish result=0\n");
        script += &format!("{at} 2.2 > toyFinish queue=0x1\n{end} 2.2 < toyFinish result=0\n");
    }
    let trace = common::build(&script);
    let options = Options { from: Some(1020), to: Some(2020), pids: vec![1], ..Options::default() };
    let (drawn, files) = draw(&trace, &options);
    assert_eq!(drawn.parts.iter().map(|p| (p.from, p.to)).collect::<Vec<_>>(), [(1020, 2020)]);
    let drawing = perfetto::parse(&files[0]);
    assert!(drawing.events().all(|event| (1020..=2020).contains(&event.time)));
    assert!(drawing.tracks().all(|track| !track.name.starts_with("process 2")));
    // Ten whole ones and one cut on each side; 30 + 9 × 50 + 20 ns.
    let sums = slices(&drawing);
    assert_eq!(sums.into_values().collect::<Vec<_>>(), [(10, 500)]);
    // Nothing is there, and that is no file.
    let options = Options { from: Some(1_000_000), ..Options::default() };
    assert_eq!(draw(&trace, &options).0.parts, []);
}

#[test]
fn a_window_of_a_damaged_program_is_drawn() {
    let script = include_str!("program.txt").split("\n== ").next().unwrap_or("");
    let whole = common::Assembled::new(super::all_models(), script);
    for (seed, from) in (0..40_usize).zip([0_u64, 700, 1800, 3200].into_iter().cycle()) {
        let mut at = seed;
        let trace = whole.trace(|bytes| {
            at = at.wrapping_mul(25_214_903_917).wrapping_add(11) >> 3;
            let behind = bytes.len().saturating_sub(104).max(1);
            if let Some(byte) = bytes.get_mut(104 + at % behind) {
                *byte = (at >> 8) as u8;
            }
        });
        let options =
            Options { from: Some(from), to: Some(from + 1500), part_slices: 5, ..Options::default() };
        draw(&trace, &options);
    }
}

#[test]
fn it_can_be_stopped() {
    let mut script = String::new();
    for i in 0..40_000 {
        let (at, end) = (i * 100, i * 100 + 50);
        script += &format!("{at} 1.1 > toyFinish queue=0x1\n{end} 1.1 < toyFinish result=0\n");
    }
    let trace = common::build(&script);
    let mut files = Files::default();
    let asked = std::sync::atomic::AtomicU64::new(0);
    let stop = |events| {
        asked.fetch_add(events, std::sync::atomic::Ordering::Relaxed);
        ControlFlow::Break(())
    };
    let stopped = timeline_in_parts(&trace, &Options::default(), &mut files, &stop);
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(asked.into_inner(), 65_536);
}
