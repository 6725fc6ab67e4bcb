//! The steady part of a run, found from what comes again and again: ranges of the program, or commands.
//!
//! A kernel that is launched once in each step comes as often as there are steps, at the same distance. One that is
//! launched ten times in a step has short distances and long ones. So the best sign of steps is what recurs most
//! evenly, of that which does so from near the beginning of the device's work to near its end. Where it begins late, since
//! the program loads, compiles or imports for long after a first command, most of the work must be in it.

use std::collections::HashMap;

use hetrace_ctf::read::Event;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::milestones::Milestones;
use hetrace_trace::probes::Border;
use hetrace_trace::ranges::{Ranges, Step};
use hetrace_trace::spans::{At, Call, CommandKind, Open, Orphan, Unfinished};
use hetrace_trace::trace::Trace;

use super::histogram::Histogram;

/// Kinds of commands, and of ranges, that are followed.
const MOST: usize = 1 << 10;
/// First occurrences that are remembered, to distinguish the warm-up from the rest.
const HEAD: usize = 16;
/// What comes less often is no repetition.
const LEAST: u64 = 5;
/// What begins late must come so often, and with most of the device's work.
const OFTEN: u64 = 10;
/// One of so many distances may be less than half the median or more than twice that,
const UNLIKE: u64 = 3;
/// and all together may take so many times as long as if each were the median.
const STRETCH: u64 = 3;
/// Distances from the shortest but 5 % to the longest but 5 %, over the median, that still count as even.
const EVEN: f64 = 0.5;

/// What may recur: on which device, of which process, what kind, which function.
pub(super) type Key = (usize, i64, CommandKind, u32);

/// Something that came again and again.
#[derive(Clone, Debug, Default)]
struct Mark {
    count: u64,
    first: u64,
    last: u64,
    /// Time in it.
    busy: u64,
    head: Vec<u64>,
    distances: Histogram,
    /// The longest distance, and when it began.
    longest: (u64, u64),
}

impl Mark {
    fn see(&mut self, time: u64, busy: u64) {
        if self.count == 0 {
            self.first = time;
        } else {
            let distance = time.saturating_sub(self.last);
            self.distances.add(distance);
            if distance > self.longest.0 {
                self.longest = (distance, self.last);
            }
        }
        if self.head.len() < HEAD {
            self.head.push(time);
        }
        self.last = time.max(self.last);
        self.busy = self.busy.saturating_add(busy);
        self.count += 1;
    }

    /// How uneven its distances are.
    fn spread(&self) -> f64 {
        let [low, middle, high] = [0.05, 0.5, 0.95].map(|part| self.distances.quantile(part) as f64);
        if middle > 0.0 { (high - low) / middle } else { f64::MAX }
    }

    /// Whether most distances are alike, and much of its time is in such: otherwise nothing takes turns with anything.
    fn is_regular(&self) -> bool {
        let middle = self.distances.quantile(0.5);
        let count = self.count.saturating_sub(1);
        let short = count.saturating_sub(self.distances.above(middle / 2));
        let unlike = short.saturating_add(self.distances.above(middle.saturating_mul(2)));
        let span = self.last.saturating_sub(self.steady_from());
        unlike.saturating_mul(UNLIKE) <= count && middle.saturating_mul(count).saturating_mul(STRETCH) >= span
    }

    /// When the warm-up is over: after the last of the first distances that is far longer than others.
    fn steady_from(&self) -> u64 {
        let long = self.distances.quantile(0.5).saturating_mul(2);
        let early = self.head.len().min(usize::try_from(self.count / 4).unwrap_or(HEAD) + 1);
        let mut pairs = self.head.windows(2).take(early);
        let last = pairs.rfind(|pair| pair[1].saturating_sub(pair[0]) > long);
        last.map_or(self.first, |pair| pair[1])
    }
}

/// The steady part.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Steady {
    pub what: What,
    pub from: u64,
    pub to: u64,
    /// From `from` to `to`.
    pub steps: u64,
    pub period: u64,
    /// 5 % and 95 % of distances.
    pub low: u64,
    pub high: u64,
    /// Distances of more than twice the median.
    pub outliers: u64,
    pub longest: u64,
    pub longest_at: u64,
}

/// What recurs in each step.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Range(String),
    Command(Key),
}

/// All that may recur.
pub(super) struct Steps<'t> {
    work: Milestones,
    commands: QuickMap<Key, Mark>,
    ranges: Option<Ranges<'t>>,
    /// By message, without digits.
    named: HashMap<String, Mark>,
}

