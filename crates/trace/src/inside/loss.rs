//! What of each kernel was not recorded, as there was no room any more.

use std::collections::BTreeMap;

/// What a kernel lost, in all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    /// Records that found no room.
    pub records: u64,
    /// Records that are there and left out, as others before them found no room.
    pub left_out: u64,
    /// Launches that were to be recorded and ran as they were.
    pub launches: u64,
}

/// Losses by the name of the kernel, as its module has it.
pub type Losses = BTreeMap<String, Loss>;

/// Adds a list of launches that came too late: in each line how many, and of which kernel. Returns how many lines are none.
pub(super) fn add_late(losses: &mut Losses, list: &str) -> u64 {
    let mut bad = 0;
    for line in list.lines() {
        match line.split_once(' ').and_then(|(number, name)| Some((number.parse::<u64>().ok()?, name))) {
            Some((number, name)) => {
                let loss = losses.entry(name.to_owned()).or_default();
                loss.launches = loss.launches.saturating_add(number);
            }
            None => bad += 1,
        }
    }
    bad
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_add_up() {
        let mut losses = Losses::new();
        assert_eq!(add_late(&mut losses, "3 a\n18446744073709551615 b c\nx y\n7\n"), 2);
        assert_eq!(add_late(&mut losses, "4 a\n1 b c\n"), 0);
        let of = |launches| Loss { launches, ..Loss::default() };
        assert_eq!(losses, Losses::from([("a".to_owned(), of(7)), ("b c".to_owned(), of(u64::MAX))]));
    }
}
