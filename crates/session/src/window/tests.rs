//! Windows without programs: the page, its log, and what the manifest says.

use std::sync::atomic::Ordering;

use hetrace_ring::abi::window::state;
use proptest::prelude::*;

use super::*;
use crate::time::ReferencePoint;

/// The pages of a session, as its launcher makes them.
#[derive(Debug)]
struct Both {
    window: Box<Window>,
    counts: Box<Counts>,
}

impl Both {
    fn of(asked: &Asked) -> Self {
        // SAFETY: numbers only, for which zeros are valid.
        let (mut window, mut counts) =
            unsafe { (Box::new(std::mem::zeroed()), Box::new(std::mem::zeroed())) };
        asked.prepare(&mut window, &mut counts);
        Both { window, counts }
    }

    fn pages(&self) -> Pages<'_> {
        Pages { window: &self.window, counts: &self.counts }
    }

    fn switch(&self) -> &Switch {
        self.pages().switch()
    }
}

fn host() -> HostClock {
    let point = |tsc| ReferencePoint { tsc, monotonic_ns: tsc, realtime_ns: tsc, uncertainty_ns: 1 };
    HostClock::new(point(0), point(1_000_000))
}

fn windows(asked: &Asked, page: &Switch) -> (tempfile::TempDir, Windows) {
    let folder = tempfile::TempDir::new().expect("a folder");
    let trace = TraceFolder::new(folder.path().to_owned(), [1; 16], false);
    let windows = Windows::new(&trace, asked, page, 0, Capture::default());
    (folder, windows)
}

fn launch(number: u64) -> Cause {
    Cause { reason: reason::LAUNCH, number, pid: 7, tid: 8 }
}

#[test]
fn a_window_of_launches_is_in_the_manifest() {
    let asked = Asked::Launches(3..5);
    let both = Both::of(&asked);
    let (page, window) = (both.switch(), &both.window);
    assert!(!page.is_open() && window.has(3) && window.has(4) && !window.has(5) && !window.has(2));
    assert!(std::ptr::eq(page, &raw const both.counts.switch), "programs open it");
    let (_folder, mut windows) = windows(&asked, page);
    page.open_once(100, launch(3));
    windows.look(page, &host());
    page.close_for_good(200, launch(5));
    both.counts.launches.store(6, Ordering::Relaxed);
    let mut manifest = Manifest::default();
    windows.finish(both.pages(), &host(), &mut manifest);
    let capture = manifest.capture.expect("windows");
    assert_eq!((capture.launches, capture.ranges), (Some(6), None));
    let window = Recorded {
        begin_ns: 100,
        end_ns: Some(200),
        opened_by: "launch".to_owned(),
        closed_by: Some("launch".to_owned()),
    };
    assert_eq!(capture.windows, [window]);
    assert_eq!(
        page.mask.load(Ordering::Relaxed),
        flag::OUTSIDE & !flag::COUNTED,
        "nothing is counted any more"
    );
}

#[test]
fn an_end_that_overtakes_its_beginning_leaves_it_closed() {
    let both = Both::of(&Asked::Launches(8..9));
    let page = both.switch();
    page.close_for_good(5, launch(9));
    page.open_once(6, launch(8));
    assert!(!page.is_open() && page.state.load(Ordering::Relaxed) == state::CLOSED);
    assert_eq!(page.flips.load(Ordering::Relaxed), 0);
}

#[test]
fn a_window_of_launches_is_no_longer_than_asked_for() {
    for (most, closed) in [(Duration::ZERO, true), (Duration::MAX, false)] {
        let asked = Asked::Within { asked: Box::new(Asked::Launches(3..50)), most };
        assert!(asked.counts_launches());
        let both = Both::of(&asked);
        let (page, window) = (both.switch(), &both.window);
        assert!(!page.is_open() && window.has(3) && window.has(49) && !window.has(50));
        let (_folder, mut windows) = windows(&asked, page);
        assert_eq!(windows.look(page, &host()), Duration::MAX, "it is not open");
        page.open_once(100, launch(3));
        let left = windows.look(page, &host());
        assert_eq!((page.is_open(), left == Duration::MAX), (!closed, closed));
        let reasons: Vec<_> = windows.report.windows.iter().map(|w| w.closed_by.as_deref()).collect();
        assert_eq!(reasons, [closed.then_some("time")]);
        page.open_once(200, launch(4));
        assert_eq!(page.is_open(), !closed, "once is all");
    }
}

