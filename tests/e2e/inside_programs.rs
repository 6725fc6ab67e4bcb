//! `--inside` on kernels of programs that nobody here wrote: CLBlast's tests, clFFT's client, piglit's programs. They give the
//! results that they give without, all of their kernels record or are named with the reason, what is decoded contradicts
//! nothing, and as many work-items began as the program asked for. `scripts/install-deps.sh` brings them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use hetrace_ctf::read::Files;
use hetrace_gpu_kernel::{Decoder, Ended};
use hetrace_tests::seen::Seen;
use hetrace_tests::{Done, Platform, bed, hetrace};
use hetrace_trace::inside::{Recording, TWIN};
use serde_json::Value;
use tempfile::TempDir;

/// Lanes of which each record is decoded, of a trace; of more a part.
const DECODED: usize = 20_000;

/// A program's run, bare and under trace.
struct Run {
    bare: Done,
    done: Done,
    scratch: TempDir,
}

/// Runs a program both ways; of the launches of each of its kernels one in so many records.
fn run(platform: Platform, every: u32, line: &[&str], libraries: Option<&Path>) -> Run {
    let scratch = TempDir::new().expect("a scratch folder");
    let mut environment = platform.environment(scratch.path());
    environment.extend(libraries.map(|folder| ("LD_LIBRARY_PATH".to_owned(), folder.display().to_string())));
    let cached = |name: &str| scratch.path().join(name);
    let mut bare = Command::new(line[0]);
    bare.args(&line[1..]).envs(environment.clone()).env("POCL_CACHE_DIR", cached("pocl"));
    let mut traced = Command::new(hetrace());
    traced.args(["run", "-q", "--inside", "*", "--inside-buffer", "128M"]);
    traced.arg(format!("--inside-sample=launches:{every}")).arg("-o");
    traced.arg(scratch.path().join("trace")).arg("--").args(line).envs(environment);
    traced.env("POCL_CACHE_DIR", cached("pocl")).env("XDG_CACHE_HOME", cached("cache"));
    Run { bare: bed::run(&mut bare), done: bed::run(&mut traced), scratch }
}

/// What a program's run must have shown.
#[derive(Debug)]
struct Kernels {
    /// That have twins.
    twins: BTreeSet<String>,
    /// That are as they were, and why.
    refused: BTreeMap<String, String>,
    /// Work-items that began.
    begun: u64,
}

impl Run {
    /// `same` cuts what may differ (times) out of what the program prints.
    fn check(&self, same: impl Fn(&str) -> String) -> Kernels {
        assert_eq!((self.bare.status, self.done.status), (0, 0), "{}{}", self.done.out, self.done.err);
        assert_eq!(same(&self.done.out), same(&self.bare.out), "{}", self.done.err);
        let trace = self.scratch.path().join("trace");
        let recording = Recording::read(&Files::open(&trace).expect("a trace"));
        assert_eq!((&recording.problems, recording.lost), (&vec![], 0));
        decode(&recording);
        let refused = recording.refused.iter().map(|one| (one.name.clone(), one.reason.clone())).collect();
        let twins: BTreeSet<String> = recording.kernels.values().map(|kernel| kernel.name.clone()).collect();
        let kernels = Kernels { begun: self.count(&trace, &recording, &twins), twins, refused };
        for (name, reason) in &kernels.refused {
            assert!(!reason.is_empty(), "{name}");
        }
        kernels
    }

    /// By kernel, as many work-items began and ended as the sizes of its launches say, which the program passed. Returns how
    /// many.
    fn count(&self, trace: &Path, recording: &Recording, twins: &BTreeSet<String>) -> u64 {
        let mut launched: BTreeMap<String, u64> = BTreeMap::new();
        let mut others = BTreeSet::new();
        for command in Seen::read(trace).commands.into_iter().filter(|command| command.kind == "kernel") {
            match command.name.strip_suffix(TWIN) {
                Some(name) => {
                    *launched.entry(name.to_owned()).or_default() += command.global.iter().product::<u64>();
                }
                None => _ = others.insert(command.name),
            }
        }
        let done = bed::run(Command::new(hetrace()).args(["tally", "--inside", "--json"]).arg(trace));
        assert_eq!(done.status, 0, "{}", done.err);
        let tally: Value = serde_json::from_str(&done.out).expect("JSON");
        let mut begun: BTreeMap<String, u64> = BTreeMap::new();
        for row in tally["inside"].as_array().expect("kernels") {
            let number = |name: &str| row[name].as_u64().expect("a number");
            assert_eq!((number("faults"), number("ended")), (0, number("begun")), "{row}");
            let name = row["symbol"].as_str().expect("a name").to_owned();
            // Nothing leads back to the first block of OpenCL C: each lane runs it once.
            let entry = row["blocks"].as_array().expect("blocks").iter().find(|block| block["block"] == 0);
            assert_eq!(entry.and_then(|block| block["lanes"].as_u64()), Some(number("begun")), "{row}");
            *begun.entry(name).or_default() += number("begun");
        }
        assert_eq!(begun, launched);
        let named = |name: &String| recording.refused.iter().any(|one| one.name == *name);
        let silent: Vec<&String> =
            others.iter().filter(|name| !named(name) && !twins.contains(*name)).collect();
        assert!(silent.is_empty(), "they neither record nor are named: {silent:?} of {twins:?}");
        begun.values().sum()
    }
}

