//! Packing and unpacking.

mod common;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use common::{babeltrace, events, events_of, files, go_on, tool, write};
use hetrace_ctf::read::{Files, OpenError, Part, Repeated, Trace};
use hetrace_ctf::tsdl;
use hetrace_edit::{Error, PackOptions, pack, unpack};
use proptest::prelude::*;

const LEVEL_1: PackOptions = PackOptions { level: 1, remove: false };

/// A trace with everything that a folder may have.
fn all_sorts(folder: &Path) {
    write(folder, &[(3, 40), (1, 1)]);
    fs::write(folder.join("s-0-late"), fs::read(folder.join("s-1")).unwrap()).unwrap();
    // Compressed by the recorder; and one beside that has its name in the packed file.
    let frame = zstd::bulk::compress(&common::demo::stream(2, 2, 9), 3).unwrap();
    fs::write(folder.join("z.zst"), &frame).unwrap();
    fs::write(folder.join("z"), common::demo::stream(3, 1, 2)).unwrap();
    fs::write(folder.join("none"), "").unwrap();
    fs::write(folder.join("hetrace/manifest.json"), "{}").unwrap();
    fs::write(folder.join("hetrace/model/toy.json"), vec![b' '; 5000]).unwrap();
    fs::create_dir_all(folder.join("hetrace/blobs")).unwrap();
    fs::write(folder.join("hetrace/blobs").join("b".repeat(150)), "source").unwrap();
    fs::write(folder.join(".hidden"), "x").unwrap();
    fs::create_dir_all(folder.join("index")).unwrap();
    fs::write(folder.join("index/s-0.idx"), [0; 700]).unwrap();
}

#[test]
fn what_is_unpacked_is_what_was_packed() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, file, back) = (dir.path().join("a"), dir.path().join("a.tar"), dir.path().join("b"));
    all_sorts(&trace);
    let packed = pack(&trace, &file, &PackOptions::default(), &go_on).unwrap();
    assert_eq!(packed.files, files(&trace).len());
    assert!(packed.after == fs::metadata(&file).unwrap().len() && packed.after < packed.before);
    let unpacked = unpack(&file, &back, &go_on).unwrap();
    assert_eq!((unpacked.files, unpacked.problems), (packed.files, vec![]));
    assert_eq!(files(&trace), files(&back));
    // A packed trace is as old as what it was made of.
    let modified = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(modified(&file), modified(&trace.join("metadata")));
}

#[test]
fn a_packed_trace_is_read_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, file) = (dir.path().join("a"), dir.path().join("a.tar"));
    all_sorts(&trace);
    pack(&trace, &file, &LEVEL_1, &go_on).unwrap();
    let all = events(&trace);
    assert_eq!(all.len(), 2 * (120 + 1 + 1 + 18 + 2));
    assert_eq!(events(&file), all);
    let files = Files::open(&file).unwrap();
    assert_eq!(files.problems(), [""; 0]);
    assert_eq!(files.list("hetrace/model"), ["toy.json"]);
    assert_eq!(files.read("hetrace/model/toy.json").unwrap().unwrap(), vec![b' '; 5000]);
    assert_eq!(files.read("hetrace/none").unwrap(), None);
}

#[test]
fn frames_can_be_read_in_parallel() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, file) = (dir.path().join("a"), dir.path().join("a.tar"));
    // Several frames.
    write(&trace, &[]);
    fs::write(trace.join("s-0"), common::long(300, 250)).unwrap();
    pack(&trace, &file, &LEVEL_1, &go_on).unwrap();
    let (plain, packed) = (Trace::open(&trace).unwrap(), Trace::open(&file).unwrap());
    let parts = packed.parts(0, 3);
    assert_eq!(parts.len(), 3);
    let (mut joined, mut lost) = (Vec::new(), 0);
    for mut part in parts {
        let mut some = 0;
        while let Some(event) = part.next_event() {
            joined.push(common::line(&event.unwrap()));
            some += 1;
        }
        assert!(some > 4000 && some < 60_000, "{some}");
        assert_eq!(part.losses().packets, 0);
        lost += part.losses().events;
    }
    assert_eq!(lost, 300);
    assert!(joined == events_of(plain.streams()));
}

