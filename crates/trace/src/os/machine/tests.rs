//! Events one by one, and what they make of threads.

use super::*;

const IDLE_STATE: i64 = 0;
const SLEEPS: i64 = 1;

/// Events, written down as `hetrace` would: at so many nanoseconds on a CPU.
struct Script {
    machine: Machine<fn(i64) -> bool>,
    last: u64,
}

impl Script {
    /// The program is process 10.
    fn new(is_tree: bool) -> Self {
        Self { machine: Machine::new(|pid| pid == 10, is_tree, Names::default()), last: 0 }
    }

    fn at(&mut self, time: u64, cpu: u32, what: Happening<'_>) -> &mut Self {
        self.machine.take(At { time, cpu, tid: None }, &what);
        self.last = time;
        self
    }

    /// Of one of the threads that ran.
    fn own(&mut self, time: u64, cpu: u32, what: Happening<'_>) -> &mut Self {
        let tid = match what {
            Happening::In { tid, .. } | Happening::Out { tid, .. } | Happening::End { tid } => Some(tid),
            _ => None,
        };
        self.machine.take(At { time, cpu, tid }, &what);
        self.last = time;
        self
    }

    fn switch(&mut self, time: u64, cpu: u32, from: i64, from_state: i64, to: i64) -> &mut Self {
        let names = ["idle", "one", "two", "other", "worker"];
        let to_name = match to {
            10 => names[1],
            11 => names[2],
            0 => names[0],
            _ => names[3],
        };
        self.at(time, cpu, Happening::Switch { from, from_state, to, to_name })
    }

    fn fork(&mut self, time: u64, cpu: u32, parent: i64, child: i64, pid: i64) -> &mut Self {
        self.at(time, cpu, Happening::Fork { parent, child, child_pid: Some(pid), name: "new" })
    }

    fn wake(&mut self, time: u64, cpu: u32, tid: i64, target: u32) -> &mut Self {
        self.at(time, cpu, Happening::Wake { tid, cpu: target, name: "" })
    }

    fn enter(&mut self, time: u64, cpu: u32, call: &str, lock: Option<u64>) -> &mut Self {
        let name = self.machine.names.number(call);
        self.at(time, cpu, Happening::Enter(Call { name, address: lock, is_lock: lock.is_some() }))
    }

    fn interrupt(&mut self, time: u64, cpu: u32, by: &str) -> &mut Self {
        let name = self.machine.names.number(by);
        self.at(time, cpu, Happening::Interrupt(name))
    }

    /// The states of each of the program's threads, a line each.
    fn lines(self) -> Vec<String> {
        let system = self.machine.finish(self.last);
        let mut lines = Vec::new();
        for life in &system.lives {
            lines.push(system.who(life.person));
            for stretch in &life.stretches {
                let waker = match stretch.state {
                    State::Blocked(block) => system.waker(system.block(block).waker),
                    _ => None,
                };
                let by = waker.map_or_else(String::new, |waker| format!(", woken by {waker}"));
                lines.push(format!(
                    "  {}..{} {}{by}",
                    stretch.start,
                    stretch.end,
                    system.text(stretch.state)
                ));
            }
        }
        lines
    }
}

#[test]
fn a_thread_from_its_beginning_to_its_end() {
    for is_tree in [false, true] {
        let mut script = Script::new(is_tree);
        script.fork(10, 0, 1, 10, 10).wake(12, 0, 10, 1);
        // The CPU was another one's until it came.
        script.switch(20, 1, 77, IDLE_STATE, 10).enter(30, 1, "read", None);
        script.switch(40, 1, 10, SLEEPS, 0);
        // It is woken, and runs at once.
        script.wake(50, 1, 10, 1).switch(51, 1, 0, 0, 10).at(60, 1, Happening::Leave { result: Some(0) });
        script.interrupt(70, 1, "disk").at(75, 1, Happening::InterruptEnd);
        // Preempted, first by one, then by another.
        script.switch(80, 1, 10, 0x100, 78).switch(85, 1, 78, SLEEPS, 79).switch(95, 1, 79, 0, 10);
        script.at(100, 1, Happening::Exit { tid: 10 }).switch(102, 1, 10, 16, 0).switch(110, 1, 0, 0, 78);
        let expected = [
            "one (10)",
            "  10..12 unknown",
            "  12..20 waiting for a CPU: thread 77",
            "  20..30 running",
            "  30..40 read",
            "  40..50 blocked: read",
            "  50..51 waiting for a CPU",
            "  51..60 read",
            "  60..70 running",
            "  70..75 interrupted: disk",
            "  75..80 running",
            "  80..85 waiting for a CPU: other (78)",
            "  85..95 waiting for a CPU: other (79)",
            "  95..102 running",
        ];
        assert_eq!(script.lines(), expected, "{is_tree}");
    }
}

