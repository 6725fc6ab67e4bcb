//! Times of Level Zero's commands: what the fake driver's device ran, and when by its own counter, against what the
//! trace has. Programs and driver are in `tests/programs/ze` (`device.c`, `fake_device.c`); the loader is the real one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use hetrace_tests::bed::run;
use hetrace_tests::counts::manifest;
use hetrace_tests::fake_ze::programs;
use hetrace_tests::seen::Command as OnDevice;
use hetrace_tests::{Done, Seen, hetrace, reports};
use tempfile::TempDir;

/// Ticks a second, bits, milliseconds until the counter begins anew, and whether the driver is of before 1.2.
const ORDINARY: &str = "19200000 32 1000000 0";

struct Ran {
    done: Done,
    folder: PathBuf,
    _scratch: TempDir,
}

/// What the device says of a command: kind, name, start and end in ticks.
#[derive(Debug, Clone)]
struct Said {
    kind: String,
    name: String,
    ticks: [u64; 2],
}

fn traced(part: &str, timer: &str, options: &[&str]) -> Option<Ran> {
    run_traced(&["device", part], timer, options)
}

fn run_traced(line: &[&str], timer: &str, options: &[&str]) -> Option<Ran> {
    run_refusing("", line, timer, options)
}

/// The driver refuses something: `tests/programs/ze/fake_order.h` says what.
fn run_refusing(refused: &str, line: &[&str], timer: &str, options: &[&str]) -> Option<Ran> {
    let folder = programs()?;
    let scratch = tempfile::tempdir().expect("scratch");
    let trace = scratch.path().join("trace");
    let driver = folder.join("libze_fake.so");
    let mut command = Command::new(hetrace());
    command.args(["run", "--buffer", "8192"]).args(options).arg("-o").arg(&trace).arg("--");
    command.arg(folder.join(line[0])).args(&line[1..]);
    command.env("ZE_ENABLE_ALT_DRIVERS", &driver).env("FAKE_ZE", &driver).env("FAKE_ZE_TIMER", timer);
    command.env("FAKE_ZE_REFUSES", refused);
    let done = run(&mut command);
    assert_eq!(done.status, 7, "{line:?}: {}{}", done.out, done.err);
    Some(Ran { done, folder: trace, _scratch: scratch })
}

impl Ran {
    fn said(&self) -> Vec<Said> {
        let lines = self.done.out.lines().filter_map(|line| line.strip_prefix("RAN "));
        let parse = |line: &str| {
            let pairs: BTreeMap<&str, &str> = line.split(' ').filter_map(|p| p.split_once('=')).collect();
            let tick = |name: &str| pairs[name].parse().expect("ticks");
            let name = if pairs["name"] == "-" { "" } else { pairs["name"] };
            Said { kind: pairs["kind"].into(), name: name.into(), ticks: [tick("start"), tick("end")] }
        };
        lines.map(parse).collect()
    }

    fn seen(&self) -> Vec<OnDevice> {
        let mut commands = Seen::read(&self.folder).commands;
        commands.sort_by_key(|c| c.start);
        commands
    }

    fn report(&self, arguments: &[&str]) -> String {
        reports::report(&self.folder, arguments)
    }

    fn tally(&self) -> serde_json::Value {
        reports::tally(&self.folder)
    }

    /// How far the device's times may be off on the host's line.
    fn error(&self) -> u64 {
        let manifest = manifest(&self.folder);
        // Nothing ran.
        manifest["device_clocks"].get(0).map_or(0, |c| c["error_ns"].as_u64().expect("a clock that is known"))
    }

    /// How many commands have no times, as the trace says.
    fn lost(&self) -> u64 {
        self.tally()["lost_device_commands"].as_u64().expect("a number")
    }

    /// How many commands have no times, as the program knows it.
    fn untimed(&self) -> u64 {
        let line = self.done.out.lines().find_map(|line| line.strip_prefix("UNTIMED "));
        line.map_or(0, |n| n.parse().expect("a number"))
    }

