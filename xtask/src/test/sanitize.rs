//! Tests built with AddressSanitizer and ThreadSanitizer, and tests run under valgrind and Miri.
//!
//! The runtimes of the sanitizers come with the stable toolchain; only the option that names them
//! is unstable, which `RUSTC_BOOTSTRAP` lets through. AddressSanitizer replaces the allocator, so it
//! sees the allocations of the standard library as it is delivered. For ThreadSanitizer the standard
//! library is built again (`-Zbuild-std`): as it is delivered, half of what synchronizes threads
//! (the end of a scope, of a thread, of a channel) is out of sight, and what it orders looks like a
//! race. Signals and the memory that another process writes are beyond both: they see what happens in
//! one process.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::steps::{Lane, Outcome, Step};
use crate::{model, repo};

/// The only target whose runtimes and code paths are tried.
pub const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A sanitizer of the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sanitizer {
    /// Memory errors and leaks.
    Address,
    /// Data races.
    Thread,
}

impl Sanitizer {
    /// Both.
    pub const ALL: [Sanitizer; 2] = [Sanitizer::Address, Sanitizer::Thread];

    /// The name that `-Zsanitizer` knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        }
    }

    fn runtime(self) -> &'static str {
        match self {
            Sanitizer::Address => "librustc-stable_rt.asan.a",
            Sanitizer::Thread => "librustc-stable_rt.tsan.a",
        }
    }

    fn flags(self) -> &'static str {
        match self {
            Sanitizer::Address => "-Zsanitizer=address",
            Sanitizer::Thread => "-Zsanitizer=thread",
        }
    }

    /// The same for libraries that the launcher reads: no space is put around globals, some of which are the
    /// whole content of a section that has a meaning.
    fn library_flags(self) -> &'static str {
        match self {
            Sanitizer::Address => "-Zsanitizer=address -Cllvm-args=-asan-globals=0",
            Sanitizer::Thread => self.flags(),
        }
    }

    /// Where cargo builds with this sanitizer.
    pub fn folder(self) -> PathBuf {
        repo::root().join("target").join(self.name())
    }

    /// Runs `cargo` with this sanitizer, or skips when its runtime is not here.
    fn cargo(self, lane: &Lane, arguments: &[&str], environment: &[(&str, &str)]) -> Result<Outcome> {
        if let Some(lacks) = self.lacks()? {
            return Ok(Outcome::Skipped(lacks));
        }
        let folder = self.folder().display().to_string();
        let mut arguments: Vec<&str> = arguments.to_vec();
        if self == Sanitizer::Thread {
            // Behind the command's name; what comes after `--` is the tests'. For tests, and for libraries
            // that abort.
            arguments.insert(1, "-Zbuild-std=std,panic_abort,test");
        }
        let mut all = vec![
            ("RUSTC_BOOTSTRAP", "1"),
            ("RUSTFLAGS", self.flags()),
            ("CARGO_TARGET_DIR", &folder),
            ("CARGO_INCREMENTAL", "0"),
            // Races and overflows hide behind neither speed nor the lack of it.
            ("CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
            // What a sanitizer reports names lines by it.
            ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"),
            // As tests are always built. With both ways to panic, cargo builds two standard libraries
            // and mixes them.
            ("CARGO_PROFILE_DEV_PANIC", "unwind"),
        ];
        all.extend(environment);
        lane.cargo(&arguments, &all)
    }

    /// What is missing on this machine, if something is.
    pub fn lacks(self) -> Result<Option<String>> {
        if !rustc_folder(&["--print", "target-libdir", "--target", TARGET])?.join(self.runtime()).exists() {
            return Ok(Some(format!("the toolchain has no {}", self.runtime())));
        }
        let sources = rustc_folder(&["--print", "sysroot"])?.join("lib/rustlib/src/rust/library/std");
        let lacks = self == Sanitizer::Thread && !sources.exists();
        Ok(lacks.then(|| "the toolchain has no rust-src (rustup component add rust-src)".to_owned()))
    }
}