#[test]
fn who_holds_a_lock_is_who_wakes() {
    let mut script = Script::new(true);
    script.fork(1, 0, 1, 10, 10).wake(1, 0, 10, 0).switch(2, 0, 0, 0, 10);
    script.fork(3, 0, 10, 11, 10).wake(3, 0, 11, 1).switch(4, 1, 0, 0, 11);
    script.enter(5, 1, "futex", Some(0xabc)).switch(6, 1, 11, SLEEPS, 0);
    script.enter(8, 0, "futex", None).wake(9, 0, 11, 1).switch(10, 1, 0, 0, 11).at(
        11,
        1,
        Happening::Leave { result: Some(0) },
    );
    script.switch(12, 1, 11, SLEEPS, 0);
    let lines = script.lines();
    assert!(lines.contains(&"  6..9 blocked: lock 0xabc, woken by one (10)".to_owned()), "{lines:#?}");
}

/// Thread 11 waits for a lock that thread 10 holds; 12 is the program's, too.
fn waits_for_a_lock() -> Script {
    let mut script = Script::new(true);
    script.machine.system.has_calls = true;
    script.fork(1, 0, 1, 10, 10).wake(1, 0, 10, 0).switch(2, 0, 0, 0, 10);
    script.fork(3, 0, 10, 11, 10).wake(3, 0, 11, 1).switch(4, 1, 0, 0, 11).fork(4, 0, 10, 12, 10);
    script.enter(5, 1, "futex", Some(0xabc)).switch(6, 1, 11, SLEEPS, 12);
    script
}

fn holders(script: Script) -> Vec<(Option<String>, Option<String>)> {
    let system = script.machine.finish(script.last);
    let locks = system.blocks.iter().filter(|block| block.is_lock);
    locks.map(|block| (system.waker(block.waker), system.waker(block.holder))).collect()
}

#[test]
fn whoever_interrupts_a_wait_by_a_signal_does_not_hold_the_lock() {
    let mut script = waits_for_a_lock();
    script.enter(7, 1, "tgkill", None).wake(8, 1, 11, 1).at(9, 1, Happening::Leave { result: Some(0) });
    script.switch(10, 1, 12, SLEEPS, 11).at(11, 1, Happening::Leave { result: Some(-512) });
    // It is stopped for a moment, and waits again.
    script.switch(12, 1, 11, 4, 0).wake(13, 0, 11, 1).switch(14, 1, 0, 0, 11);
    script.enter(15, 1, "futex", Some(0xabc)).switch(16, 1, 11, SLEEPS, 0);
    script.enter(18, 0, "futex", None).wake(19, 0, 11, 1).switch(20, 1, 0, 0, 11);
    script.at(21, 1, Happening::Leave { result: Some(0) });
    let one = Some("one (10)".to_owned());
    assert_eq!(holders(script), [(Some("other (12)".to_owned()), one.clone()), (one.clone(), one)]);
}

#[test]
fn nobody_holds_a_lock_by_working_when_a_timer_fires() {
    let mut script = waits_for_a_lock();
    script.wake(8, 1, 11, 1).switch(10, 1, 12, SLEEPS, 11).at(11, 1, Happening::Leave { result: Some(-110) });
    assert_eq!(holders(script), [(Some("a timer".to_owned()), None)]);
    // Before anything is known of the result.
    let mut script = waits_for_a_lock();
    script.wake(8, 1, 11, 1).switch(10, 1, 12, SLEEPS, 11);
    assert_eq!(holders(script), [(Some("other (12)".to_owned()), None)]);
    // One that ends gives up what it holds.
    let mut script = waits_for_a_lock();
    script.enter(7, 1, "exit", None).wake(8, 1, 11, 1).switch(10, 1, 12, SLEEPS, 11);
    let other = Some("other (12)".to_owned());
    assert_eq!(holders(script), [(other.clone(), other)]);
}

