//! No bytes make `check` panic, and none that were changed go by as what was written.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{go_on, write};
use hetrace_edit::{Checked, Form, Window, check, trim};
use proptest::prelude::*;

/// A trace of the demo with an account, as a trim makes it of all of it.
fn accounted(scratch: &Path, form: Form) -> PathBuf {
    let (whole, made) = (scratch.join("whole"), scratch.join("made"));
    write(&whole, &[(4, 3), (3, 2)]);
    trim(&whole, &made, &Window::default(), form, &go_on).unwrap();
    made
}

fn checked(folder: &Path) -> Checked {
    check(folder, &go_on).unwrap()
}

#[test]
fn what_was_written_is_sound() {
    for form in [Form::Plain, Form::Compressed] {
        let scratch = tempfile::tempdir().unwrap();
        let done = checked(&accounted(scratch.path(), form));
        assert!(done.is_sound() && done.verifiable, "{done:?}");
        assert_eq!((done.streams, done.packets, done.events), (2, 7, 36));
    }
}

/// Of a trace of another tracer only what it says of itself can be verified.
#[test]
fn foreign_traces_have_no_account() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/data/lttng-ust");
    let done = checked(&data);
    assert!(done.is_sound() && !done.verifiable, "{done:?}");
    assert_eq!((done.events, done.notes.len()), (48, 1), "{done:?}");
}

/// What is behind the packets of metadata is no reason to refuse the trace, and is said.
#[test]
fn bytes_behind_the_metadata_are_found() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ctf/tests/data/lttng-ust");
    let scratch = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(data).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), scratch.path().join(entry.file_name())).unwrap();
    }
    let metadata = scratch.path().join("metadata");
    let mut bytes = fs::read(&metadata).unwrap();
    bytes.extend([0; 5]);
    fs::write(&metadata, bytes).unwrap();
    let done = checked(scratch.path());
    assert_eq!((done.events, done.unusable), (48, None));
    let found: Vec<_> = done.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(found, ["metadata-cut"]);
}

/// Without an account, too, two streams with the same packets are one too many.
#[test]
fn copies_are_found_without_an_account() {
    let scratch = tempfile::tempdir().unwrap();
    write(scratch.path(), &[(4, 3), (3, 2)]);
    assert_eq!(checked(scratch.path()).findings, []);
    fs::copy(scratch.path().join("s-1"), scratch.path().join("s-9")).unwrap();
    let done = checked(scratch.path());
    assert_eq!(done.findings.len(), 1, "{done:?}");
    assert_eq!((done.findings[0].kind, &done.findings[0].file[..]), ("stream-copied", "s-9"));
}

#[derive(Clone, Debug)]
enum Change {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        6 => (at(), 1u8..).prop_map(|(at, bits)| Change::Flip(at, bits)),
        1 => at().prop_map(Change::Cut),
        1 => (at(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, b)| Change::Insert(at, b)),
        1 => (at(), 1usize..40).prop_map(|(at, n)| Change::Remove(at, n)),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let len = bytes.len();
    match change {
        _ if bytes.is_empty() => {}
        Change::Flip(at, bits) => bytes[at.index(len)] ^= bits,
        Change::Cut(at) => bytes.truncate(at.index(len)),
        Change::Insert(at, new) => _ = bytes.splice(at.index(len)..at.index(len), new.iter().copied()),
        Change::Remove(at, count) => _ = bytes.drain(at.index(len)..(at.index(len) + count).min(len)),
    }
}

/// Applies changes to a file; whether it is another now.
fn change_file(path: &Path, changes: &[Change]) -> bool {
    let before = fs::read(path).unwrap();
    let mut bytes = before.clone();
    changes.iter().for_each(|change| apply(&mut bytes, change));
    fs::write(path, &bytes).unwrap();
    bytes != before
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn changed_streams_are_never_sound(changes in prop::collection::vec(change(), 1..5), second in any::<bool>()) {
        let scratch = tempfile::tempdir().unwrap();
        let made = accounted(scratch.path(), Form::Plain);
        if change_file(&made.join(if second { "s-1" } else { "s-0" }), &changes) {
            prop_assert!(!checked(&made).is_sound());
        }
    }

    /// Of compressed ones what they hold counts: a bit of a frame may mean nothing.
    #[test]
    fn changed_frames_are_never_other_packets(changes in prop::collection::vec(change(), 1..5)) {
        let scratch = tempfile::tempdir().unwrap();
        let made = accounted(scratch.path(), Form::Compressed);
        let plain = || zstd::decode_all(&fs::read(made.join("s-0.zst")).unwrap()[..]).ok();
        let before = plain();
        change_file(&made.join("s-0.zst"), &changes);
        let done = checked(&made);
        prop_assert!(!done.is_sound() || plain() == before, "{:?}", done);
    }

    #[test]
    fn changed_metadata_is_never_sound(changes in prop::collection::vec(change(), 1..5)) {
        let scratch = tempfile::tempdir().unwrap();
        let made = accounted(scratch.path(), Form::Plain);
        if change_file(&made.join("metadata"), &changes) {
            // Without the title it is no metadata, and so no trace.
            prop_assert!(check(&made, &go_on).is_ok_and(|done| !done.is_sound()));
        }
    }

    #[test]
    fn changed_manifests_do_no_harm(changes in prop::collection::vec(change(), 1..5)) {
        let scratch = tempfile::tempdir().unwrap();
        let made = accounted(scratch.path(), Form::Plain);
        change_file(&made.join("hetrace/manifest.json"), &changes);
        checked(&made);
    }
}
