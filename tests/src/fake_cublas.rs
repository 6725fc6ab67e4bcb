//! Makes fake cuBLAS and cuBLASLt libraries: every function that the models have, from `apis/cublas/api.json` and
//! `apis/cublaslt/api.json`, behind those that `tests/programs/cublas/fake_*.c` write by hand. They launch by the fake
//! runtime, and that by the fake driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::{fake, fake_nccl};

/// The versions that there are.
pub const MAJORS: [u32; 2] = [12, 13];

/// The folder with `libcublas.so.12` and `libcublas.so.13`, each with the `libcublasLt.so` that it needs, and the
/// programs, which are linked to the newer ones.
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
    let text = |path: PathBuf| path.display().to_string();
    let sources = root.join("tests/programs/cublas");
    let folders: Vec<String> = fake::with_runtime().split(':').map(|f| format!("-L{f}")).collect();
    let below = folders.iter().map(String::as_str).chain(["-l:libcudart.so.13", "-l:libcuda.so.1"]);
    let below: Vec<&str> = below.collect();
    for (api, stem, needs) in
        [("cublaslt", "libcublasLt", None), ("cublas", "libcublas", Some("libcublasLt"))]
    {
        let model = std::fs::read_to_string(root.join(format!("apis/{api}/api.json"))).expect("the model");
        let model: Value = serde_json::from_str(&model).expect("JSON");
        let defaults = out.join(format!("{api}_defaults.c"));
        std::fs::write(&defaults, fake_nccl::defaults(&model)).expect("a file");
        let files = [text(sources.join(format!("fake_{api}.c"))), text(defaults)];
        for major in MAJORS {
            let name = format!("{stem}.so.{major}");
            let versions = out.join(format!("{stem}.versions.{major}"));
            // Symbols carry the version, as those of the real library do.
            let all = format!("{name} {{ global: cublas*; local: *; }};\n");
            std::fs::write(&versions, all).expect("a file");
            let mut line = vec!["-shared".to_owned(), "-fPIC".to_owned(), "-Wl,-Bsymbolic".to_owned()];
            line.extend([format!("-Wl,-soname,{name}"), format!("-DMAJOR={major}")]);
            line.push(format!("-Wl,--version-script,{}", versions.display()));
            line.extend(["-o".to_owned(), text(out.join(&name))].into_iter().chain(files.clone()));
            line.extend(needs.map(|lower| text(out.join(format!("{lower}.so.{major}")))));
            cc(&line.iter().map(String::as_str).chain(below.clone()).collect::<Vec<_>>());
        }
    }
    let program = |name: &str, library: &str| {
        let (program, source) = (text(out.join(name)), text(sources.join(format!("{name}.c"))));
        let library = text(out.join(format!("{library}.so.{}", MAJORS[1])));
        cc(&[&["-o", &program, &source, &library, "-Wl,--allow-shlib-undefined"], &*below].concat());
    };
    program("work", "libcublas");
    program("matmul", "libcublasLt");
    let (late, source) = (text(out.join("late")), text(sources.join("late.c")));
    cc(&["-o", &late, &source, "-ldl"]);
}

fn cc(arguments: &[&str]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror", "-pthread"]);
    let done = command.args(arguments).output().expect("cc: run scripts/install-deps.sh");
    assert!(done.status.success(), "the fake cuBLAS: {}", String::from_utf8_lossy(&done.stderr));
}