    /// Each command that is not named `untimed` is in the trace, once, in its order and with its times; of the others
    /// it is said how many there are. `ours`: kinds of commands that the program did not enqueue.
    fn check(&self, hertz: u64, ours: &[&str]) -> Vec<OnDevice> {
        let said = self.said();
        let timed: Vec<_> =
            said.iter().filter(|s| s.name != "untimed" && !ours.contains(&s.kind.as_str())).collect();
        let seen = self.seen();
        let names = |of: &mut dyn Iterator<Item = (&str, &str)>| {
            of.map(|(kind, name)| format!("{kind} {name}")).collect::<Vec<_>>()
        };
        assert_eq!(
            names(&mut seen.iter().map(|c| (c.kind.as_str(), c.name.as_str()))),
            names(&mut timed.iter().map(|s| (s.kind.as_str(), s.name.as_str()))),
            "{}{}",
            self.done.out,
            self.done.err
        );
        // The clock of the fake has no drift; what is left is what the line of the launcher admits.
        let error = self.error();
        let nanoseconds = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / u128::from(hertz)) as u64;
        let (first, origin) = (seen.first(), timed.first().map_or(0, |s| nanoseconds(s.ticks[0])));
        for (command, said) in seen.iter().zip(&timed) {
            let [start, end] = said.ticks.map(nanoseconds);
            let apart = |a: u64, b: u64, by: u64, what: &str| {
                assert!(a.abs_diff(b) <= by, "{what}: {a} {b} ± {by}: {said:?} {command:?}");
            };
            // The launcher allows for a drift of 500 ppm.
            apart(command.end - command.start, end - start, 2 + (end - start) / 1000, "how long");
            apart(command.start - first.map_or(0, |f| f.start), start - origin, 2 + 2 * error, "when");
            assert!(command.cause <= command.start + error, "{command:?}");
            assert_eq!(command.device_name, "fake device");
        }
        assert_eq!(self.lost(), self.untimed(), "{}", self.report(&["tally"]));
        seen
    }
}

#[test]
fn commands_of_immediate_lists_have_the_times_of_the_device() {
    for timer in [ORDINARY, "12500000 36 1000000 0", "1000000 32 1000000 1"] {
        let Some(ran) = traced("immediate", timer, &[]) else { return };
        let hertz = timer.split(' ').next().and_then(|h| h.parse().ok()).expect("ticks a second");
        let seen = ran.check(hertz, &[]);
        assert_eq!(seen.len(), 33, "{}", ran.done.out);
        assert!(ran.done.out.contains("asked took 1500\nflags 0x1 and 0\n"), "{}", ran.done.out);
        let sizes = |name: &str| seen.iter().find(|c| c.name == name).map(|c| c.global.clone());
        assert_eq!(sizes("together"), Some(vec![16, 12, 4]));
        assert_eq!(sizes("indirect"), Some(vec![]));
        assert_eq!(seen.iter().map(|c| c.bytes).sum::<u64>(), 2 * (1600 + 320 + 256));
    }
}

#[test]
fn each_execution_of_a_list_has_its_own_times() {
    let Some(ran) = traced("regular", ORDINARY, &[]) else { return };
    assert_eq!(ran.check(19_200_000, &[]).len(), 5 * 4 + 1);
    let Some(ran) = traced("pipelined", ORDINARY, &[]) else { return };
    assert_eq!(ran.check(19_200_000, OURS).len(), 3 + 2);
    let said = "whose event or list was used again before its last use was known to have ended have none";
    assert!(ran.done.err.contains(said), "{}", ran.done.err);
}

/// Times that could be another execution's are not given, and it is known when there is no doubt any more.
#[test]
fn a_list_that_was_executed_at_once_has_times_again() {
    let Some(ran) = traced("recovers", ORDINARY, &[]) else { return };
    let (said, seen) = (ran.said(), ran.seen());
    assert_eq!((said.len(), seen.len()), (6, 4), "{}", ran.done.out);
    assert_eq!(ran.lost(), 2);
    let gap = |a: u64, b: u64| (u128::from(b - a) * 1_000_000_000 / 19_200_000) as u64;
    for (pair, times) in said[2..].windows(2).zip(seen.windows(2)) {
        let (there, here) = (gap(pair[0].ticks[0], pair[1].ticks[0]), times[1].start - times[0].start);
        assert!(there.abs_diff(here) <= 2 * ran.error() + 2, "{pair:?} {times:?}");
    }
}

