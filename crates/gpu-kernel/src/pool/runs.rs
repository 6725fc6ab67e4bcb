//! Runs of a node of an executable graph, which all have one `%gridid`.
//!
//! Runs of such a node follow each other: an executable graph does not run beside itself. A leader's first chunk says that there
//! is none before it, so a leader with several of these was there in several runs. Between the last chunk of one and the first
//! one of the next a run ended and another one began, which holds for all leaders of the launch; where it cannot be known more
//! exactly, the border is where nothing was begun for longest.

use std::collections::BTreeMap;

use super::Head;

/// Numbers the runs of heads that are in their order. Returns whether there is a launch with more than one.
pub(super) fn separate(heads: &mut [Head], header: usize) -> bool {
    let mut any = false;
    for launch in heads.chunk_by_mut(|a, b| (a.grid, a.kernel) == (b.grid, b.kernel)) {
        let again = |leader: &[Head]| leader.iter().filter(|head| head.before == 0).nth(1).is_some();
        if launch.chunk_by(same_leader).any(again) {
            of_launch(launch, header);
            any = true;
        }
    }
    any
}

fn same_leader(a: &Head, b: &Head) -> bool {
    (a.block, a.leader) == (b.block, b.leader)
}

fn of_launch(launch: &mut [Head], header: usize) {
    // Where a run began whose leader was there before, and the last chunk that this leader had begun until then.
    let mut borders: Vec<(u64, u64)> = Vec::new();
    // For each chunk, when its leader began in this run.
    let mut since: Vec<u64> = Vec::with_capacity(launch.len());
    for leader in launch.chunk_by(same_leader) {
        let behind: BTreeMap<u32, &Head> =
            leader.iter().filter(|head| head.before != 0).map(|head| (head.before, head)).collect();
        let mut began: BTreeMap<usize, u64> = BTreeMap::new();
        let mut lives: Vec<(u64, u64)> = Vec::new();
        for first in leader.iter().filter(|head| head.before == 0) {
            let (mut last, mut to) = (first, first.global);
            began.insert(first.at, first.global);
            while let Some(next) = behind.get(&last.end(header)) {
                // No chunk twice, whatever the bytes are.
                if began.insert(next.at, first.global).is_some() {
                    break;
                }
                (last, to) = (next, to.max(next.global));
            }
            lives.push((first.global, to));
        }
        lives.sort_unstable();
        borders.extend(lives.windows(2).map(|pair| (pair[1].0, pair[0].1.min(pair[1].0.saturating_sub(1)))));
        since.extend(leader.iter().map(|head| began.get(&head.at).copied().unwrap_or(head.global)));
    }
    let begins = begins(borders, &since);
    for (head, since) in launch.iter_mut().zip(since) {
        head.run = u32::try_from(begins.partition_point(|begin| *begin <= since)).unwrap_or(u32::MAX);
    }
}

/// Returns when runs began, but for the first: as few as there may be. `borders` are times up to which one must have begun, each
/// with one after which it did; `since` when leaders began.
fn begins(mut borders: Vec<(u64, u64)>, since: &[u64]) -> Vec<u64> {
    borders.sort_unstable();
    let mut since = since.to_vec();
    since.sort_unstable();
    since.dedup();
    let mut found: Vec<(u64, u64)> = Vec::new();
    for (until, after) in borders {
        match found.last_mut() {
            Some((begin, latest)) if after < *begin => *latest = after.max(*latest),
            _ => found.push((until, after)),
        }
    }
    let widest = |(until, after): (u64, u64)| {
        let from = since.partition_point(|time| *time <= after);
        let to = since.partition_point(|time| *time <= until);
        let gap = |at: &usize| since[*at] - at.checked_sub(1).map_or(0, |before| since[before]);
        // The latest of equal ones.
        (from..to).max_by_key(gap).map_or(until, |at| since[at])
    };
    found.into_iter().map(widest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(leader: u32, at: usize, before: usize, global: u64) -> Head {
        Head {
            grid: 4,
            kernel: 0,
            run: 0,
            block: [0; 3],
            leader,
            clock: global,
            at: at * 4096,
            bytes: 4096,
            since: 0,
            global,
            multiprocessor: 0,
            before: u32::try_from(before * 256).unwrap(),
            threads: [32, 1, 1],
            blocks: [1; 3],
        }
    }

    fn runs(mut heads: Vec<Head>) -> (bool, Vec<(u32, u64, u32)>) {
        heads.sort_unstable();
        let any = separate(&mut heads, 4096);
        (any, heads.iter().map(|head| (head.leader, head.global, head.run)).collect())
    }

    #[test]
    fn a_leader_that_begins_again_is_in_another_run() {
        // The second chunk of the first run of leader 0 is behind place 0, at 2 with the header.
        let one = vec![head(0, 0, 0, 100), head(0, 1, 2, 150), head(7, 2, 0, 130)];
        assert_eq!(runs(one.clone()), (false, vec![(0, 100, 0), (0, 150, 0), (7, 130, 0)]));
        let mut three = one;
        // Leader 9 is in the second run only, and begins before leader 0 does; leader 7 is in the first and in the third.
        three.extend([head(9, 3, 0, 9_990), head(0, 4, 0, 10_000), head(0, 5, 6, 10_300)]);
        three.extend([head(7, 6, 0, 20_000), head(0, 7, 0, 20_010), head(0, 8, 9, 20_400)]);
        let (any, found) = runs(three);
        assert!(any);
        let expected = [
            (0, 100, 0),
            (0, 150, 0),
            (0, 10_000, 1),
            (0, 10_300, 1),
            (0, 20_010, 2),
            (0, 20_400, 2),
            (7, 130, 0),
            (7, 20_000, 2),
            (9, 9_990, 1),
        ];
        let mut sorted = expected.to_vec();
        let mut found = found;
        sorted.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, sorted);
    }

    #[test]
    fn chunks_that_lead_in_circles_end() {
        // Each behind the other, two with the same place before them, two at one time.
        let heads =
            vec![head(0, 0, 0, 5), head(0, 0, 2, 5), head(0, 1, 2, 5), head(0, 1, 3, 9), head(0, 2, 0, 5)];
        let (any, found) = runs(heads);
        assert!(any && found.len() == 5);
    }
}