#[test]
fn whoever_has_the_cpu_when_a_sleep_ends_did_not_end_it() {
    for (result, waker) in [(0, "a timer"), (-516, "a signal")] {
        let mut script = Script::new(true);
        script.fork(1, 0, 1, 10, 10).wake(1, 0, 10, 0).switch(2, 0, 0, 0, 10);
        script.enter(3, 0, "clock_nanosleep", None).switch(4, 0, 10, SLEEPS, 77);
        script.wake(8, 0, 10, 0).switch(9, 0, 77, 0, 10).at(10, 0, Happening::Leave { result: Some(result) });
        let lines = script.lines();
        let expected = format!("  4..8 blocked: clock_nanosleep, woken by {waker}");
        assert!(lines.contains(&expected), "{lines:#?}");
    }
}

#[test]
fn a_thread_that_is_stopped_waits_for_nothing() {
    let mut script = Script::new(false);
    script.fork(1, 0, 1, 10, 10).wake(1, 0, 10, 0).switch(2, 0, 0, 0, 10);
    script.switch(4, 0, 10, 4, 77).wake(8, 0, 10, 0).switch(9, 0, 77, 0, 10).switch(10, 0, 10, SLEEPS, 0);
    let lines = script.lines();
    assert!(lines.contains(&"  4..8 stopped, woken by other (77)".to_owned()), "{lines:#?}");
}

#[test]
fn an_interrupt_wakes_instead_of_whom_it_interrupts() {
    let mut script = Script::new(false);
    script.fork(1, 0, 1, 10, 10).wake(1, 0, 10, 0).switch(2, 0, 0, 0, 10).switch(3, 0, 10, SLEEPS, 0);
    script.switch(4, 1, 0, 0, 77).interrupt(5, 1, "timer").wake(6, 1, 10, 0);
    script.at(7, 1, Happening::InterruptEnd).switch(8, 0, 0, 0, 10);
    let lines = script.lines();
    assert!(lines.contains(&"  3..6 blocked, woken by timer".to_owned()), "{lines:#?}");
}

#[test]
fn where_only_the_program_is_recorded_strangers_are_not_guessed() {
    let mut script = Script::new(true);
    script.fork(1, 0, 1, 10, 10).wake(1, 0, 10, 0).switch(2, 0, 0, 0, 10);
    // The CPU goes to 77, and from there to others without a word.
    script.switch(3, 0, 10, SLEEPS, 77).wake(9, 0, 10, 0);
    script.switch(12, 0, 78, 0, 10).switch(13, 0, 10, SLEEPS, 0);
    let lines = script.lines();
    assert_eq!(
        lines[3..],
        ["  3..9 blocked", "  9..12 waiting for a CPU: thread 78", "  12..13 running"],
        "{lines:#?}"
    );
}

#[test]
fn a_thread_that_moves_waits_for_another_cpu() {
    let mut script = Script::new(false);
    script.fork(1, 0, 1, 10, 10).switch(1, 0, 0, 0, 77).switch(1, 1, 0, 0, 78).wake(2, 0, 10, 0);
    script.at(5, 0, Happening::Migrate { tid: 10, cpu: 1 }).switch(9, 1, 78, 0, 10).switch(10, 1, 10, 1, 0);
    let lines = script.lines();
    let expected =
        ["  2..5 waiting for a CPU: other (77)", "  5..9 waiting for a CPU: other (78)", "  9..10 running"];
    assert_eq!(lines[2..], expected, "{lines:#?}");
}

#[test]
fn nothing_is_known_where_events_were_lost() {
    let mut script = Script::new(false);
    script.fork(1, 0, 1, 10, 10).switch(2, 0, 0, 0, 10).switch(6, 0, 10, SLEEPS, 0);
    script.machine.lost(At { time: 20, cpu: 0, tid: None });
    script.switch(20, 0, 77, 0, 10).switch(30, 0, 10, SLEEPS, 0);
    let lines = script.lines();
    assert_eq!(lines[2..], ["  2..6 running", "  6..20 unknown", "  20..30 running"], "{lines:#?}");
    // Without a word from the trace: the CPU left another thread than it had gone to.
    let mut script = Script::new(false);
    script.fork(1, 0, 1, 10, 10).switch(2, 0, 0, 0, 10).switch(9, 0, 77, 0, 0).switch(12, 0, 0, 0, 10);
    script.switch(13, 0, 10, SLEEPS, 0);
    assert_eq!(script.machine.system.torn, 1);
    let lines = script.lines();
    assert_eq!(lines[1..], ["  1..12 unknown", "  12..13 running"], "{lines:#?}");
}