/// Lists that are executed again before the program has waited: nothing is asked of the device that it does not promise.
fn again(part: &str) -> Option<Ran> {
    let ran = traced_again("", part)?;
    assert!(ran.done.out.contains("BAD 0 -, UNRESET 0\n"), "{}", ran.done.out);
    Some(ran)
}

fn traced_again(refused: &str, part: &str) -> Option<Ran> {
    let ran = run_refusing(refused, &["again", part], ORDINARY, &[])?;
    // It fails on any finding.
    ran.report(&["check"]);
    Some(ran)
}

/// What we put into queues, which no program has there.
const OURS: &[&str] = &["barrier", "marker"];

#[test]
fn each_execution_has_its_own_times_if_nobody_waits_between_them() {
    for (part, commands) in
        [("row", (8 + 2 + 3) * 3 + 1), ("free", 48 * 3), ("waited", 48 * 3), ("immediate", 16 * 3)]
    {
        let Some(ran) = again(part) else { return };
        assert_eq!(ran.check(19_200_000, OURS).len(), commands, "{part}");
        assert!(!ran.done.err.contains("have none"), "{}", ran.done.err);
        let fences =
            ran.done.out.lines().filter(|line| line.starts_with("fence ") || line.starts_with("ended "));
        assert!(fences.clone().all(|line| line.ends_with(" 0x1")), "{}", ran.done.out);
    }
}

#[test]
fn lists_go_on_where_their_times_are_certain_alone() {
    for (part, commands) in [("queues", 2 * 8 * 3 + 6), ("events", 3 * 4 + 4 * 4), ("elsewhere", 0)] {
        let Some(ran) = again(part) else { return };
        assert_eq!(ran.check(19_200_000, OURS).len(), commands, "{part}");
        let refused = ran.done.err.contains("in queues where the driver copies none have none");
        assert_eq!(refused, part == "elsewhere", "{}", ran.done.err);
    }
}

/// Lists, queues and contexts end as soon as the program has waited for its own.
#[test]
fn what_is_executed_again_may_end_at_once() {
    let Some(ran) = again("endings") else { return };
    // Each time three lists thrice: of three commands, and one recorded anew of one and of two.
    assert_eq!(ran.check(19_200_000, OURS).len(), 3 * 3 * (3 * 3 + 3 + 1 + 2), "{}", ran.done.out);
}

#[test]
fn several_threads_execute_lists_again() {
    for (part, commands) in [("shared", 48 * 3), ("threads", 8 * 3 * 8 * 3)] {
        let Some(ran) = again(part) else { return };
        assert_eq!(ran.check(19_200_000, OURS).len(), commands, "{part}");
    }
}

impl Ran {
    /// All commands are in the trace or counted, and those that are there have the times of one that ran, each of
    /// another. Returns how many there are.
    fn check_some(&self, name: &str) -> (usize, u64) {
        let said: Vec<_> = self.said().into_iter().filter(|s| s.name == name).collect();
        let (seen, lost) = (self.seen(), self.lost());
        let seen: Vec<_> = seen.iter().filter(|c| c.name == name).collect();
        let nanoseconds = |ticks: u64| (u128::from(ticks) * 1_000_000_000 / 19_200_000) as u64;
        // They last longer and longer, by 20 µs.
        let found = seen.iter().map(|c| {
            let lasted = c.end - c.start;
            said.iter()
                .position(|s| nanoseconds(s.ticks[1] - s.ticks[0]).abs_diff(lasted) < 2 + lasted / 1000)
        });
        let found: Vec<_> = found.map(|at| at.expect("the times of a command that ran")).collect();
        assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
        let gap = |a: u64, b: u64| b - a;
        for (pair, times) in found.windows(2).zip(seen.windows(2)) {
            let [before, after] = [pair[0], pair[1]].map(|at| said[at].ticks[0]);
            let (there, here) = (nanoseconds(gap(before, after)), gap(times[0].start, times[1].start));
            assert!(there.abs_diff(here) <= 2 * self.error() + 2, "{pair:?}: {there} {here}");
        }
        (seen.len(), lost)
    }
}

