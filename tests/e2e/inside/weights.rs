//! Where kernels record by what an earlier run did: the option is honoured, and what can't be is said.

use std::path::Path;

use super::views::read;
use super::*;

/// The first kernel's body with a loop of two arms.
fn arms() -> String {
    let begin = TEXT.find("\tmov.u32 \t%r1, %tid.x;").expect("a body");
    let end = TEXT.find("}\n\n.visible .entry k2000").expect("its end");
    let body = "\tmov.u32 \t%r1, %tid.x;\n$L__BB0_1:\n\tadd.u32 \t%r1, %r1, 1;\n\tsetp.ne.u32 \t%p1, %r1, 31;\n\
                \t@%p1 bra \t$L__BB0_3;\n\n\tadd.u32 \t%r2, %r2, 1;\n\tbra.uni \t$L__BB0_4;\n\n$L__BB0_3:\n\
                \tadd.u32 \t%r2, %r2, 7;\n\n$L__BB0_4:\n\tsetp.lt.u32 \t%p1, %r1, 40;\n\t@%p1 bra \t$L__BB0_1;\n\n\tret;\n\n";
    format!("{}{body}{}", &TEXT[..begin], &TEXT[end..])
}

const EDGES: &[&str] = &["--inside", "*", "--inside-sample", "launches:1", "--inside-mode", "edges"];

fn kernel(run: &Run, name: &str) -> serde_json::Value {
    let all = descriptions(run);
    let kernels = all.iter().flat_map(|described| described["kernels"].as_array().expect("kernels").clone());
    kernels.into_iter().find(|kernel| kernel["name"] == name).expect("the kernel")
}

/// Puts records of sites into each chunk of a kernel, as a device would have written them that goes around by the second arm.
fn go_around(trace: &Path, kernel: &serde_json::Value, rounds: usize) {
    let number = kernel["number"].as_u64().expect("a number") as u32 + 1;
    let sites = kernel["sites"].as_array().expect("sites");
    let site = |from: u64, case: u64| {
        let place = sites.iter().position(|site| *site == serde_json::json!(["edge", from, case]));
        place.map(|place| 1 << 28 | (case as u32) << 16 | (place as u32 + 1))
    };
    // 1 ► 3, what jumps, or 2, the rare one; 3 ► 4; 4 ► 1.
    let way: Vec<u32> =
        [(1, 0), (3, 0), (4, 0)].iter().filter_map(|(from, case)| site(*from, *case)).collect();
    assert!(way.len() > 1, "loops say nothing of which arm it is: {sites:?}");
    for entry in std::fs::read_dir(trace.join("inside")).expect("a folder").flatten() {
        if entry.path().extension().is_none_or(|end| end != "pool") {
            continue;
        }
        let mut pool = std::fs::read(entry.path()).expect("a pool");
        for chunk in pool.chunks_mut(4096).skip(1).filter(|chunk| chunk[24..28] == number.to_le_bytes()) {
            let records = (0..rounds).flat_map(|_| way.iter()).zip(1u32..);
            for (last, at) in records {
                let words = [7 + at, 1, 1, *last].map(u32::to_le_bytes).concat();
                chunk[64 + 16 * at as usize..][..16].copy_from_slice(&words);
            }
        }
        std::fs::write(entry.path(), pool).expect("written");
    }
}

fn cached(bed: &Bed) -> usize {
    std::fs::read_dir(bed.cache().join("hetrace/inside")).expect("a cache").count()
}

