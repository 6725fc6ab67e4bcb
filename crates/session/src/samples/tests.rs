//! Samples of a program that computes, read back from the trace.

use std::fs;
use std::process::Command;

use hetrace_ctf::Scalar;
use hetrace_ctf::read::Trace;
use hetrace_ctf::write::form;
use hetrace_format::class::device_stream;

use super::*;

/// Computes until it is ended.
const LOOP: &str = "while :; do i=$((i+1)); done";

#[test]
fn a_program_that_computes_is_sampled_up_to_its_beginning() {
    let samples = Samples::open(997);
    if let Some(why) = &samples.report.refused {
        // Not every machine that builds this allows it; the notes are tested for those.
        assert!(samples.notes.iter().any(|note| note.contains(&**why) && note.contains("For more")), "{why}");
        eprintln!("SKIPPED: {why}");
        return;
    }
    let scratch = tempfile::tempdir().expect("a folder");
    let folder = TraceFolder::new(scratch.path().to_owned(), [7; 16], false);
    let mut class = form::trace_class([7; 16], form::clock_class([0; 16], 0));
    class.streams.extend([device_stream(&[]), sample::stream()]);
    fs::write(scratch.path().join("metadata"), hetrace_ctf::tsdl::print(&class)).expect("metadata");
    let mut samples = samples;
    let mut child = Command::new("/bin/sh").args(["-c", LOOP]).spawn().expect("a shell");
    samples.start(&folder);
    // However slow the machine is: until there is something in the trace.
    while fs::metadata(scratch.path().join("samples-1")).map_or(0, |file| file.len()) < 4096 {
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    let finished = samples.finish();
    let report = &finished.report;
    assert!(report.samples > 0 && report.bytes > 0 && report.cpu_ns > 0, "{report:?}");
    let (mut defined, mut outermost, mut met) = (HashSet::new(), HashSet::new(), Vec::new());
    let trace = Trace::open(scratch.path()).expect("a trace");
    for mut stream in trace.streams() {
        while let Some(event) = stream.next_event() {
            let event = event.expect("no damage");
            let number = |name: &str| event.get(name).and_then(Scalar::as_u64).expect("a number");
            match event.class().name.as_str() {
                "native:frame" => {
                    defined.insert(number("stack"));
                    outermost.extend((number("around") == NONE).then(|| number("stack")));
                }
                "cpu:sample" => {
                    assert_eq!((number("pid"), number("period")), (child.id().into(), 1_000_000_000 / 997));
                    met.push(number("stack"));
                }
                _ => {}
            }
        }
    }
    assert_eq!(met.len() as u64, report.samples);
    assert!(met.iter().all(|stack| defined.contains(stack) || *stack == UNKNOWN), "each stack is defined");
    assert!(!outermost.is_empty(), "no stack came to its beginning");
    assert!(report.incomplete * 2 < report.samples, "{report:?}");
    let mut manifest = Manifest::default();
    manifest.written.account = Some(hetrace_ctf::account::Account::default());
    finished.complete(&mut manifest);
    assert_eq!(manifest.written.account.expect("an account").streams.len(), 2);
}

#[test]
fn what_is_not_allowed_is_said() {
    for (error, says) in [(libc::EACCES, "For more: "), (libc::ENOSYS, "perf_event_open: ")] {
        let ability = refused(&std::io::Error::from_raw_os_error(error));
        let note = less(&ability).expect("a note");
        assert!(note.contains("no samples of processors") && note.contains(says), "{note}");
    }
    let user = Ability { refused: None, kernel: false, fix: Some("be root".to_owned()), most_hz: None };
    assert!(less(&user).is_some_and(|note| note.contains("not of system calls") && note.contains("be root")));
    assert_eq!(less(&Ability { fix: None, kernel: true, ..user }), None);
}

#[test]
fn losses_are_shown() {
    let report = manifest::Samples { dropped: 3, throttled: 2, ..manifest::Samples::default() };
    let mut manifest = Manifest::default();
    Finished { report, ..Finished::default() }.complete(&mut manifest);
    assert!(
        manifest.notes[0].contains("3 records dropped, sampling throttled 2 times"),
        "{:?}",
        manifest.notes
    );
}
