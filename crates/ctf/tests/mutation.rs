//! Whatever bytes there are, the reader ends, and without a panic.

mod common;

use std::path::Path;

use hetrace_ctf::class::Scope;
use hetrace_ctf::read::{Merge, Trace};
use hetrace_ctf::tsdl;
use proptest::prelude::*;

type Parts = (Vec<u8>, Vec<Vec<u8>>);

fn demo() -> Parts {
    let streams = (0..2).map(|i| common::stream(i, 3, 2)).collect();
    (tsdl::print(&common::class()).into_bytes(), streams)
}

fn lttng() -> Parts {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lttng-ust");
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    (read("metadata"), vec![read("ch_0"), read("ch_1")])
}

fn ctf2() -> Parts {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ctf2");
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    (read("metadata"), vec![read("stream-0"), read("stream-1")])
}

fn barectf() -> Parts {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/barectf/trace-be");
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    (read("metadata"), vec![read("stream"), Vec::new()])
}

fn any_of(which: usize) -> Parts {
    [demo, lttng, ctf2, barectf][which]()
}

/// Reads everything in every way; gives how many events and errors there were.
fn exhaust(metadata: &[u8], streams: &[Vec<u8>]) -> Option<(usize, usize)> {
    exhaust_named(metadata, streams, "")
}

fn exhaust_named(metadata: &[u8], streams: &[Vec<u8>], suffix: &str) -> Option<(usize, usize)> {
    let streams: Vec<_> =
        streams.iter().enumerate().map(|(i, s)| (format!("{i}{suffix}"), s.clone())).collect();
    // Of each of the few compressed bytes there may come many.
    let factor = if suffix.is_empty() { 1 } else { 1 << 16 };
    let bytes: usize = streams.iter().map(|(_, s)| s.len() * factor).sum();
    let trace = Trace::from_parts(metadata, streams).ok()?;
    let mut merge = Merge::new(&trace);
    let (mut events, mut errors) = (0, 0);
    while let Some(event) = merge.next_event() {
        let Ok(event) = event else {
            errors += 1;
            continue;
        };
        events += 1;
        let _ = (event.ns_from_origin(), event.packet(), event.offset());
        for scope in Scope::ALL {
            let _ = event.value(scope);
        }
        for field in &event.class().fields.fields {
            let _ = event.get(&field.name);
        }
        // Each event and each packet takes a bit at least.
        assert!(events + errors <= bytes * 8 + 8);
    }
    Some((events, errors))
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
    if bytes.is_empty() {
        return;
    }
    match change {
        Change::Flip(at, bits) => {
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
        }
        Change::Cut(at) => bytes.truncate(at.index(bytes.len())),
        Change::Insert(at, new) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Change::Remove(at, count) => {
            let at = at.index(bytes.len());
            bytes.drain(at..(at + count).min(bytes.len()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn streams(which in 0usize..4, changes in prop::collection::vec((change(), any::<bool>()), 1..6)) {
        let (metadata, mut streams) = any_of(which);
        for (change, second) in &changes {
            apply(&mut streams[usize::from(*second)], change);
        }
        prop_assert!(exhaust(&metadata, &streams).is_some());
    }

    #[test]
    fn compressed(which in 0usize..4, changes in prop::collection::vec((change(), any::<bool>()), 1..6)) {
        let (metadata, streams) = any_of(which);
        let mut streams: Vec<Vec<u8>> = streams
            .iter()
            .map(|s| s.chunks(1000).flat_map(|c| zstd::bulk::compress(c, 3).unwrap()).collect())
            .collect();
        for (change, second) in &changes {
            apply(&mut streams[usize::from(*second)], change);
        }
        prop_assert!(exhaust_named(&metadata, &streams, ".zst").is_some());
    }

    #[test]
    fn metadata(which in 0usize..4, changes in prop::collection::vec(change(), 1..4)) {
        let (mut metadata, streams) = any_of(which);
        for change in &changes {
            apply(&mut metadata, change);
        }
        exhaust(&metadata, &streams);
    }

    #[test]
    fn any_text(text in "[a-z{}\\[\\]<>:;=,.\" 0-9]{0,200}") {
        let _ = tsdl::parse(text.as_bytes());
    }

    #[test]
    fn shuffled_words(words in prop::collection::vec(0usize..26, 0..80)) {
        const WORDS: [&str; 26] = [
            "struct", "{", "}", ";", "event", "fields", ":=", "integer", "size = 8;", "variant", "<", ">",
            "enum", ":", "x", "[", "]", "3", "=", "string", "typealias", "typedef", "stream", "align(8)",
            ".", "{ string a; } ",
        ];
        let text: Vec<_> = words.iter().map(|&w| WORDS[w]).collect();
        let _ = tsdl::parse(text.join(" ").as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Whole words of JSON exchanged for others: what is left is often JSON, and
    /// rarely what it was.
    #[test]
    fn words_of_ctf2(changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..20), 1..6)) {
        const WORDS: [&str; 20] = [
            "0", "1", "64", "18446744073709551615", "-9223372036854775808", "null", "[]", "{}", "\"byte\"",
            "\"variant\"", "\"optional\"", "\"structure\"", "\"dynamic-length-array\"", "\"n\"", "[[0, 255]]",
            "\"variable-length-signed-integer\"", "\"dynamic-length-blob\"", "{\"path\": [null, \"n\"]}",
            "\"event-record-class-id\"", "\"dynamic-length-string\"",
        ];
        let (metadata, streams) = ctf2();
        let mut text = String::from_utf8(metadata).unwrap();
        for (at, word) in changes {
            // A number or a text somewhere behind a colon.
            let starts: Vec<usize> = text.match_indices(": ").map(|(at, _)| at + 2).collect();
            let start = starts[at.index(starts.len())];
            let rest = &text[start..];
            let end = match rest.as_bytes()[0] {
                b'"' => rest[1..].find('"').map(|end| end + 2),
                _ => rest.find([',', '}', ']']),
            };
            text.replace_range(start..start + end.unwrap_or(0), WORDS[word]);
        }
        if let Ok(class) = hetrace_ctf::metadata::parse(text.as_bytes()) {
            let printed = hetrace_ctf::ctf2::print(&class).unwrap();
            prop_assert_eq!(hetrace_ctf::metadata::parse(printed.as_bytes()).unwrap(), class, "{}", printed);
        }
        exhaust(text.as_bytes(), &streams);
    }
}

#[test]
fn unchanged_traces_are_whole() {
    let (metadata, streams) = ctf2();
    assert_eq!(exhaust(&metadata, &streams), Some((12, 0)));
    let (metadata, streams) = barectf();
    assert_eq!(exhaust(&metadata, &streams[..1]), Some((24, 0)));
    let (metadata, streams) = lttng();
    assert_eq!(exhaust(&metadata, &streams), Some((48, 0)));
    let (metadata, streams) = demo();
    assert_eq!(exhaust(&metadata, &streams), Some((24, 0)));
}
