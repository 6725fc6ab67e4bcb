//! Makes fakes of AMD's libraries above HIP, on the fake HIP. Each has every function of its model, from
//! `apis/API/api.json`, behind those that `tests/programs/rocm/fake_*.c` write by hand.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::bed::{keep, model, root};
use crate::fake_hip;
use crate::fake_nccl::defaults;

/// The folder with the libraries and the programs.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/rocm");
        std::fs::create_dir_all(&out).expect("a folder");
        build(&out);
        out
    })
}

/// A value of `LD_LIBRARY_PATH` for the libraries and what is below them.
pub fn folders() -> String {
    format!("{}:{}", programs().display(), fake_hip::programs().display())
}

fn build(out: &Path) {
    let rocblas = model("rocblas");
    library(out, "rocblas", "librocblas.so.4", &rocblas);
    library(out, "rocblas", "librocblas.so.3", &until(&rocblas, &["2.44", "3.1"]));
    program(out, "blas", &sources().join("blas.c"), "librocblas.so.4");
    program(out, "old_blas", &sources().join("old_blas.c"), "librocblas.so.3");
    let miopen = model("miopen");
    library(out, "miopen", "libMIOpen.so.1", &miopen);
    program(out, "conv", &sources().join("conv.c"), "libMIOpen.so.1");
}

fn sources() -> PathBuf {
    root().join("tests/programs/rocm")
}

/// What versions of a library had, of which these are all.
fn until(model: &Value, versions: &[&str]) -> Value {
    let mut older = model.clone();
    let functions = older["functions"].as_array_mut().expect("functions");
    functions.retain(|f| versions.contains(&f["since"].as_str().expect("a version")));
    older
}

fn library(out: &Path, api: &str, soname: &str, model: &Value) {
    let file = out.join(format!("{soname}.c"));
    keep(&file, &defaults(model));
    let hand_written = sources().join(format!("fake_{api}.c"));
    let soname = format!("-Wl,-soname,{soname}");
    cc(
        &out.join(&soname["-Wl,-soname,".len()..]),
        &["-shared", "-fPIC", "-Wl,-Bsymbolic", &soname],
        &[hand_written, file],
    );
}

fn program(out: &Path, name: &str, source: &Path, library: &str) {
    cc(&out.join(name), &["-O0"], &[source.to_owned(), out.join(library)]);
}

fn cc(made: &Path, options: &[&str], files: &[PathBuf]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror", "-pthread"]);
    command.args(options).arg("-o").arg(made).args(files);
    command.arg(format!("-L{}", fake_hip::programs().display())).arg("-l:libamdhip64.so.6");
    let done = command.output().expect("cc: run scripts/install-deps.sh");
    assert!(done.status.success(), "AMD's fake libraries: {}", String::from_utf8_lossy(&done.stderr));
}
