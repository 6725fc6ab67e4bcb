//! Any bytes as the pool of a kernel's records, and the paths of its lanes; any text as a module that is to be rewritten.
#![no_main]

use std::sync::LazyLock;

use hetrace_gpu_kernel::graph::EXIT;
use hetrace_gpu_kernel::ptx::{Base, Request, rewrite};
use hetrace_gpu_kernel::{Decoder, Graph, Mode, Plan, Strategy, pool};
use libfuzzer_sys::fuzz_target;

static GRAPH: LazyLock<Graph> = LazyLock::new(|| {
    Graph::new(vec![vec![1], vec![2, 3], vec![1, EXIT], vec![2, 3, EXIT]]).expect("a graph")
});

fuzz_target!(|data: &[u8]| {
    let pool = pool::read(data);
    let [paths, edges, blocks] = [Mode::Paths, Mode::Edges, Mode::Blocks].map(|mode| Plan::new(&GRAPH, mode));
    let plans = [Plan::summed(&GRAPH), paths, edges, blocks];
    for warp in pool.launches.iter().flat_map(|launch| &launch.blocks).flat_map(|block| &block.warps) {
        // Counts of passes make paths as long as they say.
        let passes: u64 = warp.records.iter().map(|record| u64::from(record.repeats)).sum();
        for plan in plans.iter().filter(|_| passes < 10_000) {
            let decoder = Decoder::new(&GRAPH, plan);
            for lane in [0, 31] {
                let begin = warp.begin(lane).unwrap_or(0);
                let (path, _) = decoder.lane(lane, begin, warp.end(lane), &warp.records);
                assert!(
                    path.steps.iter().all(|step| step.block < GRAPH.len() && step.earliest <= step.latest)
                );
            }
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (own, apart) = (Base::Module, Base::Parameter);
    let ways =
        [(Mode::Paths, 2, apart), (Mode::Branches, 1, own), (Mode::Edges, 3, own), (Mode::Blocks, 1, apart)];
    for ((mode, sample, base), strategy) in ways.into_iter().zip(Strategy::ALL) {
        let request =
            Request { wanted: &|_| true, mode, sums: true, sample, base, strategy, first: 0, image: "", weights: None };
        if let Ok(rewritten) = rewrite(text, &request) {
            for kernel in &rewritten.description.kernels {
                let graph = kernel.graph().expect("a graph");
                kernel.plan(&graph).expect("a plan");
            }
        }
    }
});
