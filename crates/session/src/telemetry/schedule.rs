//! Which queries a sweep makes, so that slow ones do not disturb the others.
//!
//! Some quantities take long to ask for: the bus traffic of a GPU is measured
//! while the caller waits, 20 ms for each direction. Every query gets an equal
//! share of the time that the lane may spend; one that costs N times its share
//! is made in every Nth sweep only. Besides, a sweep ends before it would outlast
//! the period, and what was left over comes first in the next.

/// How much of a period the queries of one sweep may take together.
const FULL_PERCENT: u64 = 90;
/// How long the last sweep may keep the user waiting, in nanoseconds, for what is
/// not needed.
const LAST_ROOM: u64 = 20_000_000;

/// The plan of a lane's queries. Sweeps are numbered; the first one was 0 and
/// made every query, which is how their costs are known.
#[derive(Debug)]
pub struct Schedule {
    period: u64,
    load_percent: u64,
    queries: Vec<Query>,
}

#[derive(Debug)]
struct Query {
    /// The last two times that it took, in nanoseconds.
    took: [u64; 2],
    every: u64,
    /// The sweep from which on it is due.
    next: u64,
    dropped: bool,
}

impl Query {
    /// Returns what it is expected to take. A single long one is the system's doing, so
    /// the shorter of two counts.
    fn cost(&self) -> u64 {
        let [before, last] = self.took;
        before.min(last)
    }
}

impl Schedule {
    /// Returns a plan for queries that took so long the first time. They may take
    /// `load_percent` of the time in the long run.
    pub fn new(period_ns: u64, load_percent: u64, costs: &[u64]) -> Self {
        let query = |cost: &u64| Query { took: [*cost; 2], every: 1, next: 1, dropped: false };
        let mut schedule =
            Schedule { period: period_ns.max(1), load_percent, queries: costs.iter().map(query).collect() };
        for place in 0..schedule.queries.len() {
            schedule.space(place, 0);
        }
        schedule
    }

    /// Returns the first sweep from `from` on in which something is due; nothing if no
    /// query is left.
    pub fn next_sweep(&self, from: u64) -> Option<u64> {
        self.live().map(|(_, q)| q.next.max(from)).min()
    }

    /// Returns the queries to make in a sweep, in the order to make them: rare ones last,
    /// so that the others keep their rhythm.
    pub fn due(&self, sweep: u64) -> Vec<usize> {
        let mut due: Vec<(usize, &Query)> = self.live().filter(|(_, q)| q.next <= sweep).collect();
        // Of the rare ones the longest overdue first, if not all can be made.
        due.sort_by_key(|(_, q)| (q.every > 1, if q.every > 1 { q.next } else { 0 }));
        let room = self.room();
        let (mut sum, mut forced) = (0u64, false);
        let fits = |(_, query): &(usize, &Query)| {
            let with = sum.saturating_add(query.cost());
            // What never fits would never be made: one such query is, now and then.
            let overdue = sweep - query.next >= query.every;
            let taken = with <= room || query.every == 1 || sum == 0 || (overdue && !forced);
            if taken {
                forced |= with > room;
                sum = with;
            }
            taken
        };
        due.into_iter().filter(fits).map(|(place, _)| place).collect()
    }

    /// Returns the queries for a last sweep: what is needed, and of the rest what fits.
    pub fn last(&self, needed: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut sum = 0u64;
        let fits = |(place, query): &(usize, &Query)| {
            let with = sum.saturating_add(query.cost());
            let taken = needed(*place) || with <= LAST_ROOM;
            if taken {
                sum = with;
            }
            taken
        };
        self.live().filter(fits).map(|(place, _)| place).collect()
    }

    /// A query was made in this sweep and took so many nanoseconds.
    pub fn made(&mut self, place: usize, sweep: u64, took: u64) {
        let Some(query) = self.queries.get_mut(place) else { return };
        query.took = [query.took[1], took];
        self.space(place, sweep);
    }

    /// A query is made no more.
    pub fn drop_query(&mut self, place: usize) {
        if let Some(query) = self.queries.get_mut(place) {
            query.dropped = true;
        }
    }

    /// In how many sweeps a query is made once.
    pub fn every(&self, place: usize) -> u64 {
        self.queries.get(place).map_or(1, |q| q.every)
    }

    /// Returns what a sweep may take, in nanoseconds.
    fn room(&self) -> u64 {
        self.period.saturating_mul(FULL_PERCENT) / 100
    }

    fn live(&self) -> impl Iterator<Item = (usize, &Query)> {
        self.queries.iter().enumerate().filter(|(_, q)| !q.dropped)
    }

