//! `--inside` for OpenCL on processors: kernels of OpenCL C that PoCL and Oclgrind run record which ways their work-items go, and
//! the program sees what it always saw.

#[path = "inside_source/random.rs"]
mod random;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hetrace_ctf::read::Files;
use hetrace_gpu_kernel::{Decoder, Ended};
use hetrace_tests::{Done, Platform, bed, hetrace, programs};
use hetrace_trace::inside::Recording;
use random::{Kernel, Printer};
use serde_json::Value;
use tempfile::TempDir;

/// All launches of all kernels record.
const ALL: &[&str] = &["--inside", "*", "--inside-sample", "launches:1", "--inside-buffer", "16M"];

/// A run of the program with a source, bare and under trace.
struct Run {
    bare: Done,
    done: Done,
    scratch: TempDir,
}

/// `how`: kernels, work-items, work-items of a group, launches, how the program is built, its options.
fn run(platform: Platform, source: &str, options: &[&str], how: &[&str]) -> Run {
    let scratch = TempDir::new().expect("a scratch folder");
    let file = scratch.path().join("source.cl");
    std::fs::write(&file, source).expect("written");
    let environment = platform.environment(scratch.path());
    let program = programs().join("inside_source");
    let mut bare = Command::new(&program);
    bare.arg(&file).args(how).envs(environment.clone()).env("POCL_CACHE_DIR", scratch.path().join("pocl"));
    let mut line = Command::new(hetrace());
    line.args(["run", "-q"]).args(options).arg("-o").arg(scratch.path().join("trace")).arg("--");
    line.arg(&program).arg(&file).args(how).envs(environment);
    line.env("POCL_CACHE_DIR", scratch.path().join("pocl"))
        .env("XDG_CACHE_HOME", scratch.path().join("cache"));
    Run { bare: bed::run(&mut bare), done: bed::run(&mut line), scratch }
}

impl Run {
    /// The program printed what it prints without us.
    fn check_seen(&self) {
        assert_eq!((self.done.status, &self.done.out), (0, &self.bare.out), "{}", self.done.err);
        assert_eq!(self.bare.status, 0);
    }

    fn trace(&self) -> std::path::PathBuf {
        self.scratch.path().join("trace")
    }

    fn notes(&self) -> String {
        let manifest = std::fs::read(self.trace().join("hetrace/manifest.json")).expect("a manifest");
        let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
        let notes = manifest["notes"].as_array().expect("notes").clone();
        notes.iter().filter_map(|note| note.as_str()).collect::<Vec<_>>().join("\n")
    }

    fn tally(&self) -> Value {
        serde_json::from_str(&self.report(&["tally", "--inside", "--json"])).expect("JSON")
    }

    fn report(&self, what: &[&str]) -> String {
        let done = bed::run(Command::new(hetrace()).args(what).arg(self.trace()));
        assert_eq!(done.status, 0, "{}", done.err);
        done.out
    }

    /// By kernel how many launches recorded.
    fn launches(&self) -> BTreeMap<String, u64> {
        let tally = self.tally();
        let of = |kernel: &Value| {
            let launches = kernel["launches"].as_u64().expect("a number");
            (kernel["kernel"].as_str().expect("a name").to_owned(), launches)
        };
        tally["inside"].as_array().expect("a list").iter().map(of).collect()
    }

    /// Compares each work-item's way with that of the interpreter. Returns how many were the same.
    fn check_ways(&self, kernels: &[Kernel], items: u32) -> usize {
        let recording = Recording::read(&Files::open(&self.trace()).expect("a trace"));
        assert_eq!((recording.problems, recording.lost), (vec![], 0));
        let mut same = 0;
        let launches = recording.pools.iter().flat_map(|of| &of.pool.launches);
        let mut of_kernel: BTreeMap<u32, u32> = BTreeMap::new();
        for launch in launches {
            let described = &recording.kernels[&launch.kernel];
            let kernel = &kernels[described.name[1..].parse::<usize>().expect("a number")];
            let (graph, number) =
                (described.graph().expect("a graph"), of_kernel.entry(launch.kernel).or_default());
            let plan = described.plan(&graph).expect("a plan");
            let decoder = Decoder::new(&graph, &plan);
            let begins: Vec<u32> = described.blocks.iter().filter_map(|block| block.line).collect();
            for block in &launch.blocks {
                for warp in &block.warps {
                    for lane in (0..32).filter(|lane| warp.lanes() >> lane & 1 != 0) {
                        let (path, wrong) = decoder.lane(lane, 0, warp.end(lane), &warp.records);
                        assert_eq!((wrong, path.ended), (vec![], Ended::Exit), "{}", described.name);
                        let found: Vec<u32> = path.steps.iter().map(|step| begins[step.block]).collect();
                        let item = block.at[0] * launch.threads_in_block[0] + warp.number * 32 + lane;
                        let truth = kernel.run(item, *number).lines;
                        let truth: Vec<u32> =
                            truth.into_iter().filter(|line| begins.contains(line)).collect();
                        assert_eq!(found, truth, "{} of launch {number}, work-item {item}", described.name);
                        same += 1;
                    }
                }
            }
            assert_eq!(launch.blocks_in_grid[0] * launch.threads_in_block[0], items);
            *number += 1;
        }
        same
    }
}

