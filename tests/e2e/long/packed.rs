//! Long runs in one file.

use super::*;

/// What a command prints, without the names of what it was given.
fn printed(command: &[&str], trace: &Path) -> String {
    let done = run(Command::new(hetrace()).args(command).arg(trace));
    assert_eq!(done.status, 0, "{command:?}: {}", done.err);
    done.out.replace(&trace.display().to_string(), "TRACE")
}

fn timeline(trace: &Path, to: &Path) -> Vec<u8> {
    let done = run(Command::new(hetrace()).arg("timeline").arg(trace).arg("-o").arg(to));
    assert_eq!(done.status, 0, "{}", done.err);
    let line = std::fs::read(to).expect("a time line");
    std::fs::remove_file(to).expect("removed");
    line
}

fn hetrace_of(command: &[&str], trace: &Path, to: &Path) -> Done {
    run(Command::new(hetrace()).args(command).arg(trace).arg("-o").arg(to))
}

#[test]
fn a_packed_series_is_read_as_its_folder() {
    let os: &[&str] = if hetrace_tests::has_tracepoints() { &["--os", "tree"] } else { &[] };
    for options in [
        &["--rotate-size", "64K"][..],
        &["--rotate-size=64K", "--compress"],
        &["--rotate-size=64K", "--keep=3"],
    ] {
        let mut long = Long::start(&[options, os].concat(), &["launch:2000", "threads:3", "launch:6000"]);
        let (status, err) = long.end();
        assert_eq!(status, Some(0), "{err}");
        assert!(long.parts().len() > 1);
        let (file, back) = (long.path("job.tar"), long.path("back"));
        let packed = hetrace_of(&["pack"], &long.trace, &file);
        assert_eq!(packed.status, 0, "{}", packed.err);
        let unpacked = hetrace_of(&["unpack"], &file, &back);
        assert_eq!((unpacked.status, &*unpacked.err), (0, ""));
        let same = run(Command::new("diff").arg("-r").arg(&long.trace).arg(&back));
        assert_eq!(same.status, 0, "{}", same.out);
        is_complete(&file);
        for command in [&["tally", "--json"][..], &["print"], &["why"], &["tally", "--by", "thread"]] {
            let [folder, packed, unpacked] = [&long.trace, &file, &back].map(|trace| printed(command, trace));
            assert!(!folder.is_empty() && packed == folder, "{command:?} of what is packed");
            assert!(unpacked == folder, "{command:?} of what is unpacked");
        }
        let [folder, packed] = [&long.trace, &file].map(|trace| timeline(trace, &long.path("line")));
        assert!(folder == packed, "timeline of what is packed");
        // It can be cut and made one trace as the folder can.
        let whole = long.path("whole");
        assert_eq!(hetrace_of(&["merge"], &file, &whole).status, 0);
        assert_eq!(sums(&whole), sums(&long.trace));
        // Once it is in the file, the folder can go.
        let second = long.path("second.tar");
        let removed = hetrace_of(&["pack", "--remove"], &long.trace, &second);
        assert_eq!(removed.status, 0, "{}", removed.err);
        assert!(!long.trace.exists());
        assert_eq!(sums(&second), sums(&back));
    }
}

#[test]
fn a_pack_that_is_killed_leaves_the_folder_as_it_was() {
    let mut long = Long::start(&["--rotate-size", "64K"], &["launch:20000"]);
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    let listed =
        |folder: &Path| run(Command::new("find").arg(folder).args(["-type", "f", "-size", "+0"])).out.len();
    let (before, expected) = (listed(&long.trace), sums(&long.trace));
    let file = long.path("job.tar");
    let shim = program("launcher.so").display().to_string();
    let hidden = |name: &str| {
        let entries = std::fs::read_dir(long.scratch.path()).expect("a folder").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().contains(name)).count()
    };
    // While it is written, at whatever moment.
    for wait in [0, 5, 20, 60, 120] {
        let mut pack = Command::new(hetrace());
        pack.args(["pack", "--level", "19", "--remove"]).arg(&long.trace).arg("-o").arg(&file);
        let mut pack = pack.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("hetrace");
        std::thread::sleep(Duration::from_millis(wait));
        let _ = pack.kill();
        let _ = pack.wait();
        // Either it has not come to its end, and the folder is whole; or it has, and the file is.
        if !long.trace.exists() {
            assert_eq!(sums(&file), expected);
            return;
        }
        assert_eq!((listed(&long.trace), sums(&long.trace)), (before, expected.clone()));
        let _ = std::fs::remove_file(&file);
    }
    // When all is in the file, and the folder is to go.
    let mut pack = Command::new(hetrace());
    pack.args(["pack", "--remove"]).arg(&long.trace).arg("-o").arg(&file);
    pack.env("LD_PRELOAD", shim).env("KILL_AT", "remove:manifest.json");
    assert_ne!(run(&mut pack).status, 0);
    assert_eq!(sums(&file), expected);
    assert!(!long.trace.exists() && hidden(".trace.") > 0, "what is half removed has a hidden name");
}

#[test]
fn what_is_recorded_is_not_removed() {
    let script = ["launch:6000", "touch:a", "wait:b"];
    let mut long = Long::start(&["--rotate-size", "64K"], &script);
    long.until("a");
    wait_for("a part", || long.trace.join("0002").exists());
    let file = long.path("job.tar");
    let refused = hetrace_of(&["pack", "--remove"], &long.trace, &file);
    assert!(refused.status != 0 && refused.err.contains("still being recorded"), "{}", refused.err);
    assert!(!file.exists());
    let packed = hetrace_of(&["pack"], &long.trace, &file);
    assert!(packed.status == 0 && packed.err.contains("still being recorded"), "{}", packed.err);
    assert!(launched(&file) > 0);
    long.go("b");
    let (status, err) = long.end();
    assert_eq!(status, Some(0), "{err}");
    let inside = hetrace_of(&["pack"], &long.trace, &long.trace.join("job.tar"));
    assert!(inside.status != 0 && inside.err.contains("inside the trace"), "{}", inside.err);
    let nothing = hetrace_of(&["unpack"], &long.trace, &long.path("x"));
    assert!(nothing.status != 0 && nothing.err.contains("not a packed trace"), "{}", nothing.err);
}
