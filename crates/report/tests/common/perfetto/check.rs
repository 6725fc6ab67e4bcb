//! What Perfetto asks of a file, and what ours promise beyond.

use std::collections::{HashMap, HashSet};

use super::{Drawing, Event, Item, Track};

/// How much there is in a file, as Perfetto counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Slices, instants included.
    pub slices: usize,
    /// Arrows from slice to slice.
    pub flows: usize,
    /// Values of counters.
    pub values: usize,
}

/// Panics if something is wrong.
pub fn check(drawing: &Drawing) -> Found {
    let tracks = described(drawing);
    let mut found = Found::default();
    let mut by_track: HashMap<u64, Vec<&Event>> = HashMap::new();
    for event in drawing.events() {
        by_track.entry(event.track).or_default().push(event);
    }
    for (uuid, events) in &by_track {
        let track = tracks[uuid];
        if track.counter {
            found.values += events.len();
            counter(track, events);
        } else {
            found.slices += nested(track, events);
        }
    }
    found.flows = flows(drawing);
    found
}

/// All rows; each has been described before it is a parent or has events, and
/// only threads are described twice.
fn described(drawing: &Drawing) -> HashMap<u64, &Track> {
    let mut tracks: HashMap<u64, &Track> = HashMap::new();
    for item in &drawing.items {
        match item {
            Item::Clock(_) => {}
            Item::Track(track) => {
                let parent = track.parent;
                assert!(parent.is_none_or(|p| tracks.contains_key(&p)), "{}: a known parent", track.name);
                let old = tracks.insert(track.uuid, track);
                let again = old.is_none_or(|old| old.is_thread && old.parent == parent);
                assert!(again, "{}: rows have numbers of their own", track.name);
            }
            Item::Event(event) => assert!(tracks.contains_key(&event.track), "a known row"),
        }
    }
    tracks
}

fn counter(track: &Track, events: &[&Event]) {
    let ordered = events.windows(2).all(|pair| pair[0].time <= pair[1].time);
    assert!(ordered, "{}: values are in the order of time", track.name);
    for event in events {
        assert_eq!(event.kind, 4, "{}: a counter has values only", track.name);
        assert!(event.value.is_finite(), "{}", track.name);
    }
}

/// Slices and instants of a row. Perfetto sorts by time and takes each end as
/// that of the innermost open slice; slices that overlap would be cut.
fn nested(track: &Track, events: &[&Event]) -> usize {
    let mut sorted: Vec<&Event> = events.to_vec();
    sorted.sort_by_key(|event| event.time);
    let mut open: Vec<&Event> = Vec::new();
    let mut as_perfetto: Vec<(u64, u64)> = Vec::new();
    for event in &sorted {
        match event.kind {
            1 => open.push(event),
            2 => {
                let begin =
                    open.pop().unwrap_or_else(|| panic!("{}: an end without a beginning", track.name));
                as_perfetto.push((begin.time, event.time));
            }
            3 => {}
            kind => panic!("{}: no event of a row with slices: {kind}", track.name),
        }
    }
    assert!(open.is_empty(), "{}: a beginning without an end", track.name);
    // Where a beginning and its end are written together, they must come back together.
    let mut written: Vec<(u64, u64)> = Vec::new();
    let together = events.chunks(2).filter(|pair| pair.len() == 2 && pair[0].kind == 1 && pair[1].kind == 2);
    written.extend(together.map(|pair| (pair[0].time, pair[1].time)));
    if written.len() * 2 == events.len() {
        as_perfetto.sort_unstable();
        written.sort_unstable();
        assert_eq!(as_perfetto, written, "{}: no slices overlap", track.name);
    }
    sorted.iter().filter(|event| event.kind != 2).count()
}

/// Arrows: each mention of a flow after its first, until it ends.
fn flows(drawing: &Drawing) -> usize {
    let mut sorted: Vec<&Event> = drawing.events().collect();
    sorted.sort_by_key(|event| event.time);
    let (mut begun, mut arrows) = (HashSet::new(), 0);
    for event in sorted {
        for flow in &event.flows {
            arrows += usize::from(!begun.insert(*flow));
        }
        for flow in &event.ends {
            assert!(begun.remove(flow), "an arrow ends that has no beginning");
            arrows += 1;
        }
    }
    arrows
}
