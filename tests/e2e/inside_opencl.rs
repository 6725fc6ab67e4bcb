//! `--inside` for OpenCL whose programs' binaries are PTX: kernels that are chosen record, in programs of ours beside those of
//! the program, which sees what it always saw.

#[path = "inside/text.rs"]
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_tests::{Done, Seen, bed, fake_opencl, hetrace};
use tempfile::TempDir;
use text::TEXT;

/// All launches of all kernels record.
const ALL: &[&str] = &["--inside", "*", "--inside-sample", "launches:1"];

/// A run of the program with a source, bare and under trace.
struct Run {
    bare: Done,
    done: Done,
    scratch: TempDir,
}

fn program(text: &str, scratch: &Path, how: &str, launches: &str) -> (PathBuf, [String; 3]) {
    let source = scratch.join("source.cl");
    std::fs::write(&source, text).expect("written");
    let arguments = [how.to_owned(), source.display().to_string(), launches.to_owned()];
    (fake_opencl::programs().join("inside"), arguments)
}

fn run_text(text: &str, options: &[&str], how: &str, launches: &str, environment: &[(&str, &str)]) -> Run {
    let scratch = TempDir::new().expect("a scratch folder");
    let (program, arguments) = program(text, scratch.path(), how, launches);
    let vendors = fake_opencl::programs().join("vendors");
    let mut bare = Command::new(&program);
    bare.args(&arguments).env("OCL_ICD_VENDORS", &vendors);
    let mut line = Command::new(hetrace());
    line.args(["run", "-q"]).args(options);
    if !options.contains(&"--inside-buffer") {
        line.args(["--inside-buffer", "1M"]);
    }
    line.arg("-o").arg(scratch.path().join("trace")).arg("--").arg(&program).args(&arguments);
    line.env("OCL_ICD_VENDORS", &vendors).env("FAKE_OPENCL_LOG", scratch.path().join("log"));
    line.env("XDG_CACHE_HOME", scratch.path().join("cache")).envs(environment.iter().copied());
    Run { bare: bed::run(&mut bare), done: bed::run(&mut line), scratch }
}

fn run(options: &[&str], how: &str, launches: &str, environment: &[(&str, &str)]) -> Run {
    run_text(TEXT, options, how, launches, environment)
}

impl Run {
    /// The program printed what it prints without us.
    fn check_seen(&self) {
        assert_eq!((self.done.status, &self.done.out), (0, &self.bare.out), "{}", self.done.err);
        assert_eq!(self.bare.status, 0);
    }

    /// How often each kernel ran, by the driver's own count. The trace has the same.
    fn ran(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for line in std::fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default().lines() {
            *counts.entry(line.to_owned()).or_default() += 1;
        }
        let mut seen = BTreeMap::new();
        let commands = Seen::read(&self.scratch.path().join("trace")).commands;
        for command in commands.iter().filter(|command| command.kind == "kernel") {
            *seen.entry(command.name.clone()).or_default() += 1;
        }
        assert_eq!(seen, counts);
        counts
    }

    fn notes(&self) -> String {
        let manifest = self.scratch.path().join("trace/hetrace/manifest.json");
        let manifest: serde_json::Value =
            serde_json::from_slice(&std::fs::read(manifest).expect("a manifest")).expect("JSON");
        let notes = manifest["notes"].as_array().expect("notes").clone();
        notes.iter().filter_map(|note| note.as_str()).collect::<Vec<_>>().join("\n")
    }

    /// What `tally --inside --json` says: by kernel how many launches recorded.
    fn launches(&self) -> BTreeMap<String, u64> {
        let mut line = Command::new(hetrace());
        line.args(["tally", "--inside", "--json"]).arg(self.scratch.path().join("trace"));
        let done = bed::run(&mut line);
        assert_eq!(done.status, 0, "{}", done.err);
        let tally: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
        let of = |kernel: &serde_json::Value| {
            (
                kernel["kernel"].as_str().expect("a name").to_owned(),
                kernel["launches"].as_u64().expect("a number"),
            )
        };
        tally["inside"].as_array().expect("a list").iter().map(of).collect()
    }
}

