//! Sums of random kernels are those of what their lanes did.

mod random;

use std::collections::{HashMap, HashSet};

use hetrace_gpu_kernel::graph::EXIT;
use hetrace_gpu_kernel::{Counter, Counts, Entry, Graph, Lanes, Mode, Plan, Record};
use proptest::prelude::*;
use random::{Truth, add_up, graphs, run};

/// All that a warp recorded, in order.
fn entries(lanes: u32, records: &[Record], ended: &[u64]) -> Vec<Entry> {
    let all = (0..lanes).fold(0, |all: Lanes, lane| all | 1 << lane);
    let mut ends: Vec<(u64, Lanes)> = ended.iter().zip(0..).map(|(time, lane)| (*time, 1 << lane)).collect();
    ends.sort_unstable();
    let mut ends = ends.into_iter().peekable();
    let mut entries = vec![Entry::Begin { time: 100, lanes: all }];
    for record in records {
        while let Some((time, lanes)) = ends.next_if(|(time, _)| *time < record.time) {
            entries.push(Entry::End { time, lanes });
        }
        entries.push(Entry::At(*record));
    }
    entries.extend(ends.map(|(time, lanes)| Entry::End { time, lanes }));
    entries
}

fn counts(graph: &Graph, plan: &Plan, entries: &[Entry]) -> Counts {
    let mut counter = Counter::new(graph, plan, &[3, 1, 4, 1, 5]);
    counter.warp(entries.iter().copied());
    counter.finish()
}

/// By header, how often lanes came in, went back, and how often they had gone back when they left.
fn rounds(graph: &Graph, truth: &[Truth]) -> HashMap<usize, (u64, u64, Vec<u64>)> {
    let loops = graph.loops();
    let of = |header: usize, body: &[usize]| {
        let inside = |block: usize| body.binary_search(&block).is_ok();
        let (mut entered, mut back, mut trips) = (0, 0, Vec::new());
        for lane in truth {
            let (mut before, mut round) = (None, 0);
            for block in lane.iter().map(|(block, _)| *block).chain([EXIT]) {
                let was_in = before.is_some_and(inside);
                if block == header && was_in {
                    (back, round) = (back + 1, round + 1);
                } else if block == header {
                    (entered, round) = (entered + 1, 0);
                } else if was_in && !inside(block) {
                    trips.push(round);
                }
                before = Some(block);
            }
        }
        (entered, back, trips)
    };
    loops.loops.iter().map(|one| (one.header, of(one.header, &one.body))).collect()
}

fn compare(graph: &Graph, plan: &Plan, truth: &[Truth], entries: &[Entry], found: &Counts) {
    for (block, count) in found.blocks.iter().enumerate() {
        let ran: Vec<(usize, u64)> = truth.iter().flatten().copied().filter(|(b, _)| *b == block).collect();
        assert_eq!(count.lanes, ran.len() as u64, "block {block} {plan:?} {graph:?} {entries:?}");
        let groups: HashSet<u64> = ran.iter().map(|(_, time)| *time).collect();
        if count.exact {
            assert_eq!(count.visits, groups.len() as u64, "block {block} {plan:?} {graph:?}");
        }
        assert!(count.visits <= count.lanes && (count.visits == 0) == (count.lanes == 0));
    }
    let rounds = rounds(graph, truth);
    for one in &found.loops {
        let (entered, back, trips) = &rounds[&one.header];
        assert_eq!((one.entered, one.back), (*entered, *back), "{plan:?} {graph:?} {truth:?}");
        if !one.trips.is_empty() {
            let mut histogram = vec![0; one.trips.len()];
            trips.iter().for_each(|round| histogram[(u64::BITS - u64::leading_zeros(*round)) as usize] += 1);
            assert_eq!(one.trips, histogram, "{plan:?} {graph:?} {truth:?}");
        }
    }
    let time: u64 = found.blocks.iter().map(|block| block.time).sum();
    let Some(Entry::End { time: last, .. }) = entries.last() else { panic!("no end") };
    if plan.mode == Mode::Blocks {
        // What is before the first block of lanes is nobody's.
        assert!(time <= last - 100, "{plan:?} {graph:?} {entries:?}");
    } else {
        assert_eq!(time, last - 100, "{plan:?} {graph:?} {entries:?}");
    }
    assert_eq!((found.faults, found.begun, found.ended), (0, truth.len() as u64, truth.len() as u64));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn sums_are_those_of_what_happened(
        graph in graphs(14),
        lanes in 1u32..=33,
        random in prop::collection::vec(any::<u32>(), 0..400),
    ) {
        for mode in [Mode::Branches, Mode::Edges, Mode::Blocks] {
            let plan = Plan::new(&graph, mode);
            let (truth, records, ended) = run(&graph, &plan, lanes, &random);
            let entries = entries(lanes, &records, &ended);
            compare(&graph, &plan, &truth, &entries, &counts(&graph, &plan, &entries));
        }
        let plan = Plan::summed(&graph);
        let (truth, records, ended) = run(&graph, &plan, lanes, &random);
        let entries = entries(lanes, &add_up(&plan, &records, &ended), &ended);
        compare(&graph, &plan, &truth, &entries, &counts(&graph, &plan, &entries));
    }

    #[test]
    fn what_is_lost_makes_no_groups_larger_than_a_warp(
        graph in graphs(14),
        lanes in 1u32..=32,
        random in prop::collection::vec(any::<u32>(), 0..400),
        kept in prop::collection::vec(any::<bool>(), 1..50),
    ) {
        for plan in [Mode::Branches, Mode::Edges, Mode::Blocks].map(|mode| Plan::new(&graph, mode)).iter().chain([&Plan::summed(&graph)]) {
            let (_, records, ended) = run(&graph, plan, lanes, &random);
            let records = if plan.adds_up() { add_up(plan, &records, &ended) } else { records };
            let all = entries(lanes, &records, &ended);
            // What began stays: a pool that is full loses what comes later.
            let kept = kept.iter().cycle().zip(&all).filter(|(kept, entry)| **kept || matches!(entry, Entry::Begin { .. }));
            let found = counts(&graph, plan, &kept.map(|(_, entry)| *entry).collect::<Vec<_>>());
            for block in &found.blocks {
                prop_assert!(block.lanes <= 32 * block.visits, "{:?} {:?} {:?}", block, plan, graph);
            }
        }
    }

    #[test]
    fn noise_is_counted_and_harmless(
        graph in graphs(14),
        noise in prop::collection::vec((prop_oneof![0u64..50, any::<u64>()], 0u32..20, any::<u8>(), any::<u8>(), 0u16..5, 0u8..4), 0..60),
    ) {
        let entries: Vec<Entry> = noise.into_iter().map(|(time, site, active, chosen, case, kind)| match kind {
            0 => Entry::Begin { time, lanes: active.into() },
            1 => Entry::End { time, lanes: active.into() },
            _ => {
                let repeats = u32::from(case / 3) * u32::MAX;
                Entry::At(Record { time, site, active: active.into(), chosen: chosen.into(), case, repeats })
            }
        }).collect();
        let plans = [Mode::Branches, Mode::Edges, Mode::Blocks].map(|mode| Plan::new(&graph, mode));
        for plan in plans.iter().chain([&Plan::summed(&graph)]) {
            let found = counts(&graph, plan, &entries);
            prop_assert_eq!(found.blocks.len(), graph.len());
        }
    }
}