/// Whoever breaks the rule, or comes too often, has no wrong times.
#[test]
fn what_is_not_certain_has_no_times() {
    let Some(ran) = traced_again("", "raced") else { return };
    let seen = ran.seen().len() as u64;
    assert_eq!(seen + ran.lost(), 48 * 3, "{}", ran.done.err);
    ran.check_some("grows");
    // 64 copies, and the last execution, which needs none; then three times as always.
    let Some(ran) = traced_again("", "deep") else { return };
    assert!(ran.done.out.contains("BAD 0"), "{}", ran.done.out);
    assert_eq!(ran.check_some("grows"), (64 + 1 + 3, 35), "{}", ran.done.err);
    assert!(ran.done.err.contains("while their times of 64 executions were not read have none"));
}

/// The program's lists run as they are, and what was known before is known still.
#[test]
fn drivers_that_copy_no_times_leave_lists_as_they_are() {
    for refused in ["copies", "mixed"] {
        let Some(ran) = traced_again(refused, "row") else { return };
        assert!(ran.done.out.contains("BAD 0"), "{}", ran.done.out);
        let said = ran.said().iter().filter(|s| s.name == "grows").count();
        assert_eq!(said, 8 + 2 + 3, "{}", ran.done.out);
        let (seen, lost) = ran.check_some("grows");
        // Those that were waited for.
        assert!(seen >= 2 && 3 * (said - seen) as u64 == lost, "{seen} {lost} {}", ran.done.err);
        let text = "in queues where the driver copies none have none";
        assert!(ran.done.err.contains(text), "{}", ran.done.err);
    }
}

#[test]
fn events_without_times_are_signalled_all_the_same() {
    // Behind a command with an event of ours, a barrier signals the program's.
    let Some(ran) = traced("shared", ORDINARY, &[]) else { return };
    assert_eq!(ran.check(19_200_000, &["barrier"]).len(), 3);
    assert!(ran.done.out.contains("all were signalled"), "{}", ran.done.out);
    assert_eq!(ran.said().iter().filter(|s| s.kind == "barrier").count(), 3);
    assert!(ran.done.err.contains("counter-based events without timestamps"), "{}", ran.done.err);
    let Some(ran) = traced("counters", ORDINARY, &[]) else { return };
    assert_eq!(ran.check(19_200_000, &["barrier"]).len(), 8);
}

#[test]
fn what_ends_or_is_cloned_gives_no_wrong_times() {
    let Some(ran) = traced("clones", ORDINARY, &[]) else { return };
    assert_eq!(ran.check(19_200_000, &[]).len(), 0);
    let Some(ran) = traced("endings", ORDINARY, &[]) else { return };
    assert_eq!(ran.check(19_200_000, &[]).len(), 3);
}

#[test]
fn counters_begin_anew() {
    // A machine that is busy for longer than the counter needs gets another try.
    for until in [300, 1000, 3000, 10_000] {
        let Some(ran) = traced("across", &format!("19200000 32 {until} 0"), &[]) else { return };
        assert_eq!(ran.check(19_200_000, &[]).len(), 7);
        if ran.done.out.contains("across 1") {
            return;
        }
    }
    panic!("no command ran while the counter began anew");
}

/// Between two comparisons of clocks, too.
#[test]
fn counters_begin_anew_while_nothing_runs() {
    // Every 3.5 s, and the program takes 6.6 s.
    let Some(ran) = traced("sleeps", "19200000 26 1000 0", &[]) else { return };
    assert_eq!(ran.check(19_200_000, &[]).len(), 3);
}

/// What was executed outside gives its times to nothing.
#[test]
fn windows_have_their_own_commands() {
    let Some(ran) = traced("windows", ORDINARY, &["--on-calls"]) else { return };
    let (said, seen) = (ran.said(), ran.seen());
    let names: Vec<&str> = seen.iter().map(|c| c.name.as_str()).collect();
    assert_eq!((names, ran.lost()), (vec!["inside", "again", "again"], 1), "{}", ran.done.err);
    // The first and the last execution, of three.
    let all: Vec<_> = said.iter().filter(|s| s.name == "again").collect();
    let there = (all[2].ticks[0] - all[0].ticks[0]) as u128 * 1_000_000_000 / 19_200_000;
    let here = seen[2].start - seen[1].start;
    assert!((there as u64).abs_diff(here) <= 2 * ran.error() + 2, "{said:?} {seen:?}");
}

