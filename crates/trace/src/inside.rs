//! What went on inside of kernels, from what `run --inside` recorded there ([docs/inside.md](../../../docs/inside.md)).
//!
//! ```text
//!  inside/HASH-FIRST.json   kernels with their graphs ──┐
//!  inside/PID-N.pool        what warps recorded       ──┴──► by process and kernel: sums of blocks and loops, who ran it
//! ```
//! A pool is read whole, and takes as much memory again while it is.

use std::collections::BTreeMap;

use hetrace_ctf::read::Files;
use hetrace_format::files::INSIDE;
pub use hetrace_gpu_kernel::description::{BlockText, Kernel as Described, Refused};
use hetrace_gpu_kernel::pool::{self, Pool, Warp};
pub use hetrace_gpu_kernel::ptx::TWIN;
pub use hetrace_gpu_kernel::{BlockCounts, Counts, LoopCounts, Mode};
use hetrace_gpu_kernel::{Counter, Description, Entry};

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
    /// Warps that recorded.
    pub warps: u64,
    /// Lanes of a warp.
    pub lanes_per_warp: u64,
    /// By the number of a streaming multiprocessor, the cycles that warps were there.
    pub multiprocessors: BTreeMap<u32, u64>,
    /// Sums by block and loop.
    pub counts: Counts,
}

impl Inside {
    /// Reads a trace's files.
    pub fn read(files: &Files) -> Self {
        let mut inside = Inside::default();
        let mut described: BTreeMap<u32, Described> = BTreeMap::new();
        let mut pools = Vec::new();
        for name in files.list(INSIDE) {
            let path = format!("{INSIDE}/{name}");
            if let Some(pid) = name.strip_suffix(".pool").and_then(process) {
                pools.push((pid, path));
            } else if name.ends_with(".json") {
                match description(files, &path) {
                    Ok(found) => {
                        inside.refused.extend(found.refused);
                        described.extend(found.kernels.into_iter().map(|kernel| (kernel.number, kernel)));
                    }
                    Err(problem) => inside.problems.push(format!("{path}: {problem}")),
                }
            } else {
                inside.problems.push(format!("{path}: a file of no known kind"));
            }
        }
        inside.refused.sort_by(|a, b| (&a.name, &a.reason).cmp(&(&b.name, &b.reason)));
        inside.refused.dedup();
        // What one process wrote for several contexts belongs together.
        pools.sort();
        for of_process in pools.chunk_by(|a, b| a.0 == b.0) {
            let read: Vec<Pool> =
                of_process.iter().filter_map(|(_, path)| inside.pool(files, path)).collect();
            if let Some((pid, _)) = of_process.first() {
                inside.process(*pid, &read, &described);
            }
        }
        inside
    }

    fn pool(&mut self, files: &Files, path: &str) -> Option<Pool> {
        let bytes = match files.read(path) {
            Ok(bytes) => bytes?,
            Err(error) => {
                self.problems.push(format!("{path}: {error}"));
                return None;
            }
        };
        let read = pool::read(&bytes);
        self.lost = self.lost.saturating_add(read.lost);
        let faults = read.faults;
        let mut say = |number: u64, what: &str| {
            if number > 0 {
                self.problems.push(format!("{path}: {number} {what}"));
            }
        };
        say(faults.unbegun, "chunks were taken and never begun: their warps were stopped there");
        say(faults.missing, "chunks are missing: the file is cut");
        say(
            faults.gaps,
            "times a chunk is missing before another: what these lanes did between is not known",
        );
        say(faults.records, "records make no sense");
        Some(read)
    }

