//! What stays and what goes.

use hetrace_format::calls::{ERROR_TEXT_ID, entry_id};

use super::super::noting::Noting;
use super::*;

const SECOND: u64 = 1_000_000_000;

/// A packet of records of 10 bytes with these numbers, one nanosecond apart.
fn put(store: &Store, line: u64, ids: &[u16], at: u64, discarded: u64) {
    let mut noting = Noting::new(1);
    let mut bytes = vec![0; PREAMBLE_LEN];
    for (n, id) in ids.iter().enumerate() {
        noting.record(*id, at + n as u64, bytes.len());
        bytes.extend_from_slice(&[*id as u8; 10]);
    }
    let notes = noting.take(bytes.len());
    let preamble = PacketPreamble {
        packet_bits: bytes.len() as u64 * 8,
        events_discarded: discarded,
        timestamp_begin: at,
        vpid: 1,
        vtid: 2,
        ..PacketPreamble::default()
    };
    let sealed = Sealed { preamble, bytes: &bytes, events: ids.len() as u64, notes };
    store.keep(line, sealed, at).expect("kept");
}

fn earlier(view: &View) -> Vec<(u64, u8)> {
    view.streams.iter().flat_map(|s| s.earlier.iter().map(|e| (e.time, e.bytes[0]))).collect()
}

#[test]
fn what_is_too_old_goes_but_for_what_later_records_need() {
    for compress in [false, true] {
        let store = Store::new(Duration::from_secs(10), 1 << 20, compress);
        let line = store.begin("a");
        let (blocked, quick) = (entry_id(3), entry_id(4));
        put(&store, line, &[ERROR_TEXT_ID, blocked, quick, quick + 1], SECOND, 0);
        put(&store, line, &[quick], 2 * SECOND, 5);
        assert_eq!(store.view(3 * SECOND).since, None);
        put(&store, line, &[quick + 1], 11 * SECOND, 7);
        let view = store.view(20 * SECOND);
        assert_eq!((view.since, view.short, view.unkept), (Some(2 * SECOND), false, 0));
        assert_eq!(view.streams[0].discarded_before, 5);
        assert_eq!(view.streams[0].packets.len(), 1);
        // The call that is open since, and the text; not the call that has ended.
        assert_eq!(earlier(&view), [(SECOND, ERROR_TEXT_ID as u8), (SECOND + 1, blocked as u8)]);
        put(&store, line, &[blocked + 1], 21 * SECOND, 7);
        assert_eq!(earlier(&store.view(21 * SECOND)), [(SECOND, ERROR_TEXT_ID as u8)]);
    }
}

#[test]
fn bytes_are_bounded_and_it_is_known() {
    let store = Store::new(Duration::from_secs(3600), 10_000, false);
    let line = store.begin("a");
    for n in 1..=1000 {
        put(&store, line, &[entry_id(1), entry_id(1) + 1], n * SECOND, 0);
        assert!(store.state().bytes <= 10_000);
    }
    let view = store.view(1001 * SECOND);
    assert!(view.short && view.since.is_some_and(|since| since > 900 * SECOND));
    assert_eq!(view.streams[0].packets.len() as u64, 1000 - view.since.unwrap() / SECOND);
    // Texts without end take half of the memory, and those that found no room are counted.
    for n in 1001..=2000 {
        put(&store, line, &[ERROR_TEXT_ID], n * SECOND, 0);
    }
    let view = store.view(2001 * SECOND);
    assert!(store.state().bytes <= 10_000 && view.unkept > 900, "{}", view.unkept);
    assert!(!view.streams[0].packets.is_empty());
}

#[test]
fn streams_that_ended_are_forgotten_with_their_window() {
    let store = Store::new(Duration::from_secs(8), 1 << 20, false);
    for n in 0..100 {
        let line = store.begin("short");
        put(&store, line, &[ERROR_TEXT_ID, entry_id(1)], (n + 1) * SECOND, 0);
        store.end(line, (n + 1) * SECOND);
    }
    assert!(store.state().lines.len() < 12);
    assert!(store.view(200 * SECOND).streams.is_empty());
    let state = store.state();
    assert_eq!((state.bytes, state.lines.len()), (0, 0));
}

#[test]
fn a_ring_of_another_thread_has_no_open_call() {
    let store = Store::new(Duration::from_secs(1), 1 << 20, false);
    let line = store.begin("a");
    put(&store, line, &[entry_id(1)], SECOND, 0);
    assert_eq!(store.state().lines[&line].open.len(), 1);
    let preamble =
        PacketPreamble { vpid: 1, vtid: 3, packet_bits: PREAMBLE_LEN as u64 * 8, ..Default::default() };
    let sealed = Sealed { preamble, bytes: &[0; PREAMBLE_LEN], events: 0, notes: Notes::default() };
    store.keep(line, sealed, 2 * SECOND).expect("kept");
    assert!(earlier(&store.view(4 * SECOND)).is_empty());
}