/// A folder that the compiler prints.
fn rustc_folder(arguments: &[&str]) -> Result<PathBuf> {
    let out = Command::new("rustc").args(arguments).output()?;
    Ok(PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()))
}

/// Left out: `crates/ring/tests/steps.rs` and its like run a handler at each instruction. It would come in the middle of
/// a sanitizer's own work, too; and valgrind's processor has no trap flag, so that it would never run.
const SKIPPED: [&str; 9] = [
    "--",
    "--skip",
    "at_every_step",
    "--skip",
    "at_each_step",
    "--skip",
    "at_one_step_after_the_other",
    "--skip",
    "at_any_step",
];

/// Unit tests with AddressSanitizer: what runs in traced programs, and what reads what these leave.
pub fn unit_tests<'s>() -> Step<'s> {
    let crates = &["hetrace-ring", "hetrace-interpose", "hetrace-ctf"];
    Step::new("unit tests with the address sanitizer", |lane| tests(lane, Sanitizer::Address, crates))
        .behind()
}

/// Unit tests with ThreadSanitizer, of what runs in traced programs. One of the slow ones: it builds the
/// standard library.
fn races<'s>() -> Step<'s> {
    let crates = &["hetrace-ring", "hetrace-interpose"];
    Step::new("unit tests with the thread sanitizer", |lane| tests(lane, Sanitizer::Thread, crates))
}

/// The slow ones: all that reads traces or shared memory.
pub fn slow_tests<'s>() -> Vec<Step<'s>> {
    let crates = &["hetrace-session", "hetrace-edit", "hetrace-trace", "hetrace-report", "hetrace-export"];
    let step = |sanitizer: Sanitizer| {
        Step::new(format!("readers with the {} sanitizer", sanitizer.name()), move |lane| {
            tests(lane, sanitizer, crates)
        })
    };
    let mut steps: Vec<Step<'s>> = Sanitizer::ALL.into_iter().map(step).collect();
    steps.push(races());
    steps.push(Step::new("readers under valgrind", valgrind));
    steps.push(Step::new("ring under Miri", miri));
    steps.extend(Sanitizer::ALL.into_iter().map(libraries));
    steps
}

fn tests(lane: &Lane, sanitizer: Sanitizer, crates: &[&str]) -> Result<Outcome> {
    let mut arguments = vec!["test", "--target", TARGET, "--tests", "--no-fail-fast"];
    arguments.extend(crates.iter().flat_map(|name| ["-p", name]));
    arguments.extend(SKIPPED);
    if sanitizer == Sanitizer::Thread {
        return sanitizer.cargo(lane, &arguments, &[("TSAN_OPTIONS", "halt_on_error=0")]);
    }
    // Tests make things that live as long as the process, which count as leaks.
    sanitizer.cargo(lane, &arguments, &[("ASAN_OPTIONS", "detect_leaks=0")])
}

/// Left out under valgrind, where unoptimized code takes tens of times as long: what computes budgets, with no
/// memory but its own; and properties that need seconds by themselves. AddressSanitizer runs them all.
const TOO_SLOW: [&str; 15] = [
    "writer::meter",
    "merging_is_associative",
    "tallies_add_up",
    "parts_make_the_whole",
    "streams_can_be_compressed",
    "frames_can_be_read_in_parallel",
    "changed_streams",
    "changed_frames",
    "changed_manifests",
    "changed_metadata",
    "damage_stays_damage",
    "endless_packets_end",
    "_agree",
    "headers_of_lttng_are_quick",
    "words_of_ctf2",
];

