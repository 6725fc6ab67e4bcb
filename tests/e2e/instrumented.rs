//! Our own library built with a sanitizer, in programs built with it: what goes on in there is clean.
//!
//! `cargo xtask test --full` builds the libraries and says by `HETRACE_INSTRUMENTED` where they are. The
//! programs are built by clang, whose runtime has all that the Rust compiler's code calls (that of gcc has
//! not all for threads). The library comes as a layer: preloaded, it is called by the dynamic loader's users
//! before the runtime of the sanitizer has begun, and instrumented code must not run then.

use std::path::PathBuf;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::counts::complete;
use hetrace_tests::{Platform, hetrace};
use tempfile::TempDir;

fn clang() -> Option<&'static str> {
    let runs = |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    ["clang-19", "clang"].into_iter().find(runs)
}

/// Builds programs with a sanitizer, and runs them under trace with libraries that have it.
fn clean(sanitizer: &str) {
    let libraries = std::env::var_os("HETRACE_INSTRUMENTED").expect("run it by `cargo xtask test --full`");
    let Some(clang) = clang() else {
        println!("skipped: there is no clang (scripts/install-deps.sh --full)");
        return;
    };
    let scratch = TempDir::new().expect("a scratch folder");
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("programs");
    for (program, arguments) in
        [("linked", &["20"][..]), ("threads", &[]), ("queues", &[]), ("callbacks", &[])]
    {
        let built = scratch.path().join(program);
        let mut compile = Command::new(clang);
        compile.args(["-std=gnu11", "-O1", "-g", "-pthread", "-DCL_TARGET_OPENCL_VERSION=300"]);
        compile.arg(format!("-fsanitize={sanitizer}")).arg("-I").arg(&sources).arg("-o").arg(&built);
        let compiled =
            run(compile.arg(sources.join(format!("{program}.c"))).args(["-lOpenCL", "-lm", "-ldl"]));
        assert_eq!(compiled.status, 0, "{}", compiled.err);
        let platform = Platform::Pocl.environment(scratch.path());
        // PoCL has leaks and races of its own: what the program shows by itself is no news.
        let bare = run(Command::new(&built).args(arguments).envs(platform.clone()));
        let folder = scratch.path().join(format!("trace-{program}"));
        let mut traced = Command::new(hetrace());
        traced.args(["run", "-q", "--buffer", "8192", "--interpose", "layer", "-o"]).arg(&folder);
        traced.arg("--").arg(&built).args(arguments).envs(platform).env("HETRACE_LIBRARIES", &libraries);
        let done = run(&mut traced);
        let ours = |line: &str| line.contains("hetrace_") && line.trim_start().starts_with('#');
        let named: Vec<&str> = done.err.lines().filter(|line| ours(line)).collect();
        assert!(named.is_empty() || named_in(&bare.err, &done.err), "{sanitizer} {program}: {}", done.err);
        assert_eq!(done.status, bare.status, "{sanitizer} {program}: {}", done.err);
        assert_eq!(complete(&folder, &done.out), Ok(()), "{sanitizer} {program}");
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
    clean("address");
}

#[test]
#[ignore = "needs libraries with a sanitizer; `cargo xtask test --full`"]
fn instrumented_thread() {
    clean("thread");
}
