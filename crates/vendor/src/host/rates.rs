//! Counters that become rates, shares and sums: never from one that was reset meanwhile.

use std::time::Instant;

/// Nanoseconds from one time to another.
fn between(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

/// Values of an interval and its length, ns.
pub(super) type Over<const N: usize> = ([u64; N], u64);

/// Counters of amounts, as rates.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate<const N: usize> {
    before: Option<([u64; N], Instant)>,
}

impl<const N: usize> Rate<N> {
    /// The counters are gone: what they count next has another beginning.
    pub fn forget(&mut self) {
        self.before = None;
    }

    /// Returns what was counted since the time before, per second; nothing if there was none before, or if a counter
    /// went back: it was reset, and what it counted until then is not known.
    pub fn per_second(&mut self, now: [u64; N], at: Instant) -> Option<Over<N>> {
        let Some((before, since)) = self.before else {
            self.before = Some((now, at));
            return None;
        };
        let interval = between(since, at);
        if interval == 0 {
            return None;
        }
        self.before = Some((now, at));
        let mut rates = [0; N];
        for ((rate, now), before) in rates.iter_mut().zip(now).zip(before) {
            let amount = u128::from(now.checked_sub(before)?);
            *rate = u64::try_from(amount * 1_000_000_000 / u128::from(interval)).ok()?;
        }
        Some((rates, interval))
    }
}

/// Time of a processor, or of all that are online, in ticks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    pub user: u64,
    pub system: u64,
    pub iowait: u64,
    pub steal: u64,
    pub idle: u64,
    /// Processors that are online.
    pub online: u64,
}

/// What processors spent their time with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    before: Option<(Ticks, Instant)>,
}

impl Share {
    /// The processor is offline.
    pub fn forget(&mut self) {
        self.before = None;
    }

    /// Returns user, system, iowait, steal since the time before, in thousandths of one processor's time. Nothing if no
    /// tick has passed since, or if processors came or went, or a counter was reset.
    pub fn since(&mut self, now: Ticks, at: Instant) -> Option<Over<4>> {
        let Some((before, since)) = self.before else {
            self.before = Some((now, at));
            return None;
        };
        if before.online != now.online {
            self.before = Some((now, at));
            return None;
        }
        let spent = [
            now.user.checked_sub(before.user),
            now.system.checked_sub(before.system),
            // The kernel lets this one go back by itself: what a processor waits for is counted where it slept.
            Some(now.iowait.saturating_sub(before.iowait)),
            now.steal.checked_sub(before.steal),
            now.idle.checked_sub(before.idle),
        ];
        let mut total = 0u64;
        for ticks in spent {
            let Some(ticks) = ticks else {
                self.before = Some((now, at));
                return None;
            };
            total = total.saturating_add(ticks);
        }
        if total == 0 {
            return None;
        }
        self.before = Some((now, at));
        let share = |ticks: Option<u64>| {
            let part = u128::from(ticks.unwrap_or(0)) * 1000 * u128::from(now.online) / u128::from(total);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let [user, system, iowait, steal, _] = spent;
        Some(([user, system, iowait, steal].map(share), between(since, at)))
    }
}

/// No part of a machine that counts its energy takes more than this, W. One that seems to was reset.
const MOST_WATTS: u128 = 2000;

/// A counter of energy that begins anew at its range, as one that does not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Energy {
    /// From 0 up to and with this, µJ; 0 if it is not known.
    pub range: u64,
    before: Option<(u64, Instant)>,
    sum: u64,
}

impl Energy {
    /// Returns a counter with this range, µJ.
    pub fn new(range: u64) -> Self {
        Energy { range, ..Energy::default() }
    }

    /// The counter is gone for now; what is used meanwhile is not counted.
    pub fn forget(&mut self) {
        self.before = None;
    }