/// Memcheck over the tests of the readers: other than AddressSanitizer it knows which bytes were
/// never written, and sees all of the standard library.
fn valgrind(lane: &Lane) -> Result<Outcome> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(Outcome::Skipped("valgrind is not installed (scripts/install-deps.sh --full)".to_owned()));
    }
    let runner = "valgrind -q --error-exitcode=99 --leak-check=no --fair-sched=yes";
    let folder = repo::root().join("target/valgrind").display().to_string();
    let environment = [
        ("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner),
        ("CARGO_TARGET_DIR", &folder),
        // Optimized code computes with values that are not there, and drops the result: no fault, but reported.
        ("CARGO_PROFILE_DEV_OPT_LEVEL", "0"),
        ("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"),
    ];
    let packages = ["-p", "hetrace-ctf", "-p", "hetrace-ring", "-p", "hetrace-edit"];
    // Overrides of packages go before. Compression is C, which may be optimized.
    let unoptimized = [
        "--config",
        "profile.dev.package.hetrace-ring.opt-level=0",
        "--config",
        "profile.dev.package.zstd-sys.opt-level=3",
    ];
    let slow: Vec<&str> = TOO_SLOW.iter().flat_map(|name| ["--skip", name]).collect();
    lane.cargo(
        &[&["test", "--no-fail-fast", "--tests"][..], &unoptimized, &packages, &SKIPPED, &slow].concat(),
        &environment,
    )
}

/// Miri over writer and reader of a ring: it knows which references may be used for what, and shows a thread
/// old values of another's words where their order allows it. It follows neither signals nor
/// calls into the system, so that no more than this can run there.
fn miri(lane: &Lane) -> Result<Outcome> {
    let present = Command::new("cargo").args(["+nightly", "miri", "--version"]).output();
    if !present.is_ok_and(|out| out.status.success()) {
        let lacks =
            "no nightly toolchain with Miri (rustup toolchain install nightly --component miri,rust-src)";
        return Ok(Outcome::Skipped(lacks.to_owned()));
    }
    let folder = repo::root().join("target/miri").display().to_string();
    // What is shared with a program is never given back, and files are real ones.
    let flags = "-Zmiri-disable-isolation -Zmiri-ignore-leaks";
    lane.cargo(
        &["+nightly", "miri", "test", "-p", "hetrace-ring", "--test", "ring"],
        &[("MIRIFLAGS", flags), ("CARGO_TARGET_DIR", &folder)],
    )
}

/// Returns whether an API's library gets into programs after a sanitizer's runtime has begun: as a layer, or
/// loaded by the API itself. Libraries that are preloaded run before.
fn comes_late(api: &str) -> Result<bool> {
    let interpose = model::load(api)?.1.interpose;
    Ok(interpose.layer_variable.is_some()
        || interpose.injection_variable.is_some()
        || interpose.tools.is_some())
}

/// Programs with a sanitizer, recorded by libraries with the same sanitizer.
fn libraries<'s>(sanitizer: Sanitizer) -> Step<'s> {
    let name = format!("libraries with the {} sanitizer", sanitizer.name());
    let work = move |lane: &Lane| {
        let mut build = vec!["build".to_owned(), "--target".to_owned(), TARGET.to_owned()];
        for api in repo::apis()? {
            if comes_late(&api)? {
                build.extend(["-p".to_owned(), format!("hetrace-{api}")]);
            }
        }
        let build: Vec<&str> = build.iter().map(String::as_str).collect();
        // Libraries in programs of others abort.
        let environment = [("RUSTFLAGS", sanitizer.library_flags()), ("CARGO_PROFILE_DEV_PANIC", "abort")];
        match sanitizer.cargo(lane, &build, &environment)? {
            Outcome::Passed => {}
            other => return Ok(other),
        }
        let folder = sanitizer.folder().join(TARGET).join("debug");
        let mut tests = Command::new("cargo");
        tests.args(["test", "--release", "-p", "hetrace-tests", "--test", "instrumented", "--", "--ignored"]);
        tests.arg(sanitizer.name()).env("HETRACE_INSTRUMENTED", folder).current_dir(repo::root());
        lane.status(&mut tests)
    };
    Step::new(name, work).after("build")
}
