//! What went on inside of kernels, from what `run --inside` recorded there ([docs/inside.md](../../../docs/inside.md)).
//!
//! ```text
//!  inside/HASH-FIRST.json   kernels with their graphs ──┐
//!  inside/PID-N.pool        what warps recorded       ──┴──► Recording ──┬──► Inside: sums of blocks and loops by kernel
//!                                                                       ├──► Shape: how a launch filled the device
//!                                                                       └──► Event…: its records in order of time
//! ```
//! A pool is read whole, and takes as much memory again while it is. Times are cycles of a multiprocessor's clock, or
//! nanoseconds of the device's timer ([`Clocks`]); [`crate::placed`] has them on the host's time line.

mod clock;
mod event;
mod loss;
mod recording;
mod shape;

use std::collections::BTreeMap;

use hetrace_ctf::read::Files;
use hetrace_gpu_kernel::Counter;
pub use hetrace_gpu_kernel::description::{BlockText, Kernel as Described, Refused};
pub use hetrace_gpu_kernel::pool::{Launch, Pool, ThreadBlock, Warp};
pub use hetrace_gpu_kernel::ptx::TWIN;
pub use hetrace_gpu_kernel::{BlockCounts, Counts, Entry, Lanes, LoopCounts, Mode, Record, Site};

pub use clock::{Clocks, rate};
pub use event::{Event, What, events};
pub use loss::{Loss, Losses};
pub use recording::{OfProcess, Recording};
pub use shape::{BlockSpan, Shape, WarpSpan, resident, warps};

/// Lanes of a warp.
const LANES: u64 = 32;

/// What was recorded inside of a trace's kernels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Inside {
    /// By process and number.
    pub kernels: Vec<Kernel>,
    /// Kernels that were wanted, and ran as they were.
    pub refused: Vec<Refused>,
    /// Records that found no room.
    pub lost: u64,
    /// What each kernel lost, by name, as far as that is known.
    pub losses: Losses,
    /// What could not be read, or makes no sense, a sentence each.
    pub problems: Vec<String>,
}

/// A kernel of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    /// The process.
    pub pid: i64,
    /// Its graph, and where it is in the source.
    pub description: Described,
    /// Launches that recorded.
    pub launches: u64,
    /// Thread blocks that recorded.
    pub thread_blocks: u64,
    /// Warps that recorded; of a kernel without times the work-items.
    pub warps: u64,
    /// Lanes of a warp.
    pub lanes_per_warp: u64,
    /// By the number of a streaming multiprocessor, the cycles that warps were there.
    pub multiprocessors: BTreeMap<u32, u64>,
    /// Sums by block and loop.
    pub counts: Counts,
    /// How each launch filled the device.
    pub shapes: Vec<Shape>,
}

impl Inside {
    /// Reads a trace's files, and adds up.
    pub fn read(files: &Files) -> Self {
        Self::of(&Recording::read(files))
    }

    /// Adds up what was recorded.
    pub fn of(recording: &Recording) -> Self {
        let mut inside = Inside {
            refused: recording.refused.clone(),
            lost: recording.lost,
            losses: recording.losses.clone(),
            problems: recording.problems.clone(),
            ..Inside::default()
        };
        // What one process wrote for several contexts belongs together.
        for of_process in recording.pools.chunk_by(|a, b| a.pid == b.pid) {
            if let Some(OfProcess { pid, .. }) = of_process.first() {
                inside.process(*pid, of_process, &recording.kernels);
            }
        }
        inside
    }

    fn process(&mut self, pid: i64, pools: &[OfProcess], described: &BTreeMap<u32, Described>) {
        let mut by_kernel: BTreeMap<u32, Vec<(&Launch, Option<f64>)>> = BTreeMap::new();
        for of in pools {
            let rate = rate(&of.pool);
            for launch in &of.pool.launches {
                by_kernel.entry(launch.kernel).or_default().push((launch, rate));
            }
        }
        for (number, launches) in by_kernel {
            let Some(description) = described.get(&number) else {
                let launches = launches.len();
                self.problems.push(format!(
                    "process {pid}: kernel {number} has no description: {launches} of its launches are left out"
                ));
                continue;
            };
            match kernel(pid, description, &launches) {
                Ok(kernel) => self.kernels.push(kernel),
                Err(problem) => self.problems.push(format!("kernel {}: {problem}", description.name)),
            }
        }
    }
}