#[test]
fn an_event_says_who_ran_where_a_switch_was_lost() {
    let mut script = Script::new(true);
    script.fork(1, 0, 1, 10, 10).wake(1, 0, 10, 0).switch(2, 0, 0, 0, 10);
    script.fork(3, 0, 10, 11, 10).switch(4, 0, 10, SLEEPS, 0);
    // How thread 11 came to its CPU is not in the trace.
    script
        .machine
        .take(At { time: 7, cpu: 1, tid: Some(11) }, &Happening::Wake { tid: 10, cpu: 0, name: "" });
    script.switch(8, 0, 0, 0, 10).switch(9, 1, 11, SLEEPS, 0);
    let lines = script.lines();
    assert!(lines.contains(&"  4..7 blocked, woken by new (11)".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"  7..9 running".to_owned()), "{lines:#?}");
    // A stranger is named, too.
    let mut script = Script::new(true);
    script.fork(1, 0, 1, 10, 10).wake(1, 0, 10, 0).switch(2, 0, 0, 0, 10).switch(3, 0, 10, SLEEPS, 0);
    script
        .machine
        .take(At { time: 7, cpu: 1, tid: Some(99) }, &Happening::Wake { tid: 10, cpu: 0, name: "" });
    script.switch(8, 0, 0, 0, 10);
    let lines = script.lines();
    assert!(lines.contains(&"  3..7 blocked, woken by thread 99".to_owned()), "{lines:#?}");
}

#[test]
fn a_number_that_comes_again_is_another_thread() {
    let mut script = Script::new(true);
    script.fork(1, 0, 1, 10, 10).switch(2, 0, 0, 0, 10).fork(3, 0, 10, 11, 10);
    script.switch(4, 1, 0, 0, 11).at(5, 1, Happening::Exit { tid: 11 }).switch(6, 1, 11, 16, 0);
    script.fork(7, 0, 10, 11, 10).switch(8, 1, 0, 0, 11).switch(9, 1, 11, SLEEPS, 0);
    let lines = script.lines();
    assert_eq!(lines.iter().filter(|line| line.ends_with("(11)")).count(), 2, "{lines:#?}");
    assert!(lines.contains(&"  4..6 running".to_owned()) && lines.contains(&"  8..9 running".to_owned()));
}

#[test]
fn a_thread_that_runs_a_program_takes_the_number_of_its_process() {
    let mut script = Script::new(true);
    script.fork(1, 0, 1, 10, 10).switch(2, 0, 0, 0, 10).fork(3, 0, 10, 11, 10).switch(4, 1, 0, 0, 11);
    script.switch(5, 0, 10, SLEEPS, 0).at(6, 1, Happening::Exec { tid: 10, old: 11 });
    script.enter(7, 1, "read", None).switch(8, 1, 10, SLEEPS, 0);
    let lines = script.lines();
    assert!(
        lines.contains(&"  4..7 running".to_owned()) && lines.contains(&"  7..8 read".to_owned()),
        "{lines:#?}"
    );
}

#[test]
fn own_switches_tell_preempted_from_blocked() {
    let mut script = Script::new(true);
    let (tid, pid) = (10, 10);
    script.own(1, 0, Happening::In { tid, pid }).own(5, 0, Happening::Out { tid, pid, preempted: true });
    script.own(7, 1, Happening::In { tid, pid }).own(9, 1, Happening::Out { tid, pid, preempted: false });
    // Another one has the CPU meanwhile: that this one left it was seen.
    script.own(10, 1, Happening::In { tid: 11, pid }).own(
        11,
        1,
        Happening::Out { tid: 11, pid, preempted: false },
    );
    script.own(12, 0, Happening::In { tid, pid }).own(13, 0, Happening::End { tid });
    assert_eq!(script.machine.system.torn, 0);
    let lines = script.lines();
    let expected = [
        "  1..5 running",
        "  5..7 waiting for a CPU",
        "  7..9 running",
        "  9..12 blocked",
        "  12..13 running",
    ];
    assert_eq!(lines[1..6], expected, "{lines:#?}");
}

#[test]
fn no_thread_waits_for_a_cpu_that_it_has_itself() {
    let mut script = Script::new(true);
    let pid = 10;
    script
        .own(1, 0, Happening::In { tid: 10, pid })
        .own(2, 0, Happening::Out { tid: 10, pid, preempted: true })
        // Until here somebody else's thread had the CPU, who is not said.
        .own(4, 0, Happening::In { tid: 10, pid })
        .own(6, 0, Happening::Out { tid: 10, pid, preempted: true })
        // Now it is the program's other one, then again a stranger.
        .own(6, 0, Happening::In { tid: 11, pid })
        .own(8, 0, Happening::Out { tid: 11, pid, preempted: false })
        .own(9, 0, Happening::In { tid: 10, pid })
        .own(10, 0, Happening::Out { tid: 10, pid, preempted: false });
    let lines = script.lines();
    let expected = [
        "  1..2 running",
        "  2..4 waiting for a CPU",
        "  4..6 running",
        "  6..8 waiting for a CPU: thread 11",
        "  8..9 waiting for a CPU",
        "  9..10 running",
    ];
    assert_eq!(lines[1..7], expected, "{lines:#?}");
}

