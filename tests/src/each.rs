//! Each function of an API once: a library in which all do nothing, made from the model, and a program that is linked to it and
//! calls each with zeros; and a program that calls some of them again and again, for measurements.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::bed::{keep, model, root};
use crate::fake_libraries::each_call;
use crate::fake_nccl::{defaults, prototypes};
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

/// Makes a library for an API, and a program that calls these functions of it: `repeated N` calls each N times, in a function
/// that is called [`searched`], after some calls of it outside of that. Returns the program; the library lies beside it.
///
/// # Panics
/// If they can't be made.
pub fn repeated(api: &str, soname: &str, functions: &[&str]) -> PathBuf {
    let folder = each(api, soname);
    let out = folder.parent().expect("a folder");
    let source = out.join("repeated.c");
    keep(&source, &loops(&model(api), functions));
    let program = out.join("repeated");
    cc(&program, &["-Wl,-z,now"], &[&source, &out.join(soname)]);
    program
}

/// The function of [`repeated`]'s program in which a function is called again and again.
pub fn searched(function: &str) -> String {
    format!("loop_{function}")
}

/// Pointers lead to a buffer with a short text, numbers are 1: nothing is NULL, and nothing large.
fn loops(model: &Value, functions: &[&str]) -> String {
    let (structs, all) = prototypes(model);
    let mut out = format!("#include <stdlib.h>\n{structs}char buffer[1 << 16] = \"step\";\n");
    let mut calls = String::new();
    for f in all.iter().filter(|f| functions.contains(&f.name.as_str())) {
        let argument = |ty: &String| match ty.as_str() {
            "void *" => "buffer".to_owned(),
            other if other.starts_with("struct") => format!("({other}){{{{0}}}}"),
            _ => "1".to_owned(),
        };
        let arguments = f.params.iter().map(argument).collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "{};", f.declaration());
        for name in [searched(&f.name), format!("before_{}", f.name)] {
            let _ = writeln!(
                out,
                "__attribute__((noinline)) static void {name}(long n) {{ while (n--) {}({arguments}); }}",
                f.name
            );
            let times = if name.starts_with("loop") { "n" } else { "500" };
            calls.insert_str(0, &format!("    {name}({times});\n"));
        }
    }
    let _ = writeln!(
        out,
        "int main(int c, char **v) {{\n    long n = c > 1 ? atol(v[1]) : 1;\n{calls}    return 0;\n}}"
    );
    out
}

fn cc(made: &Path, options: &[&str], files: &[&Path]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-O0", "-Wall", "-Werror"]).args(options).arg("-o").arg(made).args(files);
    let done = command.output().expect("cc: run scripts/install-deps.sh");
    assert!(done.status.success(), "{}: {}", made.display(), String::from_utf8_lossy(&done.stderr));
}