    fn process(&mut self, pid: i64, pools: &[Pool], described: &BTreeMap<u32, Described>) {
        let mut by_kernel: BTreeMap<u32, Vec<&pool::Launch>> = BTreeMap::new();
        for launch in pools.iter().flat_map(|pool| &pool.launches) {
            by_kernel.entry(launch.kernel).or_default().push(launch);
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

/// Returns the process that wrote `PID-N`.
fn process(stem: &str) -> Option<i64> {
    stem.split_once('-')?.0.parse().ok()
}

fn description(files: &Files, path: &str) -> Result<Description, String> {
    let bytes = files.read(path).map_err(|error| error.to_string())?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

fn kernel(pid: i64, description: &Described, launches: &[&pool::Launch]) -> Result<Kernel, String> {
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
    };
    for launch in launches {
        kernel.launches += 1;
        for block in &launch.blocks {
            kernel.thread_blocks += 1;
            for warp in &block.warps {
                kernel.warps += 1;
                let entries = entries(warp);
                if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
                    let cycles = kernel.multiprocessors.entry(block.multiprocessor).or_default();
                    *cycles = cycles.saturating_add(time(last).saturating_sub(time(first)));
                }
                counter.warp(entries);
            }
        }
    }
    kernel.counts = counter.finish();
    Ok(kernel)
}

fn time(entry: &Entry) -> u64 {
    match entry {
        Entry::Begin { time, .. } | Entry::End { time, .. } => *time,
        Entry::At(record) => record.time,
    }
}

/// Returns all that a warp recorded in order: of one time, those that begin come first and those that end last.
fn entries(warp: &Warp) -> Vec<Entry> {
    let begins = warp.began.iter().map(|(time, lanes)| Entry::Begin { time: *time, lanes: *lanes });
    let ends = warp.ended.iter().map(|(time, lanes)| Entry::End { time: *time, lanes: *lanes });
    let records = warp.records.iter().map(|record| Entry::At(*record));
    let mut entries: Vec<Entry> = begins.chain(records).chain(ends).collect();
    // Stable: what is of one time stays in the order above.
    entries.sort_by_key(time);
    entries
}

#[cfg(test)]
mod tests {
    use hetrace_gpu_kernel::description::{SiteName, successors};
    use hetrace_gpu_kernel::graph::EXIT;
    use hetrace_gpu_kernel::{Graph, Mode, Plan};

    use super::*;

    /// 0 ► 1 ► 1 or 2: a loop that lanes leave after some rounds.
    fn description() -> Described {
        let graph = Graph::new(vec![vec![1], vec![1, 2], vec![EXIT]]).unwrap();
        let plan = Plan::new(&graph, Mode::Branches);
        Described {
            number: 4096,
            name: "spin".to_owned(),
            mode: Mode::Branches,
            successors: successors(&graph),
            sites: plan.sites.iter().map(|site| SiteName::from(*site)).collect(),
            summed: plan.summed,
            blocks: vec![BlockText { instructions: 4, ..BlockText::default() }; 3],
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
        let all = u32::MAX;
        // Half of the first warp's lanes leave after a round, the others after three; the second warp does not end.
        let first = [
            [100, all, all, 3 << 28],
            [110, all, 0xffff, AT],
            [120, 0xffff_0000, 0xffff_0000, 4 << 28],
            [130, 0xffff, 0xffff, AT],
            [140, 0xffff, 0, AT],
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
        let inside = Inside::read(&Files::open(trace.path()).unwrap());
        assert_eq!((inside.problems, inside.lost, inside.refused.len()), (vec![], 5, 1));
        let [kernel] = &inside.kernels[..] else { panic!("{:?}", inside.kernels) };
        assert_eq!((kernel.pid, kernel.launches, kernel.thread_blocks, kernel.warps), (7, 2, 2, 2));
        assert_eq!(kernel.multiprocessors, BTreeMap::from([(3, 50 + 40)]));
        let lanes: Vec<u64> = kernel.counts.blocks.iter().map(|block| block.lanes).collect();
        // The second warp's lanes have gone back, and are in the loop when the records end.
        assert_eq!(lanes, [64, 32 + 16 + 16 + 32 + 32, 32]);
        assert_eq!((kernel.counts.begun, kernel.counts.ended), (64, 32));
        assert_eq!(kernel.counts.blocks.iter().map(|block| block.time).sum::<u64>(), 90);
    }

    #[test]
    fn what_is_missing_or_damaged_is_said() {
        let trace = trace(&pool()[..9000], "{");
        std::fs::write(trace.path().join("inside/else"), "").unwrap();
        let inside = Inside::read(&Files::open(trace.path()).unwrap());
        let problems = inside.problems.join("\n");
        assert!(problems.contains("inside/0-4096.json: EOF"), "{problems}");
        assert!(problems.contains("inside/else: a file of no known kind"), "{problems}");
        assert!(problems.contains("1 chunks are missing: the file is cut"), "{problems}");
        assert!(problems.contains("kernel 4096 has no description: 1 of its launches"), "{problems}");
    }
}
