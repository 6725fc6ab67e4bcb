//! Which launches of a graph have their nodes timed: the first few that can be, and then one of each row of so many, by chance.
//!
//! A row has its length when it begins, and the launch that is timed stands for that many, so all rows together are all launches.
//! Where fewer would do by now, a row that has none yet ends sooner.
//!
//! How many these are follows from the budget of the thread ([`budget::one_in`](hetrace_interpose::budget::one_in)), and from
//! what timing all nodes of this graph takes, compared with how often it is launched. A launch that is chosen while the nodes of
//! the one before are still being timed is not: the next one that can be is timed in its place, and stands for both.

use hetrace_interpose::commands::sample::mixed;

/// Launches of each graph that are timed first, as soon as there is the time for it: a process pays for its start before.
const FIRST: u64 = 4;
/// Ticks that a node takes which is timed: the event lengthens the graph by 2.1 to 2.7 µs (on an H200), and keeping the node and
/// asking for its times are taken to be as long.
pub const NODE_TICKS: u64 = 10_000;
/// Of the budget, nodes of graphs may take one part in so many.
const SHARE: u64 = 2;

/// Launches of which one is timed.
#[derive(Debug, Default)]
struct Row {
    /// How many rows there were.
    number: u64,
    length: u32,
    /// Which one is timed.
    place: u32,
    /// How many there were.
    passed: u32,
}

impl Row {
    /// A launch of a graph, of which one in `every` can be timed. Returns for how many it stands; 0 if it is not timed.
    fn next(&mut self, id: u64, every: u32) -> u32 {
        let every = every.max(1);
        let is_over = self.passed >= self.length;
        if is_over {
            self.passed = 0;
        }
        if is_over || self.place.saturating_sub(self.passed) > every {
            self.number += 1;
            let place = (mixed(self.number ^ id << 40) % u64::from(every)) as u32;
            self.place = self.passed.saturating_add(place);
            self.length = self.passed.saturating_add(every);
        }
        let is_chosen = self.passed == self.place;
        self.passed = self.passed.saturating_add(1);
        if is_chosen { self.length } else { 0 }
    }
}

/// The launches of a graph so far.
#[derive(Debug, Default)]
pub struct Pace {
    /// Number that no other graph of the process has.
    pub id: u64,
    launches: u64,
    /// Those whose nodes were timed.
    timed: u64,
    row: Row,
    /// Counter value when it was launched first.
    began: u64,
    /// Launches for which the next one that is timed has to stand.
    owed: u32,
    /// For how many the launch stands that was chosen last.
    latest: u32,
    /// There was one to be timed before the graph was changed.
    wants: bool,
}

impl Pace {
    /// That of a graph which was not launched yet.
    pub fn new(id: u64) -> Pace {
        Pace { id, ..Pace::default() }
    }

    /// A number that no other graph of the process has, as long as there are not very many; never 0.
    pub fn number(&self) -> u32 {
        (self.id as u32).max(1)
    }

    /// The graph, with so many nodes that are timed if any are, is launched `now`. `one_in` is what the thread's step wants,
    /// and `ppm` of the time may be spent. Returns for how many launches this one would stand; 0 if it is not to be timed.
    pub fn launch(&mut self, now: u64, nodes: u64, one_in: u32, ppm: u32) -> u32 {
        let number = self.launches;
        self.launches += 1;
        if number == 0 {
            self.began = now;
        }
        let weight = if self.timed < FIRST {
            1
        } else {
            let every = one_in.max(self.every(now, nodes, ppm));
            self.row.next(self.id, every)
        };
        if weight > 0 {
            self.latest = weight;
        }
        self.owed = self.owed.saturating_add(weight);
        if self.owed == 0 && self.wants { self.latest } else { self.owed }
    }

    /// The launch was not accepted.
    pub fn take_back(&mut self) {
        self.launches = self.launches.saturating_sub(1);
        self.row.passed = self.row.passed.saturating_sub(1);
    }

    /// The graph does something else from now on: launches before are none that others could stand for. One is timed
    /// nevertheless, and stands for those of its own row.
    pub fn changed(&mut self) {
        self.wants |= self.owed > 0;
        self.owed = 0;
    }

    /// The launch is timed by its nodes.
    pub fn timed(&mut self) {
        self.timed += 1;
        self.settled();
    }

    /// No other has to stand for the launches so far.
    pub fn settled(&mut self) {
        self.wants = false;
        self.owed = 0;
    }

    /// Whether a launch was to be timed and could not be.
    pub fn is_owing(&self) -> bool {
        self.owed > 0 || self.wants
    }

