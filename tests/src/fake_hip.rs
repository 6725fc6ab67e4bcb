//! Makes the fake HIP: every function that the models of HIP and HIPRTC have, behind those that
//! `tests/programs/hip/fake_hip.c` writes by hand; and finds AMD's own library, which `scripts/install-deps.sh` brings.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::bed::{keep, model, root, run};
use crate::fake_nccl;

/// The name of AMD's own.
pub const REAL: &str = "libamdhip64.so.5";

/// AMD's own library (Debian's package). Without it says so.
pub fn real() -> Option<PathBuf> {
    let found = Path::new("/usr/lib/x86_64-linux-gnu").join(REAL);
    if !found.exists() {
        eprintln!("SKIPPED: there is no {REAL} on this machine (scripts/install-deps.sh)");
        return None;
    }
    Some(found)
}

/// A compiler of HIP. Without it says so.
pub fn compiler() -> Option<&'static str> {
    let known = ["clang++-19", "clang++-18", "clang++-17", "clang++-16", "clang++-15", "clang++"];
    let works =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|done| done.status.success());
    let found = known.into_iter().find(works);
    if found.is_none() {
        eprintln!("SKIPPED: there is no clang++ on this machine (scripts/install-deps.sh --full)");
    }
    found
}

/// The folder with the fake `libamdhip64.so.6`, with `alone/libhiprtc.so.7`, and the programs.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/hip");
        std::fs::create_dir_all(&out).expect("a folder");
        let (hip, hiprtc) = (model("hip"), model("hiprtc"));
        let rtc = fake_nccl::defaults(&hiprtc);
        let both = [fake_nccl::defaults(&hip), rtc.clone(), finder(&hip)].concat();
        for (name, text) in [("defaults.c", both), ("rtc_defaults.c", rtc)] {
            let file = out.join(name);
            keep(&file, &text);
        }
        let mut make = Command::new("make");
        make.args(["-s", "-C"])
            .arg(root().join("tests/programs/hip"))
            .arg(format!("OUT={}", out.display()))
            .args(real().map(|library| format!("REAL={}", library.display())))
            .args(compiler().map(|name| format!("HIPCC={name}")));
        let done = run(&mut make);
        assert_eq!((done.status, &*done.err), (0, ""), "the programs, without a warning");
        out
    })
}

/// What `hipGetProcAddress` needs: the library's own functions by their names, without those of variants.
fn finder(api: &Value) -> String {
    let mut names: Vec<&str> =
        api["functions"].as_array().expect("functions").iter().filter_map(|f| f["name"].as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut out = "#include <stddef.h>\n#include <string.h>\n".to_owned();
    for name in &names {
        let _ = writeln!(out, "extern char fake_address_{name}[] __asm__(\"{name}\");");
    }
    out += "void *fake_find(const char *name) {\n    static const struct { const char *name; void *address; } all[] = {\n";
    for name in &names {
        let _ = writeln!(out, "        {{\"{name}\", fake_address_{name}}},");
    }
    out + "    };\n    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)\n        if (strcmp(all[i].name, name) == 0)\n            return all[i].address;\n    return NULL;\n}\n"
}