/// Each lane, or a part of them, has a path from its begin to its end, and no record contradicts it.
fn decode(recording: &Recording) {
    let mut left = DECODED;
    for launch in recording.pools.iter().flat_map(|of| &of.pool.launches) {
        let kernel = &recording.kernels[&launch.kernel];
        let graph = kernel.graph().expect("a graph");
        let plan = kernel.plan(&graph).expect("a plan");
        let decoder = Decoder::new(&graph, &plan);
        for warp in launch.blocks.iter().flat_map(|block| &block.warps) {
            for lane in (0..32).filter(|lane| warp.lanes() >> lane & 1 != 0) {
                if left == 0 {
                    return;
                }
                left -= 1;
                let (path, wrong) = decoder.lane(lane, 0, warp.end(lane), &warp.records);
                assert_eq!((wrong, path.ended), (vec![], Ended::Exit), "{}", kernel.name);
                assert!(path.steps.first().is_some_and(|step| step.block == 0), "{}", kernel.name);
            }
        }
    }
    assert!(left < DECODED, "nothing was decoded");
}

/// Returns where a program is; says that it is not there, if it is not.
fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists());
    if found.is_none() {
        println!("SKIPPED: there is no {name} (scripts/install-deps.sh)");
    }
    found
}

/// Returns piglit's folder, of its package or unpacked.
fn piglit() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/piglit/usr/lib");
    let of = |base: PathBuf| {
        let folders = std::fs::read_dir(base).ok()?.flatten().map(|entry| entry.path().join("piglit"));
        folders.into_iter().find(|folder| folder.join("bin/cl-program-tester").exists())
    };
    let found = of(own).or_else(|| of("/usr/lib".into()));
    if found.is_none() {
        println!("SKIPPED: there is no piglit (scripts/install-deps.sh unpacks what it has of OpenCL)");
    }
    found
}

/// Without numbers that are times, and what is made of them.
fn without_times(out: &str) -> String {
    let is_time = |word: &str| {
        let number = word.trim_matches(|c: char| !c.is_ascii_digit());
        (word.contains("ms") || word.contains('.') || word.contains("e-")) && number.parse::<f64>().is_ok()
    };
    out.lines()
        .map(|line| line.split_whitespace().filter(|word| !is_time(word)).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn clblast() {
    let Some(program) = found("clblast_test_xaxpy") else { return };
    let line = [program.to_str().expect("a path"), "-platform", "0", "-device", "0"];
    let run = run(Platform::Pocl, 4, &line, None);
    let kernels = run.check(without_times);
    println!("{kernels:?}");
    assert!(kernels.twins.contains("Xaxpy") && kernels.twins.contains("XaxpyFastest"), "{kernels:?}");
    assert_eq!(kernels.refused, BTreeMap::new());
}

#[test]
fn clfft() {
    let Some(program) = found("clFFT-client") else { return };
    let program = program.to_str().expect("a path");
    for sizes in [&["-x", "64"][..], &["-x", "4096"], &["-x", "128", "-y", "8"]] {
        let line = [&[program, "-c"][..], sizes].concat();
        let kernels = run(Platform::Pocl, 1, &line, None).check(str::to_owned);
        println!("{kernels:?}");
        assert!(kernels.twins.iter().any(|name| name.starts_with("fft_")), "{kernels:?}");
        assert_eq!(kernels.refused, BTreeMap::new());
    }
}

/// Programs of piglit: loops, switches, functions that are called, local memory, real kernels of others.
const PROGRAMS: [&str; 5] =
    ["for-loop.cl", "switch-case.cl", "calls-workitem-id.cl", "gegl-gamma-2-2-to-linear.cl", "sha256-Ch.cl"];

fn piglit_on(platform: Platform, programs: &[&str]) {
    let Some(folder) = piglit() else { return };
    let tester = folder.join("bin/cl-program-tester");
    let mut all = Vec::new();
    for program in programs {
        let file = folder.join("tests/cl/program/execute").join(program);
        let line = [tester.to_str().expect("a path"), file.to_str().expect("a path")];
        let run = run(platform, 1, &line, Some(&folder.join("lib")));
        assert!(run.bare.out.contains("\"result\": \"pass\""), "{program}: {}", run.bare.out);
        let kernels = run.check(str::to_owned);
        println!("{program}: {kernels:?}");
        assert!(kernels.begun > 0 || !kernels.refused.is_empty(), "{program}");
        all.extend(kernels.twins);
    }
    assert!(all.len() >= programs.len(), "{all:?}");
}

#[test]
fn piglit_on_pocl() {
    piglit_on(Platform::Pocl, &PROGRAMS);
}

#[test]
fn piglit_on_oclgrind() {
    piglit_on(Platform::Oclgrind, &PROGRAMS[..2]);
}