fn random_kernels(count: usize, seed: u64) -> (String, Vec<Kernel>) {
    let mut printer = Printer::new(seed);
    let kernels = (0..count).map(|number| printer.kernel(number)).collect();
    (printer.text, kernels)
}

/// All work-items of all kernels, twice, each as the interpreter has it.
fn ways_on(platform: Platform, seed: u64) {
    let (source, kernels) = random_kernels(24, seed);
    // Oclgrind 21.10 computes something else of code that it has optimised.
    let options = if platform == Platform::Oclgrind { "-cl-opt-disable" } else { "" };
    let run = run(platform, &source, ALL, &["24", "96", "48", "2", "source", options]);
    run.check_seen();
    for (number, kernel) in kernels.iter().enumerate() {
        for launch in 0..2 {
            let add = |sum: u32, item| (sum ^ kernel.run(item, launch).x).wrapping_mul(16_777_619);
            let result = format!("k{number} {launch} {:08x}\n", (0..96).fold(2_166_136_261, add));
            assert!(run.done.out.contains(&result), "{result}: {}", run.done.out);
        }
    }
    assert_eq!(run.check_ways(&kernels, 96), 24 * 96 * 2, "{}", run.notes());
    for row in run.tally()["inside"].as_array().expect("a list") {
        assert_eq!((row["timed"].as_bool(), row["faults"].as_u64()), (Some(false), Some(0)));
        assert_eq!((row["begun"].as_u64(), row["ended"].as_u64()), (Some(192), Some(192)));
    }
}

#[test]
fn each_work_items_way_is_known_on_pocl() {
    // Nearly all of it is PoCL's compiler, which has one thread for a program.
    std::thread::scope(|scope| {
        let runs: Vec<_> = (1..4).map(|seed| scope.spawn(move || ways_on(Platform::Pocl, seed))).collect();
        runs.into_iter().for_each(|run| run.join().expect("the ways of a seed"));
    });
}

#[test]
fn each_work_items_way_is_known_on_oclgrind() {
    ways_on(Platform::Oclgrind, 9);
}

/// Four kernels of which two can't record.
const SOURCE: &str = "\
#define LEAVE(a) if (a) return
__kernel void k0(__global uint *out, uint launch) {
    uint i = get_global_id(0);
    for (uint n = 0; n < i % 4; n++)
        out[i] = n + STEP;
}
__kernel void k1(__global uint *out, uint launch) {
    LEAVE(launch > 1);
    out[get_global_id(0)] = launch;
}
kernel void k2(__global uint *out, const uint launch) { out[get_global_id(0)] += __LINE__; }
__kernel void k3(__global uint *out, uint launch)
{
    __local uint sum[1];
    if (get_local_id(0) == 0)
        sum[0] = launch;
    barrier(CLK_LOCAL_MEM_FENCE);
    atomic_add(sum, get_local_id(0));
    barrier(CLK_LOCAL_MEM_FENCE);
    out[get_global_id(0)] = sum[0];
}
";

fn how(how: &str) -> [&str; 6] {
    ["4", "64", "16", "3", how, "-DSTEP=7 -cl-std=CL1.2"]
}

