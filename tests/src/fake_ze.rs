//! Builds the programs of `tests/programs/ze` and the driver that stands behind Level Zero's real loader there: every
//! function that the model has, from `apis/ze/api.json`, behind those that `fake_ze.c` and `fake_device.c` write by hand.
//!
//! It is a fake: its device is a thread that lets time go by for each command. What is real is the loader, Debian's
//! `libze1`.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::bed::{root, run};

/// The version of the API that the programs are made for: that of Debian 12's loader and headers.
const VERSION: (u32, u32) = (1, 4);

/// The folder with the programs and `libze_fake.so`; none, and a line that says so, where the loader or its headers
/// are not installed.
pub fn programs() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let header = Path::new("/usr/include/level_zero/ze_api.h").exists();
    let linked =
        run(Command::new("cc").args(["-shared", "-o", "/dev/null", "-x", "c", "/dev/null", "-lze_loader"]));
    if !header || linked.status != 0 {
        eprintln!(
            "SKIPPED: Level Zero's loader is not here: scripts/install-deps.sh installs libze1 and libze-dev"
        );
        return None;
    }
    let out = root().join("target/test-programs/ze");
    std::fs::create_dir_all(&out).expect("a folder");
    let sources = root().join("tests/programs/ze");
    let text = std::fs::read_to_string(root().join("apis/ze/api.json")).expect("the model");
    let source = |name: &str| std::fs::read_to_string(sources.join(name)).expect("its source");
    let model = Model::new(&text, &(source("fake_ze.c") + &source("fake_device.c")));
    for (name, text) in
        [("fake_ze_names.h", model.names()), ("fake_ze_others.c", model.others()), ("all.c", model.program())]
    {
        let path = out.join(name);
        // What has not changed is not built again.
        if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            std::fs::write(path, text).expect("a file");
        }
    }
    let mut make = Command::new("make");
    let done = run(make.args(["-s", "-C"]).arg(&sources).arg(format!("OUT={}", out.display())));
    assert_eq!((done.status, &*done.err), (0, ""), "the programs, without a warning");
    Some(out)
}

/// One function's prototype, as far as C must know it to pass arguments.
struct Prototype {
    name: String,
    /// `long p0, void *p1`.
    params: String,
    /// `0, (void *)0`.
    zeros: String,
    /// What sets small outputs to 0.
    body: String,
    /// It is there in [`VERSION`], with the same prototype.
    there: bool,
}

/// Where in a table a function lies, its name, and the version since which it is there.
type Place = (u64, String, (u32, u32));

struct Model {
    api: Value,
    /// Written by hand.
    hand: BTreeSet<String>,
    functions: Vec<Prototype>,
    /// Definitions of structs that are passed by value.
    structs: String,
}

impl Model {
    fn new(api: &str, source: &str) -> Model {
        let api: Value = serde_json::from_str(api).expect("JSON");
        let by_hand = |line: &str| {
            let made = line.strip_prefix("APPENDS(").and_then(|l| l.split(',').next());
            let written = || line.strip_prefix("EXPORT ze_result_t ")?.split('(').next();
            made.or_else(written).map(str::to_owned)
        };
        let hand = source.lines().filter_map(by_hand).collect();
        let mut model = Model { api, hand, functions: Vec::new(), structs: String::new() };
        let functions = model.api["functions"].as_array().expect("functions").clone();
        let mut sizes = BTreeSet::new();
        // Of the loader alone are what tools register, and the tables, which come by themselves.
        let own = |name: &str| name.starts_with("zel") || name.ends_with("ProcAddrTable");
        for f in functions.iter().filter(|f| f["before"].is_null() && !own(text(f, "name"))) {
            let prototype = model.prototype(f, &mut sizes);
            model.functions.push(prototype);
        }
        for size in sizes {
            let _ = writeln!(model.structs, "struct fake_{size} {{ char b[{size}]; }};");
        }
        model
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.api["types"].as_array()?.iter().find(|t| t["name"] == name)
    }

    fn prototype(&self, f: &Value, sizes: &mut BTreeSet<u64>) -> Prototype {
        let (mut params, mut zeros, mut body) = (Vec::new(), Vec::new(), String::new());
        for (i, p) in f["params"].as_array().expect("parameters").iter().enumerate() {
            let ctype = text(p, "type");
            let base = ctype.replace("const ", "").replace('*', "").trim().to_owned();
            let found = self.find(&base);
            let size = found.and_then(|t| t["size"].as_u64()).unwrap_or(0);
            let kind = found.and_then(|t| t["kind"].as_str()).unwrap_or("");
            let aggregate = matches!(kind, "struct" | "union");
            let (param, zero) = match (ctype.contains('*'), aggregate, kind) {
                (true, ..) => ("void *".to_owned(), "(void *)0".to_owned()),
                (_, true, _) => {
                    sizes.insert(size);
                    (format!("struct fake_{size} "), format!("(struct fake_{size}){{{{0}}}}"))
                }
                (.., "float") => (format!("{base} "), "0".to_owned()),
                _ => ("long ".to_owned(), "0".to_owned()),
            };
            let bytes = if ctype.matches('*').count() > 1 { 8 } else { size };
            // Handles behind pointers are lists that are read as often as answers.
            let output = ctype.contains('*') && !ctype.contains("const") && !aggregate && kind != "handle";
            let output = output && base != "char";
            if output && base != "void" && (1..=8).contains(&bytes) {
                let _ = write!(body, " if (p{i}) memset(p{i}, 0, {bytes});");
            }
            params.push(format!("{param}p{i}"));
            zeros.push(zero);
        }
        let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
        let there = f["until"].is_null() && version(text(f, "since")) <= VERSION;
        Prototype { name: text(f, "name").to_owned(), params, zeros: zeros.join(", "), body, there }
    }