fn counts(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

const K1: &str = "k1000__hetrace_inside";
const K2: &str = "k2000__hetrace_inside";

#[test]
fn kernels_record_however_their_program_comes() {
    for how in ["source", "callback", "binary", "link", "all", "leaves"] {
        let run = run(ALL, how, "3", &[]);
        run.check_seen();
        assert_eq!(run.ran(), counts(&[(K1, 3), (K2, 3), ("k3000", 3)]), "{how}: {}", run.notes());
        assert_eq!(run.launches(), [("k1000".to_owned(), 3), ("k2000".to_owned(), 3)].into(), "{how}");
        let said = run.notes();
        for wanted in
            ["2 kernels can record; 1 pools with 6 chunks", "k3000 is as it was: ", "ms for 1 images"]
        {
            assert!(said.contains(wanted), "{how}: {wanted}: {said}");
        }
    }
}

#[test]
fn clones_and_contexts_that_come_again() {
    let run_of = |how| run(ALL, how, "3", &[]);
    let clone = run_of("clone");
    clone.check_seen();
    assert_eq!(clone.ran(), counts(&[(K1, 4), (K2, 4), ("k3000", 4)]));
    assert_eq!(clone.launches().values().copied().collect::<Vec<_>>(), [4, 4]);
    let again = run_of("again");
    again.check_seen();
    assert_eq!(again.ran(), counts(&[(K1, 6), (K2, 6), ("k3000", 6)]));
    assert!(again.notes().contains("2 pools with 12 chunks"), "{}", again.notes());
    assert_eq!(again.launches().values().copied().collect::<Vec<_>>(), [6, 6]);
}

#[test]
fn only_chosen_kernels_and_launches() {
    let chosen = run(&["--inside", "k1*@1..2"], "source", "5", &[]);
    chosen.check_seen();
    assert_eq!(chosen.ran(), counts(&[("k1000", 3), (K1, 2), ("k2000", 5), ("k3000", 5)]));
    let none = run(&["--inside", "nothing"], "source", "2", &[]);
    none.check_seen();
    assert_eq!(none.ran(), counts(&[("k1000", 2), ("k2000", 2), ("k3000", 2)]));
    assert!(!none.notes().contains("pools with"), "{}", none.notes());
    let bare = run(&[], "source", "2", &[]);
    bare.check_seen();
    assert_eq!(bare.ran(), counts(&[("k1000", 2), ("k2000", 2), ("k3000", 2)]));
}

#[test]
fn what_can_not_record_runs_as_it_was_and_is_named() {
    let as_it_was = counts(&[("k1000", 3), ("k2000", 3), ("k3000", 3)]);
    for (environment, why) in [
        (
            ("FAKE_OPENCL_REFUSES", "__hetrace_inside"),
            "the driver refused a program with twins (OpenCL error -11)",
        ),
        (("FAKE_OPENCL_BINARY", "machine code"), "binary is not PTX"),
        (("HETRACE_INSIDE_HELPER", "/bin/false"), "its helper ended with status 1"),
    ] {
        let run = run(ALL, "source", "3", &[environment]);
        // A binary that is another one is the driver's doing.
        if environment.0 != "FAKE_OPENCL_BINARY" {
            run.check_seen();
        }
        assert_eq!(run.ran(), as_it_was, "{why}");
        assert!(run.notes().contains(why), "{why}: {}", run.notes());
    }
    let launches = run(ALL, "source", "3", &[("FAKE_OPENCL_REFUSES_LAUNCH", "k1000__hetrace")]);
    launches.check_seen();
    assert_eq!(launches.ran(), counts(&[("k1000", 3), (K2, 3), ("k3000", 3)]));
    assert_eq!(
        launches.notes().matches("k1000 is as it was from here on").count(),
        1,
        "{}",
        launches.notes()
    );
    // Variables in global memory are another program's in the program beside.
    let text = TEXT.replace(".visible .entry k1000", ".visible .global .u32 count;\n.visible .entry k1000");
    let variables = run_text(&text, ALL, "source", "3", &[]);
    variables.check_seen();
    assert_eq!(variables.ran(), as_it_was);
    assert!(variables.notes().contains("variable in global memory (count)"), "{}", variables.notes());
}

#[test]
fn a_build_without_options_is_tried_and_failing_builds_fail() {
    let options = run(ALL, "source", "3", &[("FAKE_OPENCL_REFUSES_OPTIONS", "1")]);
    options.check_seen();
    assert_eq!(options.ran(), counts(&[(K1, 3), (K2, 3), ("k3000", 3)]));
    let fails = run_text(&format!("// an error\n{TEXT}"), ALL, "source", "3", &[]);
    assert_eq!((fails.done.status, &fails.done.out), (1, &fails.bare.out));
    assert_eq!(fails.bare.out, "clBuildProgram: -11, status -2\n");
}

#[test]
fn launches_elsewhere_and_full_pools_are_what_they_were() {
    let second = run(ALL, "second", "3", &[]);
    second.check_seen();
    assert_eq!(second.ran(), counts(&[(K1, 3), (K2, 3), ("k3000", 3)]));
    assert!(second.notes().contains("of the devices of an OpenCL context one records"), "{}", second.notes());
    // Nothing is known of a full pool here: twins look themselves, and what they lose is counted.
    let full = run(&[ALL, &["--inside-buffer", "64K"]].concat(), "source", "9", &[]);
    full.check_seen();
    assert_eq!(full.ran(), counts(&[(K1, 9), (K2, 9), ("k3000", 9)]));
    assert_eq!(full.launches().values().sum::<u64>(), 15);
    assert!(full.notes().contains("3 records"), "{}", full.notes());
    // Spilling is what OpenCL can't do.
    let spills = run(&[ALL, &["--inside-on-full", "spill"]].concat(), "source", "3", &[]);
    spills.check_seen();
    assert_eq!(spills.launches().len(), 2);
    assert!(spills.notes().contains("kernels of OpenCL can't write into files"), "{}", spills.notes());
}