fn kernel(pid: i64, description: &Described, launches: &[(&Launch, Option<f64>)]) -> Result<Kernel, String> {
    let graph = description.graph().map_err(|error| error.to_string())?;
    let plan = description.plan(&graph).map_err(|error| error.to_string())?;
    let weights: Vec<u32> = description.blocks.iter().map(|block| block.instructions).collect();
    let mut counter = Counter::new(&graph, &plan, &weights);
    let mut kernel = Kernel {
        pid,
        description: description.clone(),
        launches: 0,
        thread_blocks: 0,
        warps: 0,
        lanes_per_warp: LANES,
        multiprocessors: BTreeMap::new(),
        counts: Counts::default(),
        shapes: Vec::new(),
    };
    for (launch, rate) in launches {
        kernel.shapes.push(Shape::of(launch, &Clocks::of(launch, *rate)));
        kernel.launches += 1;
        for block in &launch.blocks {
            kernel.thread_blocks += 1;
            for warp in &block.warps {
                kernel.warps += 1;
                let entries = event::entries(warp);
                if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
                    let cycles = kernel.multiprocessors.entry(block.multiprocessor).or_default();
                    *cycles = cycles.saturating_add(event::time(last).saturating_sub(event::time(first)));
                }
                counter.warp(entries);
            }
        }
    }
    kernel.counts = counter.finish();
    if !description.timed {
        untime(&mut kernel);
    }
    Ok(kernel)
}

/// Takes away what only looks like times: the order of a work-item's own records. Each ran by itself.
fn untime(kernel: &mut Kernel) {
    kernel.warps = kernel.counts.begun;
    kernel.lanes_per_warp = 1;
    kernel.multiprocessors.clear();
    kernel.shapes.clear();
    for block in &mut kernel.counts.blocks {
        (block.visits, block.exact, block.time) = (block.lanes, true, 0);
    }
}

#[cfg(test)]
mod tests {
    use hetrace_format::files::INSIDE;
    use hetrace_gpu_kernel::description::{SiteName, successors};
    use hetrace_gpu_kernel::graph::EXIT;
    use hetrace_gpu_kernel::{Description, Graph, Mode, Plan};

    use super::*;

    /// 0 ► 1 ► 1 or 2: a loop that lanes leave after some rounds.
    fn description() -> Described {
        let graph = Graph::new(vec![vec![1], vec![1, 2], vec![EXIT]]).unwrap();
        let plan = Plan::new(&graph, Mode::Branches);
        Described {
            number: 4096,
            name: "spin".to_owned(),
            mode: Mode::Branches,
            timed: true,
            successors: successors(&graph),
            sites: plan.sites.iter().map(|site| SiteName::from(*site)).collect(),
            summed: plan.summed,
            blocks: vec![BlockText { instructions: 4, ..BlockText::default() }; 3],
            calls: vec![],
            text: String::new(),
            weights: None,
        }
    }

    fn chunk(grid: u64, thread: u32, clock: u64, records: &[[u32; 4]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(grid.to_le_bytes());
        bytes.extend(clock.to_le_bytes());
        bytes.extend((clock * 2).to_le_bytes());
        // The kernel, when it began, the thread block, the leader and its multiprocessor, the chunk before it, sizes.
        for word in [4097, 0, 0, 0, thread | 3 << 16, 0, 64, 1 << 16 | 1, 1, 1 << 16 | 1] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend([0; 8]);
        bytes.truncate(64);
        records.iter().flatten().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.resize(4096, 0);
        bytes
    }

    fn trace(pool: &[u8], json: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(INSIDE)).unwrap();
        std::fs::write(folder.path().join("metadata"), "").unwrap();
        std::fs::write(folder.path().join("inside/7-0.pool"), pool).unwrap();
        std::fs::write(folder.path().join("inside/0-4096.json"), json).unwrap();
        folder
    }

