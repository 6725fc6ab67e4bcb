//! Each cause is found where it is, and not where it is not.

use std::collections::BTreeMap;

use hetrace_trace::inside::{BlockCounts, Counts, LoopCounts};
use hetrace_vendor::occupancy::{Needs, Occupancy};

use super::*;

/// 0 ► 1; 1 ► 1 or 2: so often, by so many lanes, for so long. A round loads and computes.
fn kernel(blocks: [(u64, u64, u64); 3]) -> Kernel {
    let description = serde_json::from_value(serde_json::json!({
        "number": 1, "name": "k", "mode": "branches", "successors": [[1], [1, 2], [-1]],
        "sites": [["branch", 1]], "summed": [false],
        "blocks": (0..3).map(|block| serde_json::json!({
            "file": "k.cu", "line": 10 * block, "instructions": 10, "flops32": block, "flops64": 0, "flops16": 0,
            "integer": 0, "loaded": 4, "stored": 0, "barriers": 0
        })).collect::<Vec<_>>(),
    }));
    let count = |(visits, lanes, time)| BlockCounts { lanes, visits, exact: true, time };
    let back = blocks[1].1 - blocks[0].1;
    Kernel {
        pid: 1,
        description: description.expect("a kernel"),
        launches: 1,
        thread_blocks: 8,
        warps: blocks[0].0,
        lanes_per_warp: 32,
        multiprocessors: BTreeMap::new(),
        counts: Counts {
            blocks: blocks.map(count).into(),
            loops: vec![LoopCounts { header: 1, entered: blocks[0].1, back, trips: vec![] }],
            begun: blocks[0].1,
            ended: blocks[0].1,
            ..Counts::default()
        },
        shapes: vec![shape()],
    }
}

/// Two waves on four multiprocessors, even.
fn shape() -> Shape {
    Shape {
        grid: 5,
        blocks: (8, 8),
        threads: 128,
        ns: 1_000,
        peak_warps: 16,
        mean_warps: 15.0,
        peak_blocks: 4,
        tail_ns: 20,
        tail_warps: 4.0,
        longest: BlockSpan { at: [3, 0, 0], multiprocessor: 2, ns: 520 },
        mean_block_ns: 500.0,
        last: BlockSpan { at: [7, 0, 0], multiprocessor: 1, ns: 510 },
        busy: (0..4).map(|number| (number, 990)).collect(),
    }
}

const EVEN: [(u64, u64, u64); 3] = [(4, 128, 100), (40, 1280, 800), (4, 128, 100)];

fn kinds(kernel: &Kernel, around: &Around) -> Vec<String> {
    causes(kernel, around).into_iter().map(|cause| cause.kind).collect()
}

fn of_four() -> Around {
    Around { ns: 1_000, multiprocessors: 4, fits: None }
}

#[test]
fn an_even_kernel_has_no_cause() {
    assert_eq!(causes(&kernel(EVEN), &of_four()), []);
    assert_eq!(causes(&kernel([(0, 0, 0); 3]), &Around::default()), []);
}

#[test]
fn divergence_names_the_block_that_loses_most() {
    let diverged = kernel([(4, 128, 100), (40, 320, 800), (8, 128, 100)]);
    let [cause] = &causes(&diverged, &of_four())[..] else { panic!("{:?}", causes(&diverged, &of_four())) };
    // 10 instructions of 4, 40 and 8 visits by 32 lanes; of these 128, 320 and 128.
    let idle = 1.0 - 576.0 / 1664.0;
    assert_eq!(
        (cause.kind.as_str(), cause.block, cause.source.as_deref()),
        ("divergence", Some(1), Some("k.cu:10"))
    );
    assert!(cause.share.is_some_and(|share| (share - idle).abs() < 1e-9), "{:?}", cause.share);
    assert_eq!(cause.cause, "divergence: 65 % of the lanes are idle while others of their warp run");
    assert_eq!(
        cause.evidence,
        "block 1 at k.cu:10: 8.0 of 32 lanes in 40 visits, 88 % of the lanes' time that is lost, 80 % of the cycles"
    );
    // Warps of eight lanes that stay together do not diverge.
    let small = kernel([(4, 32, 100), (40, 320, 800), (4, 32, 100)]);
    assert_eq!(kinds(&small, &of_four()), Vec::<String>::new());
}

