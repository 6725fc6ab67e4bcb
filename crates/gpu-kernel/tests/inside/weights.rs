//! Where records are made by what an earlier run did: fewer of them, and the same paths.

use std::collections::BTreeMap;

use hetrace_gpu_kernel::graph::Edge;
use hetrace_gpu_kernel::{Counter, Counts, Entry, KernelWeights, Weights};

use super::*;

/// A loop of 40 rounds, in which one arm is taken once and has a loop of its own: by the depth of loops that arm is where
/// lanes are most.
const RARE: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry k(
	.param .u64 k_out,
	.param .u64 k_fuel
)
{
	.reg .pred %p<4>;
	.reg .b32 %r<9>, %mark;
	.reg .b64 %rd<4>;
	mov.u32 %mark, 0;
	mov.u32 %r1, 0;
	mov.u32 %r4, 0;
$Again:
	mov.u32 %mark, 1;
	add.u32 %r1, %r1, 1;
	setp.ne.u32 %p1, %r1, 31;
	@%p1 bra $Usual;
	mov.u32 %mark, 2;
	mov.u32 %r3, 0;
$Inner:
	mov.u32 %mark, 3;
	add.u32 %r3, %r3, 1;
	bra $Latch;
$Latch:
	mov.u32 %mark, 4;
	setp.lt.u32 %p2, %r3, 1;
	@%p2 bra $Inner;
	mov.u32 %mark, 5;
	bra $Both;
$Usual:
	mov.u32 %mark, 6;
$Both:
	mov.u32 %mark, 7;
	add.u32 %r4, %r4, %r1;
	setp.lt.u32 %p3, %r1, 40;
	@%p3 bra $Again;
	mov.u32 %mark, 8;
	ret;
}
";

/// What all warps of a pool did.
fn counts(kernel: &Kernel, read: &pool::Pool) -> Counts {
    let graph = kernel.graph().expect("a graph");
    let plan = kernel.plan(&graph).expect("a plan");
    let mut counter = Counter::new(&graph, &plan, &[]);
    for warp in read.launches.iter().flat_map(|launch| &launch.blocks).flat_map(|block| &block.warps) {
        let begins =
            warp.began.iter().map(|(time, lanes)| (*time, Entry::Begin { time: *time, lanes: *lanes }));
        let ends = warp.ended.iter().map(|(time, lanes)| (*time, Entry::End { time: *time, lanes: *lanes }));
        let records = warp.records.iter().map(|record| (record.time, Entry::At(*record)));
        let mut entries: Vec<(u64, Entry)> = begins.chain(records).chain(ends).collect();
        entries.sort_by_key(|(time, _)| *time);
        counter.warp(entries.into_iter().map(|(_, entry)| entry));
    }
    counter.finish()
}

fn weights(kernel: &Kernel, counts: &Counts) -> Weights {
    let mut weights = Weights { trace: "earlier".to_owned(), kernels: vec![] };
    weights.add(kernel, &kernel.graph().expect("a graph"), counts);
    weights
}

/// Runs a kernel, checks what is decoded, and returns how many records there are and what they add up to.
fn recorded(text: &str, way: Way, given: Option<&Weights>) -> (u64, Kernel, Counts) {
    let (twins, kernel) = twin_by(text, way, given);
    let run = run(&Program::new(&twins, "k__hetrace_inside"), 32, 3, 3000);
    check(text, &kernel, way, 32, &run).expect("what lanes did");
    let read = pool::read(&run.memory[POOL..]);
    let counts = counts(&kernel, &read);
    (records(&read), kernel, counts)
}

/// By block and case, how often lanes took each edge, in the order of their marks.
fn taken(kernel: &Kernel, counts: &Counts) -> Vec<Vec<u64>> {
    weights(kernel, counts).kernels.remove(0).edges
}

