//! Which command a launch was.
//!
//! `%gridid` counts launches in the order in which they were launched; nodes of a graph have theirs from when that was made
//! executable, in each of its runs. If a process has one context and as many launches of each kernel as there are commands, they
//! are paired in that order, unless their times say that it was another one. Else some launches recorded nothing (a full pool, a sample),
//! or it is not known whose they are, and they are found by their times: the device's timer and the host's clock differ by a
//! number that changes slowly. Each of the first commands is tried as that of the first launch; the number by which most
//! launches lie inside of a command of their kernel is taken, the earliest of equal ones.

use std::collections::BTreeMap;

use super::{Launch, Ran};

/// Commands that are tried as that of the first launch.
const TRIED: usize = 64;
/// Launches that are looked at for each of these.
const SCORED: usize = 256;
/// How far a launch may seem to reach out of its command, ns: what both clocks are wrong by.
const NEAR_NS: i64 = 20_000;

/// Returns by launch the place of its command.
pub(super) fn commands(launches: &[Launch<'_>], ran: &[Ran], alone: bool) -> Vec<Option<usize>> {
    let mut by_kernel: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, one) in ran.iter().enumerate() {
        by_kernel.entry(&one.symbol).or_default().push(place);
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for launch in launches {
        *counts.entry(&launch.kernel.name).or_default() += 1;
    }
    if alone && counts.iter().all(|(name, count)| by_kernel.get(name).is_some_and(|ran| ran.len() == *count))
    {
        let places = in_order(launches, ran, &by_kernel);
        if follow_each_other(launches, ran, &places) {
            return places;
        }
    }
    by_kernel.values_mut().for_each(|places| places.sort_by_key(|place| ran[*place].start));
    // Without times nothing is found by them.
    let mut order: Vec<usize> = (0..launches.len()).filter(|place| launches[*place].kernel.timed).collect();
    order.sort_by_key(|place| launches[*place].extent);
    let search = Search { launches, ran, by_kernel, order };
    let Some(first) = search.order.first().map(|place| &launches[*place]) else {
        return vec![None; launches.len()];
    };
    let tried = search.by_kernel.get(first.kernel.name.as_str()).map_or(&[][..], Vec::as_slice);
    let mut best: Option<(usize, i64)> = None;
    for place in tried.iter().take(TRIED) {
        let ahead = ahead(first, &ran[*place]);
        let found = search.follow(ahead, SCORED).iter().flatten().count();
        if found > best.map_or(0, |(most, _)| most) {
            best = Some((found, ahead));
        }
    }
    best.map_or_else(|| vec![None; launches.len()], |(_, ahead)| search.follow(ahead, usize::MAX))
}

fn in_order(
    launches: &[Launch<'_>],
    ran: &[Ran],
    by_kernel: &BTreeMap<&str, Vec<usize>>,
) -> Vec<Option<usize>> {
    let mut places = vec![None; launches.len()];
    for (name, of_kernel) in by_kernel {
        let mut of_kernel = of_kernel.clone();
        of_kernel.sort_by_key(|place| (ran[*place].cause, ran[*place].start));
        let mut order: Vec<usize> =
            (0..launches.len()).filter(|at| launches[*at].kernel.name == *name).collect();
        order.sort_by_key(|at| (launches[*at].records.grid, launches[*at].extent));
        order.into_iter().zip(of_kernel).for_each(|(launch, command)| places[launch] = Some(command));
    }
    places
}

/// Returns whether of commands that began after another one had ended the launches did so, too.
fn follow_each_other(launches: &[Launch<'_>], ran: &[Ran], places: &[Option<usize>]) -> bool {
    let timed = launches.iter().zip(places).filter(|(launch, _)| launch.kernel.timed);
    let mut pairs: Vec<(&Ran, (u64, u64))> =
        timed.filter_map(|(launch, place)| Some((ran.get((*place)?)?, launch.extent))).collect();
    pairs.sort_by_key(|(ran, _)| ran.start);
    let near = NEAR_NS.unsigned_abs();
    pairs.windows(2).all(|pair| match pair {
        [(one, first), (next, second)] => one.end > next.start || first.0 <= second.0.saturating_add(near),
        _ => true,
    })
}

/// Returns what is to be added to the device's timer, if this command was that launch.
fn ahead(launch: &Launch<'_>, ran: &Ran) -> i64 {
    let since = |host: u64, timer: u64| host.wrapping_sub(timer) as i64;
    let (begin, end) = (since(ran.start, launch.extent.0), since(ran.end, launch.extent.1));
    begin.wrapping_add(end.wrapping_sub(begin) / 2)
}

struct Search<'a, 't> {
    launches: &'a [Launch<'t>],
    ran: &'a [Ran],
    by_kernel: BTreeMap<&'a str, Vec<usize>>,
    /// Launches by their first record.
    order: Vec<usize>,
}

impl Search<'_, '_> {
    /// Finds commands if the host's clock is so far ahead at first; not of more launches than so many.
    fn follow(&self, mut ahead_ns: i64, most: usize) -> Vec<Option<usize>> {
        let mut places = vec![None; self.launches.len()];
        let mut taken = vec![false; self.ran.len()];
        for at in self.order.iter().take(most) {
            let launch = &self.launches[*at];
            let Some(of_kernel) = self.by_kernel.get(launch.kernel.name.as_str()) else { continue };
            let from = launch.extent.0.wrapping_add_signed(ahead_ns);
            let near = of_kernel.partition_point(|place| self.ran[*place].start < from);
            let off = |place: &usize| ahead(launch, &self.ran[*place]).wrapping_sub(ahead_ns);
            let fits = |place: &&usize| {
                let ran = &self.ran[**place];
                let room = (ran.end - ran.start).saturating_sub(launch.extent.1 - launch.extent.0) / 2;
                !taken[**place] && off(place).unsigned_abs() <= room.saturating_add(NEAR_NS.unsigned_abs())
            };
            // Those of one kernel that are there at a time are few.
            let near = near.saturating_sub(4)..(near + 4).min(of_kernel.len());
            let found = of_kernel[near].iter().filter(fits).min_by_key(|place| off(place).unsigned_abs());
            if let Some(place) = found {
                // By a part, so that one that is found wrongly does not lead all others astray.
                ahead_ns = ahead_ns.wrapping_add(off(place) / 4);
                taken[*place] = true;
                places[*at] = Some(*place);
            }
        }
        places
    }
}
