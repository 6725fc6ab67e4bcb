//! Tests built with AddressSanitizer and ThreadSanitizer, and tests run under valgrind.
//!
//! The runtimes of the sanitizers come with the stable toolchain; only the option that names them
//! is unstable, which `RUSTC_BOOTSTRAP` lets through. The standard library itself is not
//! instrumented: AddressSanitizer sees its allocations all the same, because it replaces the
//! allocator; ThreadSanitizer sees its generic and inlined parts (`Mutex`, `Arc`, atomics), as these
//! are compiled with the crate, and not what happens in its compiled ones. Signals and the memory that
//! another process writes are beyond both: they see what happens in one process.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::steps::{Outcome, Step, cargo, status};
use crate::repo;

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
            // The standard library is not instrumented, and the compiler wants to hear so.
            Sanitizer::Thread => "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer",
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
    fn cargo(self, arguments: &[&str], environment: &[(&str, &str)]) -> Result<Outcome> {
        if let Some(lacks) = self.lacks()? {
            return Ok(Outcome::Skipped(lacks));
        }
        let folder = self.folder().display().to_string();
        let mut all = vec![
            ("RUSTC_BOOTSTRAP", "1"),
            ("RUSTFLAGS", self.flags()),
            ("CARGO_TARGET_DIR", &folder),
            ("CARGO_INCREMENTAL", "0"),
            // Races and overflows hide behind neither speed nor the lack of it.
            ("CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
        ];
        all.extend(environment);
        cargo(arguments, &all)
    }

    /// What is missing on this machine, if something is.
    pub fn lacks(self) -> Result<Option<String>> {
        let out = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output()?;
        let path = PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()).join(self.runtime());
        Ok((!path.exists()).then(|| format!("the toolchain has no {}", self.runtime())))
    }
}

/// What happens behind ThreadSanitizer's back: libtest's channel and the closure of a test; and what a test
/// keeps under a lock of the standard library, which is not instrumented.
const SUPPRESSED: &str =
    "race:test::event::CompletedTest\nrace:<test::run_test\nrace:commands::tests::Kept\n";

/// Unit tests with AddressSanitizer: what runs in traced programs, and what reads what these leave.
pub fn unit_tests<'s>() -> Step<'s> {
    let crates = &["hetrace-ring", "hetrace-interpose", "hetrace-ctf"];
    Step::new("unit tests with the address sanitizer", || tests(Sanitizer::Address, crates))
}

/// Unit tests with ThreadSanitizer, of what runs in traced programs. One of the slow ones: since the standard
/// library is not instrumented, it now and then reports the end of a test's threads.
fn races<'s>() -> Step<'s> {
    let crates = &["hetrace-ring", "hetrace-interpose"];
    Step::new("unit tests with the thread sanitizer", || tests(Sanitizer::Thread, crates))
}

/// The slow ones: all that reads traces or shared memory.
pub fn slow_tests<'s>() -> Vec<Step<'s>> {
    let crates = &["hetrace-session", "hetrace-edit", "hetrace-trace", "hetrace-report", "hetrace-export"];
    let step = |sanitizer: Sanitizer| {
        Step::new(format!("readers with the {} sanitizer", sanitizer.name()), move || {
            tests(sanitizer, crates)
        })
    };
    let mut steps: Vec<Step<'s>> = Sanitizer::ALL.into_iter().map(step).collect();
    steps.push(races());
    steps.push(Step::new("readers under valgrind", valgrind));
    steps.extend(Sanitizer::ALL.into_iter().map(libraries));
    steps
}

fn tests(sanitizer: Sanitizer, crates: &[&str]) -> Result<Outcome> {
    let mut arguments = vec!["test", "--target", TARGET, "--tests", "--no-fail-fast"];
    arguments.extend(crates.iter().flat_map(|name| ["-p", name]));
    // A handler at each instruction would come in the middle of the sanitizer's own work, too.
    arguments.extend(["--", "--skip", "_step"]);
    let suppressions = sanitizer.folder().join("suppressions");
    let options = format!("suppressions={} halt_on_error=0", suppressions.display());
    if sanitizer == Sanitizer::Thread {
        std::fs::create_dir_all(sanitizer.folder())?;
        std::fs::write(&suppressions, SUPPRESSED)?;
        // Tests beside each other hand more to libtest than the two suppressions cover.
        return sanitizer.cargo(&arguments, &[("TSAN_OPTIONS", &options), ("RUST_TEST_THREADS", "1")]);
    }
    // Tests make things that live as long as the process, which count as leaks.
    sanitizer.cargo(&arguments, &[("ASAN_OPTIONS", "detect_leaks=0")])
}

/// Memcheck over the tests of the readers: other than AddressSanitizer it knows which bytes were
/// never written, and sees all of the standard library.
fn valgrind() -> Result<Outcome> {
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
    ];
    let packages = ["-p", "hetrace-ctf", "-p", "hetrace-ring", "-p", "hetrace-edit"];
    // Valgrind's processor has no trap flag: handlers at each instruction never run there.
    let skipped = ["--", "--skip", "_step"];
    let unoptimized = ["--config", "profile.dev.package.hetrace-ring.opt-level=0"];
    cargo(
        &[&["test", "--no-fail-fast", "--tests"][..], &unoptimized, &packages, &skipped].concat(),
        &environment,
    )
}

/// Programs with a sanitizer, recorded by libraries with the same sanitizer.
fn libraries<'s>(sanitizer: Sanitizer) -> Step<'s> {
    let name = format!("libraries with the {} sanitizer", sanitizer.name());
    let work = move || {
        let mut build = vec!["build".to_owned(), "--target".to_owned(), TARGET.to_owned()];
        for api in repo::apis()? {
            build.extend(["-p".to_owned(), format!("hetrace-{api}")]);
        }
        let build: Vec<&str> = build.iter().map(String::as_str).collect();
        match sanitizer.cargo(&build, &[("RUSTFLAGS", sanitizer.library_flags())])? {
            Outcome::Passed => {}
            other => return Ok(other),
        }
        let folder = sanitizer.folder().join(TARGET).join("debug");
        let mut tests = Command::new("cargo");
        tests.args(["test", "--release", "-p", "hetrace-tests", "--test", "instrumented", "--", "--ignored"]);
        tests.arg(sanitizer.name()).env("HETRACE_INSTRUMENTED", folder).current_dir(repo::root());
        status(&mut tests)
    };
    Step::new(name, work).after("build")
}