fn names(names: &[(&str, u64)]) -> BTreeMap<String, u64> {
    names.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn programs_see_what_they_saw_however_they_are_built() {
    for platform in [Platform::Pocl, Platform::Oclgrind] {
        for (built, launches) in [("source", 3), ("callback", 3), ("all", 3), ("again", 6)] {
            let run = run(platform, SOURCE, ALL, &how(built));
            run.check_seen();
            let wanted = names(&[("k0", launches), ("k2", launches), ("k3", launches)]);
            assert_eq!(run.launches(), wanted, "{platform:?} {built}: {}", run.notes());
            let tally = run.report(&["tally", "--inside"]);
            assert!(tally.contains("k1   | line 8 of its source: the macro LEAVE hides a jump"), "{tally}");
        }
    }
}

#[test]
fn reports_say_that_there_are_no_times() {
    let run = run(Platform::Pocl, SOURCE, ALL, &how("source"));
    run.check_seen();
    let tally = run.report(&["tally", "--inside"]);
    assert!(tally.contains("Inside k0 | 3 launches | 12 work-groups | 192 work-items"), "{tally}");
    assert!(tally.contains("when a block ran is not known, as its language has no clock"), "{tally}");
    // Work-items of four in turn go round 0 to 3 times: 48 of each in three launches.
    for row in [
        "    0 | source:3 |        192",
        "    2 | source:5 |        288",
        "   1 | source:4 |     192 |  1.50",
    ] {
        assert!(tally.contains(row), "{row}: {tally}");
    }
    let print = run.report(&["print", "--inside"]);
    assert!(print.contains("k0 launch 1 (0,0,0) warp 0 (no clock"), "{print}");
    assert!(!run.report(&["why"]).contains("divergence"));
}

#[test]
fn what_has_no_source_stays_as_it_was() {
    let run = run(Platform::Pocl, SOURCE, ALL, &how("link"));
    run.check_seen();
    assert_eq!(run.launches(), names(&[]));
    assert!(run.notes().contains("an OpenCL program has no source"), "{}", run.notes());
}

#[test]
fn what_finds_no_room_is_counted_and_changes_nothing() {
    let (source, _) = random_kernels(6, 5);
    let small = &["--inside", "*", "--inside-sample", "launches:1", "--inside-buffer", "256K"];
    let run = run(Platform::Pocl, &source, small, &["6", "512", "64", "2", "source"]);
    run.check_seen();
    let tally = run.tally();
    assert!(tally["inside_lost"].as_u64().or(tally["inside"][0]["launches"].as_u64()) > Some(0));
    let text = run.report(&["tally", "--inside"]);
    assert!(text.contains("inside of kernels found no room: `--inside-buffer`"), "{text}");
    // Whoever has no way that is known is lost, once.
    let recording = Recording::read(&Files::open(&run.trace()).expect("a trace"));
    let lanes = |launch: &hetrace_trace::inside::Launch| {
        let warps = launch.blocks.iter().flat_map(|block| &block.warps);
        warps
            .map(|warp| u64::from(warp.ended.iter().fold(0, |all, (_, lanes)| all | lanes).count_ones()))
            .sum::<u64>()
    };
    let ended: u64 = recording.pools.iter().flat_map(|of| &of.pool.launches).map(lanes).sum();
    assert_eq!(ended + recording.lost, 6 * 512 * 2);
}

#[test]
fn a_source_that_does_not_build_with_twins_stays_as_it_was() {
    // A name that the inserted text has is a macro here.
    let source = SOURCE.replacen("#define", "#define __private\n#define get_local_size broken\n#define", 1);
    let run = run(Platform::Pocl, &source, ALL, &how("source"));
    assert_eq!((run.done.status, &run.done.out), (0, &run.bare.out), "{}", run.done.err);
    assert_eq!(run.launches(), names(&[("k0", 3), ("k2", 3), ("k3", 3)]), "defined before: {}", run.notes());
    let options = "-DSTEP=7 -Dget_local_size=broken";
    let run = self::run(Platform::Pocl, SOURCE, ALL, &["4", "64", "16", "3", "source", options]);
    assert_eq!((run.done.status, &run.done.out), (0, &run.bare.out), "{}", run.done.err);
    assert_eq!(run.launches(), names(&[]));
    assert!(run.notes().contains("the driver refused a program with twins"), "{}", run.notes());
}

#[test]
fn only_chosen_kernels_launches_and_groups() {
    let some = &["--inside", "k0@1..1", "--inside-buffer", "16M"];
    let chosen = run(Platform::Pocl, SOURCE, some, &how("source"));
    chosen.check_seen();
    assert_eq!(chosen.launches(), names(&[("k0", 1)]));
    let sampled = &["--inside", "k3", "--inside-sample", "ctas:2", "--inside-buffer", "16M"];
    let sampled = run(Platform::Pocl, SOURCE, sampled, &how("source"));
    sampled.check_seen();
    let tally = sampled.tally();
    assert_eq!(tally["inside"][0]["thread_blocks"].as_u64(), Some(4), "two of four groups, in two launches");
}

/// The folder is there, so that a relative path is not what fails.
#[test]
fn nothing_of_it_without_being_asked() {
    let run = run(Platform::Pocl, SOURCE, &[], &how("source"));
    run.check_seen();
    assert!(!Path::new(&run.trace()).join("inside").exists());
}
