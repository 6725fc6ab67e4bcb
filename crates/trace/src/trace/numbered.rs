//! What numbers of a trace stand for.
//!
//! The recording counts from 1 on, so nearly all are found by a position; numbers that a trace made up are
//! kept in a table.

use crate::hash::QuickMap;

/// Numbers below this one have places.
const PLACES: u32 = 1 << 12;

/// Things by their numbers.
#[derive(Clone, Debug)]
pub(super) struct Numbered<T> {
    first: Vec<Option<T>>,
    others: QuickMap<u32, T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { first: Vec::new(), others: QuickMap::default() }
    }
}

impl<T> Numbered<T> {
    #[inline]
    pub fn get(&self, number: u32) -> Option<&T> {
        match self.first.get(number as usize) {
            Some(one) => one.as_ref(),
            None if number < PLACES || self.others.is_empty() => None,
            None => self.others.get(&number),
        }
    }

    /// The place of a number.
    pub fn entry(&mut self, number: u32) -> &mut T
    where
        T: Default,
    {
        if number >= PLACES {
            return self.others.entry(number).or_default();
        }
        let at = number as usize;
        if self.first.len() <= at {
            self.first.resize_with(at + 1, || None);
        }
        self.first[at].get_or_insert_with(T::default)
    }

    /// All of them, in no order, to be changed.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().flatten().chain(self.others.values_mut())
    }

    /// All of them, by number.
    pub fn all(&self) -> Vec<&T> {
        let mut others: Vec<(&u32, &T)> = self.others.iter().collect();
        others.sort_by_key(|(number, _)| **number);
        self.first.iter().flatten().chain(others.into_iter().map(|(_, one)| one)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_numbers_are_found_and_come_in_order() {
        let mut all = Numbered::default();
        let numbers = [u32::MAX, 7, PLACES, 0, PLACES - 1];
        numbers.iter().for_each(|number| *all.entry(*number) = u64::from(*number) + 1);
        assert!(numbers.iter().all(|number| all.get(*number) == Some(&(u64::from(*number) + 1))));
        assert_eq!((all.get(1), all.get(PLACES + 1)), (None, None));
        let mut sorted = numbers.map(|number| u64::from(number) + 1);
        sorted.sort_unstable();
        assert!(all.all().into_iter().eq(&sorted));
    }
}
