//! Each `unsafe` has a proof of its own: one that points at another is no longer true when that one moves or changes, and
//! one that points at whoever calls says nothing that is true here.

use std::path::Path;

/// How a comment begins that proves something, and with what it may not go on.
const PROOF: &str = "// SAFETY:";
const ELSEWHERE: &[&str] =
    &["as above", "as there", "as below", "likewise", "same as", "promised", "see above"];
/// What it may not say anywhere: which thing is asked for of the caller, and holds here, is to be said.
const CALLERS: &[&str] = &[
    "contract of this function",
    "contract of the caller",
    "caller's contract",
    "the caller says so",
    "the caller promises",
    "promised by the caller",
];

/// Adds what is against the rule in one source file.
pub fn check(name: &Path, text: &str, faults: &mut Vec<String>) {
    if name.extension().is_none_or(|e| e != "rs") {
        return;
    }
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let Some((_, proof)) = line.split_once(PROOF).filter(|(before, _)| before.trim().is_empty()) else {
            continue;
        };
        let mut proof = proof.trim().to_owned();
        while let Some((_, line)) = lines.next_if(|(_, line)| is_more(line)) {
            proof.push(' ');
            proof.push_str(line.trim_start().trim_start_matches('/').trim());
        }
        if let Some(what) = fault(&proof) {
            faults.push(format!("{}:{number}: {what}", name.display()));
        }
    }
}

/// Returns whether a line goes on with the comment that the one before has begun.
fn is_more(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") && !line.starts_with("///") && !line.starts_with(PROOF)
}

/// Returns what is wrong with a proof.
fn fault(proof: &str) -> Option<&'static str> {
    let lower = proof.to_lowercase();
    if ELSEWHERE.iter().any(|words| lower.starts_with(words)) {
        return Some("a proof that stands elsewhere");
    }
    let is_callers = lower.trim_end_matches('.') == "contract" || CALLERS.iter().any(|w| lower.contains(w));
    is_callers.then_some("a proof that leaves to the caller what makes it true here")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        let mut faults = Vec::new();
        check(Path::new("apis/a/src/a.rs"), text, &mut faults);
        faults.len()
    }

    #[test]
    fn a_proof_says_itself_what_makes_it_true() {
        assert_eq!(count("    // SAFETY: as above.\n// SAFETY: likewise.\n"), 2);
        assert_eq!(count("// SAFETY: the page is mapped, as above.\n// As above, for two.\n"), 0);
    }

    #[test]
    fn a_proof_is_not_left_to_the_caller() {
        assert_eq!(count("// SAFETY: contract of this function.\n    // SAFETY: contract.\n"), 2);
        assert_eq!(count("// SAFETY: the caller says so.\nf();\n// SAFETY: Promised by the caller.\n"), 2);
        assert_eq!(
            count("// SAFETY: `length` was checked; the rest is the\n// contract of this function.\n"),
            1
        );
        assert_eq!(count("// SAFETY: contract: the place has room for 8 bytes.\n"), 0);
        assert_eq!(count("/// contract of this function\nlet a = \"// SAFETY: contract.\";\n"), 0);
    }
}
