//! What programs in the kernel record at tracepoints that are passed less often becomes the events that perf's records of the
//! same tracepoints become, byte for byte.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use hetrace_os::catalog::{Kind, TRACEPOINTS, Tracepoint};
use hetrace_os::event::{Event, Source};
use hetrace_os::layout::Layout;
use hetrace_os::perf::bpf::{Buffers, Calls, Loaded, Own, Reading, length};
use hetrace_os::perf::open::{self, Of};
use hetrace_os::perf::record::{Records, What};
use hetrace_os::perf::ring::Ring;
use hetrace_os::tracefs::Tracefs;

/// Bytes of each buffer.
const ROOM: usize = 4 << 20;
/// New processes and threads, programs with long and short names, and one that is not there; files that are written through
/// to the disk; and more than there are processors for, so that threads go from one to another.
const WORK: &str = "
    for i in 1 2 3 4 5 6 7 8 9; do true & done; wait
    name=$(printf '%0200d' 7); mkdir $name; cp /bin/true $name/$name; $name/$name; ./$name/$name
    (exec -a other $name/$name); /nowhere/at/all; nice -n 5 sh -c 'sleep 0.02 & wait'
    echo 300 > /proc/self/oom_score_adj; (true); echo 0 > /proc/self/oom_score_adj
    for i in 1 2 3; do dd if=/dev/zero of=file bs=64k count=4 oflag=direct conv=fsync; sync file; done
    dd if=file of=/dev/null bs=4k iflag=direct; rm file; sync .
    for i in 1 2 3 4 5 6; do (n=0; while [ $n -lt 30000 ]; do n=$((n + 1)); done) & done; wait
";

