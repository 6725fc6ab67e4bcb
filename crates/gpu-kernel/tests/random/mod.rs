//! Random kernels and how lanes run them, for tests.

use hetrace_gpu_kernel::graph::EXIT;
use hetrace_gpu_kernel::{Edge, Graph, Lanes, Plan, Record, Site};

mod graphs;

pub use graphs::graphs;

/// What a lane did: its blocks with the times at which it ran them.
pub type Truth = Vec<(usize, u64)>;

/// Runs a warp. `random` chooses who goes on and which way; after `steps` choices the shortest way forward is taken.
pub fn run(graph: &Graph, plan: &Plan, lanes: u32, random: &[u32]) -> (Vec<Truth>, Vec<Record>, Vec<u64>) {
    let mut at: Vec<Option<usize>> = vec![Some(0); lanes as usize];
    let (mut truth, mut ended) = (vec![Truth::new(); lanes as usize], vec![0; lanes as usize]);
    let (mut records, mut time, mut used) = (Vec::new(), 100, 0);
    let mut next = |below: usize| {
        let number = random.get(used).copied().unwrap_or(0) as usize;
        used += 1;
        (number % below.max(1), used > random.len())
    };
    let record = |records: &mut Vec<Record>, time, site, active, chosen, case| {
        if let Some(site) = plan.number(site) {
            records.push(Record { time, site, active, chosen, case, repeats: 0 });
        }
    };
    while let Some(first) = {
        let there: Vec<usize> = at.iter().flatten().copied().collect();
        (!there.is_empty()).then(|| there[next(there.len()).0])
    } {
        // Some of the lanes that are in this block go on together, in any number of groups.
        let together: Vec<usize> = (0..at.len()).filter(|lane| at[*lane] == Some(first)).collect();
        let some: Vec<usize> = together.iter().copied().filter(|_| next(3).0 > 0).collect();
        let group = if some.is_empty() { together } else { some };
        let mask = |lanes: &[usize]| lanes.iter().fold(0, |mask: Lanes, lane| mask | 1 << lane);
        time += 1 + next(5).0 as u64;
        record(&mut records, time, Site::Block(first), mask(&group), mask(&group), 0);
        group.iter().for_each(|lane| truth[*lane].push((first, time)));
        time += next(3).0 as u64;
        let successors = graph.successors(first);
        let mut ways = vec![Vec::new(); successors.len()];
        for lane in &group {
            let (mut case, over) = next(successors.len());
            if over {
                // Each block has a way forward.
                case = (0..successors.len()).max_by_key(|case| successors[*case]).expect("a way");
            }
            ways[case].push(*lane);
        }
        if successors.len() == 2 {
            record(&mut records, time, Site::Branch(first), mask(&group), mask(&ways[0]), 0);
        }
        for (case, lanes) in ways.iter().enumerate().filter(|(_, lanes)| !lanes.is_empty()) {
            if successors.len() > 2 {
                record(&mut records, time, Site::Branch(first), mask(&group), mask(lanes), case as u16);
            }
            record(&mut records, time, Site::Edge(Edge { from: first, case }), mask(lanes), mask(lanes), 0);
            for lane in lanes {
                at[*lane] = Some(successors[case]).filter(|to| *to != EXIT);
                if at[*lane].is_none() {
                    ended[*lane] = time;
                }
            }
        }
    }
    (truth, records, ended)
}

/// What the device does with records of branches whose passes are added up: each lane keeps how it went last, and how often
/// since. `ended` are the ends of lanes.
pub fn add_up(plan: &Plan, records: &[Record], ended: &[u64]) -> Vec<Record> {
    let none = (0, 0, 0u32);
    let mut last: Vec<Vec<(Lanes, Lanes, u32)>> = vec![vec![none; ended.len()]; plan.sites.len()];
    let mut out = Vec::new();
    let say = |last: &mut [(Lanes, Lanes, u32)], active: Lanes, time, site, out: &mut Vec<Record>| {
        // Those that were together last, and still are: found by what they keep.
        for lane in 0..last.len() {
            let (group, chosen, repeats) = last[lane];
            if active >> lane & 1 == 0 || repeats == 0 {
                continue;
            }
            let same = |other: &usize| active >> other & 1 != 0 && last[*other] == last[lane];
            let together = (0..last.len()).filter(same).fold(0, |mask: Lanes, other| mask | 1 << other);
            assert_eq!(together & !group, 0);
            out.push(Record { time, site, active: together, chosen: chosen & together, case: 0, repeats });
            (0..last.len()).filter(|other| together >> other & 1 != 0).for_each(|other| last[other].2 = 0);
        }
    };
    let mut ends: Vec<(u64, usize)> = ended.iter().copied().zip(0..).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut end = |until: u64, last: &mut Vec<Vec<(Lanes, Lanes, u32)>>, out: &mut Vec<Record>| {
        while let Some((time, lane)) = ends.next_if(|(time, _)| *time < until) {
            for (site, last) in last.iter_mut().enumerate() {
                say(last, 1 << lane, time, site as u32, out);
            }
        }
    };
    for record in records {
        end(record.time, &mut last, &mut out);
        let site = record.site as usize;
        if !plan.summed[site] {
            out.push(*record);
            continue;
        }
        let lanes: Vec<usize> = (0..ended.len()).filter(|lane| record.active >> lane & 1 != 0).collect();
        let as_before =
            |lane: &usize| (last[site][*lane].0, last[site][*lane].1) == (record.active, record.chosen);
        if lanes.iter().all(as_before) {
            lanes.iter().for_each(|lane| last[site][*lane].2 += 1);
            continue;
        }
        say(&mut last[site], record.active, record.time, record.site, &mut out);
        out.push(*record);
        lanes.iter().for_each(|lane| last[site][*lane] = (record.active, record.chosen, 0));
    }
    end(u64::MAX, &mut last, &mut out);
    out
}
