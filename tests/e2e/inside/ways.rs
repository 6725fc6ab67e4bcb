//! Ways in of which the program has code or handles in between: nodes of graphs, and links; and code without a way in.

use super::*;

/// Nodes of any kind's functions, and kernels that nodes are given later. The program sees its own kernels in them.
#[test]
fn nodes_of_graphs_launch_twins_however_they_are_set() {
    let bed = Bed::new(TEXT.as_bytes());
    let seen = "nodes: k1000 k1000\nnodes: k2000 k1000\na copy: 1\n";
    let bare = bed.run(&[], &["nodes"], &[]);
    check_seen(&bare, seen);
    assert_eq!(ran(&bare), twins(&[("k1000", 4), ("k2000", 4)]));
    let run = bed.run(ALL, &["nodes"], &[]);
    check_seen(&run, seen);
    assert_eq!(ran(&run), twins(&[("k1000__hetrace_inside", 4), ("k2000__hetrace_inside", 4)]));
    assert_eq!(chunks(&run), [8]);
    // A kernel that is not chosen is not, and one whose twin the driver does not want in a node is there as it is.
    let run = bed.run(&["--inside", "k2000", "--inside-sample", "launches:1"], &["nodes"], &[]);
    check_seen(&run, seen);
    assert_eq!(ran(&run), twins(&[("k1000", 4), ("k2000__hetrace_inside", 4)]));
    let run = bed.run(ALL, &["nodes"], &[("FAKE_CUDA_REFUSES_LAUNCH", "k1000__hetrace")]);
    check_seen(&run, seen);
    assert_eq!(ran(&run), twins(&[("k1000", 4), ("k2000__hetrace_inside", 4)]));
}

/// A node that was captured with a library's kernel: the driver names its function and the kernel, and both are the program's.
#[test]
fn what_was_captured_shows_the_programs_kernel() {
    let bed = Bed::new(TEXT.as_bytes());
    let seen = "its kernel: 1 1 1, nothing behind: 1\n";
    let bare = bed.run(&[], &["captured"], &[]);
    check_seen(&bare, seen);
    assert_eq!(ran(&bare), twins(&[("k1000", 1)]));
    let run = bed.run(ALL, &["captured"], &[]);
    check_seen(&run, seen);
    assert_eq!(ran(&run), twins(&[("k1000__hetrace_inside", 1)]));
}

/// What the program links has twins of the kernels in its inputs, as bytes and as files.
#[test]
fn linked_code_has_twins() {
    let bed = Bed::new(TEXT.as_bytes());
    let other = bed.folder.path().join("other");
    std::fs::write(
        &other,
        TEXT.replace("k1000", "m1000").replace("k2000", "m2000").replace("k3000", "m3000"),
    )
    .expect("written");
    let other = other.display().to_string();
    let alone = format!("log: \"linked\"\n{}", SEEN.repeat(2));
    let both = alone.replace("3: k1000 k2000 k3000", "6: k1000 k2000 k3000 m1000 m2000 m3000");
    let bare = bed.run(&[], &["link", "3", &other], &[]);
    check_seen(&bare, &both);
    let run = bed.run(ALL, &["link", "3", &other], &[]);
    check_seen(&run, &both);
    let six = [("k1000__hetrace_inside", 6), ("k2000__hetrace_inside", 6)];
    assert_eq!(ran(&run), twins(&six), "{}", notes(&run));
    assert_eq!((chunks(&run), descriptions(&run).len()), (vec![12], 2));
    run.check_no_misuse();
    // Where the driver refuses code with twins, or to link it, the program has its own.
    for (variable, said) in [
        ("FAKE_CUDA_REFUSES", "refused to link code with twins (CUDA error 218)"),
        ("FAKE_CUDA_REFUSES_LINK", "refused to link code with twins (CUDA error 209)"),
    ] {
        let run = bed.run(ALL, &["link"], &[(variable, "__hetrace_inside")]);
        check_seen(&run, &alone);
        assert_eq!(ran(&run), twins(&[("k1000", 6), ("k2000", 6)]));
        assert!(notes(&run).contains(said), "{}", notes(&run));
        run.check_no_misuse();
    }
}

/// A machine code file of empty sections that have these names, by their places in a table of names.
fn sections(names: &[u8], places: &[u32]) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    let count = places.len() as u16 + 1;
    let header = |name: u32, size: usize| {
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[4] = 1;
        header[0x18] = 64;
        header[0x20..0x28].copy_from_slice(&(size as u64).to_le_bytes());
        header
    };
    bytes[0x28..0x30].copy_from_slice(&((64 + names.len()) as u64).to_le_bytes());
    bytes[0x3a..0x40].copy_from_slice(&[64, 0, count as u8, 0, places.len() as u8, 0]);
    let headers = places.iter().map(|name| header(*name, 0)).chain([header(0, names.len())]);
    [bytes, names.to_vec(), headers.collect::<Vec<_>>().concat()].concat()
}

/// NVRTC gives machine code, and has its text: what loads the code finds it.
#[test]
fn code_of_nvrtc_has_its_text() {
    let bed = Bed::new(TEXT.as_bytes());
    let run = bed.run(ALL, &["rtc"], &[]);
    assert_eq!(run.done.status, 0, "{}{}", run.done.out, run.done.err);
    check_recorded(&run);
    let calls = print(&run);
    for call in ["nvrtcCreateProgram(", "nvrtcCompileProgram(", "options=[\"-arch=sm_90\"]", "nvrtcGetCUBIN("]
    {
        assert!(calls.contains(call), "{call}: {calls}");
    }
    // What we ask for is in no trace.
    assert!(!calls.contains("nvrtcGetPTX"), "{calls}");
    let bare = bed.run(&[], &["rtc"], &[]);
    assert_eq!(ran(&bare), twins(&[("k1000", 3), ("k2000", 3)]));
    assert!(!print(&bare).contains("nvrtcGetPTX"));
}

/// The recording, printed.
pub fn print(run: &Run) -> String {
    let mut line = std::process::Command::new(hetrace_tests::hetrace());
    line.arg("print").arg(run.scratch.path().join("trace"));
    hetrace_tests::bed::run(&mut line).out
}

/// Kernels of machine code are named, if they were wanted.
#[test]
fn kernels_of_machine_code_are_named() {
    let names = b"\0.nv.constant0.k1000\0.nv.constant0._Z1mv\0.text.k1000\0";
    let run = Bed::new(&sections(names, &[1, 22, 42])).run(&["--inside", "k*"], &["data"], &[]);
    assert_eq!(run.done.status, 0, "{}", run.done.err);
    assert_eq!(ran(&run), twins(&[("k1000", 3), ("k2000", 3)]));
    let said = notes(&run);
    assert!(said.contains("k1000 is as it was: no PTX in it"), "{said}");
    assert!(!said.contains("_Z1mv") && !said.contains("the kernels of image"), "{said}");
}
