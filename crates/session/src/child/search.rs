//! Finding the program's file as `execvp` and shells do.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where programs are looked for if `PATH` is not set, as `confstr(_CS_PATH)` has it.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// How much of a file shells look at to find out whether it is text.
const HEAD: u64 = 128;

/// Returns the files that a name may mean, in order: the first that can be executed is the program.
pub fn candidates(name: &OsStr) -> Vec<PathBuf> {
    if name.is_empty() {
        return Vec::new();
    }
    if name.as_bytes().contains(&b'/') {
        return vec![name.into()];
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    // An empty part is the working directory.
    let join = |folder: &[u8]| match folder {
        [] => Path::new(".").join(name),
        folder => Path::new(OsStr::from_bytes(folder)).join(name),
    };
    path.as_bytes().split(|b| *b == b':').map(join).collect()
}

/// Returns whether a file is one that could be executed.
pub fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Returns whether a file that the kernel takes for no program is a script for `/bin/sh`: its first
/// line is text.
pub fn is_script(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|f| f.take(HEAD).read_to_end(&mut head));
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default();
    read.is_ok() && !line.contains(&0) && !line.starts_with(b"\x7fELF")
}