#[test]
fn an_earlier_run_says_better_than_loops_where_records_are_rare() {
    const EDGES: Way = WAYS[2];
    let (without, kernel, seen) = recorded(RARE, EDGES, None);
    assert!(kernel.weights.is_none() && kernel.text.len() == 16);
    let lanes = 32 * u64::from(BLOCKS) * LAUNCHES;
    assert_eq!((seen.begun, seen.ended, seen.faults), (lanes, lanes, 0));
    // Each mode says the same of how often each edge was taken.
    let truth = taken(&kernel, &seen);
    let sum = |block: usize| truth[block].iter().sum::<u64>();
    assert_eq!((sum(1), truth[1][0], truth[1][1]), (40 * lanes, 39 * lanes, lanes));
    for way in [WAYS[0], WAYS[1], WAYS[3], PATHS] {
        let (_, kernel, seen) = recorded(RARE, way, None);
        assert_eq!(taken(&kernel, &seen), truth, "{way:?}");
        // And any of them serves.
        let (with, chosen, again) = recorded(RARE, EDGES, Some(&weights(&kernel, &seen)));
        let used = chosen.weights.as_ref().expect("weights");
        assert_eq!((used.trace.as_str(), &used.unused), ("earlier", &None));
        assert_eq!(taken(&chosen, &again), truth, "{way:?}");
        // One record in each round, where there were two.
        assert!(10 * with < 6 * without, "{way:?}: {with} of {without}");
        assert_ne!(chosen.sites, kernel.sites);
    }
}

#[test]
fn registers_for_sums_go_to_loops_that_lanes_are_in() {
    // Five loops in one another's place: four of them fit into the registers, and the one that is run is the last.
    let graph = Graph::new(
        (0..5).map(|number| vec![number, number + 1]).chain([vec![EXIT]]).collect::<Vec<Vec<usize>>>(),
    )
    .expect("a graph");
    let text = text(&graph, &mut Random(1));
    let (_, kernel) = twin(&text, WAYS[0]);
    let blocks = kernel.graph().expect("a graph").len();
    let summed = |kernel: &Kernel| -> Vec<bool> { kernel.summed.clone() };
    assert_eq!(summed(&kernel).iter().filter(|summed| !**summed).count(), 1);
    let last = summed(&kernel).iter().rposition(|summed| !summed).expect("one");
    let hot = (0..blocks).filter(|block| kernel.graph().expect("a graph").branches(*block)).nth(last);
    let graph = kernel.graph().expect("a graph");
    let edges = (0..blocks).map(|block| vec![u64::from(Some(block) == hot); graph.successors(block).len()]);
    let known = KernelWeights { name: "k".to_owned(), text: kernel.text.clone(), edges: edges.collect() };
    let given = Weights { trace: String::new(), kernels: vec![known] };
    let (_, chosen) = twin_by(&text, WAYS[0], Some(&given));
    assert!(summed(&chosen)[last], "{:?} {:?}", summed(&kernel), summed(&chosen));
}

