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
