//! Locations side by side: a location's regions must nest, and commands of a queue or runs
//! of equal calls need not.

use super::archive::Archive;
use super::definitions::LocationKind;

/// At most so many locations side by side.
const MAX_LANES: usize = 256;

/// One location.
#[derive(Clone, Copy, Debug)]
struct Lane {
    location: u32,
    /// Until when it is taken.
    until: u64,
    /// The last whole on it, if it has not been left, and until when the room inside is taken.
    whole: Option<Whole>,
    inside: u64,
}

/// A region that has others inside: what it is of, its number, and when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub of: u64,
    pub region: u32,
    pub end: u64,
}

/// A place for a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub lane: usize,
    pub location: u32,
    /// A whole on the location that must be left first.
    pub leave: Option<Whole>,
}

/// Locations of one name; those after the first have a number behind it.
#[derive(Clone, Debug)]
pub(super) struct Lanes {
    name: String,
    kind: LocationKind,
    group: u32,
    lanes: Vec<Lane>,
}

impl Lanes {
    pub fn new(name: String, kind: LocationKind, group: u32) -> Self {
        Self { name, kind, group, lanes: Vec::new() }
    }

    /// A place that is free from `start` on, and is taken until `end`. None if there are too
    /// many at a time.
    pub fn take(&mut self, archive: &mut Archive, start: u64, end: u64) -> Option<Place> {
        let at = match self.lanes.iter().position(|lane| lane.until <= start) {
            Some(at) => at,
            None if self.lanes.len() < MAX_LANES => {
                let name = self.name_of(self.lanes.len());
                let location = archive.location(&name, self.kind, self.group);
                self.lanes.push(Lane { location, until: 0, whole: None, inside: 0 });
                self.lanes.len() - 1
            }
            None => return None,
        };
        let lane = self.lanes.get_mut(at)?;
        lane.until = end.max(start);
        Some(Place { lane: at, location: lane.location, leave: lane.whole.take() })
    }

    /// The same for a whole, which leaves room for its parts: it is left by whoever comes next.
    pub fn take_whole(&mut self, archive: &mut Archive, start: u64, whole: Whole) -> Option<Place> {
        let place = self.take(archive, start, whole.end)?;
        let lane = self.lanes.get_mut(place.lane)?;
        lane.whole = Some(whole);
        lane.inside = start;
        Some(place)
    }

    /// The same for a part: inside of its whole if there is one with room.
    pub fn take_part(&mut self, archive: &mut Archive, start: u64, end: u64, of: u64) -> Option<Place> {
        let fits = |lane: &Lane| {
            lane.whole.is_some_and(|w| w.of == of && end <= w.end) && lane.inside <= start && start <= end
        };
        match self.lanes.iter_mut().enumerate().find(|(_, lane)| fits(lane)) {
            Some((at, lane)) => {
                lane.inside = end;
                Some(Place { lane: at, location: lane.location, leave: None })
            }
            None => self.take(archive, start, end),
        }
    }

    /// A place was taken until further notice, and is free from `end` on.
    pub fn give_back(&mut self, lane: usize, end: u64) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.until = end;
        }
    }

    /// Wholes that have not been left, with their locations.
    pub fn open(&mut self) -> impl Iterator<Item = (u32, Whole)> {
        self.lanes.iter_mut().filter_map(|lane| Some((lane.location, lane.whole.take()?)))
    }

    /// Names all locations anew.
    pub fn rename(&mut self, archive: &mut Archive, name: String) {
        self.name = name;
        for (at, lane) in self.lanes.iter().enumerate() {
            archive.rename(lane.location, self.name_of(at));
        }
    }

    fn name_of(&self, at: usize) -> String {
        if at == 0 { self.name.clone() } else { format!("{} #{}", self.name, at + 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(check: impl FnOnce(&mut Archive, &mut Lanes)) {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::new(&folder.path().join("a")).unwrap();
        check(&mut archive, &mut Lanes::new("queue".to_owned(), LocationKind::Stream, 0));
    }

    #[test]
    fn what_overlaps_gets_locations_of_its_own() {
        with(|archive, lanes| {
            let mut take = |start, end| lanes.take(archive, start, end).map(|p| p.lane);
            assert_eq!(take(0, 10), Some(0));
            assert_eq!(take(5, 7), Some(1));
            assert_eq!(take(7, 20), Some(1));
            assert_eq!(take(10, 10), Some(0));
            // One is taken until 20.
            for _ in 1..MAX_LANES {
                assert!(take(10, u64::MAX).is_some());
            }
            assert_eq!(take(11, 12), None);
            assert_eq!(archive.locations(), MAX_LANES as u64);
        });
    }

    #[test]
    fn parts_lie_in_their_whole_and_it_is_left_once() {
        with(|archive, lanes| {
            let whole = Whole { of: 7, region: 3, end: 100 };
            assert_eq!(lanes.take_whole(archive, 0, whole).unwrap().leave, None);
            let mut part = |start, end, of| {
                let place = lanes.take_part(archive, start, end, of).unwrap();
                (place.lane, place.leave)
            };
            assert_eq!(part(0, 50, 7), (0, None));
            // Beside another part, of another whole, and beyond the end.
            assert_eq!(part(40, 60, 7), (1, None));
            assert_eq!(part(60, 70, 8), (1, None));
            assert_eq!(part(90, 101, 7), (1, None));
            assert_eq!(part(95, 100, 7), (0, None));
            assert_eq!(lanes.take(archive, 100, 101).unwrap().leave, Some(whole));
            assert_eq!(lanes.open().count(), 0);
        });
    }
}
