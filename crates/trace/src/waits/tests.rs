//! Tests of what waits were for.

use super::*;
use crate::spans::{CommandKind, Geometry, MemoryKind, Times};

fn waits() -> Waits<'static, u32> {
    Waits {
        facts: Vec::new(),
        owners: Owners::default(),
        all: Vec::new(),
        open: QuickMap::default(),
        polled: QuickMap::default(),
        recent: QuickMap::default(),
        kept: 0,
        slack: 0,
    }
}

fn command(queue: u64, tid: i64, end: u64) -> Command<'static> {
    Command {
        kind: CommandKind::Kernel,
        name: "",
        function: None,
        pid: 1,
        queue,
        on_queue: None,
        context: 0,
        device: 0,
        on_device: None,
        peer: None,
        cause_tid: tid,
        cause: 1,
        times: Some(Times { queued: 0, submitted: 0, start: 1, end }),
        times_error: 0,
        bytes: 0,
        from: MemoryKind::Unknown,
        to: MemoryKind::Unknown,
        status: 0,
        geometry: Geometry::default(),
        shared: 0,
        graph: 0,
        node: 0,
        weight: 1,
    }
}

fn wait(tid: i64, start: u64, end: u64, what: What) -> Wait {
    Wait { function: FunctionId(0), pid: 1, tid, start, end, what, api: None }
}

#[test]
fn a_wait_is_for_what_had_ended_and_ends_on_the_last() {
    let mut waits = waits();
    for (item, (queue, end)) in (1..).zip([(0x10, 50), (0x10, 120), (0x10, 110), (0x10, 300), (0x20, 100)]) {
        assert!(waits.command(&command(queue, 7, end), item).is_empty());
    }
    // The first had ended before, the fourth has not ended, the fifth is of another queue.
    let waited = waits.waited(&wait(7, 60, 200, What::Queue(0x10)));
    assert_eq!(waited, Waited { all: vec![1, 3, 2], last: Some(2) });
    // Once is enough.
    let none = Waited { all: vec![], last: None };
    assert_eq!(waits.waited(&wait(7, 60, 200, What::Queue(0x10))), none);
    assert_eq!(waits.waited(&Wait { pid: 2, ..wait(7, 0, 900, What::Some) }), none);
    assert_eq!(waits.take_unwaited(), [4, 5]);
    assert_eq!(waits.kept, 0);
}

#[test]
fn who_names_no_queue_waits_for_his_own_or_for_all() {
    let mut all = waits();
    for (item, tid) in (1..).zip([7, 8]) {
        all.command(&command(0x10, tid, 100), item);
    }
    assert_eq!(all.waited(&wait(7, 50, 200, What::All)), Waited { all: vec![1, 2], last: Some(0) });
    let mut waits = waits();
    for (item, (queue, tid)) in (1..).zip([(0x10, 7), (0x20, 8), (0x30, 7)]) {
        waits.command(&command(queue, tid, 100), item);
    }
    assert_eq!(waits.waited(&wait(7, 150, 200, What::Some)), Waited { all: vec![1, 3], last: None });
    // Of his own, nothing is left.
    assert_eq!(waits.waited(&wait(7, 50, 200, What::Some)), Waited { all: vec![2], last: Some(0) });
}

#[test]
fn a_bounded_number_is_kept() {
    let mut waits = waits();
    let mut gone = Vec::new();
    let queues = 2 + MOST / RECENT;
    for item in 0..(queues * RECENT) as u32 {
        gone.extend(waits.command(&command(u64::from(item) % queues as u64, 7, 100), item));
        assert!(waits.kept <= MOST);
    }
    let mut all = waits.take_unwaited();
    all.extend(&gone);
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..(queues * RECENT) as u32), "each comes out once");
    // One queue alone.
    let few = (0..=RECENT as u32).flat_map(|item| waits.command(&command(5, 7, 100), item)).count();
    assert_eq!((few, waits.kept), ((RECENT + 1).div_ceil(8), RECENT + 1 - (RECENT + 1).div_ceil(8)));
}

#[test]
fn equal_handles_of_two_apis_are_two_queues() {
    use crate::trace::Queue;
    // A call each of two APIs with queues, and of one without.
    let (one, other) = (ApiIndex(0), ApiIndex(1));
    let of_queue = [(1, one), (2, other)].into_iter().collect();
    let of_function = (0..3).map(ApiIndex).collect();
    let owners = Owners::of(of_queue, [one, other].into_iter(), of_function, 3);
    assert_eq!(
        (0..3).map(|f| owners.of_calls(FunctionId(f))).collect::<Vec<_>>(),
        [Some(one), Some(other), None]
    );
    for what in [What::Queue(0x10), What::All, What::Some] {
        for (function, expected) in [(0, vec![1]), (1, vec![2]), (2, vec![1, 2])] {
            let mut waits = Waits { owners: owners.clone(), ..waits() };
            for id in [1, 2] {
                let queue = Queue { id, handle: 0x10, ..Queue::default() };
                waits.command(&Command { on_queue: Some(&queue), ..command(0x10, 7, 100) }, id);
            }
            let api = waits.owners.of_calls(FunctionId(function));
            let wait = Wait { function: FunctionId(function), api, ..wait(7, 50, 200, what) };
            assert_eq!(waits.last_within(&wait), expected.last(), "{what:?} in {function}");
            assert_eq!(waits.waited(&wait).all, expected, "{what:?} in {function}");
            assert_eq!(waits.kept, 2 - expected.len());
        }
    }
}

#[test]
fn who_names_no_queue_does_not_wait_for_another_apis_instead() {
    use crate::trace::Queue;
    let (one, other) = (ApiIndex(0), ApiIndex(1));
    let of_queue = [(1, one), (2, other)].into_iter().collect();
    let owners = Owners::of(of_queue, [one, other].into_iter(), Vec::new(), 2);
    let mut waits = Waits { owners, ..waits() };
    // Its own thread enqueued with the other API alone, and its API's command is another thread's.
    for (id, tid) in [(1, 8), (2, 7)] {
        let queue = Queue { id, handle: 0x10, ..Queue::default() };
        waits.command(&Command { on_queue: Some(&queue), ..command(0x10, tid, 100) }, id);
    }
    let wait = Wait { api: Some(one), ..wait(7, 50, 200, What::Some) };
    assert_eq!(waits.waited(&wait).all, [1]);
    assert_eq!(waits.take_unwaited(), [2]);
}

#[test]
fn one_api_with_queues_is_not_asked_for() {
    let one = ApiIndex(0);
    let of_queue = [(1, one)].into_iter().collect();
    let owners = Owners::of(of_queue, std::iter::once(one), vec![one, ApiIndex(1)], 2);
    assert_eq!([0, 1].map(|f| owners.of_calls(FunctionId(f))), [None, None]);
}
