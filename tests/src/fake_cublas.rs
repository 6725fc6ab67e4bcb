//! Makes fake cuBLAS libraries: every function that the model has, from `apis/cublas/api.json`, behind those that
//! `tests/programs/cublas/fake_cublas.c` writes by hand. They launch by the fake runtime, and that by the fake driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::{fake, fake_nccl};

/// The versions that there are.
pub const MAJORS: [u32; 2] = [12, 13];

/// The folder with `libcublas.so.12` and `libcublas.so.13`, and the programs: `work` is linked to the latter.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = fake::driver().join("cublas");
        build(&out);
        out
    })
}

/// A value of `LD_LIBRARY_PATH` for the libraries and what is below them.
pub fn folders() -> String {
    format!("{}:{}", programs().display(), fake::with_runtime())
}

/// A library's file.
pub fn library(major: u32) -> PathBuf {
    programs().join(format!("libcublas.so.{major}"))
}

fn build(out: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the root");
    std::fs::create_dir_all(out).expect("a folder");
    let text = std::fs::read_to_string(root.join("apis/cublas/api.json")).expect("the model");
    let api: Value = serde_json::from_str(&text).expect("JSON");
    std::fs::write(out.join("defaults.c"), fake_nccl::defaults(&api)).expect("a file");
    let sources = root.join("tests/programs/cublas");
    let cc = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror", "-pthread"]);
        let done = command.args(arguments).output().expect("cc: run scripts/install-deps.sh");
        assert!(done.status.success(), "the fake cuBLAS: {}", String::from_utf8_lossy(&done.stderr));
    };
    let text = |path: PathBuf| path.display().to_string();
    let folders: Vec<String> = fake::with_runtime().split(':').map(|f| format!("-L{f}")).collect();
    let below: Vec<&str> = folders.iter().map(String::as_str).chain(["-l:libcudart.so.13", "-l:libcuda.so.1"]).collect();
    for major in MAJORS {
        // Symbols carry the version, as those of the real library do.
        let versions = out.join(format!("versions.{major}"));
        std::fs::write(&versions, format!("libcublas.so.{major} {{ global: cublas*; local: *; }};\n")).expect("a file");
        let library = out.join(format!("libcublas.so.{major}"));
        let (source, defaults) = (text(sources.join("fake_cublas.c")), text(out.join("defaults.c")));
        let named = [
            format!("-Wl,-soname,libcublas.so.{major}"),
            format!("-Wl,--version-script,{}", versions.display()),
            format!("-DMAJOR={major}"),
        ];
        let named: Vec<&str> = named.iter().map(String::as_str).collect();
        let flags = ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", &text(library), &source, &defaults];
        cc(&[&flags, &*named, &*below].concat());
    }
    let newest = text(out.join(format!("libcublas.so.{}", MAJORS[1])));
    let program = |name: &str| [text(out.join(name)), text(sources.join(format!("{name}.c")))];
    let [work, source] = program("work");
    cc(&[&["-o", &work, &source, &newest, "-Wl,--allow-shlib-undefined"], &*below].concat());
    let [late, source] = program("late");
    cc(&["-o", &late, &source, "-ldl"]);
}