#[test]
fn a_thread_block_that_takes_longest_is_imbalance_of_one_wave() {
    let mut one = kernel(EVEN);
    one.shapes =
        vec![Shape { peak_blocks: 8, longest: BlockSpan { ns: 1_000, ..shape().longest }, ..shape() }];
    let [cause] = &causes(&one, &of_four())[..] else { panic!() };
    assert_eq!((cause.kind.as_str(), cause.share, cause.grid), ("imbalance", Some(0.5), Some(5)));
    assert_eq!((cause.thread_block, cause.multiprocessor), (Some([3, 0, 0]), Some(2)));
    assert_eq!(
        cause.evidence,
        "launch 5: thread block (3,0,0) on multiprocessor 2 took 1.00 µs, a thread block in the mean 500 ns"
    );
}

#[test]
fn multiprocessors_may_be_uneven_or_idle() {
    let mut uneven = kernel(EVEN);
    uneven.shapes[0].busy = [(0, 1_000), (1, 400), (2, 400), (3, 400)].into();
    let [cause] = &causes(&uneven, &of_four())[..] else { panic!() };
    assert_eq!((cause.kind.as_str(), cause.share, cause.multiprocessor), ("imbalance", Some(0.45), Some(0)));
    let idle = causes(&kernel(EVEN), &Around { multiprocessors: 132, ..of_four() });
    assert_eq!(idle[0].kind, "idle-multiprocessors");
    assert_eq!(idle[0].evidence, "launch 5: 8 thread blocks of 128 threads on 4 of 132 multiprocessors");
    // Of a sample of thread blocks it is not known.
    let mut sampled = kernel(EVEN);
    sampled.shapes[0].blocks = (80, 8);
    assert_eq!(kinds(&sampled, &Around { multiprocessors: 132, ..of_four() }), Vec::<String>::new());
}

#[test]
fn a_long_tail_is_named_with_who_was_last() {
    let mut long = kernel(EVEN);
    long.shapes[0].tail_ns = 400;
    let [cause] = &causes(&long, &of_four())[..] else { panic!() };
    assert_eq!((cause.kind.as_str(), cause.share, cause.thread_block), ("tail", Some(0.3), Some([7, 0, 0])));
    assert!(
        cause.evidence.starts_with("launch 5: for the last 400 ns of 1.00 µs there were 4.0 warps"),
        "{}",
        cause.evidence
    );
    assert!(cause.evidence.contains("2.0 waves of 4 thread blocks"), "{}", cause.evidence);
}

#[test]
fn loops_that_only_look_wait() {
    // One lane of each warp goes round a hundred times.
    let around = |flops: u32, lanes: u64| {
        let mut kernel = kernel([(4, 4 * lanes, 100), (400, 400 * lanes, 800), (4, 4 * lanes, 100)]);
        kernel.description.blocks[1].flops32 = flops;
        kernel
    };
    let found = causes(&around(0, 1), &of_four());
    assert_eq!((found[0].kind.as_str(), found[0].block, found[0].share), ("waiting", Some(1), Some(0.8)));
    assert!(found[0].evidence.contains("99 trips each, 1.0 lanes together"), "{}", found[0].evidence);
    // All lanes: as it is short, and loads.
    assert_eq!(kinds(&around(0, 32), &of_four()), ["waiting"]);
    let mut long = around(0, 32);
    long.description.blocks[1].instructions = 100;
    assert_eq!(kinds(&long, &of_four()), Vec::<String>::new());
    // One that computes does not wait.
    assert_eq!(kinds(&around(2, 1), &of_four()), Vec::<String>::new());
}

#[test]
fn occupancy_says_what_limits_it() {
    let fits = |limiter, warps, of_twin| {
        let needs = Needs { threads: 128, registers: 168, shared: 4096 };
        let occupancy = Occupancy { blocks: 3, warps, of: 64, limiter };
        Around { fits: Some((occupancy, needs, of_twin)), ..of_four() }
    };
    let found = causes(&kernel(EVEN), &fits(Limiter::Registers, 12, false));
    assert_eq!(
        found[0].cause,
        "low occupancy: 19 % (12 of 64 warps), limited by registers: 168 of each thread"
    );
    assert_eq!(
        found[0].evidence,
        "launch 5: 15.0 warps in the mean on 4 multiprocessors (6 %), with recording"
    );
    assert_eq!(found[0].share, None);
    let shared = causes(&kernel(EVEN), &fits(Limiter::Shared, 12, true));
    assert!(shared[0].cause.ends_with(
        "shared memory: 4096 bytes of each thread block, with recording, as no launch ran as it was"
    ));
    assert_eq!(kinds(&kernel(EVEN), &fits(Limiter::Threads, 48, false)), Vec::<String>::new());
}
