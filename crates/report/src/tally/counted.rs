//! Commands of which only some were timed, and the others counted: by how much what the timed ones stand for is
//! off the true numbers.

use super::cells::Correction;
use super::estimate::Samples;
use hetrace_trace::trace::Launches;

/// What of a function's commands has sums of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    /// Launches that its commands stand for.
    pub launches: u64,
    /// Its commands.
    pub seen: u64,
    /// How many times it was chosen to time some: nodes of graphs are timed all together.
    pub chosen: u64,
    /// Bytes that all these launches moved, or were to move.
    pub bytes: u64,
    pub samples: Samples,
}

impl Part {
    /// Launches that others stand for.
    fn hidden(&self) -> u64 {
        self.launches.saturating_sub(self.seen)
    }
}

/// By how much each of the parts of a function is off, if there were so many launches.
///
/// What they are off together goes to the parts in proportion to the launches that others stand for: of the rest
/// each one is known.
pub(super) fn corrections(all: &Launches, parts: &[Part]) -> Vec<Correction> {
    let sum = |of: fn(&Part) -> u64| parts.iter().map(of).fold(0, u64::saturating_add);
    // Counts are written now and then: of a program that was killed they may be older than its commands.
    let launches = difference(all.launches.max(sum(|p| p.seen)), sum(|p| p.launches));
    let mut samples = Samples::default();
    parts.iter().for_each(|part| samples.add(&part.samples));
    let together = sum(|p| p.seen) as f64 / sum(|p| p.chosen).max(1) as f64;
    // More than that is not chance: nothing was timed any more. Of so many that are chosen together by the root more.
    let unseen = match u64::try_from(launches) {
        Ok(more) if more as f64 > samples.chance() * together.max(1.0).sqrt() => more.min(all.counted()),
        _ => 0,
    };
    let bytes = if all.bytes == 0 { 0 } else { difference(all.bytes, sum(|p| p.bytes)) };
    let mut weights: Vec<u64> = parts.iter().map(Part::hidden).collect();
    if weights.iter().all(|hidden| *hidden == 0) {
        weights = parts.iter().map(|part| part.launches).collect();
    }
    let unseen = i64::try_from(unseen).unwrap_or(i64::MAX);
    let [launches, unseen, bytes] = [launches, unseen, bytes].map(|total| shares(total, &weights));
    let parts = launches.into_iter().zip(unseen).zip(bytes);
    parts
        .map(|((launches, unseen), bytes)| Correction { launches, unseen: unseen.unsigned_abs(), bytes })
        .collect()
}

fn difference(one: u64, other: u64) -> i64 {
    let difference = i128::from(one) - i128::from(other);
    i64::try_from(difference).unwrap_or(if difference > 0 { i64::MAX } else { i64::MIN })
}

/// Divides a number in proportion to weights, without remainder.
fn shares(total: i64, weights: &[u64]) -> Vec<i64> {
    let mut weight_left: i128 = weights.iter().copied().map(i128::from).sum();
    let mut left = i128::from(total);
    let share = |weight: &u64| {
        let weight = i128::from(*weight);
        let part = if weight_left == 0 { 0 } else { left * weight / weight_left };
        (left, weight_left) = (left - part, weight_left - weight);
        i64::try_from(part).unwrap_or(0)
    };
    weights.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(weights: &[u64]) -> Part {
        let mut samples = Samples::default();
        weights.iter().for_each(|weight| samples.add(&Samples::one(1000, *weight)));
        let launches: u64 = weights.iter().sum();
        let seen = weights.len() as u64;
        Part { launches, seen, chosen: seen, bytes: launches * 10, samples }
    }

    fn launches(launches: u64, timed: u64, bytes: u64) -> Launches {
        Launches { launches, timed, bytes, ..Launches::default() }
    }

    #[test]
    fn shares_are_the_whole() {
        assert_eq!(shares(10, &[1, 1, 1]), [3, 3, 4]);
        assert_eq!(shares(-7, &[0, 2, 5]), [0, -2, -5]);
        assert_eq!(shares(5, &[0, 0]), [0, 0]);
        assert_eq!(shares(i64::MAX, &[u64::MAX, u64::MAX]).iter().sum::<i64>(), i64::MAX);
    }

    #[test]
    fn what_is_off_goes_where_launches_were_only_counted() {
        let parts = [part(&[1, 1, 1]), part(&[1, 64, 64])];
        let off = corrections(&launches(150, 6, 2000), &parts);
        assert_eq!(off[0], Correction::default());
        assert_eq!(off[1], Correction { launches: 18, unseen: 0, bytes: 680 });
        // Fewer than were seen there are not.
        let off = corrections(&launches(5, 6, 0), &parts);
        assert_eq!((off[0].launches, off[1].launches), (0, -126));
    }

    #[test]
    fn what_is_chosen_together_is_off_together() {
        // Ten launches of a graph of 100 nodes, each for 64; there were 20 launches more.
        let nodes = part(&[64; 1000]);
        let all = launches(64 * 1000 + 20 * 100, 1000, 0);
        let unseen = |chosen| corrections(&all, &[Part { chosen, ..nodes }])[0].unseen;
        assert_eq!((unseen(1000), unseen(10)), (0, 0));
        let all = launches(64 * 1000 + 200 * 100, 1000, 0);
        assert_eq!(corrections(&all, &[Part { chosen: 1000, ..nodes }])[0].unseen, 20_000);
        assert_eq!(
            corrections(&all, &[Part { chosen: 10, ..nodes }])[0].unseen,
            0,
            "3 of 10 more are chance"
        );
    }

    #[test]
    fn what_no_sample_stands_for_is_unseen() {
        let off = corrections(&launches(5000, 1, 0), &[part(&[1])]);
        assert_eq!(off, [Correction { launches: 4999, unseen: 4999, bytes: 0 }]);
        let off = corrections(&launches(100_000, 3, 0), &[part(&[1, 64, 64])]);
        assert_eq!((off[0].launches, off[0].unseen), (99_871, 99_871));
    }
}