#[test]
fn lost_ends_make_no_groups_of_more_lanes_than_a_warp_has() {
    // 0 ► 1; 1 ► 1 or 2. Four warps' begins, and no more records: their ends found no room.
    let graph = Graph::new(vec![vec![1], vec![1, 2], vec![EXIT]]).expect("a graph");
    let plan = Plan::new(&graph, Mode::Branches);
    let mut counter = Counter::new(&graph, &plan, &[1; 3]);
    (0..4).for_each(|_| counter.warp([Entry::Begin { time: 0, lanes: 0xffff_ffff }]));
    let found = counter.finish();
    assert_eq!((found.blocks[0].lanes, found.blocks[0].visits), (128, 4));
    // Nor where there is a record for each visit, of which there is none here.
    let header = found.blocks[1];
    assert_eq!((header.lanes, header.visits, header.exact), (128, 4, false));
}

#[test]
fn a_diamond_in_a_loop() {
    // 0 ► 1; 1 ► 2 or 3 ► 4; 4 ► 1 or 5. Eight lanes together: half of them take 2, three rounds, one lane leaves after two.
    let graph =
        Graph::new(vec![vec![1], vec![2, 3], vec![4], vec![4], vec![1, 5], vec![EXIT]]).expect("a graph");
    let plan = Plan::new(&graph, Mode::Branches);
    let at =
        |time, site, active, chosen| Entry::At(Record { time, site, active, chosen, case: 0, repeats: 0 });
    let entries = [
        Entry::Begin { time: 0, lanes: 0xff },
        at(10, 0, 0xff, 0x0f),
        at(40, 1, 0xff, 0xff),
        at(50, 0, 0xff, 0x0f),
        at(80, 1, 0xff, 0x7f),
        at(90, 0, 0x7f, 0x0f),
        at(120, 1, 0x7f, 0),
        Entry::End { time: 125, lanes: 0xff },
    ];
    let mut counter = Counter::new(&graph, &plan, &[1, 4, 10, 20, 10, 5]);
    counter.warp(entries);
    let found = counter.finish();
    let sums: Vec<(u64, u64, bool)> = found.blocks.iter().map(|b| (b.lanes, b.visits, b.exact)).collect();
    let expected =
        [(8, 1, false), (23, 3, true), (12, 3, false), (11, 3, false), (23, 3, true), (8, 1, false)];
    assert_eq!(sums, expected);
    // The first ten are those of the entry and the first choice, one and four instructions.
    assert_eq!((found.blocks[0].time, found.blocks[5].time), (2, 5));
    assert_eq!(found.blocks.iter().map(|block| block.time).sum::<u64>(), 125);
    let one = &found.loops[0];
    // One lane went back once, seven twice: one and two binary digits.
    assert_eq!((one.header, one.entered, one.back), (1, 8, 15));
    assert_eq!(one.trips, [0, 1, 7]);
}
