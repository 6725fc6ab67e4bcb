//! `--inside`: code comes in by each way, kernels that are chosen record, and the program sees what it always saw.

#[path = "inside/jitlink.rs"]
mod jitlink;
#[path = "inside/losses.rs"]
mod losses;
#[path = "inside/ring.rs"]
mod ring;
#[path = "cuda/run.rs"]
mod run;
#[path = "inside/strategies.rs"]
mod strategies;
#[path = "inside/text.rs"]
mod text;
#[path = "inside/views.rs"]
mod views;
#[path = "inside/ways.rs"]
mod ways;
#[path = "inside/weights.rs"]
mod weights;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use run::{Run, run_command};
use tempfile::TempDir;
use text::TEXT;

/// How an entry of a fat binary is stored.
#[derive(Debug, Clone, Copy)]
enum How {
    Raw,
    Lz4,
    Zstd,
}

/// A fat binary with one text in it.
fn fat(text: &str, how: How) -> Vec<u8> {
    let (stored, flags) = match how {
        How::Raw => (text.as_bytes().to_vec(), 0u64),
        How::Lz4 => (lz4_flex::block::compress(text.as_bytes()), 0x2000),
        How::Zstd => (zstd::bulk::compress(text.as_bytes(), 3).expect("compressed"), 0x8000),
    };
    let compressed = if flags == 0 { 0 } else { stored.len() as u32 };
    let padded = stored.len().next_multiple_of(8);
    let mut entry = [1u16, 0x0101].map(u16::to_le_bytes).concat();
    let words = [64, padded as u32, 0, compressed, 0x40, 8 << 16, 90, 64, 0];
    entry.extend(words.map(u32::to_le_bytes).concat());
    entry.extend([flags | 0x11, 0, text.len() as u64].map(u64::to_le_bytes).concat());
    entry.extend(&stored);
    entry.resize(64 + padded, 0);
    let head = [0xBA55_ED50u32.to_le_bytes(), [1, 0, 16, 0]].concat();
    [head, (entry.len() as u64).to_le_bytes().to_vec(), entry].concat()
}

/// A machine code file that carries the text that it was made from.
fn elf(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    let lines: Vec<u8> = text.bytes().map(|b| if b == b'\n' { 0 } else { b }).collect();
    let names = b"\0.nv_debug_ptx_txt\0";
    let header = |name: u32, at: usize, size: usize| {
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[0x18..0x20].copy_from_slice(&(at as u64).to_le_bytes());
        header[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
        header
    };
    let sections = [header(1, 64, lines.len()), header(0, 64 + lines.len(), names.len())].concat();
    bytes[0x28..0x30].copy_from_slice(&((64 + lines.len() + names.len()) as u64).to_le_bytes());
    bytes[0x3a..0x40].copy_from_slice(&[64, 0, 2, 0, 1, 0]);
    [bytes, lines, names.to_vec(), sections].concat()
}

/// A folder with an image in it, and a cache.
struct Bed {
    folder: TempDir,
    image: PathBuf,
}

impl Bed {
    fn new(image: &[u8]) -> Bed {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("image");
        std::fs::write(&path, image).expect("written");
        Bed { folder, image: path }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Runs `inside.c` with these options of hetrace's, and variables.
    fn run(&self, options: &[&str], arguments: &[&str], environment: &[(&str, &str)]) -> Run {
        self.run_by("events", options, arguments, environment)
    }

    /// The same with times of devices from this source.
    fn run_by(
        &self,
        source: &str,
        options: &[&str],
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Run {
        let program = hetrace_tests::fake::program("inside");
        let (program, image) = (program.display().to_string(), self.image.display().to_string());
        let cache = self.cache().display().to_string();
        let mut all = vec![&*program, arguments[0], &*image];
        all.extend(&arguments[1..]);
        let mut with = options.to_vec();
        if !options.contains(&"--inside-buffer") {
            with.extend(["--inside-buffer", "1M"]);
        }
        let mut variables = vec![("XDG_CACHE_HOME", &*cache)];
        variables.extend(environment);
        run_command(&with, source, &all, &variables)
    }
}

/// What the report says.
fn notes(run: &Run) -> String {
    run.manifest()["notes"]
        .as_array()
        .expect("notes")
        .iter()
        .filter_map(|n| n.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// How often each kernel ran on the device, by the name that the driver has for it.
fn ran(run: &Run) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for op in run.ops().into_iter().filter(|op| op.kind == "kernel") {
        *counts.entry(op.name).or_default() += 1;
    }
    counts
}

fn twins(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Chunks that were begun, by pool.
fn chunks(run: &Run) -> Vec<u64> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(run.scratch.path().join("trace/inside")).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|e| e == "pool") {
            let bytes = std::fs::read(entry.path()).expect("a pool");
            let counter =
                |i: usize| u32::from_le_bytes(bytes[2048 + 64 * i..][..4].try_into().expect("4 bytes"));
            let asked: u64 = (0..32).map(|i| u64::from(counter(i))).sum();
            assert_eq!(bytes.len() as u64 % 4096, 0);
            let there = bytes.len() as u64 / 4096 - 1;
            assert!(there <= asked, "{there} of {asked}");
            let begun = bytes.chunks(4096).skip(1).filter(|chunk| chunk[24..28] != [0; 4]).count();
            assert_eq!(begun as u64, there);
            found.push(there);
        }
    }
    found.sort_unstable();
    found
}

fn descriptions(run: &Run) -> Vec<serde_json::Value> {
    let folder = std::fs::read_dir(run.scratch.path().join("trace/inside")).into_iter().flatten().flatten();
    let files = folder.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "json"));
    files.map(|path| serde_json::from_slice(&std::fs::read(path).expect("read")).expect("JSON")).collect()
}