impl<'t> Steps<'t> {
    /// With nothing seen yet.
    pub fn new(trace: &'t Trace) -> Self {
        Self { ranges: Some(Ranges::new(trace)), ..Self::bare() }
    }

    fn bare() -> Self {
        Self {
            work: Milestones::default(),
            commands: QuickMap::default(),
            ranges: None,
            named: HashMap::new(),
        }
    }

    /// A command began. Returns whether it is the first of its function.
    pub fn command(&mut self, key: Key, start: u64, end: u64) -> bool {
        self.work.see(start, end.saturating_sub(start));
        if self.commands.len() >= MOST && !self.commands.contains_key(&key) {
            return false;
        }
        let mark = self.commands.entry(key).or_default();
        mark.see(start, end.saturating_sub(start));
        mark.count == 1 && key.3 > 0
    }

    pub fn entry(&mut self, at: At<'_>, call: &Open, event: &Event<'_, '_>) {
        let step = self.ranges.as_mut().and_then(|ranges| ranges.entry(at, call, event));
        self.range(step);
    }

    pub fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) {
        let step = self.ranges.as_mut().and_then(|ranges| ranges.exit(at, call, event));
        self.range(step);
    }

    pub fn unfinished(&mut self, at: At<'_>, call: &Unfinished) {
        let step = self.ranges.as_mut().and_then(|ranges| ranges.unfinished(at, call));
        self.range(step);
    }

    pub fn orphan(&mut self, call: &Orphan) {
        let step = self.ranges.as_mut().and_then(|ranges| ranges.orphan(call));
        self.range(step);
    }

    pub fn border(&mut self, at: At<'_>, border: &Border, name: &str) {
        let step = self.ranges.as_mut().and_then(|ranges| ranges.border(at, border, name));
        self.range(step);
    }

    /// Ranges end in another order than they begin, which matters little for distances.
    fn range(&mut self, step: Option<Step>) {
        let Some(Step::Ended { range, end, .. }) = step else { return };
        let name: String = range.message.chars().filter(|c| !c.is_ascii_digit()).collect();
        if name.is_empty() || (self.named.len() >= MOST && !self.named.contains_key(&name)) {
            return;
        }
        self.named.entry(name).or_default().see(range.begin, end.saturating_sub(range.begin));
    }

    /// Time in commands of a kind, the longest first, of all devices together.
    pub fn costs(&self) -> Vec<(CommandKind, u32, u64)> {
        let mut sums: HashMap<(CommandKind, u32), u64> = HashMap::new();
        for ((.., kind, function), mark) in &self.commands {
            let sum = sums.entry((*kind, *function)).or_default();
            *sum = sum.saturating_add(mark.busy);
        }
        let mut costs: Vec<_> = sums.into_iter().map(|((kind, function), ns)| (kind, function, ns)).collect();
        costs.sort_by_key(|(kind, function, ns)| (std::cmp::Reverse(*ns), *kind, *function));
        costs
    }

    /// Of what time, up to the last command, something makes up most: from the first command on, or from its own first on if
    /// there was little work before.
    fn most_of(&self, mark: &Mark, first: u64, last: u64) -> Option<u64> {
        let from = mark.steady_from().max(first);
        let (whole, rest) = (last.saturating_sub(first), last.saturating_sub(from));
        let span = mark.last.min(last).saturating_sub(from);
        let works = || self.work.since(from) > self.work.total() / 2;
        if mark.count >= LEAST && span > whole / 2 {
            return Some(whole);
        }
        (mark.count >= OFTEN && span > rest / 2 && works()).then_some(rest)
    }

    /// The steady part, if there is one that makes up most of the time from the first command to the last, or has most of
    /// their work.
    pub fn steady(&self, first: u64, last: u64) -> Option<Steady> {
        let fits = |mark: &&Mark| self.most_of(mark, first, last).is_some();
        let lasts = |mark: &Mark| self.most_of(mark, first, last).is_some_and(|most| mark.busy > most / 2);
        let named = self.named.iter().filter(|(_, mark)| lasts(mark));
        if let Some((name, mark)) = named.max_by_key(|(name, mark)| (mark.busy, std::cmp::Reverse(*name))) {
            let name = name.trim().trim_end_matches(['#', ':', '_', '-']).to_owned();
            return Some(steady(mark, What::Range(name)));
        }
        let recurring: Vec<(&Key, &Mark)> =
            self.commands.iter().filter(|(_, mark)| fits(mark) && mark.is_regular()).collect();
        let busy: u64 = self.commands.values().map(|mark| mark.busy).fold(0, u64::saturating_add);
        // Of what recurs less often than most of the work, the distances say nothing of a step.
        let covers = |count: u64| {
            let as_often = self
                .commands
                .values()
                .filter(|mark| mark.count.saturating_mul(10) >= count.saturating_mul(9));
            as_often.map(|mark| mark.busy).fold(0, u64::saturating_add) >= busy / 2
        };
        let good = recurring.into_iter().filter(|(_, mark)| covers(mark.count));
        let (key, mark) = good.min_by(|(a_key, a), (b_key, b)| {
            let rank = |mark: &Mark| {
                let spread = mark.spread();
                // What is even enough is ranked by how often it comes.
                if spread <= EVEN { (0.0, u64::MAX - mark.count) } else { (spread, u64::MAX - mark.count) }
            };
            let (a, b) = (rank(a), rank(b));
            a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)).then_with(|| a_key.cmp(b_key))
        })?;
        Some(steady(mark, What::Command(*key)))
    }
}

