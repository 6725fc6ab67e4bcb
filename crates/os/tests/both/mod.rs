//! The same work recorded by programs in the kernel and by perf at once.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use hetrace_os::event::{Event, Source};
use hetrace_os::layout::Layout;
use hetrace_os::perf::bpf::{Buffers, Own, length};
use hetrace_os::perf::open::{self, Of};
use hetrace_os::perf::record::{Record, Records, What};
use hetrace_os::perf::ring::Ring;

/// Bytes of each buffer.
pub const ROOM: usize = 4 << 20;

/// A tracepoint, and the event that records of it become.
pub struct Known {
    pub layout: Layout,
    pub event: Event,
}

/// Of each CPU and tracepoint: the thread and the event of each record, in their order.
type All = BTreeMap<(usize, String), Vec<(u64, u32, Vec<u8>)>>;

/// The same, without times.
type Sorted = BTreeMap<(usize, String), Vec<(u32, Vec<u8>)>>;

/// Returns the numbers of the processors.
pub fn cpus() -> Vec<u32> {
    (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect()
}

/// Of each CPU perf's ring buffer, and other events that record into it.
pub struct Perf {
    rings: Vec<Ring>,
    others: Vec<OwnedFd>,
}

impl Perf {
    /// Opens events that are not enabled; none if that is refused.
    pub fn open(known: &[Known]) -> Option<Self> {
        let mut perf = Self { rings: Vec::new(), others: Vec::new() };
        for cpu in cpus() {
            let mut ring: Option<Ring> = None;
            for Known { layout, .. } in known {
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

fn add(cpu: usize, record: &Record<'_>, known: &[Known], all: &mut All) {
    let What::Sample(raw) = record.what else { return };
    let id = u16::from_ne_bytes([raw[0], raw[1]]);
    let Some(Known { layout, event }) = known.iter().find(|known| known.layout.id == id) else { return };
    let current = layout.current.as_ref().and_then(|field| field.number(raw)).expect("a thread");
    let mut bytes = Vec::new();
    let source = Source { record: raw, who: record.who, child_pid: 0 };
    assert!(event.encode(&source, &mut bytes), "{}: {raw:x?}", layout.name);
    all.entry((cpu, layout.name.clone())).or_default().push((record.time, current as u32, bytes));
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
    let (dropped, skipped) = (buffers.dropped(), own.skipped());
    if !dropped.is_empty() || skipped > 0 {
        eprintln!("dropped: {dropped:?}, skipped: {skipped}");
    }
    dropped.is_empty() && skipped == 0
}

fn sorted(mut all: All) -> Sorted {
    all.values_mut().for_each(|records| records.sort_by_key(|(time, ..)| *time));
    let plain = |records: Vec<(u64, u32, Vec<u8>)>| records.into_iter().map(|(_, tid, bytes)| (tid, bytes));
    all.into_iter().map(|(key, records)| (key, plain(records).collect())).collect()
}

/// Records the same work by programs and by perf. Returns none if something was lost.
fn recorded(work: &str, known: &[Known], ours: &mut (Own, Buffers), perf: &mut Perf) -> Option<(All, All)> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let mut sh = Command::new("sh");
    sh.args(["-c", work]).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut found, mut expected, mut whole) = (All::new(), All::new(), true);
    // What was before.
    perf.take(known, &mut All::new());
    take(ours, known, &mut All::new());
    perf.rings.iter().for_each(|ring| open::enable(ring.event()).expect("a beginning"));
    let mut work = sh.spawn().expect("sh");
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

/// Records work of a shell until nothing is lost, and compares what programs and perf recorded of it. Returns the names of the
/// tracepoints that there were records of.
pub fn same(work: &str, known: &[Known], ours: &mut (Own, Buffers), perf: &mut Perf) -> BTreeSet<String> {
    // Another tool's work may make one of them lose something.
    let both = (0..5).find_map(|_| recorded(work, known, ours, perf));
    let (found, expected) = both.expect("of five times one in which nothing was lost");
    let (found, expected) = (sorted(found), sorted(expected));
    let mut names = BTreeSet::new();
    for ((cpu, name), expected) in &expected {
        let layout = &known.iter().find(|known| known.layout.name == *name).expect("it").layout;
        if !ours.0.records(layout.id) {
            eprintln!("{name} is recorded by perf");
            continue;
        }
        names.insert(name.clone());
        let found = found.get(&(*cpu, name.clone())).map(Vec::as_slice).unwrap_or_default();
        compare(&format!("CPU {cpu}, {name}"), found, expected);
    }
    let records: usize = expected.values().map(Vec::len).sum();
    eprintln!("compared: {records} records of {names:?}");
    names
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

/// Says where they differ, if they begin as the first that is equal says.
fn first_difference(found: &[(u32, Vec<u8>)], expected: &[(u32, Vec<u8>)]) -> String {
    let equal = |at: usize| found[at..].iter().zip(expected).take_while(|(a, b)| a == b).count();
    let Some((at, equal)) = (0..found.len()).map(|at| (at, equal(at))).max_by_key(|(_, equal)| *equal) else {
        return "nothing was recorded".to_owned();
    };
    let (ours, theirs) = (found.get(at + equal), expected.get(equal));
    format!("{equal} of {} are equal; then {ours:x?} for {theirs:x?}", expected.len())
}
