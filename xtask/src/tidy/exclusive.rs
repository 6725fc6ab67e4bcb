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
const FORBIDDEN: &[&str] = &["&'static mut", "static mut ", "&mut (*", "as_mut_unchecked("];
/// The method of a pointer that makes one, in a block that is unsafe.
const METHOD: &str = ".as_mut()";
/// How such a reference is made of a pointer, …
const MADE: &str = "&mut *";
/// … which only one of the calling function's own may be, that the C library hands back to its callback
/// (`dl_iterate_phdr`): nobody else has its address.
const OWN: &str = "data.cast::<";
/// How one to many values is made, …
const MANY: &str = "from_raw_parts_mut(";
/// … which only a mapping of the calling function's own may be, in a variable of this name.
const FRESH: &str = "memory.at()";

/// Adds what is against the rule in one source file.
pub fn check(name: &Path, text: &str, faults: &mut Vec<String>) {
    let rust = name.extension().is_some_and(|e| e == "rs");
    if !rust || !INSIDE.iter().any(|folder| name.starts_with(folder)) {
        return;
    }
    // How many braces are open in a block that is unsafe.
    let mut depth = 0;
    for (number, line) in (1..).zip(text.lines()) {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        let is_unsafe = depth > 0 || code.contains("unsafe");
        depth = open_braces(code, depth);
        // `&mut *mut P` is a type.
        let made = code.split(MADE).skip(1).any(|of| !of.starts_with("mut ") && !of.starts_with(OWN));
        let made = made || code.split(MANY).skip(1).any(|of| !of.starts_with(FRESH));
        let made = made || (is_unsafe && code.contains(METHOD));
        if made || FORBIDDEN.iter().any(|words| code.contains(words)) {
            faults.push(format!(
                "{}:{number}: an exclusive reference that a handler may have, too",
                name.display()
            ));
        }
    }
}

/// Returns how many braces of a block that is unsafe are open behind a line, where so many were in front of it.
fn open_braces(code: &str, depth: usize) -> usize {
    let block = match depth {
        0 => code.split_once("unsafe {").map(|(_, behind)| (1, behind)),
        _ => Some((depth, code)),
    };
    let Some((depth, code)) = block else { return 0 };
    let mut depth = depth;
    for c in code.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return 0,
            '}' => depth -= 1,
            _ => {}
        }
    }
    depth
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
        let lines =
            "unsafe {\n    if let Some(object) = made.as_mut() {\n    }\n}\nlet word = word.as_mut();\n";
        assert_eq!(faults("apis/itt/src/a.rs", lines).len(), 1);
        let many =
            "let all = unsafe { std::slice::from_raw_parts_mut(at, length) };\nlet all = &mut (*at).list;\n";
        assert_eq!(faults("crates/ring/src/a.rs", many).len(), 2);
        let fresh = "let all = unsafe { from_raw_parts_mut(memory.at().cast(), count) };\n";
        assert!(faults("apis/opencl/src/a.rs", fresh).is_empty());
        let own = "let work = unsafe { &mut *data.cast::<F>() };\nfn of(place: &mut *mut P) {}\n";
        assert!(faults("crates/interpose/src/a.rs", own).is_empty());
    }
}
