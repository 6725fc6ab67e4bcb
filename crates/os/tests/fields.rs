//! What programs in the kernel read of threads and registers is what the kernel's own records of the same tracepoints
//! have, field for field.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use hetrace_os::catalog::{SYSCALL_ENTRY, SYSCALL_EXIT};
use hetrace_os::layout::Layout;
use hetrace_os::perf::bpf::{Buffers, Calls, Loaded, Own, Reading, length};
use hetrace_os::perf::open::{self, Of};
use hetrace_os::perf::record::{Records, What};
use hetrace_os::tracefs::Tracefs;

/// Bytes of each buffer: enough for all that happens here.
const ROOM: usize = 32 << 20;
const SCHEDULER: [&str; 4] = ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"];
/// Sleeps, pipes, new processes and their ends, one that is stopped, others of another priority, and several that have
/// not enough processors.
const WORK: &str = "
    sleep 0.1 & (sleep 0.05; nice -n 7 true; chrt -f 5 true) &
    yes | head -c 3000000 | cat > /dev/null &
    for i in 1 2 3 4 5 6; do (n=0; while [ $n -lt 20000 ]; do n=$((n + 1)); done) & done
    sleep 5 & stopped=$!; sleep 0.02; kill -STOP $stopped; sleep 0.02; kill -CONT $stopped; kill $stopped
    wait
";

/// Of each CPU and tracepoint: its records, in their order.
type All = BTreeMap<(usize, String), Vec<Vec<u8>>>;

fn cpus() -> Vec<u32> {
    (0..std::thread::available_parallelism().map_or(1, |n| n.get() as u32)).collect()
}

fn layouts() -> Option<Vec<Layout>> {
    let tracefs = Tracefs::open().ok()?;
    let scheduler = SCHEDULER.map(|name| ("sched", name));
    let others = [SYSCALL_ENTRY, SYSCALL_EXIT, ("exceptions", "page_fault_user")];
    let all = scheduler.into_iter().chain(others);
    all.map(|(system, name)| tracefs.layout(system, name).ok().flatten()).collect()
}

fn attach(layouts: &[Layout], reading: Reading) -> Option<(Own, Buffers)> {
    attach_for(layouts, reading, &Calls::All)
}

fn attach_for(layouts: &[Layout], reading: Reading, calls: &Calls) -> Option<(Own, Buffers)> {
    let loaded = Loaded::load(&cpus(), ROOM, false, calls, reading).ok()?;
    if reading == Reading::Fields && loaded.copies() {
        return None;
    }
    let mut copied = Vec::new();
    for layout in layouts.iter().filter(|layout| loaded.copies() && SCHEDULER.contains(&&*layout.name)) {
        copied.push((open::tracepoint(layout.id, Of::Machine, 0, 0, None).ok()?, layout));
    }
    loaded.attach(None, &layouts.iter().collect::<Vec<_>>(), copied).ok()
}

/// Words of all records, by place of the CPU.
type Words = Vec<Vec<u64>>;

/// Takes what there is.
fn take(buffers: &mut Buffers, all: &mut Words) {
    all.resize_with(cpus().len(), Vec::new);
    for (cpu, all) in all.iter_mut().enumerate() {
        let mut nested = Vec::new();
        assert_eq!(buffers.take(cpu, all, &mut nested), 0);
        all.extend(nested);
    }
}

/// Returns all records. Returns none if some were dropped.
fn taken((own, buffers): &mut (Own, Buffers), mut words: Words, layouts: &[Layout]) -> Option<All> {
    let mut all = All::new();
    take(buffers, &mut words);
    for (cpu, all_words) in words.iter().enumerate() {
        let mut rest = all_words.as_slice();
        let next = || (!rest.is_empty()).then(|| rest.split_off(..length(rest)).expect("a record"));
        let mut words: Vec<&[u64]> = std::iter::from_fn(next).collect();
        words.sort_by_key(|record| record[0]);
        for words in words {
            let mut bytes = Vec::new();
            own.record(words, &mut bytes).expect("a record");
            let What::Sample(raw) = Records::new(&bytes).next().expect("a record").what else { panic!() };
            let id = u16::from_ne_bytes([raw[0], raw[1]]);
            let layout = layouts.iter().find(|layout| layout.id == id).expect("a tracepoint");
            all.entry((cpu, layout.name.clone())).or_default().push(raw.to_vec());
        }
    }
    dropped_nothing(own, buffers).then_some(all)
}

fn dropped_nothing(own: &mut Own, buffers: &mut Buffers) -> bool {
    buffers.dropped().is_empty() && own.skipped() == 0
}

