//! Records of a kernel in two launches, and the host's side of them.

use hetrace_trace::inside::{
    BlockText, Described, Launch, Loss, OfProcess, Pool, Record, Recording, ThreadBlock, Warp,
};
use hetrace_trace::trace::Trace;

const ALL: u64 = 0xffff_ffff;
/// The device's timer when the first launch begins, and how far its multiprocessors' clocks are.
const TIMER: u64 = 1_700_000_000_000_000_000;
const CLOCKS: [u64; 2] = [5_000_000, 900_000_000];

/// 0 ► 1; 1 ► 1 or 2.
fn spin() -> Described {
    let text = |line, instructions, flops32, stored| BlockText {
        file: Some("spin.cu".to_owned()),
        line: Some(line),
        instructions,
        flops32,
        integer: 1,
        loaded: 4,
        stored,
        ..BlockText::default()
    };
    serde_json::from_value(serde_json::json!({
        "number": 4096, "name": "_Z4spinPfi", "mode": "branches",
        "successors": [[1], [1, 2], [-1]], "sites": [["branch", 1]], "summed": [true],
        "blocks": [text(3, 8, 0, 0), text(5, 4, 2, 0), text(8, 2, 0, 4)],
    }))
    .expect("a kernel")
}

/// A warp that begins and ends so many nanoseconds after its launch, on a clock of 2 GHz: in its loop some lanes stay while
/// others have left, and the last of its rounds were added up.
fn warp(multiprocessor: usize, launch: u64, number: u32, from: u64, to: u64) -> Warp {
    let clock = |ns: u64| CLOCKS[multiprocessor] + 2 * (launch + ns);
    let at =
        |ns, active, chosen, repeats| Record { time: clock(ns), site: 0, active, chosen, case: 0, repeats };
    let third = (to - from) / 3;
    let few = 0xff;
    Warp {
        number,
        began: vec![(clock(from), ALL)],
        records: vec![at(from + third, ALL, few, 0), at(to - 10, few, few, 40), at(to - 10, few, 0, 0)],
        ended: vec![(clock(from + third + 20), ALL & !few), (clock(to), few)],
        clocks: vec![(clock(from), TIMER + launch + from), (clock(to), TIMER + launch + to)],
    }
}

/// A launch of four thread blocks of two warps on two multiprocessors, three at a time; the last one takes long.
fn launch(grid: u64, since: u64) -> Launch {
    let block = |x: u32, multiprocessor: usize, from, to| ThreadBlock {
        at: [x, 0, 0],
        multiprocessor: u32::try_from(multiprocessor).expect("a small number"),
        warps: (0..2).map(|number| warp(multiprocessor, since, number, from, to)).collect(),
    };
    Launch {
        grid,
        kernel: 4096,
        blocks_in_grid: [4, 1, 1],
        threads_in_block: [64, 1, 1],
        blocks: vec![
            block(0, 0, 0, 30_000),
            block(1, 1, 500, 32_000),
            block(2, 0, 600, 28_000),
            block(3, 0, 30_500, 90_000),
        ],
    }
}

pub fn recording() -> Recording {
    // Of the second launch the records of a warp end early, and those of another are lost but for its begin.
    let mut cut = launch(3, 2_000_000);
    cut.blocks[1].warps[1].ended.clear();
    cut.blocks[2].warps[0].ended.clear();
    cut.blocks[2].warps[0].records.clear();
    let pool = Pool { launches: vec![launch(1, 0), cut], lost: 12, ..Pool::default() };
    Recording {
        kernels: [(4096, spin())].into(),
        pools: vec![OfProcess { pid: 9, pool }],
        lost: 12,
        losses: [("_Z4spinPfi".to_owned(), Loss { records: 9, launches: 3, ..Loss::default() })].into(),
        ..Recording::default()
    }
}

/// The whole trace.
pub fn trace() -> Trace {
    let text = include_str!("../golden_inside/kernel.txt");
    let mut trace = super::build(text.split("\n== ").next().unwrap_or(""));
    trace.join_inside(recording());
    trace
}
