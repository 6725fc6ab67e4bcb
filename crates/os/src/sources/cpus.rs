//! The CPUs that there are.

use std::fs;

/// Returns the numbers of the CPUs that are online.
pub(crate) fn online() -> Vec<u32> {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let cpus = cpu_list(text.trim());
    if cpus.is_empty() { vec![0] } else { cpus }
}

/// Reads a list of CPUs such as `0-3,8`. Parts that make no sense are passed over.
fn cpu_list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(first..=last.min(first.saturating_add(MOST_CPUS)))
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// More than any machine has.
const MOST_CPUS: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_ranges() {
        assert_eq!(cpu_list("0-2,5,7-8"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(cpu_list("x,3-1,4"), [4]);
        assert!(!online().is_empty());
    }
}
