//! Graphs of random kernels.

use hetrace_gpu_kernel::Graph;
use hetrace_gpu_kernel::graph::EXIT;
use proptest::prelude::*;

/// A kernel of fewer than `most` blocks: by block, where it leads. The last block ends, and each block has a way to it.
pub fn graphs(most: usize) -> impl Strategy<Value = Graph> {
    (2usize..most).prop_flat_map(|blocks| {
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
