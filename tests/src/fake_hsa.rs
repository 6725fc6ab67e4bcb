//! Makes the fake HSA: every function that the runtime exports by the model, behind those that
//! `tests/programs/hsa/fake_hsa.c` writes by hand; and finds AMD's own runtime, which `scripts/install-deps.sh` brings.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::bed::{keep, model, root, run};
use crate::fake_nccl;

/// The name of AMD's own.
pub const REAL: &str = "libhsa-runtime64.so.1";
/// What the runtime hands out in tables and does not export.
const HANDED_OUT: [&str; 2] = ["hsa_ven_amd_loader_", "hsa_ven_amd_pcs_"];

/// AMD's own runtime (Debian's package). Without it says so.
pub fn real() -> Option<PathBuf> {
    let found = Path::new("/usr/lib/x86_64-linux-gnu").join(REAL);
    if !found.exists() {
        eprintln!("SKIPPED: there is no {REAL} on this machine (scripts/install-deps.sh)");
        return None;
    }
    Some(found)
}

/// The names of the functions that the runtime exports.
pub fn exported(api: &Value) -> Vec<String> {
    let names = api["functions"].as_array().expect("functions").iter().filter_map(|f| f["name"].as_str());
    names.filter(|name| !HANDED_OUT.iter().any(|begin| name.starts_with(begin))).map(str::to_owned).collect()
}

/// The folder with the fake `libhsa-runtime64.so.1`, a `libamdhip64.so.6` above it, and the programs.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/hsa");
        std::fs::create_dir_all(&out).expect("a folder");
        let mut hsa = model("hsa");
        let exported = exported(&hsa);
        let functions = hsa["functions"].as_array_mut().expect("functions");
        functions.retain(|f| exported.iter().any(|name| f["name"] == **name));
        for (name, api) in [("defaults.c", hsa), ("hip_defaults.c", model("hip"))] {
            let (file, text) = (out.join(name), fake_nccl::defaults(&api));
            keep(&file, &text);
        }
        let mut make = Command::new("make");
        make.args(["-s", "-C"])
            .arg(root().join("tests/programs/hsa"))
            .arg(format!("OUT={}", out.display()))
            .args(real().map(|library| format!("REAL={}", library.display())));
        let done = run(&mut make);
        assert_eq!((done.status, &*done.err), (0, ""), "the programs, without a warning");
        out
    })
}
