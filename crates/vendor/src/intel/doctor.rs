//! Findings of `hetrace doctor` about Intel's GPUs; none where there are none.

use super::known;
use crate::doctor::{Finding, Machine};
use crate::drm::{self, Wanted};

const GPUS: Wanted = Wanted { id: known::ID, what: "Intel driver", drivers: &["i915", "xe"], node: None };

pub(super) fn findings(machine: &Machine<'_>) -> Vec<Finding> {
    let Some(driver) = GPUS.driver(machine) else { return Vec::new() };
    vec![driver, drm::library(machine, "sysman", &known::LOADER, known::INSTALL)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drm::tests::put_gpu;

    #[test]
    fn nothing_without_a_gpu_and_two_lines_with_one() {
        let root = tempfile::tempdir().unwrap();
        let machine =
            Machine { root: root.path(), privileged: false, library: &|_| None, variable: &|_| None };
        assert!(findings(&machine).is_empty());
        put_gpu(root.path(), "0000:00:02.0", known::ID, Some("xe"));
        let found = findings(&machine);
        assert_eq!(found[0].says, "xe, 1 of 1 GPUs");
        assert!(found[1].says.starts_with("no libze_loader.so.1: "), "{}", found[1].says);
    }
}
