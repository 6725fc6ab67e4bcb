//! Every interleaving of programs that leave notes and the launcher that reads them, explored by loom:
//! `RUSTFLAGS="--cfg loom" cargo test -p hetrace-ring --test loom_notes --release`.
//!
//! Each ordering and step that a test names was weakened or left out once, and the test failed.
#![cfg(loom)]

use hetrace_ring::abi::Notes;
use hetrace_ring::note::{Byte, note, read};
use loom::sync::Arc;
use loom::sync::atomic::AtomicU32;
// Of the test, not of what is tested: loom need not know of them.
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a note of one letter.
const ONE: usize = 7;

/// Memory for so many bytes of notes.
fn memory(bytes: usize) -> Arc<(Notes, Vec<Byte>)> {
    let notes = Notes { used: AtomicU32::new(0), lost: AtomicU32::new(0) };
    Arc::new((notes, (0..bytes).map(|_| Byte::new(0)).collect()))
}

/// A note that is found was written whole, and one that is being written is not taken for damage.
/// In `note` that one byte is stored last, and Release; in `read` Acquire.
#[test]
fn a_note_is_found_whole_or_not_at_all() {
    static FOUND: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let memory = memory(2 * ONE);
        let reader = {
            let memory = memory.clone();
            loom::thread::spawn(move || {
                let found = read(&memory.0, &memory.1);
                assert!(!found.damaged);
                FOUND.fetch_add(found.texts.len(), Ordering::Relaxed);
                assert!(found.texts.iter().all(|text| text == "a"));
            })
        };
        note(&memory.0, &memory.1, b"a");
        reader.join().unwrap();
        assert_eq!(read(&memory.0, &memory.1).texts, ["a"]);
    });
    assert!(FOUND.load(Ordering::Relaxed) > 0, "loom has not tried what this is about");
}

/// Where there is room for one, one of two writers has it, and the other's is counted; so is one that is too long for
/// what is left, which takes nothing from others. The exchange in `note`.
#[test]
fn what_finds_no_room_harms_no_other() {
    loom::model(|| {
        let memory = memory(2 * ONE);
        let writers = [&b"too long for it"[..], b"a"].map(|text| {
            let memory = memory.clone();
            loom::thread::spawn(move || note(&memory.0, &memory.1, text))
        });
        note(&memory.0, &memory.1, b"b");
        for writer in writers {
            writer.join().unwrap();
        }
        let mut found = read(&memory.0, &memory.1);
        found.texts.sort();
        assert_eq!(
            (found.texts, found.lost, found.damaged),
            (vec!["a".to_owned(), "b".to_owned()], 1, false)
        );
    });
}
