//! No exclusive reference that lives on: not in code that signal handlers and callbacks can enter again.
//!
//! In the traced program the same thread may come back into our code while it is in it: from a
//! signal handler, or from a callback that the real function calls. `&mut` to memory that both
//! reach is undefined behaviour, and the compiler does not notice when the reference was made of a
//! pointer. Such memory is reached by shared references to atomics and cells.

use std::path::Path;

/// Where it holds.
const INSIDE: &[&str] = &["crates/ring/src", "crates/interpose/src", "apis"];
/// What must not be there.
const FORBIDDEN: &[&str] = &["&'static mut", "static mut "];
/// The method of a pointer that makes one, in a block that is unsafe.
const METHOD: &str = ".as_mut()";
/// How such a reference is made of a pointer, …
const MADE: &str = "&mut *";
/// … which only one of the calling function's own may be, that the C library hands back to its callback
/// (`dl_iterate_phdr`): nobody else has its address.
const OWN: &str = "data.cast::<";

/// Adds what is against the rule in one source file.
pub fn check(name: &Path, text: &str, faults: &mut Vec<String>) {
    let rust = name.extension().is_some_and(|e| e == "rs");
    if !rust || !INSIDE.iter().any(|folder| name.starts_with(folder)) {
        return;
    }
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        // `&mut *mut P` is a type.
        let made = code.split(MADE).skip(1).any(|of| !of.starts_with("mut ") && !of.starts_with(OWN));
        let made = made || (code.contains("unsafe") && code.contains(METHOD));
        if made || FORBIDDEN.iter().any(|words| code.contains(words)) {
            faults.push(format!(
                "{}:{number}: an exclusive reference that a handler may have, too",
                name.display()
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        check(Path::new(name), text, &mut faults);
        faults
    }

    #[test]
    fn found_in_code_that_runs_in_programs_only() {
        let text = "fn a() -> &'static mut Writer {}\nstatic mut B: u8 = 0;\nstatic C: u8 = 0; // not static mut C\n";
        assert_eq!(faults("apis/opencl/src/a.rs", text).len(), 2);
        assert_eq!(faults("crates/interpose/src/library/a.rs", text).len(), 2);
        assert!(faults("crates/session/src/a.rs", text).is_empty());
        assert!(faults("crates/ring/src/a.rs", "fn a(b: &'static B, c: &mut C) {}\n").is_empty());
    }

    #[test]
    fn none_is_made_of_a_pointer() {
        let made = "let count = unsafe { &mut *self.count.get() };\n";
        assert_eq!(faults("apis/cuda/src/device/a.rs", made).len(), 1);
        let method =
            "let Some(object) = (unsafe { made.as_mut() }) else { return };\nlet word = word.as_mut();\n";
        assert_eq!(faults("apis/itt/src/a.rs", method).len(), 1);
        let own = "let work = unsafe { &mut *data.cast::<F>() };\nfn of(place: &mut *mut P) {}\n";
        assert!(faults("crates/interpose/src/a.rs", own).is_empty());
    }
}
