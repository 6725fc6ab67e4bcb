//! Rows side by side for things that overlap in time: slices of one Perfetto
//! track must nest, and commands of a queue or ranges of a program need not.

/// At most so many rows side by side.
const MAX_LANES: usize = 256;

/// One row.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// Until when it is taken.
    until: u64,
    /// The last whole on it, and until when the room inside is taken.
    whole: Option<Whole>,
    inside: u64,
}

/// A slice that has others inside: what it is of, and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub of: u64,
    pub end: u64,
}

/// Rows of one name, which Perfetto shows as one.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
}

impl Lanes {
    /// A row that is free from `start` on and is taken until `end`; what comes
    /// later must not start earlier. None if there are too many.
    pub fn take(&mut self, start: u64, end: u64) -> Option<usize> {
        let at = match self.lanes.iter().position(|lane| lane.until <= start) {
            Some(at) => at,
            None if self.lanes.len() < MAX_LANES => {
                self.lanes.push(Lane::default());
                self.lanes.len() - 1
            }
            None => return None,
        };
        self.lanes[at] = Lane { until: end.max(start), whole: None, inside: 0 };
        Some(at)
    }

    /// The same for a whole, which leaves room for its parts.
    pub fn take_whole(&mut self, start: u64, whole: Whole) -> Option<usize> {
        let at = self.take(start, whole.end)?;
        self.lanes[at].whole = Some(whole);
        self.lanes[at].inside = start;
        Some(at)
    }

    /// The same for a part: inside of its whole if there is one with room, and
    /// whether that is so.
    pub fn take_part(&mut self, start: u64, end: u64, of: u64) -> Option<(usize, bool)> {
        let fits = |lane: &Lane| {
            lane.whole.is_some_and(|w| w.of == of && end <= w.end) && lane.inside <= start && start <= end
        };
        match self.lanes.iter().position(fits) {
            Some(at) => {
                self.lanes[at].inside = end;
                Some((at, true))
            }
            None => Some((self.take(start, end)?, false)),
        }
    }

    /// A row was taken until further notice, and is free from `end` on.
    pub fn give_back(&mut self, at: usize, end: u64) {
        if let Some(lane) = self.lanes.get_mut(at) {
            lane.until = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_gets_rows_of_its_own() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.take(0, 10), Some(0));
        assert_eq!(lanes.take(5, 7), Some(1));
        assert_eq!(lanes.take(7, 20), Some(1));
        assert_eq!(lanes.take(10, 10), Some(0));
        assert_eq!(lanes.take(10, 12), Some(0));
        for _ in 2..MAX_LANES {
            assert!(lanes.take(11, u64::MAX).is_some());
        }
        assert_eq!(lanes.take(11, 12), None);
    }

    #[test]
    fn parts_lie_in_their_whole() {
        let mut lanes = Lanes::default();
        assert_eq!(lanes.take_whole(0, Whole { of: 7, end: 100 }), Some(0));
        assert_eq!(lanes.take_part(0, 50, 7), Some((0, true)));
        // Beside another part, of another whole, and beyond the end.
        assert_eq!(lanes.take_part(40, 60, 7), Some((1, false)));
        assert_eq!(lanes.take_part(60, 70, 8), Some((1, false)));
        assert_eq!(lanes.take_part(90, 101, 7), Some((1, false)));
        assert_eq!(lanes.take_part(95, 100, 7), Some((0, true)));
        assert_eq!(lanes.take(100, 101), Some(0));
    }
}