/// What the program printed is what it prints without us.
fn check_seen(run: &Run, what: &str) {
    assert_eq!(run.done.status, 0, "{}{}", run.done.out, run.done.err);
    assert_eq!(run.done.out, what);
}

const SEEN: &str = "functions: 3: k1000 k2000 k3000\n";

/// Code came in, its two kernels recorded, and the third is named.
fn check_recorded(run: &Run) {
    assert_eq!(
        ran(run),
        twins(&[("k1000__hetrace_inside", 3), ("k2000__hetrace_inside", 3)]),
        "{}",
        notes(run)
    );
    assert_eq!(chunks(run), [6]);
    let all = descriptions(run);
    let names = |what: &str| -> Vec<String> {
        all.iter()
            .flat_map(|d| d[what].as_array().expect("a list").clone())
            .map(|k| k["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(
        (names("kernels"), names("refused")),
        (vec!["k1000".to_owned(), "k2000".to_owned()], vec!["k3000".to_owned()])
    );
    let said = notes(run);
    for wanted in [
        "2 kernels can record; 1 pools with 6 chunks",
        "k3000 is as it was: ",
        "ms for 1 images to be rewritten",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    run.check_no_misuse();
}

/// All launches of all kernels record.
const ALL: &[&str] = &["--inside", "*", "--inside-sample", "launches:1"];

#[test]
fn a_module_of_text() {
    let bed = Bed::new(TEXT.as_bytes());
    for way in ["data", "file", "fatbin"] {
        let run = bed.run(ALL, &[way], &[]);
        check_seen(&run, SEEN);
        check_recorded(&run);
    }
}

#[test]
fn fat_binaries_and_their_wrapper() {
    for how in [How::Raw, How::Lz4, How::Zstd] {
        let run = Bed::new(&fat(TEXT, how)).run(ALL, &["wrapper"], &[]);
        check_seen(&run, SEEN);
        check_recorded(&run);
    }
    let bed = Bed::new(&fat(TEXT, How::Zstd));
    for way in ["data", "fatbin", "file"] {
        let run = bed.run(ALL, &[way], &[]);
        check_seen(&run, SEEN);
        check_recorded(&run);
    }
}

#[test]
fn machine_code_that_carries_its_text() {
    let run = Bed::new(&elf(TEXT)).run(ALL, &["data"], &[]);
    check_seen(&run, SEEN);
    check_recorded(&run);
}

#[test]
fn libraries() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(ALL, &["library_file"], &[]);
    check_seen(&run, "kernels: 3: k1000 k2000 k3000\n");
    check_recorded(&run);
    let run = bed.run(ALL, &["library"], &[]);
    // The driver's log was of our code: the program finds an empty one.
    check_seen(&run, "kernels: 3: k1000 k2000 k3000\nlogs: \"\" 0, \"\" 0\n");
    check_recorded(&run);
}

#[test]
fn only_chosen_kernels_and_launches() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(&["--inside", "k1*@1..2"], &["data", "5"], &[]);
    check_seen(&run, SEEN);
    assert_eq!(ran(&run), twins(&[("k1000", 3), ("k1000__hetrace_inside", 2), ("k2000", 5)]));
    assert_eq!(chunks(&run), [2]);
    let run = bed.run(&["--inside", "k2000", "--inside-sample", "launches:2"], &["data", "5"], &[]);
    assert_eq!(ran(&run), twins(&[("k1000", 5), ("k2000", 2), ("k2000__hetrace_inside", 3)]));
    // Without numbers some launches are left to compare with.
    let run = bed.run(&["--inside", "k2000"], &["data", "20"], &[]);
    assert_eq!(ran(&run), twins(&[("k1000", 20), ("k2000", 2), ("k2000__hetrace_inside", 18)]));
    // Arguments of calls are the program's own: no call has a twin's handle.
    let run = bed.run(&["--inside", "nothing"], &["data"], &[]);
    assert_eq!(ran(&run), twins(&[("k1000", 3), ("k2000", 3)]));
    assert_eq!((chunks(&run), descriptions(&run).len()), (Vec::new(), 0));
    let bare = bed.run(&[], &["data"], &[]);
    assert_eq!(ran(&bare), twins(&[("k1000", 3), ("k2000", 3)]));
    assert!(!bare.scratch.path().join("trace/inside").exists());
}

#[test]
fn graphs_launch_twins() {
    let run = Bed::new(TEXT.as_bytes()).run(ALL, &["graph"], &[]);
    check_seen(&run, "");
    assert_eq!(ran(&run), twins(&[("k1000__hetrace_inside", 6)]));
    assert_eq!(chunks(&run), [6]);
}

#[test]
fn each_context_has_its_pool() {
    let run = Bed::new(TEXT.as_bytes()).run(ALL, &["contexts", "2"], &[]);
    check_seen(&run, &SEEN.repeat(2));
    assert_eq!(ran(&run), twins(&[("k1000__hetrace_inside", 4), ("k2000__hetrace_inside", 4)]));
    assert_eq!(chunks(&run), [4, 4]);
    assert_eq!(descriptions(&run).len(), 1, "one image");
    run.check_no_misuse();
}

#[test]
fn code_that_is_loaded_again_and_again() {
    let run = Bed::new(TEXT.as_bytes()).run(ALL, &["data", "3", "4"], &[]);
    check_seen(&run, &SEEN.repeat(4));
    assert_eq!(ran(&run), twins(&[("k1000__hetrace_inside", 12), ("k2000__hetrace_inside", 12)]));
    assert_eq!(chunks(&run), [24]);
}

#[test]
fn what_spills_survives_the_program() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(
        &["--inside", "*", "--inside-sample", "launches:1", "--inside-on-full", "spill"],
        &["killed"],
        &[],
    );
    assert_eq!(run.done.out, SEEN);
    assert_eq!(chunks(&run), [6]);
    let run = bed.run(
        &["--inside", "*", "--inside-sample", "launches:1", "--inside-on-full", "spill"],
        &["data"],
        &[],
    );
    check_seen(&run, SEEN);
    check_recorded(&run);
}