#[test]
fn weights_of_another_text_are_not_used_and_that_is_said() {
    let (_, kernel, seen) = recorded(RARE, WAYS[1], None);
    let given = weights(&kernel, &seen);
    let unused = |text: &str, way, given: &Weights| {
        let (twins, kernel) = twin_by(text, way, Some(given));
        let plain = twin(text, way);
        assert!(twins == plain.0 && kernel.sites == plain.1.sites);
        kernel.weights.expect("weights").unused.expect("a reason")
    };
    let other = RARE.replace("40;", "41;");
    assert_eq!(unused(&other, WAYS[2], &given), "its text is another one there");
    assert_eq!(unused(RARE, WAYS[2], &Weights::default()), "it did not record there");
    assert!(unused(RARE, PATHS, &given).contains("in mode paths"));
    assert!(unused(RARE, WAYS[3], &given).contains("in mode blocks"));
    // Of a graph that is not this one's, whatever its text.
    let mut cut = given.clone();
    cut.kernels[0].edges.pop();
    assert_eq!(unused(RARE, WAYS[2], &cut), "its text is another one there");
    // What ran nothing, and what has no digest, says nothing; what ran twice is added up.
    let (graph, mut sum) = (kernel.graph().expect("a graph"), given.clone());
    sum.add(&kernel, &graph, &Counts::default());
    sum.add(&Kernel { text: String::new(), ..kernel.clone() }, &graph, &seen);
    assert_eq!(sum, given);
    sum.add(&kernel, &graph, &seen);
    let edge = Edge { from: 1, case: 1 };
    assert_eq!(sum.kernels[0].edge(edge), 2 * given.kernels[0].edge(edge));
    assert_eq!(sum.kernels.len(), 1);
    let back: Weights = serde_json::from_str(&serde_json::to_string(&sum).expect("JSON")).expect("weights");
    assert_eq!(back, sum);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// Whatever weights say.
    #[test]
    fn what_is_decoded_is_what_lanes_did_whatever_weights_say(
        graph in graphs(12), threads in 1u32..=40, seed: u64, numbers in prop::collection::vec(any::<u64>(), 1..9),
    ) {
        let text = text(&graph, &mut Random(seed));
        let plain = run(&Program::new(&text, "k"), threads, seed, 1);
        for way in WAYS.into_iter().filter(|way| matches!(way.mode, Mode::Edges | Mode::Branches)) {
            let (_, kernel) = twin(&text, way);
            let (graph, mut numbers) = (kernel.graph().expect("a graph"), numbers.iter().copied().cycle());
            let of = |block| numbers.by_ref().take(graph.successors(block).len()).collect();
            let edges: Vec<Vec<u64>> = (0..graph.len()).map(of).collect();
            let known = KernelWeights { name: "k".to_owned(), text: kernel.text.clone(), edges };
            let given = Weights { trace: String::new(), kernels: vec![known] };
            let (twins, kernel) = twin_by(&text, way, Some(&given));
            prop_assert!(kernel.weights.as_ref().is_some_and(|weights| weights.unused.is_none()));
            let run = run(&Program::new(&twins, "k__hetrace_inside"), threads, seed ^ 1, 3000);
            prop_assert!(run.memory[..RESULTS] == plain.memory[..RESULTS], "results differ: {:?}", way);
            check(&text, &kernel, way, threads, &run)?;
        }
    }

    /// All modes say the same of how often lanes took each edge, and a plan by that has no more records than one by loops.
    #[test]
    fn weights_of_a_run_are_those_of_its_lanes(graph in graphs(10), threads in 1u32..=32, seed: u64) {
        let text = text(&graph, &mut Random(seed));
        let mut all: BTreeMap<bool, Vec<Vec<Vec<u64>>>> = BTreeMap::new();
        for way in WAYS.into_iter().filter(|way| way.base == Base::Module) {
            let (twins, kernel) = twin(&text, way);
            let run = run(&Program::new(&twins, "k__hetrace_inside"), threads, seed, 3000);
            let read = pool::read(&run.memory[POOL..]);
            let seen = counts(&kernel, &read);
            prop_assert_eq!(seen.faults, 0);
            // In a block of which two ways lead to one other it is not known which was taken, where blocks are recorded.
            let graph = kernel.graph().expect("a graph");
            let twice = |block: usize| {
                let to = graph.successors(block);
                (1..to.len()).any(|case| to[..case].contains(&to[case]))
            };
            let mut found = taken(&kernel, &seen);
            for (block, edges) in found.iter_mut().enumerate().filter(|(block, _)| twice(*block)) {
                let _ = block;
                *edges = vec![edges.iter().sum()];
            }
            all.entry(way.sample > 1).or_default().push(found);
        }
        for found in all.values() {
            prop_assert!(found.iter().all(|one| *one == found[0]), "{:?}", found);
        }
    }
}
