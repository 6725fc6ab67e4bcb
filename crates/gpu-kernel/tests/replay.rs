//! Random kernels, run by lanes that are scheduled at random, recorded by each mode, and replayed: what comes out is what
//! happened.

use hetrace_gpu_kernel::graph::EXIT;
use hetrace_gpu_kernel::{Decoder, Edge, Ended, Fault, Graph, Lanes, Mode, Plan, Record, Site};
use proptest::prelude::*;

/// A kernel: by block, where it leads. The last block ends, and each block has a way to it.
fn graphs() -> impl Strategy<Value = Graph> {
    (2usize..14).prop_flat_map(|blocks| {
        let block = move |from: usize| {
            // Forward by one way at least, so that all lanes can end.
            let forward = from + 1..=blocks;
            let other = prop::collection::vec(0..=blocks, 0..3);
            (forward, other, any::<prop::sample::Index>()).prop_map(move |(forward, mut to, place)| {
                to.insert(place.index(to.len() + 1), forward);
                to.into_iter().map(|to| if to == blocks { EXIT } else { to }).collect::<Vec<_>>()
            })
        };
        (0..blocks).map(block).collect::<Vec<_>>().prop_map(|to| Graph::new(to).expect("a graph"))
    })
}

/// What a lane did: its blocks with the times at which it ran them.
type Truth = Vec<(usize, u64)>;

