//! Helpers that work, fail, crash and hang; pools and descriptions on their way into a trace.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use hetrace_ring::abi::inside::{ANSWER_MAGIC, Answer};

use super::helper::{Helper, Outcome};
use super::*;
use crate::output::TraceFolder;

/// A helper that is a script of the shell; `$1` is the image and `$2` the answer.
fn shell(script: &str) -> Vec<OsString> {
    ["/bin/sh", "-c", script, "helper"].map(OsString::from).into()
}

/// Asks a desk with this helper for an image. Returns the answer and what the report says.
fn ask(helper: &[OsString]) -> (Answer, String) {
    let session = tempfile::tempdir().expect("a folder");
    make(session.path(), &Inside::default()).expect("made");
    let folder = session.path().join(FOLDER);
    let trace = TraceFolder::new(session.path().join("trace"), [0; 16], false);
    let inside = Inside { helper: helper.to_vec(), ..Inside::default() };
    let desk = Desk::begin(&inside, session.path(), &trace);
    fs::write(folder.join("ask.part"), "an image").expect("written");
    fs::rename(folder.join("ask.part"), folder.join("abc-0-90.ask")).expect("renamed");
    let answer = folder.join("abc-0-90.answer");
    let begin = Instant::now();
    while !answer.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no answer");
        std::thread::sleep(Duration::from_millis(2));
    }
    // The thread hears of it a moment later.
    while folder.join("abc-0-90.ask").exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "not taken away");
        std::thread::sleep(Duration::from_millis(2));
    }
    let bytes = fs::read(&answer).expect("an answer");
    let notes = desk.finish().join("\n");
    (Answer::of_bytes(&bytes).expect("whole"), notes)
}

#[test]
fn an_image_that_a_helper_rewrites_comes_back() {
    let script =
        r#"printf 'HTRINSID\002\000\000\000\000\000\000\000\005\000\000\000\000\000\000\000code\000' > "$2""#;
    let (answer, notes) = ask(&shell(script));
    assert_eq!(
        (answer, notes.as_str()),
        (Answer { magic: ANSWER_MAGIC, twins: 2, reserved: 0, bytes: 5 }, "")
    );
}

#[test]
fn an_image_stays_as_it_was_when_its_helper_fails() {
    for (helper, why) in [
        (shell("exit 3"), "its helper ended with status 3"),
        (shell("kill -9 $$"), "signal 9 ended its helper"),
        (shell("exit 0"), "its helper gave no answer"),
        (shell(r#"echo nonsense > "$2""#), "its helper's answer can't be read"),
        (vec!["/nonexistent".into()], "its helper can't be started: No such file"),
    ] {
        let (answer, notes) = ask(&helper);
        assert_eq!(answer.twins, 0, "{why}");
        assert!(notes.contains(&format!("the kernels of image abc are as they were: {why}")), "{notes}");
    }
}

#[test]
fn a_helper_that_hangs_is_ended_with_what_it_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let started = folder.path().join("started");
    let script = format!("sleep 1000 & echo $! > {}; wait", started.display());
    let mut helper =
        Helper::start(&shell(&script), Path::new("image"), Path::new("answer")).expect("started");
    let pid = loop {
        assert_eq!(helper.look(Instant::now() + Duration::from_secs(60)), Outcome::Works);
        let text = fs::read_to_string(&started).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_owned();
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    assert_eq!(helper.look(Instant::now()), Outcome::Failed("its helper took too long".to_owned()));
    let gone = || match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    let begin = Instant::now();
    while !gone() {
        assert!(begin.elapsed() < Duration::from_secs(60), "process {pid} lives on");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn kernels_with_one_reason_are_listed_together_where_they_are_many() {
    let notes_of = |count: usize| {
        let [session, trace] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let folder = session.path().join(FOLDER);
        fs::create_dir(&folder).expect("made");
        for number in 0..count {
            let said = format!(r#"{{"refused":[{{"name":"k{number}","reason":"no text"}}]}}"#);
            fs::write(folder.join(format!("{number}.json")), said).expect("written");
        }
        let said = r#"{"refused":[{"name":"other","reason":"no room"},{"name":"k0","reason":"no text"}]}"#;
        fs::write(folder.join("more.json"), said).expect("written");
        collect(session.path(), trace.path(), Access::Owner)
    };
    assert_eq!(
        notes_of(2),
        [
            "--inside: other is as it was: no room",
            "--inside: k0 is as it was: no text",
            "--inside: k1 is as it was: no text"
        ]
    );
    assert_eq!(
        notes_of(9)[1..],
        ["--inside: 9 kernels are as they were: no text: k0, k1, k2, k3, k4, k5, k6, k7, k8"]
    );
}

#[test]
fn pools_and_descriptions_go_into_the_trace() {
    let (session, trace) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    make(session.path(), &Inside { weights: b"{}".to_vec(), ..Inside::default() }).expect("made");
    let folder = session.path().join(FOLDER);
    assert_eq!(fs::read(folder.join(WEIGHTS)).expect("there before any program"), b"{}");
    // Three chunks were asked for, there are two: of a file with room for five, three are kept.
    let mut pool = vec![0u8; 5 * 4096];
    pool[..24].copy_from_slice(&[0u64, 2, 40].map(u64::to_le_bytes).concat());
    (0..3).for_each(|counter| pool[2048 + 64 * counter] = 1);
    pool[4096..4100].copy_from_slice(b"used");
    fs::write(folder.join("7-0.pool"), &pool).expect("written");
    fs::write(folder.join("7-1.pool.part"), &pool).expect("written");
    let said = r#"{"image":"abc","kernels":[{"number":0,"name":"k","weights":{"trace":"/t"}},
        {"number":1,"name":"l","weights":{"trace":"/t","unused":"its text is another one there"}}],
        "refused":[{"name":"m","reason":"no room"}]}"#;
    fs::write(folder.join("abc-0.json"), said).expect("written");
    fs::write(folder.join("7-0.late"), "5 k\n").expect("written");
    fs::write(folder.join("7-0.over"), "6 k\n").expect("written");
    std::os::unix::fs::symlink("/etc/passwd", folder.join("evil.json")).expect("made");
    let notes = collect(session.path(), trace.path(), Access::Owner);
    assert_eq!(fs::read(trace.path().join("inside/7-0.pool")).expect("there"), pool[..3 * 4096]);
    assert_eq!(fs::read_to_string(trace.path().join("inside/abc-0.json")).expect("there"), said);
    assert_eq!(fs::read_to_string(trace.path().join("inside/7-0.late")).expect("there"), "5 k\n");
    assert_eq!(fs::read_to_string(trace.path().join("inside/7-0.over")).expect("there"), "6 k\n");
    assert!(!trace.path().join("inside/weights").exists(), "it is not what was recorded");
    assert!(!trace.path().join("inside/evil.json").exists());
    assert!(!trace.path().join("inside/7-1.pool").exists(), "it was not whole");
    let all = notes.join("\n");
    for wanted in [
        "2 kernels can record; 1 pools with 2 chunks",
        "--inside-weights: it was chosen by /t where 1 kernels record",
        "--inside-weights: not used for l: its text is another one there",
        "40 records",
        "m is as it was: no room",
        "evil.json is missing",
    ] {
        assert!(all.contains(wanted), "{wanted}: {all}");
    }
}