#[test]
fn a_second_run_records_where_the_first_was_rarely() {
    let bed = Bed::new(arms().as_bytes());
    let first = bed.run(EDGES, &["data"], &[]);
    check_recorded(&first);
    let before = kernel(&first, "k1000");
    assert!(before["weights"].is_null() && before["text"].as_str().is_some_and(|text| text.len() == 16));
    let trace = first.scratch.path().join("trace");
    go_around(&trace, &before, 20);
    let shown = trace.display().to_string();
    let with: Vec<&str> = EDGES.iter().copied().chain(["--inside-weights", &shown]).collect();
    let second = bed.run(&with, &["data"], &[]);
    check_recorded(&second);
    let after = kernel(&second, "k1000");
    let real = std::fs::canonicalize(&trace).expect("a trace").display().to_string();
    assert_eq!(after["weights"], serde_json::json!({ "trace": real }));
    assert_eq!((&after["text"], &after["successors"]), (&before["text"], &before["successors"]));
    // One edge of the way around, where there were two.
    let around = |kernel: &serde_json::Value| {
        let on = |site: &&serde_json::Value| {
            [(1, 0), (3, 0), (4, 0)].map(|(f, c)| serde_json::json!(["edge", f, c])).contains(site)
        };
        kernel["sites"].as_array().expect("sites").iter().filter(on).count()
    };
    assert_eq!((around(&before), around(&after)), (2, 1), "{before} {after}");
    assert_eq!(cached(&bed), 2, "another code");
    let said = notes(&second);
    assert!(said.contains(&format!("it was chosen by {real} where 2 kernels record")), "{said}");
    // The reader goes by what the trace says, as ever.
    let (text, _) = read(&second, &["tally", "--inside"]);
    assert!(text.contains("k1000"), "{text}");
    // The same weights are the same code, others are not.
    check_recorded(&bed.run(&with, &["data"], &[]));
    assert_eq!(cached(&bed), 2);
    go_around(&trace, &before, 21);
    check_recorded(&bed.run(&with, &["data"], &[]));
    assert_eq!(cached(&bed), 3);
}

#[test]
fn a_kernel_whose_text_changed_is_named_and_has_its_own_places() {
    let first = Bed::new(TEXT.as_bytes()).run(EDGES, &["data"], &[]);
    let shown = first.scratch.path().join("trace").display().to_string();
    let with: Vec<&str> = EDGES.iter().copied().chain(["--inside-weights", &shown]).collect();
    let bed = Bed::new(arms().as_bytes());
    let (plain, second) = (bed.run(EDGES, &["data"], &[]), bed.run(&with, &["data"], &[]));
    check_recorded(&second);
    let of = |run: &Run| kernel(run, "k1000");
    assert_eq!(of(&second)["weights"]["unused"], "its text is another one there");
    assert_eq!(of(&second)["sites"], of(&plain)["sites"]);
    assert!(kernel(&second, "k2000")["weights"]["unused"].is_null());
    let said = notes(&second);
    assert!(said.contains("--inside-weights: not used for k1000: its text is another one there"), "{said}");
    assert!(said.contains("where 1 kernels record"), "{said}");
}

#[test]
fn what_says_nothing_is_an_error_before_the_program_starts() {
    let bed = Bed::new(TEXT.as_bytes());
    let plain = bed.run(&[], &["data"], &[]);
    let trace = plain.scratch.path().join("trace").display().to_string();
    let empty = bed.folder.path().display().to_string();
    let started = bed.folder.path().join("started").display().to_string();
    for (mode, path, why) in [
        ("edges", "/nonexistent/trace", "No such file"),
        ("edges", &*empty, "--inside-weights"),
        ("edges", &*trace, "nothing was recorded inside kernels there"),
        ("paths", &*trace, "in mode paths nothing is chosen by weights"),
    ] {
        let mut line = std::process::Command::new(hetrace_tests::hetrace());
        line.args([
            "run",
            "--inside",
            "*",
            "--inside-mode",
            mode,
            "--inside-weights",
            path,
            "--",
            "touch",
            &started,
        ]);
        let done = line.output().expect("hetrace");
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{path}: {error}");
        assert!(error.contains(why) && error.contains("--inside-weights"), "{why}: {error}");
        assert!(!Path::new(&started).exists());
    }
}