/// Runs a warp. `random` chooses who goes on and which way; after `steps` choices the shortest way forward is taken.
fn run(graph: &Graph, plan: &Plan, lanes: u32, random: &[u32]) -> (Vec<Truth>, Vec<Record>, Vec<u64>) {
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
fn add_up(plan: &Plan, records: &[Record], ended: &[u64]) -> Vec<Record> {
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

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn what_comes_out_is_what_happened(
        graph in graphs(),
        lanes in 1u32..=33,
        random in prop::collection::vec(any::<u32>(), 0..400),
    ) {
        for mode in [Mode::Branches, Mode::Edges, Mode::Blocks] {
            let plan = Plan::new(&graph, mode);
            let (truth, records, ended) = run(&graph, &plan, lanes, &random);
            let decoder = Decoder::new(&graph, &plan);
            for lane in 0..lanes {
                let (path, violations) = decoder.lane(lane, 100, Some(ended[lane as usize]), &records);
                prop_assert_eq!(&violations, &[], "{:?}", mode);
                prop_assert_eq!(path.ended, Ended::Exit);
                let truth = &truth[lane as usize];
                let blocks: Vec<usize> = path.steps.iter().map(|step| step.block).collect();
                let happened: Vec<usize> = truth.iter().map(|(block, _)| *block).collect();
                prop_assert_eq!(blocks, happened, "{:?} {:?} {:?}", mode, &graph, &plan);
                for (step, (_, time)) in path.steps.iter().zip(truth) {
                    // A branch is recorded at the end of its block, an edge where it is left.
                    prop_assert!(step.earliest <= time + 2 && *time <= step.latest, "{:?} {:?} {}", mode, step, time);
                }
            }
        }
    }

    #[test]
    fn passes_that_are_added_up_are_all_there(
        graph in graphs(),
        lanes in 1u32..=33,
        random in prop::collection::vec(any::<u32>(), 0..400),
    ) {
        let plan = Plan::summed(&graph);
        let (truth, records, ended) = run(&graph, &plan, lanes, &random);
        let added = add_up(&plan, &records, &ended);
        let decoder = Decoder::new(&graph, &plan);
        for lane in 0..lanes {
            let (path, violations) = decoder.lane(lane, 100, Some(ended[lane as usize]), &added);
            prop_assert_eq!(&violations, &[]);
            prop_assert_eq!(path.ended, Ended::Exit);
            let truth = &truth[lane as usize];
            let blocks: Vec<usize> = path.steps.iter().map(|step| step.block).collect();
            let happened: Vec<usize> = truth.iter().map(|(block, _)| *block).collect();
            prop_assert_eq!(blocks, happened, "{:?} {:?}", &graph, &added);
            for (step, (_, time)) in path.steps.iter().zip(truth) {
                prop_assert!(step.earliest <= time + 2 && *time <= step.latest, "{:?} {}", step, time);
            }
        }
    }

    #[test]
    fn no_records_lead_astray(
        graph in graphs(),
        records in prop::collection::vec((0u64..50, 0u32..20, any::<u8>(), any::<u8>(), 0u16..4), 0..60),
    ) {
        let records: Vec<Record> = records
            .into_iter()
            .map(|(time, site, active, chosen, case)| {
                Record { time, site, active: active.into(), chosen: chosen.into(), case, repeats: u32::from(case / 3) * 5 }
            })
            .collect();
        let plans = [Mode::Branches, Mode::Edges, Mode::Blocks].map(|mode| Plan::new(&graph, mode));
        for plan in plans.iter().chain([&Plan::summed(&graph)]) {
            let decoder = Decoder::new(&graph, plan);
            for lane in [0, 7, 63, 64] {
                let (path, _) = decoder.lane(lane, 10, None, &records);
                prop_assert!(path.steps.iter().all(|step| step.block < graph.len() && step.earliest <= step.latest));
            }
        }
    }

    #[test]
    fn edges_are_never_more_than_choices(graph in graphs()) {
        // A spanning tree of the blocks that are reached, and the end, has as many edges as there are blocks.
        let reached = graph.reachable().iter().filter(|reached| **reached).count();
        let edges = graph.edges().filter(|edge| graph.reachable()[edge.from]).count();
        prop_assert_eq!(Plan::new(&graph, Mode::Edges).sites.len(), edges - reached);
    }
}

#[test]
fn a_lost_record_is_a_violation_and_the_lane_goes_on() {
    // 0 ► 1 or 2; 1 ► 3; 2 ► 3; 3 ► 0 or exit.
    let graph = Graph::new(vec![vec![1, 2], vec![3], vec![3], vec![0, EXIT]]).expect("a graph");
    let plan = Plan::new(&graph, Mode::Branches);
    let at = |time, site, chosen| Record { time, site, active: 1, chosen, case: 0, repeats: 0 };
    let whole = [at(1, 0, 1), at(2, 1, 1), at(3, 0, 0), at(4, 1, 0)];
    let decoder = Decoder::new(&graph, &plan);
    let blocks = |records: &[Record]| {
        let (path, violations) = decoder.lane(0, 0, Some(9), records);
        (path.steps.iter().map(|s| s.block).collect::<Vec<_>>(), violations)
    };
    assert_eq!(blocks(&whole), (vec![0, 1, 3, 0, 2, 3], vec![]));
    let (path, violations) = blocks(&[whole[0], whole[2], whole[3]]);
    assert_eq!(path, [0, 1, 0, 2, 3]);
    assert_eq!(violations.iter().map(|v| (v.time, v.what)).collect::<Vec<_>>(), [(3, Fault::Unreachable)]);
    // Killed on the way: what was recorded stands, and the rest is open.
    let (path, _) = decoder.lane(0, 0, None, &whole[..2]);
    assert_eq!(
        (path.ended, path.steps.last().map(|s| (s.block, s.latest))),
        (Ended::Unknown, Some((0, u64::MAX)))
    );
}

#[test]
fn a_loop_has_few_records_however_often_it_runs() {
    // 0 ► 1; 1 ► 1 or 2; 2 ends. A third of the lanes each leaves after 10, 100 and 1,000 passes.
    let graph = Graph::new(vec![vec![1], vec![1, 2], vec![EXIT]]).expect("a graph");
    let plan = Plan::summed(&graph);
    assert_eq!(plan.summed, [true]);
    let passes = |lane: usize| [10, 100, 1000][lane % 3];
    let mut records = Vec::new();
    let lanes = |of: &dyn Fn(usize) -> bool| {
        (0..32).filter(|lane| of(*lane)).fold(0, |mask: Lanes, lane| mask | 1 << lane)
    };
    for pass in 1..=1000u64 {
        let active = lanes(&|lane| passes(lane) >= pass);
        let chosen = lanes(&|lane| passes(lane) > pass);
        records.push(Record { time: 100 + pass, site: 0, active, chosen, case: 0, repeats: 0 });
    }
    let ended: Vec<u64> = (0..32).map(|lane| 101 + passes(lane)).collect();
    let added = add_up(&plan, &records, &ended);
    // Each of three groups: its first pass, how often since, and the one in which some leave.
    assert_eq!(added.len(), 3 * 3, "{added:#?}");
    let decoder = Decoder::new(&graph, &plan);
    for lane in 0..32u32 {
        let (path, violations) = decoder.lane(lane, 100, Some(ended[lane as usize]), &added);
        assert_eq!(violations, []);
        let in_loop = path.steps.iter().filter(|step| step.block == 1).count() as u64;
        assert_eq!((in_loop, path.ended), (passes(lane as usize), Ended::Exit));
    }
    // A record that is lost shows: the lane does not come to its end.
    let (_, violations) = decoder.lane(0, 100, Some(ended[0]), &added[..1]);
    assert!(!violations.is_empty());
}
