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
    /// Launches whose records were overwritten by later ones.
    pub overwritten: u64,
}

/// Losses by the name of the kernel, as its module has it.
pub type Losses = BTreeMap<String, Loss>;

/// Adds a list of launches to a sum: in each line how many, and of which kernel. Returns how many lines are none.
pub(super) fn add_list(losses: &mut Losses, list: &str, sum: fn(&mut Loss) -> &mut u64) -> u64 {
    let mut bad = 0;
    for line in list.lines() {
        match line.split_once(' ').and_then(|(number, name)| Some((number.parse::<u64>().ok()?, name))) {
            Some((number, name)) => {
                let sum = sum(losses.entry(name.to_owned()).or_default());
                *sum = sum.saturating_add(number);
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
        let late: fn(&mut Loss) -> &mut u64 = |loss| &mut loss.launches;
        assert_eq!(add_list(&mut losses, "3 a\n18446744073709551615 b c\nx y\n7\n", late), 2);
        assert_eq!(add_list(&mut losses, "4 a\n1 b c\n", late), 0);
        assert_eq!(add_list(&mut losses, "9 a\n", |loss| &mut loss.overwritten), 0);
        let of = |launches, overwritten| Loss { launches, overwritten, ..Loss::default() };
        assert_eq!(losses, Losses::from([("a".to_owned(), of(7, 9)), ("b c".to_owned(), of(u64::MAX, 0))]));
    }
}
