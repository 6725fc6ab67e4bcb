//! Each `unsafe` has a proof of its own: one that points at another is no longer true when that one moves or changes.

use std::path::Path;

/// How a comment begins that proves something, and with what it may not go on.
const PROOF: &str = "// SAFETY:";
const ELSEWHERE: &[&str] =
    &["as above", "as there", "as below", "likewise", "same as", "promised", "see above"];

/// Adds what is against the rule in one source file.
pub fn check(name: &Path, text: &str, faults: &mut Vec<String>) {
    if name.extension().is_none_or(|e| e != "rs") {
        return;
    }
    for (number, line) in (1..).zip(text.lines()) {
        let proof = line.trim_start().strip_prefix(PROOF).map(str::trim_start);
        if proof.is_some_and(|proof| ELSEWHERE.iter().any(|words| proof.starts_with(words))) {
            faults.push(format!("{}:{number}: a proof that stands elsewhere", name.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_says_itself_what_makes_it_true() {
        let count = |text: &str| {
            let mut faults = Vec::new();
            check(Path::new("apis/a/src/a.rs"), text, &mut faults);
            faults.len()
        };
        assert_eq!(count("    // SAFETY: as above.\n// SAFETY: likewise.\n"), 2);
        assert_eq!(count("// SAFETY: the page is mapped, as above.\n// As above, for two.\n"), 0);
    }
}