#[test]
fn other_tools_open_it() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, file) = (dir.path().join("a"), dir.path().join("b.tar"));
    write(&trace, &[(3, 40), (1, 1)]);
    fs::write(trace.join("hetrace/manifest.json"), "{}").unwrap();
    pack(&trace, &file, &LEVEL_1, &go_on).unwrap();
    let (there, out) = (file.to_str().unwrap(), dir.path().to_str().unwrap());
    if tool("tar", &["-xf", there, "-C", out]).is_none() {
        return;
    }
    let folder = dir.path().join("b");
    assert_eq!(events(&folder), events(&trace));
    for name in files(&folder).into_keys().filter(|name| name.ends_with(".zst")) {
        if tool("zstd", &["-q", "-d", "--rm", folder.join(name).to_str().unwrap()]).is_none() {
            return;
        }
    }
    fs::remove_file(folder.join("hetrace/packed")).unwrap();
    fs::remove_dir_all(trace.join("hetrace/model")).unwrap();
    assert_eq!(files(&folder), files(&trace));
    let Some(lines) = babeltrace(&folder) else { return };
    assert_eq!(lines.len(), 2 * 121);
    assert_eq!(lines, babeltrace(&trace).unwrap());
}

#[test]
fn what_tar_packs_is_read_too() {
    let dir = tempfile::tempdir().unwrap();
    let long = "d".repeat(120);
    let (trace, file) = (dir.path().join(&long), dir.path().join("a.tar"));
    write(&trace, &[(3, 40), (1, 1)]);
    let (there, out) = (file.to_str().unwrap(), dir.path().to_str().unwrap());
    for form in ["--format=gnu", "--format=pax"] {
        if tool("tar", &[form, "-cf", there, "-C", out, &format!("./{long}")]).is_none() {
            return;
        }
        assert_eq!(events(&file), events(&trace), "{form}");
        let back = dir.path().join(form);
        assert_eq!(unpack(&file, &back, &go_on).unwrap().problems, [""; 0]);
        assert_eq!(files(&back), files(&trace), "{form}");
    }
}

#[test]
fn one_trace_inside_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    let session = dir.path().join("session");
    write(&session.join("ust/uid/0/64-bit"), &[(1, 1)]);
    assert_eq!(events(&session).len(), 2);
    write(&session.join("kernel"), &[(1, 1)]);
    let error = Trace::open(&session).unwrap_err();
    assert!(matches!(&error, OpenError::SeveralTraces { found, .. } if found.len() == 2));
    assert!(error.to_string().contains("session/kernel") && error.to_string().contains("hetrace merge"));
    // Those of others cannot be merged.
    fs::remove_dir_all(session.join("kernel/hetrace")).unwrap();
    assert!(!Trace::open(&session).unwrap_err().to_string().contains("hetrace merge"));
    let none = dir.path().join("none");
    fs::create_dir(&none).unwrap();
    assert!(matches!(Trace::open(&none), Err(OpenError::NoTrace { .. })));
    fs::write(none.join("text"), "no archive").unwrap();
    assert!(matches!(Trace::open(&none.join("text")), Err(OpenError::NoTrace { .. })));
}

#[test]
fn nothing_is_overwritten_and_nothing_left_of_what_was_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, file) = (dir.path().join("a"), dir.path().join("a.tar"));
    write(&trace, &[(3, 40)]);
    let left = || fs::read_dir(dir.path()).unwrap().count();
    assert!(matches!(pack(&trace, &file, &LEVEL_1, &|_| ControlFlow::Break(())), Err(Error::Stopped)));
    assert_eq!(left(), 1);
    pack(&trace, &file, &LEVEL_1, &go_on).unwrap();
    assert!(matches!(pack(&trace, &file, &LEVEL_1, &go_on), Err(Error::Exists { .. })));
    assert!(matches!(unpack(&file, &trace, &go_on), Err(Error::Exists { .. })));
    assert!(matches!(pack(&file, &dir.path().join("b"), &LEVEL_1, &go_on), Err(Error::IsPacked { .. })));
    assert!(matches!(unpack(&trace, &dir.path().join("b"), &go_on), Err(Error::NotPacked { .. })));
    let stop = |_| ControlFlow::Break(());
    assert!(matches!(unpack(&file, &dir.path().join("b"), &stop), Err(Error::Stopped)));
    assert_eq!(left(), 2);
}

