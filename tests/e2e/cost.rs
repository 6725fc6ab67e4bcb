//! `hetrace cost`: what tracing costs a program, measured with the program itself.

use std::path::Path;
use std::process::Command;

use hetrace_tests::bed::{Done, program, run};
use hetrace_tests::{Platform, hetrace};
use serde_json::Value;

/// Runs `hetrace cost`; its traces and the platform's files are below `scratch`.
fn cost(scratch: &Path, options: &[&str], command: &[&str]) -> Done {
    let temporary = scratch.join("tmp");
    std::fs::create_dir_all(&temporary).expect("a folder");
    let mut line = Command::new(hetrace());
    line.arg("cost").args(options).arg("--").args(command).current_dir(scratch);
    let done = run(line.envs(Platform::Pocl.environment(scratch)).env("TMPDIR", &temporary));
    let left: Vec<_> = std::fs::read_dir(&temporary).expect("the folder").flatten().collect();
    assert!(
        left.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with("hetrace-")),
        "{left:?}"
    );
    done
}

fn linked() -> String {
    program("linked").to_string_lossy().into_owned()
}

#[test]
fn each_setting_is_compared_with_bare_runs() {
    let scratch = tempfile::tempdir().expect("scratch");
    let options = ["--json", "--runs", "3", "-m", "minimal,default", "--device-times", "auto,off"];
    let done = cost(scratch.path(), &options, &[&linked(), "50"]);
    assert_eq!(done.status, 0, "{}", done.err);
    let found: Value = serde_json::from_str(&done.out).expect("one JSON object, and nothing of the program");
    assert_eq!((&found["schema"], &found["rounds"]), (&1.into(), &3.into()));
    let settings = found["settings"].as_array().expect("settings");
    let names: Vec<String> = settings.iter().map(|s| s["options"].to_string().replace('"', "")).collect();
    assert_eq!(
        names,
        [
            "[--mode=minimal,--device-times=auto]",
            "[--mode=minimal,--device-times=off]",
            "[--mode=default,--device-times=auto]",
            "[--mode=default,--device-times=off]",
        ]
    );
    for (setting, name) in settings.iter().zip(names) {
        let samples = &setting["samples"];
        let [walls, lifetimes] = ["wall_ns", "lifetime_ns"].map(|kind| {
            let all = samples[kind].as_array().expect("samples").iter();
            all.map(|ns| ns.as_f64().expect("a time")).collect::<Vec<f64>>()
        });
        assert_eq!((walls.len(), lifetimes.len()), (3, 3), "{name}");
        assert!(
            walls.iter().zip(&lifetimes).all(|(wall, lifetime)| 0.0 < *lifetime && lifetime < wall),
            "{setting}"
        );
        for kind in ["wall", "lifetime", "processor"] {
            let added = &setting[kind]["added"];
            let ns = |end: &str| added[end].as_f64().expect("a number");
            assert!(ns("low_ns") <= ns("median_ns") && ns("median_ns") <= ns("high_ns"), "{added}");
            assert_eq!(
                (&added["confidence"], &added["significant"]),
                (&0.75.into(), &false.into()),
                "{name}"
            );
        }
        assert!(setting["stated_ns"].as_f64() > Some(0.0), "{setting}");
        let timed = setting["stated"][0]["timing_ns"].as_u64().unwrap_or(0);
        assert_eq!(timed > 0, name.contains("auto"), "{name}: {setting}");
    }
    assert!(found["bare_again"]["wall"]["added"]["median_ns"].is_number());
}

#[test]
fn the_program_is_seen_once_and_the_table_is_short() {
    let scratch = tempfile::tempdir().expect("scratch");
    let done = cost(scratch.path(), &["--runs", "2"], &["sh", "-c", "echo said; echo wrong >&2"]);
    assert_eq!(done.status, 0, "{}", done.err);
    assert_eq!((done.out.matches("said").count(), done.err.matches("wrong").count()), (2, 1), "{}", done.out);
    let starts =
        ["said", "sh -c echo said; echo wrong >&2: 2 rounds", " ", "bare ", "bare again ", "--mode=default "];
    let lines: Vec<&str> = done.out.lines().collect();
    assert!(lines.iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{}", done.out);
    assert!(lines[2].contains("added (50%)") && lines[2].contains("lifetime"), "{}", done.out);
    assert!(done.out.contains("An interval with 0 in it"), "two rounds are certain of nothing: {}", done.out);
}

#[test]
fn a_program_that_fails_is_not_measured() {
    let scratch = tempfile::tempdir().expect("scratch");
    for (command, status, said) in [
        (&["sh", "-c", "exit 3"][..], 1, "sh exited with status 3 without hetrace: nothing was measured"),
        (&["sh", "-c", "kill -9 $$"], 1, "sh was ended by signal 9 without hetrace"),
        // Fails under trace only, as a program may that does not bear it.
        (
            &["sh", "-c", "test -z \"$HETRACE_SESSION\" || { echo no such luck >&2; exit 4; }"],
            1,
            "sh exited with status 4 under `hetrace run --mode=default`, and exited with status 0 in its first run",
        ),
        (&["./missing"], 125, "./missing: No such file or directory"),
    ] {
        let done = cost(scratch.path(), &["--runs", "2"], command);
        assert_eq!(done.status, status, "{command:?}: {}", done.err);
        assert!(done.err.contains(said), "{command:?}: {}", done.err);
        assert!(!done.out.contains("rounds"), "{command:?}: {}", done.out);
        assert_eq!(done.err.contains("\n  no such luck"), command.concat().contains("luck"), "{}", done.err);
    }
    let done = cost(scratch.path(), &["--with=--buffer=much"], &["true"]);
    assert_eq!(done.status, 125, "{}", done.err);
    assert!(done.err.contains("`hetrace run --mode=default --buffer=much` failed"), "{}", done.err);
    assert!(done.err.contains("invalid value 'much'"), "what it said itself: {}", done.err);
}
