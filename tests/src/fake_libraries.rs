//! Makes fakes of the libraries above CUDA and cuBLAS: cuFFT, cuDNN, cuSPARSE, cuSOLVER. Each has every function of its
//! model, from `apis/API/api.json`, behind those that `tests/programs/libraries/fake_*.c` write by hand. cuDNN is in parts, as
//! the real one: what programs are linked to opens them and passes each call on.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::bed::model;
use crate::fake_nccl::{Prototype, defaults, prototypes};
use crate::{fake, fake_cublas};

/// The APIs, and the versions of each that there are; the last is what programs are linked to.
pub const APIS: [(&str, &[u32]); 4] =
    [("cufft", &[11, 12]), ("cudnn", &[8, 9]), ("cusparse", &[12]), ("cusolver", &[11])];

/// Parts of cuDNN, each with those that it needs.
const PARTS: [(&str, &[&str]); 4] =
    [("graph", &[]), ("ops", &["graph"]), ("cnn", &["graph", "ops"]), ("adv", &["graph", "ops"])];

/// The folder with the libraries, and the programs, which are linked to the newer ones.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = fake::driver().join("libraries");
        std::fs::create_dir_all(&out).expect("a folder");
        build(&out);
        out
    })
}

/// A value of `LD_LIBRARY_PATH` for the libraries and what is below them.
pub fn folders() -> String {
    format!("{}:{}", programs().display(), fake_cublas::folders())
}

/// A library's file.
pub fn library(api: &str, major: u32) -> PathBuf {
    programs().join(format!("lib{api}.so.{major}"))
}

/// The program that calls each function of an API once.
pub fn each_once(api: &str) -> PathBuf {
    programs().join(format!("each_{api}"))
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/libraries")
}

fn build(out: &Path) {
    for (api, majors) in APIS {
        let model = model(api);
        for major in majors {
            if api == "cudnn" {
                in_parts(out, &model, *major);
            } else {
                let defaults = write(out, &format!("{api}_defaults.c"), &defaults(&model));
                let below: &[&str] = if api == "cusolver" { &["libcusparse.so.12"] } else { &[] };
                shared(out, &format!("lib{api}"), *major, &[hand_written(api), defaults], below);
            }
        }
        let name = format!("lib{api}.so.{}", majors.last().expect("a version"));
        let each = write(out, &format!("each_{api}.c"), &each_call(&model));
        program(out, &format!("each_{api}"), &each, &[&name]);
    }
    for (name, source, libraries) in [
        ("fft", "fft", &["libcufft.so.12"][..]),
        ("conv", "conv", &["libcudnn.so.9"]),
        ("parts", "conv", &["libcudnn_cnn.so.9", "libcudnn_ops.so.9", "libcudnn_graph.so.9"]),
        ("sparse", "sparse", &["libcusparse.so.12"]),
        ("solve", "solve", &["libcusolver.so.11"]),
        ("opened", "opened", &[]),
    ] {
        program(out, name, &sources().join(format!("{source}.c")), libraries);
    }
}

fn hand_written(name: &str) -> PathBuf {
    sources().join(format!("fake_{name}.c"))
}

