//! Each function of an API once: a library in which all do nothing, made from the model, and a program that is linked to it and
//! calls each with zeros.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bed::{keep, model, root};
use crate::fake_libraries::each_call;
use crate::fake_nccl::defaults;
use crate::ran::Ran;

/// Has every function recorded, and looks whether it was, once. Names of the API's functions begin with `begin`.
///
/// # Panics
/// If it was not.
pub fn each_once(api: &str, soname: &str, begin: &str) {
    let program = each(api, soname);
    let folder = program.parent().and_then(Path::to_str).expect("a folder");
    let ran = Ran::new(&["-m", "full"], &program, &[], &[("LD_LIBRARY_PATH", folder)]);
    let counted = ran.counted();
    assert!(counted.len() > 40, "{}", counted.len());
    assert_eq!(ran.recorded_of(begin), counted);
}

/// Makes both for an API whose library has this name. Returns the program; the library lies beside it.
///
/// # Panics
/// If they can't be made.
fn each(api: &str, soname: &str) -> PathBuf {
    let out = root().join("target/test-programs/each").join(api);
    std::fs::create_dir_all(&out).expect("a folder");
    let model = model(api);
    let [functions, calls] = ["functions.c", "calls.c"].map(|name| out.join(name));
    keep(&functions, &defaults(&model));
    keep(&calls, &each_call(&model));
    let (library, program) = (out.join(soname), out.join("each"));
    let name = format!("-Wl,-soname,{soname}");
    cc(&library, &["-shared", "-fPIC", "-Wl,-Bsymbolic", &name], &[&functions]);
    cc(&program, &[], &[&calls, &library]);
    program
}

fn cc(made: &Path, options: &[&str], files: &[&Path]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O0", "-Wall", "-Werror"]).args(options).arg("-o").arg(made).args(files);
    let done = command.output().expect("cc: run scripts/install-deps.sh");
    assert!(done.status.success(), "{}: {}", made.display(), String::from_utf8_lossy(&done.stderr));
}