#[test]
fn a_folder_is_removed_when_it_is_all_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, file) = (dir.path().join("a"), dir.path().join("a.tar"));
    all_sorts(&trace);
    let before = files(&trace);
    std::os::unix::fs::symlink("nowhere", trace.join("link")).unwrap();
    let options = PackOptions { remove: true, ..LEVEL_1 };
    assert!(matches!(pack(&trace, &file, &options, &go_on), Err(Error::LeftOut { .. })));
    fs::remove_file(trace.join("link")).unwrap();
    assert_eq!(files(&trace), before);
    fs::remove_file(&file).unwrap();
    pack(&trace, &file, &options, &go_on).unwrap();
    assert!(!trace.exists());
    unpack(&file, &trace, &go_on).unwrap();
    assert_eq!(files(&trace), before);
}

#[test]
fn a_damaged_trace_can_be_packed() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, file, back) = (dir.path().join("a"), dir.path().join("a.tar"), dir.path().join("b"));
    write(&trace, &[(3, 40), (2, 2)]);
    fs::write(trace.join("metadata"), "no metadata").unwrap();
    let cut = fs::read(trace.join("s-0")).unwrap();
    fs::write(trace.join("s-0"), &cut[..cut.len() - 11]).unwrap();
    pack(&trace, &file, &LEVEL_1, &go_on).unwrap();
    unpack(&file, &back, &go_on).unwrap();
    assert_eq!(files(&trace), files(&back));
}

#[test]
fn what_is_missing_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, file) = (dir.path().join("a"), dir.path().join("a.tar"));
    write(&trace, &[(3, 40), (2, 2), (2, 2)]);
    pack(&trace, &file, &LEVEL_1, &go_on).unwrap();
    let bytes = fs::read(&file).unwrap();
    // Within the first stream.
    let at = bytes.windows(7).position(|w| w == b"s-1.zst").unwrap() - 600;
    fs::write(&file, &bytes[..at]).unwrap();
    let files = Files::open(&file).unwrap();
    let problems = files.problems().join("\n");
    for part in ["cut off", "a/s-0.zst", "s-1 (", "s-2 ("] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    let trace = Trace::from_files(&files).unwrap();
    let mut merge = hetrace_ctf::read::Merge::new(&trace);
    let mut damages = 0;
    while let Some(event) = merge.next_event() {
        damages += usize::from(event.is_err());
    }
    assert_eq!(damages, 1);
    let back = unpack(&file, &dir.path().join("b"), &go_on).unwrap();
    assert!(back.problems.len() > files.problems().len());
}