    /// Of how many launches one can be timed.
    fn every(&self, now: u64, nodes: u64, ppm: u32) -> u32 {
        let time = u128::from(now.saturating_sub(self.began)).max(1);
        let cost = u128::from(nodes.saturating_mul(NODE_TICKS))
            * u128::from(self.launches)
            * 1_000_000
            * u128::from(SHARE);
        u32::try_from(cost / (time * u128::from(ppm.max(1))).max(1)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Launches a graph of 300 nodes each `interval` ticks; returns how many of `launches` were timed, and what these stand for.
    fn run(launches: u64, interval: u64, one_in: u32, ppm: u32) -> (u64, u64) {
        let mut pace = Pace::new(3);
        let (mut timed, mut stand_for) = (0, 0);
        for number in 0..launches {
            let weight = pace.launch(1000 + number * interval, 300, one_in, ppm);
            if weight > 0 {
                pace.timed();
                (timed, stand_for) = (timed + 1, stand_for + u64::from(weight));
            }
        }
        (timed, stand_for)
    }

    #[test]
    fn the_first_launches_are_timed_and_then_what_the_budget_allows() {
        // 3 M ticks for each that is timed, of 300,000 between two: 1 % of that is 3,000, of which half is to be spent.
        let (timed, stand_for) = run(200_000, 300_000, 1, 10_000);
        assert!((90..=110).contains(&timed), "{timed}");
        assert!((180_000..=220_000).contains(&stand_for), "{stand_for}");
        // Graphs that are launched now and then are all timed.
        assert_eq!(run(100, 3_000_000_000, 1, 10_000), (100, 100));
        // The thread's step counts where it allows less.
        let (timed, _) = run(4 + 6400, 3_000_000_000, 64, 10_000);
        assert_eq!(timed, 4 + 100);
        assert_eq!(run(4, 1, 65_536, 1), (4, 4), "the first in any case");
    }

    #[test]
    fn rows_are_all_launches() {
        let mut row = Row::default();
        // So few can be timed at first that none ever would be; later one in three to nine.
        let every = |launch: u32| if launch < 10 { u32::MAX } else { 3 + launch % 7 };
        let weights: Vec<u32> = (0..10_000).map(|launch| row.next(7, every(launch))).collect();
        let (timed, stand_for) = (weights.iter().filter(|w| **w > 0).count(), weights.iter().sum::<u32>());
        assert!((1200..2500).contains(&timed), "{timed}");
        assert!((10_000 - 9..10_000 + 9).contains(&stand_for), "{stand_for}");
        let mut one = Row::default();
        assert_eq!([(); 3].map(|()| one.next(7, 0)), [1; 3]);
    }

    #[test]
    fn the_first_ones_are_those_that_can_be_timed() {
        let mut pace = Pace::new(3);
        for number in 0..1000 {
            assert_eq!(
                pace.launch(number * 1_000_000, 300, 64, 10_000),
                1,
                "{number}: there was no time so far"
            );
            pace.settled();
        }
        let wanted = (1000..1004).map(|number| {
            let weight = pace.launch(number * 1_000_000, 300, 64, 10_000);
            pace.timed();
            weight
        });
        assert_eq!(wanted.collect::<Vec<_>>(), [1; 4]);
        let later = (1004..1004 + 64 * 100).filter(|number| {
            let weight = pace.launch(number * 1_000_000, 300, 64, 1_000_000);
            (weight > 0).then(|| pace.timed()).is_some()
        });
        assert_eq!(later.count(), 100, "one of each row");
    }

    #[test]
    fn what_can_not_be_timed_is_owed() {
        let mut pace = Pace::new(1);
        assert_eq!([(); 4].map(|()| pace.launch(5, 300, 1, 20_000)), [1, 2, 3, 4], "all of the first ones");
        for _ in 0..4 {
            pace.timed();
        }
        // So soon that no other is chosen.
        assert_eq!(pace.launch(6, 300, 1, 20_000), 0);
        let chosen = (0..400).map(|_| pace.launch(1 << 40, 300, 64, 1_000_000)).find(|weight| *weight > 0);
        assert_eq!(
            (chosen, pace.launch(1 << 40, 300, 1, 1)),
            (Some(65), 65),
            "not forgotten by those that are not chosen"
        );
        assert!(pace.is_owing());
        pace.changed();
        assert_eq!(pace.launch(7, 300, 1, 1), 65, "for those of its own row, not for what another graph did");
        pace.timed();
        assert!(!pace.is_owing());
        let launches = pace.launches;
        pace.take_back();
        assert_eq!(pace.launches, launches - 1);
    }

    #[test]
    fn no_number_is_too_large() {
        let mut pace = Pace::new(u64::MAX);
        for now in [0, u64::MAX, 0, 1] {
            pace.launch(now, 1 << 40, u32::MAX, u32::MAX);
            pace.launch(now, 1 << 40, 0, 0);
        }
    }
}
