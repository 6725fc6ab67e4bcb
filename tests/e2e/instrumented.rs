//! Our own library built with a sanitizer, in programs built with it: what goes on in there is clean.
//!
//! `cargo xtask test --full` builds the libraries and says by `HETRACE_INSTRUMENTED` where they are. The
//! programs are built by clang, whose runtime has all that the Rust compiler's code calls (that of gcc has
//! not all for threads). The library comes as a layer, or is loaded by NVTX: preloaded, it is called by the
//! dynamic loader's users before the runtime of the sanitizer has begun, and instrumented code must not run
//! then. So the libraries of CUDA, its runtime and NCCL can't be tried like this.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use hetrace_tests::bed::{Done, run};
use hetrace_tests::counts::complete;
use hetrace_tests::{Platform, Seen, hetrace};
use tempfile::TempDir;

fn clang() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    ["clang-19", "clang"].into_iter().find(runs)
}

/// Programs that are built with a sanitizer and run under trace with a library that has it.
struct Instrumented {
    sanitizer: &'static str,
    clang: &'static str,
    /// Where the libraries are.
    libraries: OsString,
    scratch: TempDir,
}

impl Instrumented {
    /// Nothing where there is no clang.
    fn new(sanitizer: &'static str) -> Option<Instrumented> {
        let libraries =
            std::env::var_os("HETRACE_INSTRUMENTED").expect("run it by `cargo xtask test --full`");
        let Some(clang) = clang() else {
            println!("skipped: there is no clang (scripts/install-deps.sh --full)");
            return None;
        };
        Some(Instrumented { sanitizer, clang, libraries, scratch: TempDir::new().expect("a scratch folder") })
    }

    fn build(&self, program: &str, more: &[&str]) -> PathBuf {
        let built = self.scratch.path().join(program);
        let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("programs");
        let mut compile = Command::new(self.clang);
        compile.args(["-std=gnu11", "-O1", "-g", "-pthread", "-DCL_TARGET_OPENCL_VERSION=300"]);
        compile.arg(format!("-fsanitize={}", self.sanitizer)).arg("-I").arg(&sources).arg("-o").arg(&built);
        let compiled = run(compile.arg(sources.join(program).with_extension("c")).args(more));
        assert_eq!(compiled.status, 0, "{}", compiled.err);
        built
    }

    /// Runs a program under trace of one API: libraries of others would be preloaded, whether the machine has
    /// these APIs or not, since the layer is insisted on. Returns what the program shows, and the trace.
    fn clean(&self, api: &str, program: &str, more: &[&str], arguments: &[&str]) -> (Done, PathBuf) {
        let built = self.build(program, more);
        let platform = Platform::Pocl.environment(self.scratch.path());
        // PoCL has leaks and races of its own: what the program shows by itself is no news.
        let bare = run(Command::new(&built).args(arguments).envs(platform.clone()));
        let folder = self.scratch.path().join(format!("trace-{program}"));
        let mut traced = Command::new(hetrace());
        traced.args(["run", "-q", "--buffer", "8192", "-t", api, "--interpose", "layer", "-o"]).arg(&folder);
        traced.arg("--").arg(&built).args(arguments).envs(platform);
        let done = run(traced.env("HETRACE_LIBRARIES", &self.libraries));
        let what = format!("{} {program}: {}", self.sanitizer, done.err);
        let ours = |line: &str| line.contains("hetrace_") && line.trim_start().starts_with('#');
        assert!(!done.err.lines().any(ours) || named_in(&bare.err, &done.err), "{what}");
        assert_eq!(done.status, bare.status, "{what}");
        (done, folder)
    }
}

/// The library of OpenCL, as a layer.
fn opencl(sanitizer: &'static str) {
    let Some(instrumented) = Instrumented::new(sanitizer) else { return };
    for (program, arguments) in
        [("linked", &["20"][..]), ("threads", &[]), ("queues", &[]), ("callbacks", &[])]
    {
        let (done, folder) = instrumented.clean("opencl", program, &["-lOpenCL", "-lm", "-ldl"], arguments);
        assert_eq!(complete(&folder, &done.out), Ok(()), "{sanitizer} {program}");
    }
}

/// The library of NVTX, which NVTX's own header loads.
fn nvtx(sanitizer: &'static str) {
    let Some(instrumented) = Instrumented::new(sanitizer) else { return };
    for program in ["nvtx_ranges", "nvtx_payloads"] {
        let (done, folder) = instrumented.clean("nvtx", program, &["-ldl"], &[]);
        let ordinary = instrumented.scratch.path().join(format!("ordinary-{program}"));
        let mut traced = Command::new(hetrace());
        traced.args(["run", "-q", "-t", "nvtx", "-o"]).arg(&ordinary).arg("--");
        let as_ever = run(traced.arg(hetrace_tests::bed::program(program)));
        assert_eq!(done.out, as_ever.out, "{sanitizer} {program}: {}", done.err);
        let (seen, expected) = (Seen::read(&folder), Seen::read(&ordinary));
        assert!(seen.damage.is_empty() && seen.disorder == 0 && seen.discarded == 0, "{:?}", seen.damage);
        assert!(!expected.total().is_empty(), "{program} calls NVTX");
        assert_eq!(seen.total(), expected.total(), "{sanitizer} {program}");
    }
}

/// Whether every kind of report was there without us, too: calls of the program go through our frames, so
/// these stand in reports of others' faults.
fn named_in(bare: &str, traced: &str) -> bool {
    let kinds = |text: &str| text.lines().filter(|l| l.starts_with("SUMMARY:")).count();
    kinds(traced) <= kinds(bare)
}

#[test]
#[ignore = "needs libraries with a sanitizer; `cargo xtask test --full`"]
fn instrumented_address() {
    opencl("address");
    nvtx("address");
}

#[test]
#[ignore = "needs libraries with a sanitizer; `cargo xtask test --full`"]
fn instrumented_thread() {
    opencl("thread");
    nvtx("thread");
}
