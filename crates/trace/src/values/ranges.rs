//! Where in a list of numbers those of each place stand.

/// Places that need no list: few functions have more parameters.
const FIRST: usize = 16;

/// From where to where the numbers of each place go; equal where it has none.
///
/// They are taken over from a plan for each event: as an array that takes a few moves, and no call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ranges {
    first: [(u16, u16); FIRST],
    /// Those of the places behind.
    others: Vec<(u16, u16)>,
}

impl Ranges {
    /// Returns the numbers of a place.
    #[inline]
    pub fn get(&self, place: usize) -> (usize, usize) {
        let range = match self.first.get(place) {
            Some(range) => Some(range),
            None => self.others.get(place - FIRST),
        };
        range.map_or((0, 0), |(start, end)| ((*start).into(), (*end).into()))
    }

    fn at(&mut self, place: usize) -> &mut (u16, u16) {
        let Some(behind) = place.checked_sub(FIRST) else { return &mut self.first[place] };
        if self.others.len() <= behind {
            self.others.resize(behind + 1, (0, 0));
        }
        &mut self.others[behind]
    }

    /// Puts the numbers from `start` to `end`, at most 2^16, at a place that has none; else nothing is done.
    #[inline]
    pub fn put(&mut self, place: usize, (start, end): (usize, usize)) {
        let range = self.at(place);
        if range.0 == range.1 {
            *range = (start as u16, end as u16);
        }
    }

    /// The same, or appends those up to `end` to what it has from `start` on.
    #[inline]
    pub fn add(&mut self, place: usize, (start, end): (usize, usize)) {
        let range = self.at(place);
        if range.0 == range.1 {
            *range = (start as u16, end as u16);
        } else if usize::from(range.0) == start {
            range.1 = end as u16;
        }
    }

    /// No place has any.
    #[inline]
    pub fn clear(&mut self) {
        self.first = [(0, 0); FIRST];
        self.others.clear();
    }

    /// Takes over those of another.
    #[inline]
    pub fn copy(&mut self, other: &Self) {
        self.first = other.first;
        if !self.others.is_empty() || !other.others.is_empty() {
            self.others.clone_from(&other.others);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_numbers_of_its_first_field() {
        for place in [2, FIRST - 1, FIRST, FIRST + 7] {
            let mut ranges = Ranges::default();
            ranges.add(place, (5, 6));
            ranges.add(place, (5, 7));
            ranges.put(place, (9, 10));
            ranges.add(place, (9, 11));
            assert_eq!((ranges.get(place), ranges.get(place + 1)), ((5, 7), (0, 0)));
            let mut copy = Ranges::default();
            copy.put(FIRST + 9, (1, 2));
            copy.copy(&ranges);
            assert_eq!((copy.get(place), copy.get(FIRST + 9)), ((5, 7), (0, 0)));
            ranges.clear();
            assert_eq!(ranges.get(place), (0, 0));
        }
    }
}