fn steady(mark: &Mark, what: What) -> Steady {
    let from = mark.steady_from();
    let warm_up = mark.head.iter().filter(|time| **time < from).count() as u64;
    let period = mark.distances.quantile(0.5);
    Steady {
        what,
        from,
        to: mark.last,
        steps: mark.count.saturating_sub(1).saturating_sub(warm_up),
        period,
        low: mark.distances.quantile(0.05),
        high: mark.distances.quantile(0.95),
        outliers: mark.distances.above(period.saturating_mul(2)),
        longest: mark.longest.0,
        longest_at: mark.longest.1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of ten `A`, evenly, and one `B`, each 1000 ns after the one before, behind a warm-up of long ones.
    #[test]
    fn steps_are_what_recurs_most_evenly() {
        let mut steps = Steps::bare();
        let (a, b) = ((0, 1, CommandKind::Kernel, 1), (0, 1, CommandKind::Kernel, 2));
        let mut at = 0;
        for n in 0..50_u64 {
            for k in 0..10 {
                assert_eq!(steps.command(a, at + 10 * k, at + 10 * k + 9), n == 0 && k == 0);
            }
            steps.command(b, at + 500, at + 700);
            at += if n < 2 { 9000 } else { 1000 };
        }
        let found = steps.steady(0, at).expect("a steady part");
        assert_eq!(found.what, What::Command(b));
        assert_eq!((found.steps, found.outliers, found.longest), (47, 2, 9000));
        assert!((990..=1010).contains(&found.period), "{found:?}");
        assert_eq!((found.from, found.to), (18_500, at - 500));
        assert_eq!(steps.costs()[0].1, 2);
    }

    /// A first command, a long time without any, and then the loop: that time is no part of it. Where the device worked then,
    /// the loop is not what the run is about.
    #[test]
    fn a_loop_that_begins_late_is_found_by_its_work() {
        let found = |early: u64| {
            let mut steps = Steps::bare();
            steps.command((0, 1, CommandKind::Write, 0), 0, early);
            for n in 0..100_u64 {
                steps.command(
                    (0, 1, CommandKind::Kernel, 1),
                    1_000_000 + 1000 * n,
                    1_000_000 + 1000 * n + 100,
                );
            }
            steps.steady(0, 1_099_100).map(|steady| (steady.from, steady.steps))
        };
        assert_eq!(found(100), Some((1_000_000, 99)));
        assert_eq!(found(10_000), None);
    }

    /// Bursts of ten, a long time apart: within a burst all is alike, but that is not what takes the time.
    #[test]
    fn bursts_are_no_steps() {
        let mut steps = Steps::bare();
        for n in 0..200_u64 {
            let at = 1_000_000 * (n / 10) + 10 * (n % 10);
            steps.command((0, 1, CommandKind::Kernel, 1), at, at + 9);
        }
        assert_eq!(steps.steady(0, 20_000_000), None);
    }

    #[test]
    fn time_that_goes_back_is_no_harm() {
        let mut steps = Steps::bare();
        for at in [500, 100, 900, 200, 300, 50, 1000, u64::MAX, 0] {
            steps.command((0, 1, CommandKind::Kernel, 1), at, at / 2);
        }
        let _ = steps.steady(0, u64::MAX);
        let _ = steps.steady(u64::MAX, 0);
    }

    #[test]
    fn what_comes_a_few_times_is_no_repetition() {
        let mut steps = Steps::bare();
        for n in 0..4 {
            steps.command((0, 1, CommandKind::Kernel, 1), 100 * n, 100 * n + 50);
        }
        assert_eq!(steps.steady(0, 350), None);
    }
}
