//! Makes the fake RCCL, which is the fake NCCL above the fake HIP, with the functions that only RCCL has.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{fake_hip, fake_nccl};

/// The folder with the fake `librccl.so.1`, and the program that is linked to it.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let below = fake_hip::programs();
        let out = below.join("rccl");
        // Of its functions one calls others by their names.
        fake_nccl::make(&out, "librccl.so.1", "ranks", below, &["-DRCCL", "-l:libamdhip64.so.6"]);
        out
    })
}