#[test]
fn a_driver_that_refuses_our_code_loads_the_programs_own() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(ALL, &["options"], &[("FAKE_CUDA_REFUSES", "__hetrace_inside")]);
    check_seen(&run, &format!("{SEEN}logs: \"compiled\" 8, \"untouched\" 64\n"));
    assert_eq!(ran(&run), twins(&[("k1000", 3), ("k2000", 3)]));
    assert!(notes(&run).contains("refused code with twins with CUDA error 218"), "{}", notes(&run));
}

#[test]
fn a_twin_that_cannot_be_launched_is_not() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(ALL, &["data"], &[("FAKE_CUDA_REFUSES_LAUNCH", "k1000__hetrace")]);
    check_seen(&run, SEEN);
    assert_eq!(ran(&run), twins(&[("k1000", 3), ("k2000__hetrace_inside", 3)]));
    let said = notes(&run);
    assert_eq!(said.matches("k1000 is as it was from here on").count(), 1, "{said}");
}

/// A helper that is a script.
fn script(bed: &Bed, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = bed.folder.path().join("helper");
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("set");
    path.display().to_string()
}

#[test]
fn a_helper_that_fails_leaves_kernels_as_they_were() {
    let bed = Bed::new(TEXT.as_bytes());
    // The last takes as long as a helper may.
    for (text, why) in [
        ("kill -SEGV $$", "signal 11 ended its helper"),
        ("exit 7", "its helper ended with status 7"),
        ("exec sleep 1000", "its helper took too long"),
    ] {
        let helper = script(&bed, text);
        let run = bed.run(ALL, &["data"], &[("HETRACE_INSIDE_HELPER", &helper)]);
        check_seen(&run, SEEN);
        assert_eq!(ran(&run), twins(&[("k1000", 3), ("k2000", 3)]), "{text}");
        assert!(notes(&run).contains(why), "{}", notes(&run));
    }
}