#[test]
fn without_a_delay_it_is_open_before_the_first_call() {
    let asked = Asked::Time { delay: Duration::ZERO, duration: Some(Duration::from_secs(3600)) };
    let both = Both::of(&asked);
    let page = both.switch();
    assert!(page.is_open() && std::ptr::eq(page, &raw const both.window.switch), "where programs only read");
    let (_folder, mut windows) = windows(&asked, page);
    let left = windows.look(page, &host());
    assert!(page.is_open() && left > Duration::from_secs(3000) && windows.report.windows.len() == 1);
}

#[test]
fn programs_open_and_close_it_by_calls() {
    let both = Both::of(&Asked::Calls);
    let page = both.switch();
    assert!(!page.is_open());
    let (_folder, mut windows) = windows(&Asked::Calls, page);
    let call = |pid| Cause { reason: reason::CALL, number: 0, pid, tid: pid };
    for (open, pid) in [(false, 1), (true, 1), (true, 2), (false, 2), (true, 3)] {
        page.set_open_by_call(open, 1, call(pid));
    }
    windows.look(page, &host());
    let seen = &windows.report.windows;
    assert_eq!(
        (seen.len(), seen[0].opened_by.as_str(), seen[0].closed_by.as_deref()),
        (2, "call", Some("call"))
    );
    assert!(seen[1].end_ns.is_none() && page.is_open());
    assert_eq!(windows.missed, 0);
    // More between two looks than the log holds: counted, and the last state is the right one.
    for turn in 0..LOG as u64 {
        page.set_open_by_call(false, turn, call(1));
        page.set_open_by_call(true, turn, call(1));
    }
    windows.look(page, &host());
    assert_eq!(windows.missed, LOG as u64);
    assert!(windows.report.windows.last().is_some_and(|w| w.end_ns.is_none()));
    let mut manifest = Manifest::default();
    windows.finish(both.pages(), &host(), &mut manifest);
    let notes = manifest.notes.join(" ");
    assert!(notes.contains(&format!("{LOG} beginnings and ends are not known")), "{notes}");
}

#[test]
fn a_log_that_makes_no_sense_ends() {
    let both = Both::of(&Asked::Launches(1..2));
    let page = both.switch();
    let (_folder, mut windows) = windows(&Asked::Launches(1..2), page);
    page.flips.store(u32::MAX, Ordering::Relaxed);
    windows.look(page, &host());
    assert!(windows.report.windows.is_empty());
}

proptest! {
    /// Whatever is done in which order, windows have their ends behind their beginnings and do not overlap, and the
    /// last one is open exactly if the mask says so.
    #[test]
    fn windows_follow_each_other(flips in prop::collection::vec((any::<bool>(), 1u64..100), 0..40)) {
        let both = Both::of(&Asked::Toggle(10));
        let page = both.switch();
        let (_folder, mut windows) = windows(&Asked::Toggle(10), page);
        let mut now = 0;
        for (open, after) in flips {
            now += after;
            page.set_open(open, now, by(reason::SIGNAL));
            windows.drain(page, &host(), false);
        }
        let all = &windows.report.windows;
        prop_assert!(all.iter().all(|w| w.end_ns.is_none_or(|end| end >= w.begin_ns)));
        prop_assert!(all.windows(2).all(|two| two[0].end_ns.is_some_and(|end| end <= two[1].begin_ns)));
        prop_assert_eq!(all.last().is_some_and(|w| w.end_ns.is_none()), page.is_open());
    }
}
