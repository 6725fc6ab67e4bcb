//! Makes the fake driver: every function that the model has, from
//! `apis/cuda/api.json`, behind those that `tests/programs/cuda/fake_cuda.c` writes by hand.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bed::{model, root};
use serde_json::Value;

/// Versions of the fake CUPTI, with their names.
const CUPTI: [(u32, &str); 2] = [(28, "libcupti.so.12"), (130_401, "libcupti.so.13")];
/// Programs that are linked to the driver alone.
const PROGRAMS: &[&str] = &["work", "looked_up", "misuse", "inside", "graphs"];

/// The folder with the fake `libcuda.so.1`.
pub fn driver() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        // Each test program builds it for itself: they may run at the same time.
        let all = root().join("target/test-programs");
        let out = all.join(format!("cuda-{}", std::process::id()));
        remove_left(&all);
        build(&out);
        out
    })
}

/// Removes what test programs have built that have ended.
fn remove_left(all: &Path) {
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|n| n.strip_prefix("cuda-")).and_then(|n| n.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// A program of `tests/programs/cuda`, linked to the fake driver.
pub fn program(name: &str) -> PathBuf {
    driver().join(name)
}

/// The same, built by gcc with a sanitizer.
pub fn sanitized(name: &str, sanitizer: &str) -> PathBuf {
    let path = driver().join(format!("{name}-{sanitizer}"));
    let source = root().join(format!("tests/programs/cuda/{name}.c"));
    let done = Command::new("gcc")
        .args(["-std=gnu11", "-O1", "-g", "-pthread", &format!("-fsanitize={sanitizer}")])
        .arg(format!("-I{}", driver().display()))
        .arg(format!("-I{}", root().join("tests/programs/cuda").display()))
        .arg("-o")
        .args([&path, &source])
        .arg(format!("-L{}", driver().display()))
        .arg("-l:libcuda.so.1")
        .output()
        .expect("gcc: run scripts/install-deps.sh");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    path
}

fn build(out: &Path) {
    std::fs::create_dir_all(out).expect("a folder");
    let api = model("cuda");
    std::fs::write(out.join("fake_cuda_tables.h"), tables(&api)).expect("a file");
    std::fs::write(out.join("fake_cuda_defaults.c"), defaults(&api)).expect("a file");
    let sources = root().join("tests/programs/cuda");
    let cc = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Werror", "-pthread"]);
        command.arg(format!("-I{}", out.display())).arg(format!("-I{}", sources.display()));
        let done = command.args(arguments).output().expect("cc: run scripts/install-deps.sh");
        assert!(done.status.success(), "the fake driver: {}", String::from_utf8_lossy(&done.stderr));
    };
    let library = out.join("libcuda.so.1");
    let text = |path: PathBuf| path.display().to_string();
    cc(&[
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcuda.so.1",
        "-Wl,-Bsymbolic",
        "-o",
        &text(library),
        &text(sources.join("fake_cuda.c")),
        &text(out.join("fake_cuda_defaults.c")),
        "-ldl",
    ]);
    for (version, soname) in CUPTI {
        let (soname, library) = (format!("-Wl,-soname,{soname}"), text(out.join(soname)));
        let source = text(sources.join("fake_cupti.c"));
        cc(&["-shared", "-fPIC", &format!("-DCUPTI_VERSION={version}"), &soname, "-o", &library, &source]);
    }
    for (soname, source) in [("libnvrtc.so.13", "fake_nvrtc.c"), ("libnvJitLink.so.13", "fake_nvjitlink.c")] {
        let (library, source) = (text(out.join(soname)), text(sources.join(source)));
        let soname = format!("-Wl,-soname,{soname}");
        cc(&["-shared", "-fPIC", &soname, "-Wl,-Bsymbolic", "-o", &library, &source]);
    }
    let here = format!("-L{}", out.display());
    let build = |name: &str, source: &str, others: &[&str]| {
        let (source, program) = (text(sources.join(format!("{source}.c"))), text(out.join(name)));
        cc(&[&["-o", &program, &source, &here, "-l:libcuda.so.1"], others].concat());
    };
    PROGRAMS.iter().for_each(|name| build(name, name, &[]));
    build("takes_cupti", "takes_cupti", &["-DLINKED", "-l:libcupti.so.13"]);
    build("asks_cupti", "takes_cupti", &["-ldl"]);
    // In a folder of its own: a runtime is there only for programs that look into it.
    let runtime = runtime(out);
    std::fs::create_dir_all(&runtime).expect("a folder");
    let library = text(runtime.join("libcudart.so.13"));
    let source = text(sources.join("runtime.c"));
    cc(&[
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcudart.so.13",
        "-o",
        &library,
        &source,
        &here,
        "-l:libcuda.so.1",
    ]);
    build("layers", "layers", &[&library]);
}