#[test]
fn code_without_its_text_is_named() {
    for (image, why) in [
        (fat("no text", How::Raw), "no PTX in it"),
        (fat(&TEXT.replace("sm_90", "sm_120"), How::Zstd), "its PTX is for sm_120"),
        (fat(&TEXT.replace("ret;\n\n}", "ret;\n"), How::Lz4), "line "),
    ] {
        let run = Bed::new(&image).run(ALL, &["wrapper"], &[]);
        assert_eq!(run.done.status, 0, "{}", run.done.err);
        assert_eq!(ran(&run), twins(&[("k1000", 3), ("k2000", 3)]));
        let said = notes(&run);
        assert!(said.contains("are as they were: ") && said.contains(why), "{why}: {said}");
    }
}

/// So large an image is not handed over to look for names: those that the program asks for are known then.
#[test]
fn kernels_of_much_machine_code_are_named_when_they_are_asked_for() {
    let mut image = fat(&"machine code ".repeat(200_000), How::Raw);
    image[16] = 2; // Its entry's kind.
    for (options, arguments, named) in [
        (ALL, "wrapper", &["k1000", "k2000"][..]),
        (ALL, "data", &["k1000", "k2000"]),
        (ALL, "library", &["k1000", "k2000"]),
        (&["--inside", "k1*"], "wrapper", &["k1000"]),
        (&["--inside", "other"], "wrapper", &[]),
    ] {
        let run = Bed::new(&image).run(options, &[arguments], &[]);
        assert_eq!(run.done.status, 0, "{}", run.done.err);
        assert_eq!(ran(&run), twins(&[("k1000", 3), ("k2000", 3)]));
        let said = notes(&run);
        assert!(said.contains("the program loads machine code without PTX"), "{said}");
        for name in ["k1000", "k2000"] {
            let times = said.matches(&format!("{name} is as it was: no PTX in its code")).count();
            assert_eq!(times, usize::from(named.contains(&name)), "{arguments}: {said}");
        }
    }
}

#[test]
fn the_second_run_finds_its_code_in_the_cache() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(ALL, &["data"], &[]);
    check_recorded(&run);
    let cached = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder.join("hetrace/inside"))
            .expect("a cache")
            .flatten()
            .map(|e| e.path())
            .collect()
    };
    let [file] = &cached(&bed.cache())[..] else { panic!("one image: {:?}", cached(&bed.cache())) };
    // What lies there is what is used: a mark in it comes out at the other end.
    let text = std::fs::read_to_string(file).expect("read");
    std::fs::write(file, text.replace("\"reason\":\"", "\"reason\":\"CACHED ")).expect("written");
    let (head, rest) = text.split_once('\n').expect("a head");
    let (twins, bytes) = head.split_once(' ').expect("two numbers");
    let bytes: usize = bytes.parse().expect("a number");
    let marked = rest.replace("\"reason\":\"", "\"reason\":\"CACHED ");
    std::fs::write(file, format!("{twins} {}\n{marked}", bytes + "CACHED ".len())).expect("written");
    let run = bed.run(ALL, &["data"], &[]);
    check_recorded(&run);
    assert!(notes(&run).contains("k3000 is as it was: CACHED"), "{}", notes(&run));
    // Other options are another entry.
    check_recorded(&bed.run(
        &["--inside", "*", "--inside-sample", "launches:1", "--inside-mode", "blocks"],
        &["data"],
        &[],
    ));
    assert_eq!(cached(&bed.cache()).len(), 2);
}

#[test]
fn what_cannot_be_served_is_refused() {
    for (options, why) in [
        (
            &["--inside", "*", "--inside-strategy", "two-runs"][..],
            "two-runs: not possible, as no kernel is launched twice",
        ),
        (&["--inside", "a", "--inside", "b", "--inside", "c"], "at most 2 globs"),
        (&["--inside", "*", "--inside-buffer", "4K"], "accepts 64K to 32G"),
        (&["--inside", "*", "--inside-sample", "warps:2"], "expected `ctas:N` or `launches:N`"),
        (&["--inside", "*", "--flight", "1s"], "cannot be used with"),
    ] {
        let mut line = std::process::Command::new(hetrace_tests::hetrace());
        line.arg("run").args(options).args(["--", "true"]);
        let done = line.output().expect("hetrace");
        assert_eq!(done.status.code(), Some(2), "{options:?}");
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(error.contains(why), "{why}: {error}");
    }
}
