//! Records of any tracepoint that programs in the kernel copy, as those of GPU drivers are, become the events that perf's
//! records of the same tracepoints become, byte for byte. Here they are of tracepoints that all machines have.

mod both;

use std::process::Command;

use hetrace_os::event::Event;
use hetrace_os::layout::{Form, Layout};
use hetrace_os::perf::bpf::{Buffers, Calls, Copied, Loaded, Own, Reading, length};
use hetrace_os::perf::open::{self, Of};
use hetrace_os::tracefs::Tracefs;

use both::{Known, Perf, ROOM, cpus, same};

/// Records of one length, and such with texts, of threads and of interrupts.
const SYSTEMS: [&str; 4] = ["workqueue", "signal", "oom", "timer"];
/// One that has three texts, of which two are the path of a program.
const LONG: (&str, &str) = ("sched", "sched_prepare_exec");
/// Signals and timers, work for threads of the kernel, and programs with short and long paths, of which one is so long that the
/// record has nearly as much as is copied.
const WORK: &str = "
    for i in 1 2 3; do sleep 5 & kill $!; wait $!; done; timeout 0.01 sleep 1
    echo 300 > /proc/self/oom_score_adj; (true); echo 0 > /proc/self/oom_score_adj
    for i in 1 2 3; do dd if=/dev/zero of=file bs=64k count=4 conv=fsync; done; rm file; sync .
    name=$(printf '%0240d' 7); path=.
    for i in 1 2 3 4 5 6 7 8; do path=$path/$name; mkdir $path; cp /bin/true $path/true; $path/true; done
";
/// A program with a path of which twice its length is more than is copied.
const TOO_LONG: &str = "
    name=$(printf '%0240d' 7); path=.
    for i in 1 2 3 4 5 6 7 8 9 10; do path=$path/$name; mkdir $path; done; cp /bin/true $path/true; $path/true
";

fn known() -> Option<Vec<Known>> {
    let tracefs = Tracefs::open().ok()?;
    let of = |system: &str| {
        tracefs.tracepoints(system).into_iter().map(|name| (system.to_owned(), name)).collect()
    };
    let all: Vec<(String, String)> = SYSTEMS.iter().flat_map(|system| -> Vec<_> { of(system) }).collect();
    let known = |(system, name): (String, String)| {
        let layout = tracefs.layout(&system, &name).ok().flatten()?;
        let event = Event::new(&name, &layout, &[], &[]);
        Some(Known { layout, event })
    };
    Some(all.into_iter().chain([(LONG.0.to_owned(), LONG.1.to_owned())]).filter_map(known).collect())
}

/// Opens one event for each tracepoint, and attaches a program there.
fn attached(known: &[Known]) -> Option<(Own, Buffers)> {
    let tracefs = Tracefs::open().ok()?;
    let others =
        ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"].map(|name| ("sched", name));
    let others = others.into_iter().chain([("exceptions", "page_fault_user")]);
    let others: Vec<Layout> =
        others.filter_map(|(system, name)| tracefs.layout(system, name).ok().flatten()).collect();
    let loaded = Loaded::load(&cpus(), ROOM, false, &Calls::None, Reading::Fields).ok()?;
    if loaded.copies() {
        return None;
    }
    let copied = known.iter().filter_map(opened).collect();
    loaded.attach(None, &others.iter().collect::<Vec<_>>(), copied).ok()
}

fn opened(known: &Known) -> Option<Copied<'_>> {
    Some((open::tracepoint(known.layout.id, Of::Machine, 0, 0, None).ok()?, &known.layout))
}

#[test]
fn events_are_those_of_perfs_records() {
    let Some(known) = known() else {
        eprintln!("SKIPPED: this user may not read the descriptions of tracepoints");
        return;
    };
    let (Some(mut ours), Some(mut perf)) = (attached(&known), Perf::open(&known)) else {
        eprintln!("SKIPPED: programs in the kernel are not possible here, or it does not describe its types");
        return;
    };
    let refused: Vec<&str> =
        known.iter().map(|known| &known.layout).filter(|l| !ours.0.records(l.id)).map(|l| &*l.name).collect();
    assert!(refused.is_empty(), "there is no program for {refused:?}");
    let names = same(WORK, &known, &mut ours, &mut perf);
    let always = ["workqueue_queue_work", "signal_generate", "oom_score_adj_update", "timer_start"];
    assert!(always.iter().all(|name| names.contains(*name)), "{names:?}");
    let is_long = |known: &&Known| known.layout.name == LONG.1;
    assert!(known.iter().find(is_long).is_none_or(|known| names.contains(&known.layout.name)));
    let differs = |known: &Known| known.layout.fields.iter().any(|field| field.form != Form::Plain);
    assert!(known.iter().any(differs) && !known.iter().all(differs), "of both kinds some");
}

/// What is longer than a program copies is not there, and counted.
#[test]
fn what_is_too_long_is_counted() {
    let Some(known) = known() else {
        eprintln!("SKIPPED: this user may not read the descriptions of tracepoints");
        return;
    };
    let long: Vec<Known> = known.into_iter().filter(|known| known.layout.name == LONG.1).collect();
    let Some((_own, mut buffers)) = attached(&long).filter(|_| !long.is_empty()) else {
        eprintln!("SKIPPED: no programs are possible here, or this kernel does not have the tracepoint");
        return;
    };
    let mut counted = |work: &str| -> u64 {
        run(work);
        (0..cpus().len()).for_each(|cpu| _ = buffers.take(cpu, &mut Vec::new(), &mut Vec::new()));
        buffers.dropped().into_iter().map(|(_, dropped)| dropped).sum()
    };
    assert_eq!(counted("true"), 0);
    assert_eq!(counted(TOO_LONG), 1);
}

fn run(work: &str) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let ran = Command::new("sh").args(["-c", work]).current_dir(folder.path()).status().expect("sh");
    assert!(ran.success(), "{work}");
}

/// Says how many records of how many the kernel left out, of a busy machine's timers and queues of work.
#[test]
#[ignore = "measures: see docs/measurements/2026-11-27-os-open.md"]
fn what_is_left_out() {
    let known = known().expect("descriptions of tracepoints");
    let (mut own, mut buffers) = attached(&known).expect("programs");
    let (mut records, mut dropped) = (0, 0);
    for _ in 0..10 {
        run(
            "for j in 1 2 3 4 5 6 7 8; do (i=0; while [ $i -lt 40 ]; do sleep 0.001; i=$((i + 1)); done) & done; wait",
        );
        for cpu in 0..cpus().len() {
            let (mut words, mut nested) = (Vec::new(), Vec::new());
            buffers.take(cpu, &mut words, &mut nested);
            for words in [words, nested] {
                let mut rest = words.as_slice();
                while !rest.is_empty() {
                    rest.split_off(..length(rest)).expect("a record");
                    records += 1;
                }
            }
        }
        dropped += buffers.dropped().iter().map(|(_, dropped)| dropped).sum::<u64>();
    }
    println!("{records} records, {} left out, {dropped} dropped", own.skipped());
}