mod hostile {
    use proptest::prelude::*;

    use super::*;

    /// Any event, with few numbers, so that they meet.
    fn any() -> impl Strategy<Value = (u64, u32, u8, i64, i64, i64, u32)> {
        (
            0..50_u64,
            prop_oneof![9 => 0..3_u32, 1 => Just(u32::MAX)],
            0..16_u8,
            0..5_i64,
            0..5_i64,
            -1..40_i64,
            0..4_u32,
        )
    }

    fn event(kind: u8, a: i64, b: i64, c: i64, d: u32) -> Happening<'static> {
        let (a, b) = (a + 9, b + 9);
        match kind {
            0 | 1 => Happening::Switch { from: a, from_state: c, to: b, to_name: "n" },
            2 => Happening::Wake { tid: a, cpu: d, name: "m" },
            3 => Happening::Migrate { tid: a, cpu: d },
            4 => Happening::Fork { parent: a, child: b, child_pid: (c > 5).then_some(10), name: "c" },
            5 => Happening::Exec { tid: a, old: b },
            6 => Happening::Exit { tid: a },
            7 => Happening::Enter(Call { name: d, address: None, is_lock: false }),
            8 => Happening::Leave { result: Some(c - 9) },
            9 => Happening::Interrupt(d),
            10 => Happening::InterruptEnd,
            11 => Happening::Dump { tid: a, pid: 10, name: "d", is_waiting: c > 3 },
            12 => Happening::In { tid: a, pid: 10 },
            13 => Happening::Out { tid: a, pid: 10, preempted: c > 3 },
            14 => Happening::Begin { tid: a, pid: 10 },
            _ => Happening::End { tid: a },
        }
    }

    proptest! {
        /// Whatever comes, stretches are in order, do not overlap, and end by the end of the trace.
        #[test]
        fn states_are_in_order(
            all in proptest::collection::vec(any(), 0..120),
            is_tree: bool,
            losses in proptest::collection::vec(0..120_usize, 0..3),
        ) {
            let mut script = Script::new(is_tree);
            let mut time = 0;
            for (number, (step, cpu, kind, a, b, c, d)) in all.into_iter().enumerate() {
                time += step;
                if losses.contains(&number) {
                    script.machine.lost(At { time, cpu, tid: None });
                }
                let tid = (d == 3).then_some(c);
                script.machine.take(At { time, cpu, tid }, &event(kind, a, b, c, d));
            }
            let system = script.machine.finish(time);
            for life in &system.lives {
                let mut last = 0;
                for stretch in &life.stretches {
                    prop_assert!(stretch.start >= last && stretch.end > stretch.start && stretch.end <= time);
                    last = stretch.end;
                }
            }
            for (tid, lives) in &system.by_tid {
                for life in lives {
                    prop_assert!(system.lives.get(*life as usize).is_some(), "{tid}");
                }
            }
        }
    }
}

#[test]
fn while_recording_is_paused_nothing_is_known() {
    for is_tree in [false, true] {
        let mut script = Script::new(is_tree);
        script.fork(10, 0, 1, 10, 10).wake(10, 0, 10, 0).switch(10, 0, 0, IDLE_STATE, 10);
        // The event itself is nobody's.
        let at = At { time: 20, cpu: 0, tid: Some(IDLE) };
        script.machine.take(at, &Happening::Pause);
        // It goes on asleep, as the state dump says, and is woken.
        script.at(100, 0, Happening::Dump { tid: 10, pid: 10, name: "one", is_waiting: true });
        script.wake(110, 1, 10, 0).switch(110, 0, 0, IDLE_STATE, 10).switch(120, 0, 10, SLEEPS, 0);
        let lines = script.lines();
        let [_, before, paused, after, ..] = &lines[..] else { panic!("{lines:#?}") };
        assert_eq!([before, paused], ["  10..20 running", "  20..100 unknown"], "{is_tree}: {lines:#?}");
        assert!(after.starts_with("  100..110 blocked"), "{lines:#?}");
        assert_eq!(lines.last().map(String::as_str), Some("  110..120 running"), "{lines:#?}");
    }
}