/// Threads that disturb each other's looks, with contexts that come and go.
#[test]
fn nothing_is_mixed_up_by_several_threads() {
    let Some(ran) = traced("storm", ORDINARY, &[]) else { return };
    // Where another thread is just looking, times are copied on the device.
    assert_eq!(ran.check(19_200_000, OURS).len(), 8 * 6 * 4 * 8);
}

#[test]
fn a_question_that_says_that_a_command_has_ended_is_enough() {
    let Some(ran) = traced("polls", ORDINARY, &[]) else { return };
    assert_eq!(ran.check(19_200_000, &[]).len(), 3);
}

#[test]
fn commands_that_nobody_asked_about_in_time_have_no_times() {
    // The counter begins anew every 262 ms.
    let Some(ran) = traced("late", "1000000 18 100 0", &[]) else { return };
    assert_eq!((ran.seen().len(), ran.lost()), (0, 1));
    assert!(ran.done.err.contains("before the device's counter began anew"), "{}", ran.done.err);
}

#[test]
fn reports_have_devices_and_kernels() {
    let Some(ran) = traced("immediate", ORDINARY, &[]) else { return };
    let tally = ran.tally();
    assert_eq!(tally["utilization"][0]["device"], "fake device fafafafa", "{tally:#}");
    let text = ran.report(&["tally"]);
    assert!(text.contains("with_timed") && !text.contains("no times"), "{text}");
    let why = ran.report(&["why"]);
    assert!(why.contains("computing") && !why.contains("their times are not"), "{why}");
    // The program ends its context and its lists while its module and its commands are there.
    let lint = ran.report(&["lint", "--except", "outlives-owner,released-in-use"]);
    assert!(lint.contains("0 errors"), "{lint}");
}

#[test]
fn outside_of_device_times_programs_get_what_they_ask_for() {
    let Some(ran) = traced("shared", ORDINARY, &["--no-device"]) else { return };
    assert_eq!(ran.seen().len(), 0);
    assert_eq!(ran.said().iter().filter(|s| s.kind == "barrier").count(), 0);
}

/// In all ways in which a program comes to the functions, from several threads at once.
#[test]
fn no_command_is_lost_whichever_way_it_was_enqueued() {
    for (part, commands) in [("commands", 11), ("threads", 4000)] {
        for line in [["work", "linked"], ["work", "late"], ["late", "late"], ["late", "tables"]] {
            let Some(ran) = run_traced(&[line[0], line[1], part], ORDINARY, &[]) else { return };
            assert_eq!((ran.seen().len(), ran.lost()), (commands, 0), "{line:?} {part}");
        }
    }
}

#[test]
fn more_than_may_be_in_flight_are_counted() {
    let Some(ran) = run_traced(&["work", "linked", "threads"], ORDINARY, &["--max-in-flight", "100"]) else {
        return;
    };
    assert!(ran.lost() > 0, "{}", ran.done.err);
    assert_eq!(ran.seen().len() as u64 + ran.lost(), 4000, "{}", ran.done.err);
    assert!(ran.done.err.contains("more than 100 commands were in flight"), "{}", ran.done.err);
}

/// Where not all commands are timed, all are counted: kernels, and other commands by their kind.
#[test]
fn what_is_not_timed_is_counted() {
    let Some(ran) = traced("immediate", ORDINARY, &["--device-times", "sampled:2"]) else { return };
    let launches = Seen::read(&ran.folder).launches;
    let counted: u64 = launches.values().map(|[all, ..]| all).sum();
    let timed: u64 = launches.values().map(|[_, timed, _]| timed).sum();
    let kernels = ran.said().iter().filter(|s| s.kind == "kernel").count() as u64;
    assert_eq!(counted, kernels, "{launches:?}");
    assert!(timed < counted && ran.lost() == 0, "{launches:?}");
    let Some(ran) = run_traced(&["work", "linked", "threads"], ORDINARY, &["--max-overhead", "1%"]) else {
        return;
    };
    let text = ran.report(&["tally"]);
    let total = text.lines().find(|l| l.starts_with("barrier ")).expect("a row");
    assert!(total.contains("|  4000 |"), "{text}");
}
