//! Makes a fake of oneDNN 3: every function that the model has of it, behind those that
//! `tests/programs/dnnl/fake_dnnl3.c` writes by hand; and finds the real oneDNN 2, which `scripts/install-deps.sh` brings.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bed::{self, keep, root, run};
use crate::fake_nccl;

/// The real oneDNN 2 (Debian's package), with its headers. Without it says so.
pub fn real() -> Option<PathBuf> {
    let found = Path::new("/usr/lib/x86_64-linux-gnu/libdnnl.so.2");
    if !found.exists() || !Path::new("/usr/include/oneapi/dnnl/dnnl.h").exists() {
        eprintln!(
            "SKIPPED: there is no libdnnl.so.2 with its headers on this machine (scripts/install-deps.sh)"
        );
        return None;
    }
    Some(found.to_owned())
}

/// The folder with the fake `libdnnl.so.3`, and the programs.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/dnnl");
        std::fs::create_dir_all(&out).expect("a folder");
        let mut api = bed::model("dnnl");
        let functions = api["functions"].as_array_mut().expect("functions");
        functions.retain(|f| f["until"].is_null());
        let (file, text) = (out.join("defaults.c"), fake_nccl::defaults(&api));
        keep(&file, &text);
        let mut make = Command::new("make");
        make.args(["-s", "-C"])
            .arg(root().join("tests/programs/dnnl"))
            .arg(format!("OUT={}", out.display()))
            .args(real().map(|library| format!("REAL={}", library.display())));
        let done = run(&mut make);
        assert_eq!((done.status, &*done.err), (0, ""), "the programs, without a warning");
        out
    })
}
