//! The table of cases.

mod disturbance;
mod hostility;
mod losses;

use std::sync::OnceLock;

use super::case::Case;

/// All cases, in the order of the report.
pub fn cases() -> &'static [Case] {
    static ALL: OnceLock<Vec<Case>> = OnceLock::new();
    ALL.get_or_init(|| [losses::CASES, disturbance::CASES, hostility::CASES].concat())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A case that no test names is one that only `--torture` runs.
    #[test]
    fn each_case_has_a_test() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e");
        let files = std::fs::read_dir(folder).expect("the tests").flatten().map(|e| e.path());
        let texts: String = files.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
        for case in cases() {
            let named = texts.contains(&format!("check(\"{}\")", case.name));
            assert_eq!(named, case.short > 0, "{}", case.name);
        }
    }

    #[test]
    fn names_are_unique_and_all_is_said() {
        let names: BTreeSet<&str> = cases().iter().map(|c| c.name).collect();
        assert_eq!(names.len(), cases().len());
        for case in cases() {
            let texts = [case.subject, case.promise, case.tried, case.command];
            assert!(texts.iter().all(|text| !text.is_empty()), "{}", case.name);
            assert!(!texts.iter().any(|text| text.contains('|')), "{}: breaks the table", case.name);
            assert!(case.long > 0, "{}", case.name);
        }
    }
}
