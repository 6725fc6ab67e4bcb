//! An invented API: `tests/invented` has its folder, its library and a program that uses it.
//!
//! The folder is put into a checkout in which everything else is this repository's own, by
//! symbolic links, and what an API's folder needs is made there with the tools of the repository.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bed::{self, copy, root, run};

/// The invented API's name.
pub const NAME: &str = "gizmo";

/// What was made of `tests/invented`.
#[derive(Debug)]
pub struct Invented {
    /// The checkout.
    pub tree: PathBuf,
    /// The command, with the libraries of all APIs beside it.
    pub hetrace: PathBuf,
    /// The folder of the API's library, `libgizmo.so.3`.
    pub library: PathBuf,
    /// The program.
    pub program: PathBuf,
}

/// Makes all of it, once for each test program.
pub fn built() -> &'static Invented {
    static BUILT: OnceLock<Invented> = OnceLock::new();
    BUILT.get_or_init(|| {
        let place = root().join("target/invented");
        let tree = checkout(&place.join("tree"));
        build(&tree, &place.join("target"));
        let hetrace = beside(&place.join("bin"), &place.join("target"));
        let (library, program) = compile(&place.join("programs"));
        Invented { tree, hetrace, library, program }
    })
}

/// A checkout that has one more folder, and shares everything else with this one.
fn checkout(tree: &Path) -> PathBuf {
    let _ = std::fs::remove_dir_all(tree);
    let apis = tree.join("apis");
    std::fs::create_dir_all(&apis).expect("a folder");
    let link = |from: PathBuf, into: &Path| {
        symlink(&from, into.join(from.file_name().expect("a name"))).expect("a link");
    };
    for name in ["Cargo.toml", "crates", "tests", "xtask"] {
        link(root().join(name), tree);
    }
    // Cargo enters the new crate.
    std::fs::copy(root().join("Cargo.lock"), tree.join("Cargo.lock")).expect("a copy");
    for entry in std::fs::read_dir(root().join("apis")).expect("apis/").flatten() {
        link(entry.path(), &apis);
    }
    copy(&root().join("tests/invented").join(NAME), &apis.join(NAME));
    tree.to_owned()
}

/// Builds the API's library.
fn build(tree: &Path, target: &Path) {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--offline", "-p", &format!("hetrace-{NAME}")]);
    let made = cargo.current_dir(tree).env("CARGO_TARGET_DIR", target).output().expect("cargo");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Lays the library beside the others and the command.
fn beside(bin: &Path, target: &Path) -> PathBuf {
    let _ = std::fs::remove_dir_all(bin);
    std::fs::create_dir_all(bin).expect("a folder");
    let own = format!("libhetrace_{NAME}.so");
    let command = bed::hetrace();
    let there = std::fs::read_dir(command.parent().expect("a folder")).expect("a folder");
    for path in there.flatten().map(|e| e.path()) {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let library = name.starts_with("libhetrace_") && name.ends_with(".so") && name != own;
        if library || path == command {
            std::fs::copy(&path, bin.join(name)).expect("a copy");
        }
    }
    std::fs::copy(target.join("release").join(&own), bin.join(&own)).expect("the library");
    bin.join(command.file_name().expect("a name"))
}

/// Compiles the API's library, and the program.
fn compile(out: &Path) -> (PathBuf, PathBuf) {
    std::fs::create_dir_all(out).expect("a folder");
    let sources = root().join("tests/invented");
    let cc = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Wshadow", "-Werror"]);
        command.args(["-Wno-missing-field-initializers", "-pthread"]);
        command.arg(format!("-I{}", sources.join(NAME).display()));
        command.arg(format!("-I{}", root().join("tests/programs").display()));
        let done = run(command.args(arguments));
        assert_eq!(done.status, 0, "{}", done.err);
    };
    let text = |path: &Path| path.display().to_string();
    let (library, program) = (out.join("libgizmo.so.3"), out.join("both"));
    let shared = ["-shared", "-fPIC", "-Wl,-Bsymbolic", "-Wl,-soname,libgizmo.so.3", "-o"];
    cc(&[&shared[..], &[&text(&library), &text(&sources.join("library/gizmo.c"))]].concat());
    let (here, source) = (format!("-L{}", out.display()), text(&sources.join("program/both.c")));
    cc(&["-o", &text(&program), &source, &here, "-l:libgizmo.so.3", "-lOpenCL", "-ldl", "-lm"]);
    (out.to_owned(), program)
}

/// Runs `cargo xtask` on the checkout.
pub fn xtask(arguments: &[&str]) -> bed::Done {
    // Whoever runs the tests by `cargo xtask test` has it built.
    let mut command = match std::env::var_os("HETRACE_XTASK") {
        Some(built) => Command::new(built),
        None => {
            let mut cargo = Command::new("cargo");
            cargo.args(["run", "--quiet", "--release", "--package", "xtask", "--"]).current_dir(root());
            cargo
        }
    };
    run(command.arg("--root").arg(&built().tree).args(arguments))
}
