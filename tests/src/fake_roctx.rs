//! Builds the programs of `tests/programs/roctx`, with the library that stands for rocprofiler-sdk's, and finds
//! roctracer's real one, which `scripts/install-deps.sh` brings.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bed::{root, run};

/// The folder with roctracer's own `libroctx64.so.4`: Debian's package, unpacked. Without it says so.
pub fn roctracer() -> Option<PathBuf> {
    let folders = root().join("target/roctx/usr/lib");
    let mut folders = std::fs::read_dir(folders).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = folders.find(|folder| folder.join("libroctx64.so.4").exists());
    if found.is_none() {
        eprintln!("not tested: there is no libroctx64.so.4 in target/roctx (scripts/install-deps.sh)");
    }
    found
}

/// The folder with the programs and the stand-in `librocprofiler-sdk-roctx.so.1`.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/roctx");
        let mut make = Command::new("make");
        make.args(["-s", "-C"])
            .arg(root().join("tests/programs/roctx"))
            .arg(format!("OUT={}", out.display()))
            .args(roctracer().map(|folder| format!("ROCTRACER={}", folder.display())));
        let done = run(&mut make);
        assert_eq!((done.status, &*done.err), (0, ""), "the programs, without a warning");
        out
    })
}
