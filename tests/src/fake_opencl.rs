//! Builds the ICD of `tests/programs/opencl`, whose binaries are PTX as those of NVIDIA's are, and its program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::bed::{root, run};

/// The folder with the program `inside` and the folder `vendors`, which makes OpenCL's loader find the ICD alone.
pub fn programs() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let out = root().join("target/test-programs/opencl");
        let mut make = Command::new("make");
        make.args(["-s", "-C"])
            .arg(root().join("tests/programs/opencl"))
            .arg(format!("OUT={}", out.display()));
        let done = run(&mut make);
        assert_eq!((done.status, &*done.err), (0, ""), "the programs, without a warning");
        let vendors = out.join("vendors");
        std::fs::create_dir_all(&vendors).expect("a folder");
        let library = format!("{}\n", out.join("libfake_opencl.so").display());
        std::fs::write(vendors.join("fake.icd"), library).expect("a file");
        out
    })
}
