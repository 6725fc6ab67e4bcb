//! The ledger against sums made the slow way, with little room and with much.

use hetrace_ctf::class::{ByteOrder, TraceClass};
use hetrace_model::Place;
use proptest::prelude::*;

use super::calls::Memory;
use super::rows::{MemoryReleases, MemoryRow};
use super::step::{Holder, Step, What};
use super::table::Table;
use crate::owners::ApiIndex;
use crate::trace::{Manifest, Trace};

fn nothing() -> Trace {
    let ctf = hetrace_ctf::read::Trace::from_class(TraceClass::new(ByteOrder::Little), Vec::new())
        .expect("a trace");
    Trace::new(ctf, Vec::new(), Manifest::default())
}

/// What one thread of one process does, at any time.
fn steps() -> impl Strategy<Value = Vec<(u64, bool, u64, u64)>> {
    prop::collection::vec((0..1000u64, any::<bool>(), 1..12u64, 0..100u64), 0..120)
}

fn to_steps(all: &[(u64, bool, u64, u64)]) -> Vec<Step> {
    // Each at a time of its own, so that there is one order.
    let step = |(index, &(time, made, address, bytes)): (usize, &(u64, bool, u64, u64))| Step {
        time: time * 1000 + index as u64,
        pid: 1,
        tid: 1,
        api: None,
        what: match made {
            true => {
                let holder = Some(Holder::Device(0));
                What::Made { address, bytes: Some(bytes), place: Place::Device, holder }
            }
            false => What::Released { address, at_once: true },
        },
    };
    all.iter().enumerate().map(step).collect()
}

/// Most that is held, when that is so first, and what is left, from a list that is gone through
/// anew after each step.
fn slowly(mut steps: Vec<Step>) -> (u64, Option<u64>, u64, u64) {
    steps.sort_by_key(|step| step.time);
    let (mut held, mut most, mut at, mut unknown): (Vec<(u64, u64)>, u64, Option<u64>, u64) =
        (Vec::new(), 0, None, 0);
    for step in steps {
        match step.what {
            What::Made { address, bytes, .. } => {
                held.retain(|(known, _)| *known != address);
                held.push((address, bytes.unwrap_or(0)));
            }
            What::Released { address, .. } => {
                let before = held.len();
                held.retain(|(known, _)| *known != address);
                unknown += u64::from(held.len() == before);
            }
            _ => {}
        }
        let now = held.iter().map(|(_, bytes)| bytes).sum();
        if now > most {
            (most, at) = (now, Some(step.time));
        }
    }
    (most, at, held.iter().map(|(_, bytes)| bytes).sum(), unknown)
}

fn found(memory: Memory<'_>) -> (u64, Option<u64>, u64, u64) {
    let ledger = memory.finish();
    let (rows, releases) = (ledger.rows(0, "-"), ledger.releases());
    match rows.first() {
        Some(row) => (row.peak_bytes, row.peak_ns, row.live_bytes, releases.unknown),
        None => (0, None, 0, releases.unknown),
    }
}

proptest! {
    #[test]
    fn it_is_what_a_list_says(all in steps()) {
        let (trace, table) = (nothing(), Table::default());
        let mut memory = Memory::new(&trace, &table);
        to_steps(&all).into_iter().for_each(|step| memory.add(step));
        prop_assert_eq!(found(memory), slowly(to_steps(&all)));
    }

    #[test]
    fn in_order_it_needs_no_room(all in steps()) {
        let (trace, table) = (nothing(), Table::default());
        let mut steps = to_steps(&all);
        steps.sort_by_key(|step| step.time);
        let mut memory = Memory::new(&trace, &table).with_room(8);
        steps.iter().for_each(|step| memory.add(step.clone()));
        prop_assert_eq!(found(memory), slowly(steps));
    }
}

/// What some APIs, none for one that is layered on others, did to memory, a step each nanosecond: the table by
/// device, and how well the ends are known.
fn held(steps: impl IntoIterator<Item = (Option<u32>, What)>) -> (Vec<MemoryRow>, MemoryReleases) {
    let (trace, table) = (nothing(), Table::default());
    let mut memory = Memory::new(&trace, &table);
    for (time, (api, what)) in (1..).zip(steps) {
        memory.add(Step { time, pid: 1, tid: 1, api: api.map(ApiIndex), what });
    }
    let ledger = memory.finish();
    let mut rows = ledger.rows(0, "-");
    rows.sort_by(|a, b| a.device.cmp(&b.device));
    (rows, ledger.releases())
}