    /// Names and numbers.
    fn names(&self) -> String {
        let mut out = format!(
            "/* Made by tests/src/fake_ze.rs. */\nenum {{ FUNCTIONS = {} }};\nenum {{\n",
            self.functions.len()
        );
        for f in &self.functions {
            let _ = writeln!(out, "    ID_{},", f.name);
        }
        out.push_str("};\n__attribute__((unused)) static const char *const fake_names[] = {\n");
        for f in &self.functions {
            let _ = writeln!(out, "    \"{}\",", f.name);
        }
        out + "};\n"
    }

    /// All other functions of the driver, and what fills in tables.
    fn others(&self) -> String {
        let mut out = String::from(
            "/* Made by tests/src/fake_ze.rs. */\n#include <string.h>\n#include \"fake_ze_names.h\"\n\
             #define EXPORT __attribute__((visibility(\"default\")))\nextern unsigned long fake_counts[];\n",
        );
        out.push_str(&self.structs);
        for f in &self.functions {
            if self.hand.contains(&f.name) {
                let _ = writeln!(out, "extern unsigned {}();", f.name);
                continue;
            }
            let _ = writeln!(
                out,
                "EXPORT unsigned {0}({1}) {{ __atomic_fetch_add(&fake_counts[ID_{0}], 1, 0);{2} return 0; }}",
                f.name, f.params, f.body
            );
        }
        for (table, members) in self.tables() {
            let _ = writeln!(out, "EXPORT unsigned {table}(unsigned version, char *table) {{");
            for (offset, name, (major, minor)) in members {
                let since = major << 16 | minor;
                let _ = writeln!(
                    out,
                    "    if (version >= {since}) *(void **)(table + {offset}) = (void *){name};"
                );
            }
            out.push_str("    return 0;\n}\n");
        }
        out
    }

    /// The tables: what fills one in, and where each function of it lies and since when.
    fn tables(&self) -> Vec<(String, Vec<Place>)> {
        let functions = self.api["functions"].as_array().expect("functions").iter();
        let tables =
            functions.filter(|f| f["before"].is_null() && text(f, "name").ends_with("ProcAddrTable"));
        let table = |f: &Value| {
            let param = f["params"].as_array()?.iter().find(|p| p["name"] == "pDdiTable")?;
            let members =
                self.find(text(param, "type").trim_end_matches([' ', '*']))?["members"].as_array()?.clone();
            let known = |m: &Value| {
                let name = text(m, "type").strip_suffix("_t")?.replacen("_pfn", "", 1);
                let there = self.functions.iter().any(|f| f.name == name);
                there.then(|| {
                    (m["offset"].as_u64().unwrap_or(0), name, version(m["since"].as_str().unwrap_or("1.0")))
                })
            };
            Some((text(f, "name").to_owned(), members.iter().filter_map(known).collect()))
        };
        tables.filter_map(table).filter(|(_, members): &(String, Vec<_>)| !members.is_empty()).collect()
    }

    /// A program that calls each function that the driver does not have by hand: by its name, and out of its table.
    fn program(&self) -> String {
        let mut out = String::from(
            "/* Made by tests/src/fake_ze.rs: calls what tests/programs/ze/work.c does not. */\n\
             #include <dlfcn.h>\n#include <stdio.h>\n#include <string.h>\n",
        );
        out.push_str(&self.structs);
        out.push_str(
            "static void *loader, *table[512];\n\
             static unsigned fill(const char *name) {\n    unsigned (*f)(unsigned, void *) = (unsigned (*)(unsigned, void *))dlsym(loader, name);\n    \
             if (!f) return 1;\n    printf(\"EXPECT %s=1\\n\", name);\n    memset(table, 0, sizeof table);\n    return f(0x10004, table);\n}\n\
             int main(void) {\n    loader = dlopen(\"libze_loader.so.1\", RTLD_NOW);\n    void *f = loader ? dlsym(loader, \"zeInit\") : NULL;\n    \
             if (!f || ((unsigned (*)(long))f)(0) != 0) return 1;\n    puts(\"EXPECT zeInit=1\");\n",
        );
        let call = |f: &Prototype| {
            format!(
                "if (f) {{ ((unsigned (*)({}))f)({}); puts(\"EXPECT {}=1\"); }}\n",
                f.params, f.zeros, f.name
            )
        };
        let others = |f: &&Prototype| f.there && !self.hand.contains(&f.name);
        for f in self.functions.iter().filter(others) {
            let _ = write!(out, "    f = dlsym(loader, \"{}\");\n    {}", f.name, call(f));
        }
        for (table, members) in self.tables() {
            let there = members.iter().filter(|(.., since)| *since <= VERSION);
            let calls = there.filter_map(|(offset, name, _)| {
                let f = self.functions.iter().filter(others).find(|f| f.name == *name)?;
                Some(format!("        f = table[{}];\n        {}", offset / 8, call(f)))
            });
            let calls: String = calls.collect();
            let _ = write!(out, "    if (fill(\"{table}\") == 0) {{\n{calls}    }}\n");
        }
        out + "    return 7;\n}\n"
    }
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn version(text: &str) -> (u32, u32) {
    let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
    (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
}
