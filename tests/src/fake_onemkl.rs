//! Makes a fake of oneMKL: `libmkl_rt` and both interfaces (`tests/programs/onemkl`), another library with some of its names,
//! and programs that call them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bed::root;

/// The folder with the libraries and programs.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/onemkl");
        std::fs::create_dir_all(&out).expect("a folder");
        build(&out);
        out
    })
}

fn build(out: &Path) {
    let library = |name: &str, source: &str, options: &[&str], with: &[&str]| {
        let soname = format!("-Wl,-soname,{}", name.trim_start_matches("stub/"));
        let all = [&["-shared", "-fPIC", &soname], options].concat();
        cc(out, name, source, &all, with);
    };
    library("libmkl_intel_lp64.so.3", "interface.c", &["-DINT=int"], &[]);
    library("libmkl_intel_ilp64.so.3", "interface.c", &["-DINT=long long"], &[]);
    library("libmkl_rt.so.3", "rt.c", &[], &[]);
    library("libother.so.0", "other.c", &[], &[]);
    library("plugin_mkl.so", "plugin.c", &[], &["libmkl_rt.so.3"]);
    library("plugin_other.so", "plugin.c", &[], &["libother.so.0"]);
    cc(out, "by_rt", "program.c", &[], &["libmkl_rt.so.3"]);
    cc(out, "lp64", "program.c", &[], &["libmkl_intel_lp64.so.3"]);
    cc(out, "ilp64", "program.c", &[], &["libmkl_intel_ilp64.so.3"]);
    // To be linked to only: the fake does not have all that the program calls of the real one.
    std::fs::create_dir_all(out.join("stub")).expect("a folder");
    library("stub/libmkl_rt.so.3", "stub.c", &[], &[]);
    cc(out, "real", "real.c", &[], &["stub/libmkl_rt.so.3"]);
    cc(out, "linked", "both.c", &["-DLINKED"], &["libother.so.0"]);
    cc(out, "bare", "both.c", &[], &[]);
}

fn cc(out: &Path, made: &str, source: &str, options: &[&str], with: &[&str]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Werror"]).args(options);
    command.arg("-o").arg(out.join(made)).arg(root().join("tests/programs/onemkl").join(source));
    command.args(with.iter().map(|library| out.join(library))).args([
        "-ldl",
        "-Wl,-z,lazy",
        "-Wl,--unresolved-symbols=ignore-all",
    ]);
    let done = command.output().expect("cc: run scripts/install-deps.sh");
    assert!(done.status.success(), "{made}: {}", String::from_utf8_lossy(&done.stderr));
}