/// cuDNN: the parts, and what passes calls on to them.
fn in_parts(out: &Path, model: &Value, major: u32) {
    for (part, needs) in PARTS {
        let mut of_it = model.clone();
        let functions = of_it["functions"].as_array_mut().expect("functions");
        functions.retain(|f| part_of(f["name"].as_str().expect("a name")) == part);
        let mut files = vec![write(out, &format!("cudnn_{part}_defaults.c"), &defaults(&of_it))];
        files.extend(Some(hand_written(&format!("cudnn_{part}"))).filter(|file| file.exists()));
        let needs: Vec<String> = needs.iter().map(|part| format!("libcudnn_{part}.so.{major}")).collect();
        shared(
            out,
            &format!("libcudnn_{part}"),
            major,
            &files,
            &needs.iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
    let passes_on = write(out, &format!("cudnn_{major}.c"), &passes_on(model, major));
    shared(out, "libcudnn", major, &[passes_on], &[]);
}

/// The part that has a function.
fn part_of(name: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["RNN", "Attn", "CTC", "SeqData", "Adv", "Algorithm", "Gnn"]) && !has(&["Convolution"]) {
        "adv"
    } else if has(&["Convolution", "Cnn", "FusedOps", "Im2Col", "Conv1d"]) {
        "cnn"
    } else if has(&[
        "Tensor",
        "Filter",
        "Pooling",
        "Activation",
        "Norm",
        "Dropout",
        "Softmax",
        "LRN",
        "Spatial",
        "Reduc",
        "Ops",
    ]) {
        "ops"
    } else {
        "graph"
    }
}

/// Functions that open the part that has them at the first call, and pass each call on.
fn passes_on(model: &Value, major: u32) -> String {
    let (structs, all) = prototypes(model);
    let mut out = format!("#include <dlfcn.h>\n#include <stdlib.h>\n{structs}");
    let _ = writeln!(
        out,
        "static void *find(const char *part, const char *name) {{\n    void *library = dlopen(part, RTLD_LAZY);\n    \
         void *found = library ? dlsym(library, name) : NULL;\n    if (!found)\n        abort();\n    return found;\n}}"
    );
    for f in &all {
        let types = if f.params.is_empty() { "void".to_owned() } else { f.params.join(", ") };
        let passed: Vec<String> = (0..f.params.len()).map(|i| format!("p{i}")).collect();
        let _ = writeln!(
            out,
            "__attribute__((visibility(\"default\"))) {} {{\n    static {} (*real)({types});\n    if (!real)\n        \
             real = ({} (*)({types}))find(\"libcudnn_{}.so.{major}\", \"{}\");\n    {}real({});\n}}",
            f.declaration(),
            f.returns,
            f.returns,
            part_of(&f.name),
            f.name,
            if f.returns == "void" { "" } else { "return " },
            passed.join(", ")
        );
    }
    out
}

/// A program that calls each function once, with zeros, and says so.
pub(crate) fn each_call(model: &Value) -> String {
    let (structs, all) = prototypes(model);
    let mut out = format!("#include <stdio.h>\n{structs}");
    for f in &all {
        let _ = writeln!(out, "{};", f.declaration());
    }
    let zero = |ty: &String| match ty.as_str() {
        "void *" => "NULL".to_owned(),
        other if other.starts_with("struct") => format!("({other}){{{{0}}}}"),
        _ => "0".to_owned(),
    };
    let _ = writeln!(out, "int main(void) {{");
    for Prototype { name, params, .. } in &all {
        let params: Vec<String> = params.iter().map(zero).collect();
        let _ = writeln!(out, "    {name}({});\n    printf(\"calls {name} 1\\n\");", params.join(", "));
    }
    out + "    return 0;\n}\n"
}

fn write(out: &Path, name: &str, text: &str) -> PathBuf {
    let path = out.join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

/// A library whose symbols carry its version, as those of the real ones do.
fn shared(out: &Path, stem: &str, major: u32, files: &[PathBuf], needs: &[&str]) {
    let name = format!("{stem}.so.{major}");
    let versions =
        write(out, &format!("{name}.versions"), &format!("{name} {{ global: cu*; __cu*; local: *; }};\n"));
    let mut line =
        vec!["-shared".to_owned(), "-fPIC".to_owned(), "-Wl,-Bsymbolic".to_owned(), "-O1".to_owned()];
    line.extend([format!("-Wl,-soname,{name}"), format!("-DMAJOR={major}")]);
    line.push(format!("-Wl,--version-script,{}", versions.display()));
    line.extend(["-o".to_owned(), out.join(&name).display().to_string()]);
    line.extend(files.iter().map(|file| file.display().to_string()));
    cc(out, line, needs);
}

fn program(out: &Path, name: &str, source: &Path, libraries: &[&str]) {
    let line = [
        "-O0".to_owned(),
        "-o".to_owned(),
        out.join(name).display().to_string(),
        source.display().to_string(),
    ];
    cc(out, line.into(), libraries);
}

fn cc(out: &Path, line: Vec<String>, needs: &[&str]) {
    let mut command = Command::new("cc");
    command.args(["-std=gnu11", "-D_GNU_SOURCE", "-g", "-Wall", "-Werror", "-pthread"]).args(line);
    command.args(needs.iter().map(|name| out.join(name)));
    // What is below: each takes of it what it needs.
    command.arg(fake_cublas::library(12)).arg("-Wl,--as-needed,--allow-shlib-undefined");
    command.args(fake::with_runtime().split(':').map(|folder| format!("-L{folder}")));
    command.arg(format!("-Wl,-rpath-link,{}", fake_cublas::programs().display()));
    command.args(["-l:libcublasLt.so.12", "-l:libcudart.so.13", "-l:libcuda.so.1", "-ldl"]);
    command.arg(format!("-L{}", fake_cublas::programs().display()));
    let done = command.output().expect("cc: run scripts/install-deps.sh");
    assert!(done.status.success(), "the fake libraries: {}", String::from_utf8_lossy(&done.stderr));
}
