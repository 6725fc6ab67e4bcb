//! Builds the programs of `tests/programs/ompt`, for LLVM's OpenMP runtime, which `scripts/install-deps.sh` brings; that
//! with code for devices if Clang is there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bed::{root, run};

/// The version and the folder of the newest LLVM with an OpenMP runtime and the headers of its tools.
fn llvm() -> Option<(u32, PathBuf)> {
    let version = |path: &Path| path.file_name()?.to_str()?.strip_prefix("llvm-")?.parse::<u32>().ok();
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    let found = folders.filter_map(|path| Some((version(&path)?, path)));
    let whole = |(version, path): &(u32, PathBuf)| {
        path.join("lib/libomp.so.5").exists()
            && path.join(format!("lib/clang/{version}/include/omp-tools.h")).exists()
    };
    found.filter(whole).max()
}

/// Whether there is a runtime; says so if not.
pub fn has_runtime() -> bool {
    let found = llvm().is_some();
    if !found {
        eprintln!("SKIPPED: there is no OpenMP runtime of LLVM (scripts/install-deps.sh: libomp-19-dev)");
    }
    found
}

/// The folder of the runtime's libraries; none if there is no runtime.
pub fn libraries() -> Option<PathBuf> {
    Some(llvm()?.1.join("lib"))
}

/// Clang of the runtime's version, which compiles for devices.
fn clang() -> Option<String> {
    let name = format!("clang-{}", llvm()?.0);
    std::env::split_paths(&std::env::var_os("PATH")?)
        .any(|folder| folder.join(&name).exists())
        .then_some(name)
}

/// Whether the program with code for devices is there; says so if not.
pub fn has_devices() -> bool {
    let found = clang().is_some();
    if !found {
        eprintln!(
            "SKIPPED: there is no Clang of the OpenMP runtime's version (scripts/install-deps.sh --full)"
        );
    }
    found
}

/// The folder with the programs that this machine can build.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/ompt");
        let mut make = Command::new("make");
        make.args(["-s", "-C"]).arg(root().join("tests/programs/ompt")).arg(format!("OUT={}", out.display()));
        match llvm() {
            None => _ = make.arg("RUNTIME="),
            Some((version, folder)) => {
                let library = folder.join("lib");
                make.arg(format!("RUNTIME={}", library.display()));
                make.arg(format!("INCLUDE={}/clang/{version}/include", library.display()));
            }
        }
        make.args(clang().map(|name| format!("CLANG={name}")));
        let done = run(&mut make);
        assert_eq!((done.status, &*done.err), (0, ""), "the programs, without a warning");
        out
    })
}