#[test]
fn nothing_gets_out_of_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.tar");
    let mut bytes = Vec::new();
    for name in ["t/metadata", "t/../../evil"] {
        bytes.extend(hetrace_ctf::archive::header(name, 1, 0));
        bytes.extend([b'x'; 512]);
    }
    bytes.extend(hetrace_ctf::archive::END);
    fs::write(&file, bytes).unwrap();
    assert!(matches!(unpack(&file, &dir.path().join("t"), &go_on), Err(Error::Name { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Writes the trace of a part with `count` packets, of which the first is repeated unless it is the first part.
fn part_of(folder: &Path, number: u32, count: u64, compressed: bool) {
    fs::create_dir_all(folder.join("hetrace/model")).unwrap();
    fs::write(folder.join("metadata"), tsdl::print(&common::demo::class())).unwrap();
    let bytes = common::demo::stream(0, count, 3);
    let trace = Trace::from_class(common::demo::class(), vec![("s".into(), bytes.clone())]).unwrap();
    let heads = trace.heads(0).unwrap().map(|head| head.offset as usize..(head.offset + head.size) as usize);
    let stored = |packet: &[u8]| match compressed {
        true => zstd::bulk::compress(packet, 3).unwrap(),
        false => packet.to_vec(),
    };
    let all: Vec<Vec<u8>> = heads.map(|range| stored(&bytes[range])).collect();
    fs::write(folder.join(if compressed { "s.zst" } else { "s" }), all.concat()).unwrap();
    let packets = u64::from(number > 1);
    let repeated = Repeated { bytes: all[..packets as usize].concat().len() as u64, packets };
    let mut part = Part { number, earlier: [("s".to_owned(), repeated)].into() };
    // So long that it is worth being compressed.
    part.earlier.extend((0..50).map(|n| (format!("another-{n}-of-this-part"), Repeated::default())));
    fs::write(folder.join(Part::FILE), part.to_text()).unwrap();
}

/// A series of three parts, one of which is gone; with two traces in each part if `kernel`.
fn series(folder: &Path, compressed: bool, kernel: bool) {
    for (number, count) in [(2, 4), (3, 3), (5, 6)] {
        let part = folder.join(Part::name(number));
        let program = if kernel { part.join("hetrace") } else { part.clone() };
        part_of(&program, number, count, compressed);
        if kernel {
            part_of(&part.join("kernel"), number, count + 1, compressed);
        }
        let (model, first) = ("hetrace/model/toy.json", folder.join("0002"));
        if number == 2 {
            fs::write(program.join(model), vec![b' '; 100_000]).unwrap();
        } else {
            let first = if kernel { first.join("hetrace") } else { first };
            fs::hard_link(first.join(model), program.join(model)).unwrap();
        }
    }
}

/// The events of the program and of the operating system.
fn both(path: &Path) -> (Vec<String>, Option<Vec<String>>) {
    let files = Files::open(path).unwrap();
    assert_eq!(files.problems(), [""; 0]);
    let of = |files: &Files| events_of(Trace::from_files(files).unwrap().streams());
    (of(&files), files.kernel().map(of))
}

#[test]
fn a_series_is_packed_with_all_its_parts() {
    for (compressed, kernel) in [(false, false), (true, false), (false, true), (true, true)] {
        let dir = tempfile::tempdir().unwrap();
        let (job, file, back) = (dir.path().join("job"), dir.path().join("a.tar"), dir.path().join("b"));
        series(&job, compressed, kernel);
        let expected = both(&job);
        // The first packet of the first part that is there is no repetition of anything.
        assert_eq!(expected.0.len(), 6 * (4 + 2 + 5));
        assert_eq!(expected.1.as_ref().map(Vec::len), kernel.then_some(6 * (5 + 3 + 6)));
        let packed = pack(&job, &file, &LEVEL_1, &go_on).unwrap();
        assert_eq!((packed.files, packed.left_out), (files(&job).len(), vec![]));
        assert_eq!(both(&file), expected, "packed");
        let names: Vec<String> = Files::open(&file).unwrap().parts().map(|part| part.name()).collect();
        assert_eq!(names, ["0002", "0003", "0005"]);
        // What the parts share is there once.
        let (members, _) = hetrace_ctf::archive::members(&fs::read(&file).unwrap());
        let models = members.iter().filter(|member| member.name.ends_with("toy.json.zst"));
        let places: std::collections::BTreeSet<usize> = models.clone().map(|one| one.range.start).collect();
        assert_eq!((models.count(), places.len()), (3, 1));
        assert_eq!(unpack(&file, &back, &go_on).unwrap().problems, [""; 0]);
        assert_eq!(files(&back), files(&job));
        assert_eq!(both(&back), expected, "unpacked");
        // A part of it can be packed alone, and is one then.
        let one = dir.path().join("0003.tar");
        pack(&job.join("0003"), &one, &LEVEL_1, &go_on).unwrap();
        assert_eq!(Files::open(&one).unwrap().parts().count(), 0);
        assert_eq!(both(&one), both(&job.join("0003")));
        assert!(unpack(&one, &dir.path().join("c"), &go_on).unwrap().problems.is_empty());
        assert_eq!(files(&dir.path().join("c")), files(&job.join("0003")));
    }
}

#[test]
fn what_tar_makes_of_a_packed_series_and_of_its_folder_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (job, file) = (dir.path().join("job"), dir.path().join("a.tar"));
    series(&job, false, true);
    let expected = both(&job);
    pack(&job, &file, &LEVEL_1, &go_on).unwrap();
    let (there, out) = (file.to_str().unwrap(), dir.path().to_str().unwrap());
    if tool("tar", &["-xf", there, "-C", out]).is_none() {
        return;
    }
    assert_eq!(both(&dir.path().join("a")), expected, "extracted");
    let by_hand = dir.path().join("c.tar");
    let by_hand_text = by_hand.to_str().unwrap();
    for what in [&["job"][..], &["./job"], &["-C", "job", "0002", "0003", "0005"]] {
        tool("tar", &[&["-cf", by_hand_text, "-C", out], what].concat()).unwrap();
        assert_eq!(both(&by_hand), expected, "{what:?}");
        let files = Files::open(&by_hand).unwrap();
        assert_eq!(files.parts().last().unwrap().files.list("hetrace/model"), ["toy.json"], "{what:?}");
    }
}

#[test]
fn a_series_is_removed_only_if_all_of_it_is_packed() {
    let dir = tempfile::tempdir().unwrap();
    let (job, file) = (dir.path().join("job"), dir.path().join("a.tar"));
    let options = PackOptions { remove: true, ..LEVEL_1 };
    for (kernel, other) in
        [(false, "notes"), (true, "0003/notes"), (true, "0003/kernel-2"), (false, ".0006.tmp")]
    {
        series(&job, false, kernel);
        let before = files(&job);
        fs::write(job.join(other), "mine").unwrap();
        let error = pack(&job, &file, &options, &go_on).unwrap_err();
        assert!(matches!(&error, Error::LeftOut { name, .. } if name == other), "{other}: {error}");
        fs::remove_file(job.join(other)).unwrap();
        assert_eq!(files(&job), before);
        fs::remove_file(&file).unwrap();
        pack(&job, &file, &options, &go_on).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left but the file");
        unpack(&file, &job, &go_on).unwrap();
        assert_eq!(files(&job), before);
        fs::remove_dir_all(&job).unwrap();
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_packed_series_that_is_cut_off_says_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (job, file) = (dir.path().join("job"), dir.path().join("a.tar"));
    series(&job, false, false);
    pack(&job, &file, &LEVEL_1, &go_on).unwrap();
    let bytes = fs::read(&file).unwrap();
    let (members, _) = hetrace_ctf::archive::members(&bytes);
    let begin = |name: &str| members.iter().find(|member| member.name == name).unwrap().range.start;
    // All of the last part is missing, but the list of what it had.
    fs::write(&file, &bytes[..begin("a/0005/metadata.zst") - 512]).unwrap();
    let files = Files::open(&file).unwrap();
    let problems = files.problems().join("\n");
    for part in ["cut off", "a/0005/metadata (", "a/0005/s ("] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    assert!(!problems.contains("0003"), "{problems}");
    assert_eq!(events_of(Trace::from_files(&files).unwrap().streams()).len(), 6 * (4 + 2));
    let back = unpack(&file, &dir.path().join("b"), &go_on).unwrap();
    assert_eq!(back.problems, files.problems());
    // At whatever byte: an error, or what is missing.
    for at in (0..bytes.len() - 1024).step_by(700) {
        fs::write(&file, &bytes[..at]).unwrap();
        match Files::open(&file) {
            Ok(files) => assert!(!files.problems().is_empty(), "{at} of {}", bytes.len()),
            Err(error) => assert!(matches!(error, OpenError::NoTrace { .. }), "{at}: {error}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_files_come_back(
        contents in proptest::collection::btree_map(
            "[a-z]{1,3}(\\.zst)?", proptest::collection::vec(any::<u8>(), 0..2000), 0..6),
        streams in proptest::collection::vec((0u64..3, 0u64..5), 0..3),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (trace, file, back) = (dir.path().join("a"), dir.path().join("a.tar"), dir.path().join("b"));
        write(&trace, &streams);
        for (name, content) in &contents {
            fs::write(trace.join(name), content).unwrap();
        }
        pack(&trace, &file, &LEVEL_1, &go_on).unwrap();
        prop_assert_eq!(unpack(&file, &back, &go_on).unwrap().problems, [""; 0]);
        prop_assert_eq!(files(&trace), files(&back));
    }

    #[test]
    fn no_bytes_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        keep in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (trace, file) = (dir.path().join("a"), dir.path().join("a.tar"));
        write(&trace, &[(3, 4), (1, 1)]);
        pack(&trace, &file, &LEVEL_1, &go_on).unwrap();
        let mut bytes = fs::read(&file).unwrap();
        if cut {
            bytes.truncate(keep.index(bytes.len()));
        }
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        fs::write(&file, &bytes).unwrap();
        if let Ok(trace) = Trace::open(&file) {
            let mut merge = hetrace_ctf::read::Merge::new(&trace);
            while merge.next_event().is_some() {}
            for stream in 0..trace.stream_count() {
                let mut parts = hetrace_ctf::read::Merge::of(trace.parts(stream, 3));
                while parts.next_event().is_some() {}
            }
        }
        let _ = unpack(&file, &dir.path().join("b"), &go_on);
    }
}
