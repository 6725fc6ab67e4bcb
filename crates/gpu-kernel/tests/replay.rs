//! Random kernels, run by lanes that are scheduled at random, recorded by each mode, and replayed: what comes out is what
//! happened.

mod random;

use hetrace_gpu_kernel::graph::EXIT;
use hetrace_gpu_kernel::{Decoder, Ended, Fault, Graph, Lanes, Mode, Plan, Record};
use proptest::prelude::*;
use random::{add_up, graphs, run};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn what_comes_out_is_what_happened(
        graph in graphs(14),
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
        graph in graphs(14),
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
        graph in graphs(14),
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
    fn edges_are_never_more_than_choices(graph in graphs(14)) {
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