/// Records the same twice: by fields, and meanwhile by copies. Returns none if some were dropped.
fn recorded(layouts: &[Layout]) -> Option<(All, All)> {
    let mut fields = attach(layouts, Reading::Fields).expect("programs that read fields");
    let mut copies = attach(layouts, Reading::Copies).expect("programs that copy");
    let mut work = Command::new("sh");
    work.args(["-c", WORK]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut work = work.spawn().expect("sh");
    let (mut by_fields, mut by_copies) = (Words::new(), Words::new());
    // A buffer is small until there is somebody who empties it.
    while work.try_wait().expect("sh").is_none() {
        take(&mut fields.1, &mut by_fields);
        take(&mut copies.1, &mut by_copies);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let copied = taken(&mut copies, by_copies, layouts);
    drop(copies);
    Some((taken(&mut fields, by_fields, layouts)?, copied?))
}

#[test]
fn fields_are_those_of_the_kernels_records() {
    let Some(layouts) = layouts() else {
        eprintln!("SKIPPED: this user may not read the descriptions of tracepoints");
        return;
    };
    if attach(&layouts, Reading::Fields).is_none() || attach(&layouts, Reading::Copies).is_none() {
        eprintln!("SKIPPED: programs in the kernel are not possible here, or it does not describe its types");
        return;
    }
    // Programs that copy are left out, and counted, while another tool's run on their CPU.
    let twice = (0..5).find_map(|_| recorded(&layouts));
    let (fields, copied) = twice.expect("of five times one in which nothing was dropped");
    let mut names = BTreeSet::new();
    for ((cpu, name), copied) in &copied {
        names.insert(name.as_str());
        let fields = &fields[&(*cpu, name.clone())];
        // These began earlier and ended later.
        let same = fields.windows(copied.len()).any(|some| some == copied);
        assert!(same, "CPU {cpu}, {name}: {}", first_difference(fields, copied));
    }
    assert_eq!(names.len(), layouts.len(), "{names:?}");
    let switch = layouts.iter().find(|layout| layout.name == "sched_switch").expect("it");
    let state = switch.field("prev_state").expect("a state");
    let switches = copied.iter().filter(|((_, name), _)| *name == switch.name).flat_map(|(_, all)| all);
    let states: BTreeSet<i64> = switches.filter_map(|raw| state.number(raw)).collect();
    eprintln!("states of threads that left a CPU: {states:x?}");
    assert!([0, 1, 4].iter().all(|state| states.contains(state)), "{states:x?}");
}

/// Says where they differ, if they begin as the first that is equal says.
fn first_difference(fields: &[Vec<u8>], copied: &[Vec<u8>]) -> String {
    let equal = |at: usize| fields[at..].iter().zip(copied).take_while(|(a, b)| a == b).count();
    let Some((at, equal)) = (0..fields.len()).map(|at| (at, equal(at))).max_by_key(|(_, equal)| *equal)
    else {
        return "nothing was recorded".to_owned();
    };
    let (ours, theirs) = (fields.get(at + equal), copied.get(equal));
    format!("{equal} of {} are equal; then {ours:x?} for {theirs:x?}", copied.len())
}

/// Says what both ways take of a storm of switches, without a reader beside it: processor time of each round trip of
/// `SWITCHES` (`bench/programs/build/switches`), in nanoseconds, of all rounds.
#[test]
#[ignore = "measures, for a minute: see docs/measurements/2026-11-26-os-price.md"]
fn price_of_a_round_trip() {
    let (Some(layouts), Ok(switches)) = (layouts(), std::env::var("SWITCHES")) else { return };
    let calls = if std::env::var("CALLS").is_ok() { Calls::All } else { Calls::None };
    let ways = [None, Some(Reading::Copies), Some(Reading::Fields)];
    let mut taken: [Vec<f64>; 3] = Default::default();
    for _ in 0..100 {
        for (way, taken) in ways.iter().zip(&mut taken) {
            let mut own = way.map(|way| attach_for(&layouts, way, &calls).expect("programs"));
            // What fits into a buffer.
            let out = Command::new(&switches).args(["-1", "-n", "4000"]).output().expect("switches");
            assert!(own.iter_mut().all(|(own, buffers)| dropped_nothing(own, buffers)));
            let text = String::from_utf8(out.stdout).expect("text");
            let line = text.lines().find_map(|line| line.strip_prefix("processor.ns ")).expect("a number");
            taken.push(line.parse().expect("a number"));
        }
    }
    for (way, taken) in ways.iter().zip(&mut taken) {
        taken.sort_by(f64::total_cmp);
        let part = |of: usize| taken[taken.len() * of / 100];
        println!(
            "{way:?}: least {}, tenth {}, quartile {}, median {}",
            part(0),
            part(10),
            part(25),
            part(50)
        );
    }
}