type Known = (&'static Tracepoint, Layout, Event);
/// Of each CPU and tracepoint: the thread and the event of each record, in their order.
type All = BTreeMap<(usize, &'static str), Vec<(u64, u32, Vec<u8>)>>;

/// The same, without times.
type Sorted = BTreeMap<(usize, &'static str), Vec<(u32, Vec<u8>)>>;

fn known() -> Option<Vec<Known>> {
    let tracefs = Tracefs::open().ok()?;
    let rare = |of: &&Tracepoint| !matches!(of.kind, Kind::Switch | Kind::Wake | Kind::Own);
    let known = |of: &'static Tracepoint| {
        let layout = tracefs.layout(of.system, of.name).ok().flatten()?;
        let event = Event::new(of.event, &layout, of.renamed, of.added);
        Some((of, layout, event))
    };
    Some(TRACEPOINTS.iter().filter(rare).filter_map(known).collect())
}

fn cpus() -> Vec<u32> {
    (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect()
}

/// Of each CPU perf's ring buffer, and other events that record into it.
struct Perf {
    rings: Vec<Ring>,
    others: Vec<OwnedFd>,
}

impl Perf {
    fn open(known: &[Known]) -> Option<Self> {
        let mut perf = Self { rings: Vec::new(), others: Vec::new() };
        for cpu in cpus() {
            let mut ring: Option<Ring> = None;
            for (_, layout, _) in known {
                let leader = ring.as_ref().map(Ring::event);
                let event = open::tracepoint(layout.id, Of::Machine, cpu, 0, leader).ok()?;
                match &ring {
                    None => ring = Some(Ring::map(event, ROOM).ok()?),
                    Some(ring) => {
                        open::redirect(&event, ring.event()).ok()?;
                        perf.others.push(event);
                    }
                }
            }
            perf.rings.extend(ring);
        }
        Some(perf)
    }

    /// Takes all records. Returns whether none was lost.
    fn take(&mut self, known: &[Known], all: &mut All) -> bool {
        let mut whole = true;
        for (cpu, ring) in self.rings.iter_mut().enumerate() {
            let mut bytes = Vec::new();
            ring.take(&mut bytes);
            for record in Records::new(&bytes) {
                whole &= !matches!(record.what, What::Lost(_));
                add(cpu, &record, known, all);
            }
        }
        whole
    }
}

fn add(cpu: usize, record: &hetrace_os::perf::record::Record<'_>, known: &[Known], all: &mut All) {
    let What::Sample(raw) = record.what else { return };
    let id = u16::from_ne_bytes([raw[0], raw[1]]);
    let Some((of, layout, event)) = known.iter().find(|(_, layout, _)| layout.id == id) else { return };
    let current = layout.current.as_ref().and_then(|field| field.number(raw)).expect("a thread");
    let mut bytes = Vec::new();
    let source = Source { record: raw, who: record.who, child_pid: 0 };
    assert!(event.encode(&source, &mut bytes), "{}: {raw:x?}", of.name);
    all.entry((cpu, of.name)).or_default().push((record.time, current as u32, bytes));
}

/// Takes all records of ours. Returns whether none was lost.
fn take((own, buffers): &mut (Own, Buffers), known: &[Known], all: &mut All) -> bool {
    for cpu in 0..cpus().len() {
        let (mut words, mut nested) = (Vec::new(), Vec::new());
        assert_eq!(buffers.take(cpu, &mut words, &mut nested), 0);
        for words in [words, nested] {
            let mut rest = words.as_slice();
            while !rest.is_empty() {
                let words = rest.split_off(..length(rest)).expect("a record");
                let mut bytes = Vec::new();
                own.record(words, &mut bytes).expect("a record");
                add(cpu, &Records::new(&bytes).next().expect("a record"), known, all);
            }
        }
    }
    buffers.dropped().is_empty() && own.skipped() == 0
}

fn sorted(mut all: All) -> Sorted {
    all.values_mut().for_each(|records| records.sort_by_key(|(time, ..)| *time));
    let plain = |records: Vec<(u64, u32, Vec<u8>)>| records.into_iter().map(|(_, tid, bytes)| (tid, bytes));
    all.into_iter().map(|(key, records)| (key, plain(records).collect())).collect()
}

/// Records the same work by programs and by perf. Returns none if something was lost.
fn recorded(known: &[Known], ours: &mut (Own, Buffers), perf: &mut Perf) -> Option<(All, All)> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let mut work = Command::new("sh");
    work.args(["-c", WORK]).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut found, mut expected, mut whole) = (All::new(), All::new(), true);
    // What was before.
    perf.take(known, &mut All::new());
    take(ours, known, &mut All::new());
    perf.rings.iter().for_each(|ring| open::enable(ring.event()).expect("a beginning"));
    let mut work = work.spawn().expect("sh");
    loop {
        let ended = work.try_wait().expect("an end").is_some();
        if ended {
            perf.rings.iter().for_each(|ring| open::disable(ring.event()).expect("an end"));
        }
        whole &= perf.take(known, &mut expected);
        whole &= take(ours, known, &mut found);
        if ended {
            return whole.then_some((found, expected));
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn events_are_those_of_perfs_records() {
    let Some(known) = known() else {
        eprintln!("SKIPPED: this user may not read the descriptions of tracepoints");
        return;
    };
    let others = others();
    let layouts: Vec<&Layout> = known.iter().map(|(_, layout, _)| layout).chain(&others).collect();
    let loaded = Loaded::load(&cpus(), ROOM, false, &Calls::None, Reading::Fields).ok();
    let Some(loaded) = loaded.filter(|loaded| !loaded.copies()) else {
        eprintln!("SKIPPED: programs in the kernel are not possible here, or it does not describe its types");
        return;
    };
    let mut ours = loaded.attach(None, &layouts, Vec::new()).expect("programs");
    let Some(mut perf) = Perf::open(&known) else {
        eprintln!("SKIPPED: no tracepoints of perf's");
        return;
    };
    // Another tool's work may make one of them lose something.
    let both = (0..5).find_map(|_| recorded(&known, &mut ours, &mut perf));
    let (found, expected) = both.expect("of five times one in which nothing was lost");
    let (found, expected) = (sorted(found), sorted(expected));
    let mut names = BTreeSet::new();
    for ((cpu, name), expected) in &expected {
        let layout = &known.iter().find(|(of, ..)| of.name == *name).expect("it").1;
        if !ours.0.records(layout.id) {
            eprintln!("{name} is recorded by perf");
            continue;
        }
        names.insert(*name);
        let found = found.get(&(*cpu, *name)).map(Vec::as_slice).unwrap_or_default();
        compare(&format!("CPU {cpu}, {name}"), found, expected);
    }
    eprintln!("compared: {names:?}");
    let always = ["sched_migrate_task", "sched_process_fork", "sched_process_exec", "sched_process_exit"];
    assert!(always.iter().chain(&["sched_process_free", "task_newtask"]).all(|name| names.contains(name)));
}

/// Compares records of a CPU, of which ours began earlier and ended later. Perf lacks some that the idle thread is the current
/// one of, where the machine is a virtual one, so of these ours may have more.
fn compare(what: &str, found: &[(u32, Vec<u8>)], expected: &[(u32, Vec<u8>)]) {
    let mut rest = found.iter();
    let all = expected.iter().all(|record| rest.any(|one| one == record));
    let busy = |records: &[(u32, Vec<u8>)]| -> Vec<(u32, Vec<u8>)> {
        records.iter().filter(|(tid, _)| *tid != 0).cloned().collect()
    };
    let (found, expected) = (busy(found), busy(expected));
    let same = expected.is_empty() || found.windows(expected.len()).any(|some| some == expected);
    assert!(all && same, "{what}: {all}, {}", first_difference(&found, &expected));
}

/// Returns the layouts of what else programs record.
fn others() -> Vec<Layout> {
    let tracefs = Tracefs::open().expect("tracefs");
    let names =
        ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"].map(|name| ("sched", name));
    let all = names.into_iter().chain([("exceptions", "page_fault_user")]);
    all.filter_map(|(system, name)| tracefs.layout(system, name).ok().flatten()).collect()
}

/// Says where they differ, if they begin as the first that is equal says.
fn first_difference(found: &[(u32, Vec<u8>)], expected: &[(u32, Vec<u8>)]) -> String {
    let equal = |at: usize| found[at..].iter().zip(expected).take_while(|(a, b)| a == b).count();
    let Some((at, equal)) = (0..found.len()).map(|at| (at, equal(at))).max_by_key(|(_, equal)| *equal) else {
        return "nothing was recorded".to_owned();
    };
    let (ours, theirs) = (found.get(at + equal), expected.get(equal));
    format!("{equal} of {} are equal; then {ours:x?} for {theirs:x?}", expected.len())
}
