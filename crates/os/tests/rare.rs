//! What programs in the kernel record at tracepoints that are passed less often becomes the events that perf's records of the
//! same tracepoints become, byte for byte.

mod both;

use hetrace_os::catalog::{Kind, TRACEPOINTS, Tracepoint};
use hetrace_os::event::Event;
use hetrace_os::layout::Layout;
use hetrace_os::perf::bpf::{Calls, Loaded, Reading};
use hetrace_os::tracefs::Tracefs;

use both::{Known, Perf, ROOM, cpus, same};

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

fn known() -> Option<Vec<Known>> {
    let tracefs = Tracefs::open().ok()?;
    let rare = |of: &&Tracepoint| !matches!(of.kind, Kind::Switch | Kind::Wake | Kind::Own);
    let known = |of: &'static Tracepoint| {
        let layout = tracefs.layout(of.system, of.name).ok().flatten()?;
        let event = Event::new(of.event, &layout, of.renamed, of.added);
        Some(Known { layout, event })
    };
    Some(TRACEPOINTS.iter().filter(rare).filter_map(known).collect())
}

#[test]
fn events_are_those_of_perfs_records() {
    let Some(known) = known() else {
        eprintln!("SKIPPED: this user may not read the descriptions of tracepoints");
        return;
    };
    let others = others();
    let layouts: Vec<&Layout> = known.iter().map(|known| &known.layout).chain(&others).collect();
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
    let names = same(WORK, &known, &mut ours, &mut perf);
    let always = ["sched_migrate_task", "sched_process_fork", "sched_process_exec", "sched_process_exit"];
    assert!(always.iter().chain(&["sched_process_free", "task_newtask"]).all(|name| names.contains(*name)));
}

/// Returns the layouts of what else programs record.
fn others() -> Vec<Layout> {
    let tracefs = Tracefs::open().expect("tracefs");
    let names =
        ["sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"].map(|name| ("sched", name));
    let all = names.into_iter().chain([("exceptions", "page_fault_user")]);
    all.filter_map(|(system, name)| tracefs.layout(system, name).ok().flatten()).collect()
}
