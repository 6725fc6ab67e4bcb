//! Makes the fake NCCL: every function that the model has, from `apis/nccl/api.json`,
//! behind those that `tests/programs/nccl/fake_nccl.c` writes by hand.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::bed::model;
use crate::fake;

/// The folder with the fake `libnccl.so.2`, and the programs that are linked to it.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = fake::driver().join("nccl");
        build(&out);
        out
    })
}

fn build(out: &Path) {
    make(out, "libnccl.so.2", "ranks", fake::driver(), &["-Wl,-Bsymbolic", "-l:libcuda.so.1"]);
}

/// Makes a library and the program of ranks that is linked to it, with what is `below` them.
pub(crate) fn make(out: &Path, library: &str, program: &str, below: &Path, options: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the root");
    std::fs::create_dir_all(out).expect("a folder");
    std::fs::write(out.join("defaults.c"), defaults(&model("nccl"))).expect("a file");
    let sources = root.join("tests/programs/nccl");
    let cc = |arguments: &[String]| {
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O1", "-g", "-Wall", "-Werror", "-pthread", "-Wl,--as-needed"]);
        command.args(arguments).arg(format!("-L{}", below.display())).args(options);
        let done = command.output().expect("cc: run scripts/install-deps.sh");
        assert!(done.status.success(), "the fake {library}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let text = |path: PathBuf| path.display().to_string();
    let [made, soname] = [text(out.join(library)), format!("-Wl,-soname,{library}")];
    let [fake, defaults] = [text(sources.join("fake_nccl.c")), text(out.join("defaults.c"))];
    cc(&["-shared".into(), "-fPIC".into(), soname, "-o".into(), made.clone(), fake, defaults, "-ldl".into()]);
    cc(&["-o".into(), text(out.join(program)), text(sources.join("ranks.c")), made]);
}

/// A prototype in C, in which of each type only its size matters.
#[derive(Debug)]
pub(crate) struct Prototype {
    /// The function.
    pub name: String,
    /// What it returns.
    pub returns: String,
    /// The types of its parameters.
    pub params: Vec<String>,
}

impl Prototype {
    /// As it is declared and defined.
    pub(crate) fn declaration(&self) -> String {
        let params: Vec<String> = self.params.iter().enumerate().map(|(i, p)| format!("{p} p{i}")).collect();
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        format!("{} {}({params})", self.returns, self.name)
    }
}

/// The prototypes of all functions of a model, each once, and the structs that they pass by value.
pub(crate) fn prototypes(api: &Value) -> (String, Vec<Prototype>) {
    let types = api["types"].as_array().expect("types");
    let list = |value: &Value| value.as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut sizes = Vec::new();
    // What a type looks like where only its size matters.
    let mut plain = |name: &str| {
        let name = name.strip_prefix("const ").filter(|bare| !bare.contains('*')).unwrap_or(name);
        let found = types.iter().find(|t| t["name"] == name);
        let kind = found.and_then(|t| t["kind"].as_str()).unwrap_or("");
        match kind {
            _ if name.contains('*') => "void *".to_owned(),
            "struct" | "union" => {
                let size = found.and_then(|t| t["size"].as_u64()).unwrap_or(1);
                sizes.push(size);
                format!("struct of_{size}")
            }
            _ if name == "void" || kind == "float" => name.to_owned(),
            _ => "long".to_owned(),
        }
    };
    let mut all: Vec<Prototype> = Vec::new();
    for f in list(&api["functions"]) {
        let name = text(&f["name"]);
        if all.iter().any(|other| other.name == name) {
            continue; // An older form of it.
        }
        let params = list(&f["params"]).iter().map(|p| plain(&text(&p["type"]))).collect();
        all.push(Prototype { name, returns: plain(&text(&f["returns"])), params });
    }
    sizes.sort_unstable();
    sizes.dedup();
    // Two models may stand in one file.
    let structs = sizes
        .iter()
        .map(|s| format!("#ifndef OF_{s}\n#define OF_{s}\nstruct of_{s} {{ char bytes[{s}]; }};\n#endif\n"));
    (structs.collect(), all)
}

/// Functions that do nothing, and set nothing: programs here do not look at their outputs.
pub(crate) fn defaults(api: &Value) -> String {
    let (structs, all) = prototypes(api);
    let mut out = format!("/* Made by tests/src/fake_nccl.rs. */\n{structs}");
    for f in all {
        let body = match f.returns.as_str() {
            "void" => String::new(),
            "void *" => "return \"\";".to_owned(),
            other if other.starts_with("struct") => format!("return ({other}){{{{0}}}};"),
            _ => "return 0;".to_owned(),
        };
        let declaration = f.declaration();
        let _ = writeln!(out, "__attribute__((weak, visibility(\"default\"))) {declaration} {{ {body} }}");
    }
    out
}
