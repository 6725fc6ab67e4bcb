//! Makes a fake of oneCCL: every function that the model has, behind those that `tests/programs/oneccl/fake_oneccl.c` writes by
//! hand.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bed::{keep, model, root};
use crate::fake_nccl::defaults;

/// The folder with the fake `libccl.so.2`, and the program.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/oneccl");
        std::fs::create_dir_all(&out).expect("a folder");
        build(&out);
        out
    })
}

fn build(out: &Path) {
    let (model, sources) = (model("oneccl"), root().join("tests/programs/oneccl"));
    let others = out.join("defaults.c");
    keep(&others, &defaults(&model));
    let library = out.join("libccl.so.2");
    cc(
        &library,
        &["-shared", "-fPIC", "-Wl,-Bsymbolic", "-Wl,-soname,libccl.so.2"],
        &[sources.join("fake_oneccl.c"), others],
    );
    cc(&out.join("ranks"), &[], &[sources.join("ranks.c"), library]);
}

fn cc(made: &Path, options: &[&str], files: &[PathBuf]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror", "-pthread"]);
    let done = command.args(options).arg("-o").arg(made).args(files).output();
    let done = done.expect("cc: run scripts/install-deps.sh");
    assert!(done.status.success(), "the fake oneCCL: {}", String::from_utf8_lossy(&done.stderr));
}