    /// Returns the energy counted since the first call, mJ.
    pub fn millijoules(&mut self, now: u64, at: Instant) -> u64 {
        if let Some((before, since)) = self.before.replace((now, at)) {
            let used = now.checked_sub(before).or_else(|| {
                let left = self.range.checked_sub(before)?;
                now.checked_add(left)?.checked_add(1)
            });
            // µJ from W and ns; a millisecond more, as the counter counts in steps of about that.
            let most = MOST_WATTS * u128::from(between(since, at).saturating_add(1_000_000)) / 1000;
            let used = used.filter(|used| u128::from(*used) <= most);
            self.sum = self.sum.saturating_add(used.unwrap_or(0));
        }
        self.sum / 1000
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn amounts_become_rates_and_resets_become_nothing() {
        let start = Instant::now();
        let mut rate = Rate::default();
        assert_eq!(rate.per_second([100, 7], start), None, "no time before");
        assert_eq!(rate.per_second([600, 7], start), None, "no time has passed");
        assert_eq!(rate.per_second([600, 17], start + 50 * MS), Some(([10_000, 200], 50_000_000)));
        assert_eq!(rate.per_second([5, 18], start + 100 * MS), None, "a counter went back");
        assert_eq!(rate.per_second([10, 18], start + 150 * MS), Some(([100, 0], 50_000_000)));
        rate.forget();
        assert_eq!(rate.per_second([1 << 60, 0], start + 200 * MS), None, "it was gone");
    }

    fn ticks([user, system, iowait, steal, idle]: [u64; 5], online: u64) -> Ticks {
        Ticks { user, system, iowait, steal, idle, online }
    }

    #[test]
    fn shares_are_of_the_time_that_passed() {
        let start = Instant::now();
        let mut share = Share::default();
        assert_eq!(share.since(ticks([100, 50, 10, 0, 1000], 2), start), None);
        let next = share.since(ticks([104, 51, 11, 0, 1004], 2), start + 50 * MS);
        assert_eq!(next, Some(([800, 200, 200, 0], 50_000_000)), "of two processors");
        let same = share.since(ticks([104, 51, 11, 0, 1004], 2), start + 55 * MS);
        assert_eq!(same, None, "no tick has passed");
        let later = share.since(ticks([105, 51, 11, 0, 1004], 2), start + 60 * MS);
        assert_eq!(
            later,
            Some(([2000, 0, 0, 0], 10_000_000)),
            "the interval is that since the sample before"
        );
    }

    #[test]
    fn processors_that_come_and_go_make_no_spike() {
        let start = Instant::now();
        let mut share = Share::default();
        share.since(ticks([100, 50, 10, 0, 1000], 2), start);
        // One is offline: the idle time of all went back by what it counted otherwise.
        assert_eq!(share.since(ticks([110, 50, 10, 0, 700], 1), start + 100 * MS), None);
        assert_eq!(
            share.since(ticks([115, 50, 10, 0, 705], 1), start + 200 * MS),
            Some(([500, 0, 0, 0], 100_000_000))
        );
        assert_eq!(share.since(ticks([116, 50, 10, 0, 600], 1), start + 300 * MS), None, "idle went back");
        assert_eq!(
            share.since(ticks([116, 50, 5, 0, 610], 1), start + 400 * MS),
            Some(([0, 0, 0, 0], 100_000_000)),
            "waiting for I/O may go back"
        );
    }

    #[test]
    fn energy_goes_on_over_the_end_of_its_range_and_a_reset_adds_nothing() {
        let start = Instant::now();
        // 262 kJ, as many packages have it.
        let range = 262_143_328_850;
        let mut energy = Energy::new(range);
        assert_eq!(energy.millijoules(range - 9_999, start), 0);
        assert_eq!(energy.millijoules(range - 4_999, start + 50 * MS), 5);
        assert_eq!(energy.millijoules(10_000, start + 100 * MS), 20, "5 mJ up to the end, 10 behind it");
        // From 10 mJ to 0 would be 262 kJ: too much for 50 ms, so it was reset.
        assert_eq!(energy.millijoules(0, start + 150 * MS), 20);
        assert_eq!(energy.millijoules(7_000, start + 200 * MS), 27);
        energy.forget();
        assert_eq!(energy.millijoules(900_000, start + 250 * MS), 27, "used while the counter was gone");
    }

    #[test]
    fn without_a_range_a_counter_that_went_back_adds_nothing() {
        let start = Instant::now();
        let mut energy = Energy::new(0);
        energy.millijoules(10_000, start);
        assert_eq!(energy.millijoules(5_000, start + 50 * MS), 0);
        assert_eq!(energy.millijoules(8_000, start + 100 * MS), 3);
        assert_eq!(energy.millijoules(u64::MAX, start + 150 * MS), 3, "more than any machine takes");
    }
}