    fn pool() -> Vec<u8> {
        const AT: u32 = 1 << 28 | 1;
        let mut pool = vec![0; 4096];
        // One chunk of each of two counters: 0 and 1.
        (pool[2048], pool[2048 + 64]) = (1, 1);
        pool[8..16].copy_from_slice(&9u64.to_le_bytes());
        pool[16..24].copy_from_slice(&5u64.to_le_bytes());
        // Of the kernel with number 4096, and of one that nobody describes.
        for (slot, number, records) in [(0usize, 4096u32, 6u64), (1, 9, 1)] {
            let at = 64 + 16 * slot;
            pool[at..at + 4].copy_from_slice(&(number + 1).to_le_bytes());
            pool[at + 8..at + 16].copy_from_slice(&records.to_le_bytes());
        }
        let all = u32::MAX;
        // Half of the first warp's lanes leave after a round, the others after three; the second warp does not end.
        let first = [
            [100, all, all, 3 << 28],
            [110, all, 0xffff, AT],
            [120, 0xffff_0000, 0xffff_0000, 4 << 28],
            [130, 0xffff, 0xffff, AT],
            [140, 0xffff, 0, AT],
            [150, 0xffff, 0xffff, 4 << 28],
            // As another lane writes it that had a count to say.
            [150, 0xffff, 0xffff, 4 << 28],
        ];
        pool.extend(chunk(1, 0, 100, &first));
        pool.extend(chunk(2, 32, 500, &[[500, all, all, 3 << 28], [540, all, all, AT]]));
        pool
    }

    #[test]
    fn sums_come_from_pools_and_descriptions() {
        let mut json = Description { image: "0".to_owned(), kernels: vec![description()], refused: vec![] };
        json.refused.push(Refused { name: "other".to_owned(), reason: "it has no PTX".to_owned() });
        let trace = trace(&pool(), &serde_json::to_string(&json).unwrap());
        std::fs::write(trace.path().join("inside/7-0.late"), "3 spin\n2 never\n").unwrap();
        let inside = Inside::read(&Files::open(trace.path()).unwrap());
        assert_eq!((inside.problems, inside.lost, inside.refused.len()), (vec![], 12, 1));
        let loss = |records, launches| Loss { records, launches, ..Loss::default() };
        assert_eq!(
            inside.losses,
            Losses::from([("never".to_owned(), loss(0, 2)), ("spin".to_owned(), loss(6, 3))])
        );
        let [kernel] = &inside.kernels[..] else { panic!("{:?}", inside.kernels) };
        assert_eq!((kernel.pid, kernel.launches, kernel.thread_blocks, kernel.warps), (7, 2, 2, 2));
        assert_eq!(kernel.multiprocessors, BTreeMap::from([(3, 50 + 40)]));
        let lanes: Vec<u64> = kernel.counts.blocks.iter().map(|block| block.lanes).collect();
        // The second warp's lanes have gone back, and are in the loop when the records end.
        assert_eq!(lanes, [64, 32 + 16 + 16 + 32 + 32, 32]);
        assert_eq!((kernel.counts.begun, kernel.counts.ended), (64, 32));
        assert_eq!(kernel.counts.blocks.iter().map(|block| block.time).sum::<u64>(), 90);
        assert_eq!(kernel.shapes.len(), 2);
    }

    #[test]
    fn what_is_missing_or_damaged_is_said() {
        let trace = trace(&pool()[..9000], "{");
        std::fs::write(trace.path().join("inside/else"), "").unwrap();
        std::fs::write(trace.path().join("inside/7-0.late"), "many spin\n").unwrap();
        let inside = Inside::read(&Files::open(trace.path()).unwrap());
        let problems = inside.problems.join("\n");
        assert!(problems.contains("inside/0-4096.json: EOF"), "{problems}");
        assert!(problems.contains("inside/else: a file of no known kind"), "{problems}");
        assert!(problems.contains("inside/7-0.late: 1 lines make no sense"), "{problems}");
        assert!(problems.contains("1 chunks are missing: the file is cut"), "{problems}");
        assert!(problems.contains("kernel 4096 has no description: 1 of its launches"), "{problems}");
    }
}
