//! Whether a program can come to a library that it is not linked to.
//!
//! ```text
//!  script ──#!──► ELF file ──► it needs nothing but the runtime of C and C++,
//!                              and has no name of a function that opens or asks libraries: closed
//! ```
//! A closed program calls no accelerator: each library of one opens others (the driver's parts, plug-ins,
//! compilers), so a program that is linked to it, or has it inside, names these functions, and so does one
//! that opens it. All that is unclear, unusual, or can't be read, is not closed.
//!
//! It is asked by the launcher, and inside of traced programs between `vfork` and `exec`: so it takes no memory,
//! calls the system and nothing else, and keeps within 4 KiB of the stack.
#![cfg_attr(not(test), no_std)]

mod elf;
mod file;
mod scan;

use core::ffi::CStr;

use file::File;

/// As many scripts after each other as are followed.
const SCRIPTS: usize = 2;
/// As much of a script's first line as the kernel reads.
const LINE: usize = 256;

/// Returns whether the program in a file is certain never to have an API of an accelerator in its process. `errno`
/// may change.
#[must_use]
pub fn is_closed(path: &CStr) -> bool {
    judge(path).unwrap_or(false)
}

fn judge(path: &CStr) -> Option<bool> {
    let mut file = File::open(path)?;
    let mut line = [0; LINE];
    for _ in 0..=SCRIPTS {
        let length = file.read(0, &mut line)?;
        let Some(name) = interpreter(&mut line, length)? else { return elf::is_closed(&file) };
        file = File::open(name)?;
    }
    None
}

/// Returns the interpreter of a script: nothing in `Some` if the file is none, `None` if it is one whose first line is
/// not understood.
fn interpreter(line: &mut [u8; LINE], length: usize) -> Option<Option<&CStr>> {
    if line.first_chunk() != Some(b"#!") {
        return Some(None);
    }
    let text = line.get(..length)?;
    let is_blank = |b: &u8| matches!(b, b' ' | b'\t');
    let begin = 2 + text.get(2..)?.iter().position(|b| !is_blank(b))?;
    let word = text.get(begin..)?;
    let end = begin + word.iter().position(|b| is_blank(b) || *b == b'\n')?;
    *line.get_mut(end)? = 0;
    // Relative ones are looked for where the program will be, which may be elsewhere.
    let word = line.get(begin..=end)?;
    let name = CStr::from_bytes_with_nul(word).ok()?;
    (word.first() == Some(&b'/')).then_some(Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::path::Path;
    use std::process::Command;

    fn closed(path: &Path) -> bool {
        is_closed(&CString::new(path.to_str().expect("text")).expect("no zero in it"))
    }

    fn built(folder: &Path, name: &str, source: &str, options: &[&str]) -> std::path::PathBuf {
        let (code, out) = (folder.join(format!("{name}.c")), folder.join(name));
        std::fs::write(&code, source).expect("scratch");
        let done = Command::new("cc").arg(&code).arg("-o").arg(&out).args(options).status();
        assert!(done.expect("a C compiler").success(), "{name}");
        out
    }

    #[test]
    fn a_program_that_needs_the_c_library_and_opens_nothing_is_closed() {
        let scratch = tempfile::tempdir().expect("scratch");
        let folder = scratch.path();
        let quiet = "int main(void) { return 0; }";
        assert!(closed(&built(folder, "quiet", quiet, &[])));
        assert!(closed(&built(folder, "maths", quiet, &["-Wl,--no-as-needed", "-lm", "-lpthread"])));
        assert!(!closed(&built(folder, "static", quiet, &["-static"])));
        let shared = built(folder, "libown.so", "int own(void) { return 0; }", &["-shared", "-fPIC"]);
        assert!(!closed(&shared), "no program");
        let own = shared.to_str().expect("text");
        assert!(!closed(&built(folder, "linked", quiet, &["-Wl,--no-as-needed", own])));
        assert!(!closed(&built(folder, "searches", quiet, &["-Wl,-rpath,/opt/lib"])));
        let opens = "#include <dlfcn.h>\nint main(void) { return dlopen(\"libm.so.6\", RTLD_LAZY) == 0; }";
        assert!(!closed(&built(folder, "opens", opens, &["-ldl"])));
        let asks = "#define _GNU_SOURCE\n#include <dlfcn.h>\nint main(void) { return dlsym(RTLD_DEFAULT, \"main\") == 0; }";
        assert!(!closed(&built(folder, "asks", asks, &["-ldl"])));
        // As `include/hetrace.h` refers to it.
        let weak = "extern void *f(void *, const char *) __asm__(\"dlsym\") __attribute__((weak));\n\
                    int main(void) { return f && f(0, \"main\"); }";
        assert!(!closed(&built(folder, "weak", weak, &[])));
    }

    #[test]
    fn scripts_are_what_their_interpreters_are() {
        let scratch = tempfile::tempdir().expect("scratch");
        let quiet = built(scratch.path(), "quiet", "int main(void) { return 0; }", &[]);
        let script = |name: &str, line: String| {
            let path = scratch.path().join(name);
            std::fs::write(&path, line).expect("scratch");
            path
        };
        let one = script("one", format!("#! {} -e\nexit", quiet.display()));
        assert!(closed(&one));
        assert!(closed(&script("two", format!("#!{}\n", one.display()))));
        assert!(!closed(&script("relative", "#!quiet\n".to_owned())));
        assert!(!closed(&script("endless", format!("#!{}\n", scratch.path().join("endless").display()))));
        assert!(!closed(&script("cut", format!("#!{}", quiet.display()))));
        assert!(!closed(&script("long", format!("#!/{}\n", "x".repeat(300)))));
        assert!(!closed(&script("empty", String::new())));
        assert!(!closed(&scratch.path().join("absent")) && !closed(scratch.path()));
    }

    #[test]
    fn any_bytes_are_survived() {
        let scratch = tempfile::tempdir().expect("scratch");
        let quiet = built(scratch.path(), "quiet", "int main(void) { return 0; }", &["-s"]);
        let whole = std::fs::read(&quiet).expect("a program");
        let path = scratch.path().join("broken");
        for at in (0..whole.len().min(2048)).step_by(3) {
            std::fs::write(&path, &whole[..at]).expect("scratch");
            assert!(!closed(&path), "{at} bytes of a program");
            let mut broken = whole.clone();
            broken[at] ^= 0xff;
            std::fs::write(&path, &broken).expect("scratch");
            closed(&path);
        }
    }
}