    /// Sets how often a query is made, from what it costs, and when next.
    fn space(&mut self, place: usize, sweep: u64) {
        let count = self.live().count().max(1) as u64;
        let share = (self.period.saturating_mul(self.load_percent) / 100 / count).max(1);
        let Some(query) = self.queries.get_mut(place) else { return };
        let every = query.cost().div_ceil(share).max(1);
        // Equal queries of several devices shall not meet in the same sweeps.
        let wait = if every == query.every { every } else { 1 + place as u64 % every };
        query.every = every;
        query.next = sweep.saturating_add(wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Runs sweeps of queries with constant costs. Gives the number of times each
    /// was made and the longest sweep.
    fn run(period: u64, load: u64, costs: &[u64], sweeps: u64) -> (Vec<u64>, u64) {
        let mut schedule = Schedule::new(period, load, costs);
        let (mut made, mut longest) = (vec![0; costs.len()], 0);
        for sweep in 1..=sweeps {
            let due = schedule.due(sweep);
            longest = longest.max(due.iter().map(|i| costs[*i]).sum());
            for place in due {
                made[place] += 1;
                schedule.made(place, sweep, costs[place]);
            }
        }
        (made, longest)
    }

    #[test]
    fn cheap_queries_are_made_in_every_sweep() {
        let (made, _) = run(50 * MS, 50, &[MS / 100; 20], 100);
        assert_eq!(made, [100; 20]);
    }

    #[test]
    fn a_slow_query_is_made_in_proportion_and_the_others_keep_their_rhythm() {
        let mut costs = vec![MS / 100; 9];
        costs.push(12 * MS);
        let (made, longest) = run(50 * MS, 50, &costs, 1000);
        assert_eq!(made[..9], [1000; 9]);
        // Its share is a tenth of 25 ms.
        assert_eq!(made[9], 200);
        assert!(longest < 50 * MS);
    }

    #[test]
    fn no_sweep_outlasts_the_period() {
        // Eight devices whose queries are too slow together.
        let costs: Vec<u64> = (0..80).map(|i| (i % 10) * MS / 2).collect();
        let (made, longest) = run(50 * MS, 50, &costs, 2000);
        assert!(longest <= 45 * MS, "{longest}");
        assert!(made.iter().all(|n| *n > 0), "{made:?}");
        let spent: u64 = made.iter().zip(&costs).map(|(n, c)| n * c).sum();
        assert!(spent <= 2000 * 25 * MS, "half of the time: {spent}");
    }

    #[test]
    fn equal_slow_queries_take_turns() {
        let (made, longest) = run(50 * MS, 25, &[40 * MS; 8], 260);
        assert_eq!(longest, 40 * MS);
        assert_eq!(made, [10; 8], "each in every 26th sweep");
    }

    #[test]
    fn a_query_longer_than_the_period_is_made_alone() {
        let mut schedule = Schedule::new(10 * MS, 25, &[40 * MS, 40 * MS]);
        let sweep = schedule.next_sweep(1).expect("something is due");
        let due = schedule.due(sweep + 100);
        assert_eq!(due.len(), 1);
        schedule.made(due[0], sweep, 40 * MS);
        assert_eq!(schedule.every(due[0]), 32);
    }

    #[test]
    fn one_hiccup_changes_nothing_and_two_do() {
        let mut schedule = Schedule::new(50 * MS, 50, &[MS / 10; 10]);
        schedule.made(3, 1, 30 * MS);
        assert_eq!(schedule.every(3), 1);
        schedule.made(3, 2, 30 * MS);
        assert_eq!(schedule.every(3), 12);
        schedule.made(3, 20, MS / 10);
        assert_eq!(schedule.every(3), 1);
    }

    #[test]
    fn dropped_queries_leave_their_share_to_others() {
        let mut schedule = Schedule::new(50 * MS, 50, &[10 * MS; 10]);
        assert_eq!(schedule.every(0), 4);
        (1..10).for_each(|i| schedule.drop_query(i));
        schedule.made(0, 4, 10 * MS);
        assert_eq!(schedule.every(0), 1);
        schedule.drop_query(0);
        assert_eq!(schedule.next_sweep(5), None);
        assert!(schedule.due(100).is_empty());
        assert!(schedule.last(|_| true).is_empty());
    }

    #[test]
    fn the_last_sweep_has_what_is_needed_and_what_fits() {
        let schedule = Schedule::new(10 * MS, 50, &[MS, 30 * MS, 5 * MS, 30 * MS, MS]);
        assert_eq!(schedule.last(|i| i == 0), [0, 2, 4]);
        assert_eq!(schedule.last(|i| i == 1), [0, 1], "1 + 30 ms are enough");
    }

    #[test]
    fn nothing_to_ask_is_no_fault() {
        let mut schedule = Schedule::new(0, 0, &[]);
        assert!(schedule.due(1).is_empty());
        assert_eq!(schedule.next_sweep(1), None);
        schedule.made(7, 1, 1);
        schedule.drop_query(7);
    }
}
