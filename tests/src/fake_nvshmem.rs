//! Makes the fake NVSHMEM: every function of the newest version that the model has, from `apis/nvshmem/api.json`, behind
//! those that `tests/programs/nvshmem/fake_nvshmem.c` writes by hand. It stands on the fake driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::fake;
use crate::fake_nccl::defaults;

/// The folder with the fake `libnvshmem_host.so.3`, and the program that is linked to it.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = fake::driver().join("nvshmem");
        build(&out);
        out
    })
}

fn build(out: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the root");
    std::fs::create_dir_all(out).expect("a folder");
    let text = std::fs::read_to_string(root.join("apis/nvshmem/api.json")).expect("the model");
    let mut api: Value = serde_json::from_str(&text).expect("JSON");
    api["functions"].as_array_mut().expect("functions").retain(|f| f["until"].is_null());
    std::fs::write(out.join("defaults.c"), defaults(&api)).expect("a file");
    let sources = root.join("tests/programs/nvshmem");
    let text = |path: PathBuf| path.display().to_string();
    let driver = format!("-L{}", fake::driver().display());
    let cc = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror"]);
        let done = command.args(arguments).output().expect("cc: run scripts/install-deps.sh");
        assert!(done.status.success(), "the fake NVSHMEM: {}", String::from_utf8_lossy(&done.stderr));
    };
    let (made, file) = (text(out.join("libnvshmem_host.so.3")), text(sources.join("fake_nvshmem.c")));
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libnvshmem_host.so.3", "-Wl,-Bsymbolic"];
    let parts = ["-o", &made, &file, &text(out.join("defaults.c")), &driver, "-l:libcuda.so.1"];
    cc(&[&shared[..], &parts].concat());
    let (program, source) = (text(out.join("work")), text(sources.join("work.c")));
    let find = format!("-L{}", out.display());
    cc(&["-o", &program, &source, &find, &driver, "-l:libnvshmem_host.so.3", "-l:libcuda.so.1"]);
}