fn runtime(driver: &Path) -> PathBuf {
    driver.join("runtime")
}

/// A value of `LD_LIBRARY_PATH` for the fake driver and a small runtime on top of it, `libcudart.so.13`.
pub fn with_runtime() -> String {
    format!("{}:{}", driver().display(), runtime(driver()).display())
}

fn functions(api: &Value) -> &[Value] {
    api["functions"].as_array().expect("functions")
}

fn name(function: &Value) -> &str {
    function["name"].as_str().expect("a name")
}

/// Whether it is the variant for the per-thread default stream, and its name otherwise.
fn flavour(name: &str) -> (bool, &str) {
    let plain = name.strip_suffix("_ptsz").or(name.strip_suffix("_ptds"));
    (plain.is_some(), plain.unwrap_or(name))
}

/// What `cuGetProcAddress` and the counts need.
fn tables(api: &Value) -> String {
    let functions = functions(api);
    let mut out = format!("enum {{ FUNCTIONS = {} }};\nenum {{\n", functions.len());
    for f in functions {
        let _ = writeln!(out, "    ID_{},", name(f));
    }
    out.push_str("};\nstatic const char *const fake_names[] = {\n");
    for f in functions {
        let _ = writeln!(out, "    \"{}\",", name(f));
    }
    out.push_str("};\nstruct entry { const char *base; int since, per_thread; void *address; };\n");
    for f in functions {
        let _ = writeln!(out, "extern char fake_address_{0}[] __asm__(\"{0}\");", name(f));
    }
    out.push_str("static const struct entry fake_entries[] = {\n");
    for f in functions {
        let (per_thread, plain) = flavour(name(f));
        let base = f["base"].as_str().unwrap_or(plain);
        let since = f["since"].as_str().unwrap_or("0.0");
        let (major, minor) = since.split_once('.').unwrap_or((since, "0"));
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        let since = number(major) * 1000 + number(minor) * 10;
        let _ =
            writeln!(out, "    {{\"{base}\", {since}, {}, fake_address_{}}},", u8::from(per_thread), name(f));
    }
    out.push_str("};\n");
    out
}

/// Functions that do nothing but count, and set their small outputs to 0.
fn defaults(api: &Value) -> String {
    let types = api["types"].as_array().expect("types");
    let find = |name: &str| types.iter().find(|t| t["name"] == name);
    let (mut out, mut heads) = (
        String::new(),
        String::from(
            "/* Made by tests/src/fake.rs. */\n#include <string.h>\n\
         #include \"fake_cuda_tables.h\"\nextern unsigned long fake_counts[];\n\
         void *fake_unused[] = {(void *)fake_names, (void *)fake_entries};\n",
        ),
    );
    for f in functions(api) {
        let (mut params, mut body) = (Vec::new(), String::new());
        for (i, p) in f["params"].as_array().expect("parameters").iter().enumerate() {
            let ctype = p["type"].as_str().expect("a type");
            let base = ctype.replace("const ", "").replace('*', "").trim().to_owned();
            let found = find(&base);
            let size = found.and_then(|t| t["size"].as_u64()).unwrap_or(0);
            let kind = found.and_then(|t| t["kind"].as_str()).unwrap_or("");
            let aggregate = matches!(kind, "struct" | "union");
            if ctype.contains('*') {
                params.push(format!("void *p{i}"));
                let stars = ctype.matches('*').count();
                let bytes = if stars > 1 { 8 } else { size };
                if !ctype.contains("const")
                    && !aggregate
                    && (1..=8).contains(&bytes)
                    && base != "char"
                    && base != "void"
                {
                    let _ = write!(body, " if (p{i}) memset(p{i}, 0, {bytes});");
                }
            } else if aggregate {
                // In the middle of a declaration C knows no new types.
                let _ = writeln!(
                    heads,
                    "#ifndef FAKE_{size}\n#define FAKE_{size}\nstruct fake_{size} {{ char b[{size}]; }};\n#endif"
                );
                params.push(format!("struct fake_{size} p{i}"));
            } else if kind == "float" {
                params.push(format!("{base} p{i}"));
            } else {
                params.push(format!("long p{i}"));
            }
        }
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        let _ = writeln!(
            out,
            "__attribute__((weak, visibility(\"default\"))) int {0}({params}) {{ __atomic_fetch_add(&fake_counts[ID_{0}], 1, 0);{body} return 0; }}",
            name(f)
        );
    }
    heads + &out
}