fn made(address: u64, bytes: u64, holder: Option<Holder>) -> What {
    What::Made { address, bytes: Some(bytes), place: Place::Device, holder }
}

/// Device, peak, what is left, of each row.
fn short(rows: &[MemoryRow]) -> Vec<(&str, u64, u64)> {
    rows.iter().map(|row| (row.device.as_str(), row.peak_bytes, row.live_bytes)).collect()
}

#[test]
fn equal_handles_of_two_apis_are_two_contexts_and_two_allocations() {
    let context = Some(Holder::Context(0xc));
    let on = |device: u64| What::Context { context: 0xc, devices: Box::new([device]) };
    let begin = [
        (Some(0), on(1)),
        (Some(1), on(2)),
        (Some(0), made(0x10, 100, context)),
        (Some(1), made(0x10, 200, context)),
    ];
    let both = |one, other| vec![("device 1", 100, one), ("device 2", 200, other)];
    let (rows, releases) = held(begin.clone());
    assert_eq!((short(&rows), releases), (both(100, 200), MemoryReleases::default()));
    for (api, left) in [(0, both(0, 200)), (1, both(100, 0))] {
        for end in [What::Released { address: 0x10, at_once: false }, What::Reset { holder: context }] {
            let (rows, releases) = held(begin.iter().cloned().chain([(Some(api), end)]));
            assert_eq!((short(&rows), releases.unknown), (left.clone(), 0));
        }
    }
    // Nobody knows which of the two is meant.
    let end = (None, What::Released { address: 0x10, at_once: false });
    let (rows, releases) = held(begin.iter().cloned().chain([end]));
    assert_eq!((short(&rows), releases.unknown), (both(100, 200), 1));
}

#[test]
fn what_is_current_for_one_api_is_not_for_another() {
    let set = |device| What::Set(Some(Holder::Device(device)));
    let steps =
        [(Some(0), set(1)), (Some(1), set(2)), (Some(0), made(0x10, 100, None)), (Some(1), What::Popped)];
    let more = [(Some(0), made(0x20, 10, None)), (Some(1), made(0x30, 1, None))];
    let (rows, _) = held(steps.into_iter().chain(more));
    assert_eq!(short(&rows), [("device 1", 110, 110), ("not known", 1, 1)]);
}

#[test]
fn what_a_layer_makes_the_api_below_frees_and_the_other_way_round() {
    let free = |address| What::Released { address, at_once: true };
    let current = Some(Holder::Device(1));
    let steps = [
        (None, What::Set(current)),
        (Some(0), made(0x10, 100, None)),
        (None, made(0x20, 10, None)),
        (None, free(0x10)),
        (Some(0), free(0x20)),
    ];
    let (rows, releases) = held(steps);
    assert_eq!((short(&rows), releases.unknown), (vec![("device 1", 110, 0)], 0));
}

#[test]
fn of_several_traces_the_largest_mark_stays() {
    let row = |host: &str, uuid: &str, peak_bytes, peak_ns, live_bytes| MemoryRow {
        device: "GPU".to_owned(),
        kind: "device".to_owned(),
        host: host.to_owned(),
        uuid: uuid.to_owned(),
        peak_bytes,
        peak_ns: Some(peak_ns),
        allocations: 2,
        live_bytes,
        ..MemoryRow::default()
    };
    let mut one = row("a", "GPU-1", 100, 7, 1);
    one.add(row("a", "GPU-1", 300, 9, 2));
    one.add(row("a", "GPU-1", 200, 8, 4));
    assert_eq!((one.peak_bytes, one.peak_ns, one.allocations, one.live_bytes), (300, Some(9), 6, 7));
    assert!(one.is_like(&row("b", "GPU-1", 1, 1, 1)), "the UUID says it");
    assert!(!one.is_like(&row("a", "GPU-2", 1, 1, 1)));
    assert!(!row("a", "", 1, 1, 1).is_like(&row("b", "", 1, 1, 1)), "of another machine");
}
