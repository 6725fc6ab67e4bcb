//! What a kernel trace has to know where a window begins: which threads there are, what each is doing, who has each CPU.
//!
//! Of the time before the window the last event of each kind stays for each thread and CPU: the one that made it known
//! and named it, the system call that it is in, its last switch, and the wake-up since; and all switches of a CPU that a
//! thread waits for, since it waits. They get times right before the window, a nanosecond apart and in their order, so that
//! nothing seems to be known of the time before. Memory is that of the threads that live, and of [`MOST_SWITCHES`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use hetrace_ctf::read::{Event, Merge, Trace};

use crate::{Error, Watch, report};

/// Events between two looks at the watch.
const OFTEN: u64 = 1 << 16;

/// New times of events from before the window, in ticks: by the name of their stream, and where they stand in it.
pub(super) type Moved = BTreeMap<String, BTreeMap<u64, u64>>;

/// Where an event stands: its number in the order of time, its stream, and its offset there.
type Place = (u64, usize, u64);

/// What stays of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// What made it known, and what changed its name.
    known: Vec<Place>,
    /// The system call that it is in.
    call: Option<Place>,
    /// Its last switch, and whether that took it off a CPU.
    switch: Option<(Place, bool)>,
    /// Since then: its wake-up, and where to.
    woken: Option<Place>,
    moved: Option<Place>,
    /// The CPU that it waits for.
    waits_for: Option<i64>,
    /// It is about to end.
    exits: bool,
}

/// What stays of a CPU.
#[derive(Debug, Default)]
struct Cpu {
    /// The last switch, and all since a thread waits for it.
    switches: VecDeque<Place>,
    /// Threads that wait.
    waiting: HashSet<i64>,
    /// Interrupts that it serves.
    interrupts: Vec<Place>,
    paused: Option<Place>,
}

/// Most names of a thread that stay: the first and the last ones.
const NAMES: usize = 4;
/// Most switches of a CPU that stay: where a thread waits for longer, who had it then is not known.
const MOST_SWITCHES: usize = 1 << 16;
/// States in which a thread that leaves its CPU waits for it: `TASK_RUNNING`, and `TASK_REPORT_MAX` for one that was
/// preempted.
const READY: [i64; 2] = [0, 256];

#[derive(Debug, Default)]
struct State {
    threads: HashMap<i64, Thread>,
    cpus: HashMap<i64, Cpu>,
    /// Disks of the state dump.
    others: Vec<Place>,
}

/// Returns what stays of the time before `from`, in nanoseconds from the clocks' origin.
///
/// # Errors
/// When `watch` says so.
pub(super) fn before(trace: &Trace, from: i64, watch: Watch<'_>) -> Result<Moved, Error> {
    let names: HashMap<&str, usize> =
        (0..trace.stream_count()).filter_map(|at| Some((trace.stream_name(at)?, at))).collect();
    let (mut state, mut number, mut bytes) = (State::default(), 0, 0);
    let mut merge = Merge::new(trace);
    while let Some(event) = merge.next_event() {
        // The cutter reports damage.
        let Ok(event) = event else { continue };
        if event.ns_from_origin().is_none_or(|time| time >= from) {
            break;
        }
        number += 1;
        bytes += event.size_bits() / 8;
        if number % OFTEN == 0 {
            report(watch, std::mem::take(&mut bytes))?;
        }
        if let Some(stream) = names.get(event.stream_name()) {
            state.take((number, *stream, event.offset()), &event);
        }
    }
    Ok(moved(trace, from, state.places()))
}

/// Gives events times right before the window.
fn moved(trace: &Trace, from: i64, places: BTreeSet<Place>) -> Moved {
    let origin = trace.class().clocks.first().and_then(|clock| clock.ns_from_origin(0)).unwrap_or(0);
    let begin = u64::try_from(from.saturating_sub(origin)).unwrap_or(0);
    let count = places.len() as u64;
    let mut moved = Moved::new();
    for ((_, stream, offset), number) in places.into_iter().zip(0..) {
        let Some(name) = trace.stream_name(stream) else { continue };
        let time = begin.saturating_sub(count - number);
        moved.entry(name.to_owned()).or_default().insert(offset, time);
    }
    moved
}

impl State {
    fn take(&mut self, place: Place, event: &Event<'_, '_>) {
        let number = |names: &[&str]| names.iter().find_map(|name| event.get(name)?.as_i64());
        let current =
            event.get_in(hetrace_ctf::class::Scope::StreamEventContext, "tid").and_then(|tid| tid.as_i64());
        let name = event.class().name.as_str();
        let cpu = event.packet().cpu_id.and_then(|cpu| i64::try_from(cpu).ok()).unwrap_or(0);
        match name {
            "sched_switch" => {
                let (from, to) = (number(&["prev_tid"]), number(&["next_tid"]));
                self.switched(from, place, true);
                self.switched(to, place, false);
                let is_ready = number(&["prev_state"]).is_some_and(|state| READY.contains(&state));
                self.waits(from, Some(cpu).filter(|_| is_ready));
                self.waits(to, None);
                self.cpu(cpu).switched(place);
            }
            "perf_thread_in" => self.switched(number(&["tid"]), place, false),
            "perf_thread_out" => self.switched(number(&["tid"]), place, true),
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => {
                self.woken(number(&["tid"]), number(&["target_cpu"]), place);
            }
            "sched_migrate_task" => self.migrated(number(&["tid"]), number(&["dest_cpu"]), place),
            "sched_process_fork" | "perf_thread_begin" => self.begins(number(&["child_tid"]), place),
            "lttng_statedump_process_state" => self.begins(number(&["tid"]), place),
            "sched_process_exec" => {
                let (tid, old) = (number(&["tid"]), number(&["old_tid"]));
                self.renumbered(tid, old);
                self.named(tid, place);
            }
            "perf_thread_name" => self.named(number(&["tid"]), place),
            "sched_process_exit" => {
                if let Some(thread) = self.thread(number(&["tid"])) {
                    thread.exits = true;
                }
            }
            "sched_process_free" | "perf_thread_end" => {
                number(&["tid"]).into_iter().for_each(|tid| self.ended(tid));
            }
            "hetrace_recording_paused" => self.paused(cpu, place),
            "lttng_statedump_block_device" => self.others.push(place),
            _ if name.starts_with("syscall_entry_") => self.calls(current, Some(place)),
            _ if name.starts_with("syscall_exit_") => self.calls(current, None),
            _ if name.starts_with("irq_") && name.ends_with("_entry") => self.cpu(cpu).interrupts.push(place),
            _ if name.starts_with("irq_") && name.ends_with("_exit") => _ = self.cpu(cpu).interrupts.pop(),
            _ => {}
        }
    }

    fn cpu(&mut self, number: i64) -> &mut Cpu {
        self.cpus.entry(number).or_default()
    }

    /// A thread that is not idleness.
    fn thread(&mut self, tid: Option<i64>) -> Option<&mut Thread> {
        tid.filter(|tid| *tid != 0).map(|tid| self.threads.entry(tid).or_default())
    }

    fn calls(&mut self, tid: Option<i64>, call: Option<Place>) {
        if let Some(thread) = self.thread(tid) {
            thread.call = call;
        }
    }

    fn woken(&mut self, tid: Option<i64>, cpu: Option<i64>, place: Place) {
        if let Some(thread) = self.thread(tid).filter(|thread| thread.is_off()) {
            thread.woken.get_or_insert(place);
            self.waits(tid, cpu);
        }
    }

    fn migrated(&mut self, tid: Option<i64>, cpu: Option<i64>, place: Place) {
        if let Some(thread) = self.thread(tid).filter(|thread| thread.waits_for.is_some()) {
            thread.moved = Some(place);
            self.waits(tid, cpu);
        }
    }

    fn switched(&mut self, tid: Option<i64>, place: Place, is_out: bool) {
        let Some(thread) = self.thread(tid) else { return };
        (thread.switch, thread.woken, thread.moved) = (Some((place, is_out)), None, None);
        if is_out && thread.exits {
            tid.into_iter().for_each(|tid| self.ended(tid));
        }
    }

    fn ended(&mut self, tid: i64) {
        self.waits(Some(tid), None);
        self.threads.remove(&tid);
    }

    /// A thread waits for a CPU, or for none any more. Of those that are not known it does not matter.
    fn waits(&mut self, tid: Option<i64>, cpu: Option<i64>) {
        let known = tid.and_then(|tid| Some((tid, self.threads.get_mut(&tid)?)));
        let Some((tid, thread)) = known.filter(|(_, thread)| !thread.known.is_empty()) else { return };
        let before = std::mem::replace(&mut thread.waits_for, cpu);
        before.into_iter().for_each(|cpu| _ = self.cpu(cpu).waiting.remove(&tid));
        cpu.into_iter().for_each(|cpu| _ = self.cpu(cpu).waiting.insert(tid));
    }

    fn begins(&mut self, tid: Option<i64>, place: Place) {
        // An earlier thread of this number has ended.
        if let Some(tid) = tid {
            self.ended(tid);
            self.threads.insert(tid, Thread { known: vec![place], ..Thread::default() });
        }
    }

    fn named(&mut self, tid: Option<i64>, place: Place) {
        let Some(thread) = self.thread(tid) else { return };
        if thread.known.len() >= NAMES {
            thread.known.remove(1);
        }
        thread.known.push(place);
    }

    /// A thread that runs another program takes the number of its process.
    fn renumbered(&mut self, tid: Option<i64>, old: Option<i64>) {
        if let Some((tid, old)) = tid.zip(old).filter(|(tid, old)| tid != old)
            && let Some(thread) = self.threads.remove(&old)
        {
            self.threads.insert(tid, thread);
        }
    }

    /// What was known of a CPU is not known any more.
    fn paused(&mut self, number: i64, place: Place) {
        let cpu = self.cpu(number);
        *cpu = Cpu { paused: Some(place), ..Cpu::default() };
        for thread in self.threads.values_mut() {
            *thread = Thread { known: std::mem::take(&mut thread.known), ..Thread::default() };
        }
    }

    /// Returns where all stands that stays.
    fn places(self) -> BTreeSet<Place> {
        let mut all: BTreeSet<Place> = self.others.into_iter().collect();
        for cpu in self.cpus.into_values() {
            all.extend(cpu.switches.into_iter().chain(cpu.paused).chain(cpu.interrupts));
        }
        // Of others all is not there that happened, so that their last switch may not be.
        for thread in self.threads.into_values().filter(|thread| !thread.known.is_empty()) {
            all.extend(thread.known);
            all.extend(thread.call);
            all.extend(thread.switch.map(|(place, _)| place));
            all.extend(thread.woken.into_iter().chain(thread.moved));
        }
        all
    }
}

impl Thread {
    /// Whether it has no CPU.
    fn is_off(&self) -> bool {
        self.switch.is_none_or(|(_, is_out)| is_out)
    }
}

impl Cpu {
    fn switched(&mut self, place: Place) {
        self.interrupts.clear();
        if self.waiting.is_empty() || self.switches.len() >= MOST_SWITCHES {
            self.switches.clear();
        }
        self.switches.push_back(place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_thread_the_last_of_each_kind_stays() {
        let mut state = State::default();
        state.begins(Some(7), (1, 0, 10));
        state.switched(Some(7), (2, 0, 20), false);
        state.thread(Some(7)).unwrap().call = Some((3, 0, 30));
        state.switched(Some(7), (4, 0, 40), true);
        state.thread(Some(7)).unwrap().woken = Some((5, 1, 50));
        // Idleness is nobody.
        state.switched(Some(0), (6, 0, 60), false);
        // One that has ended needs nothing.
        state.begins(Some(8), (7, 0, 70));
        state.thread(Some(8)).unwrap().exits = true;
        state.switched(Some(8), (8, 0, 80), true);
        // A name of many.
        for number in 9..20 {
            state.named(Some(7), (number, 0, number * 10));
        }
        let numbers: Vec<u64> = state.places().into_iter().map(|(number, ..)| number).collect();
        assert_eq!(numbers, [1, 3, 4, 5, 17, 18, 19]);
    }

    #[test]
    fn who_had_a_cpu_stays_as_long_as_a_thread_waits_for_it() {
        let mut state = State::default();
        state.begins(Some(7), (1, 0, 10));
        state.cpu(0).switched((2, 0, 20));
        // Of a thread that is not known nothing stays.
        state.switched(Some(9), (2, 0, 20), false);
        state.waits(Some(9), Some(0));
        state.cpu(0).switched((3, 0, 30));
        state.switched(Some(7), (4, 0, 40), true);
        state.waits(Some(7), Some(0));
        (4..7).for_each(|number| state.cpu(0).switched((number, 0, number * 10)));
        // It is moved, and waits elsewhere.
        state.waits(Some(7), Some(1));
        (7..9).for_each(|number| state.cpu(1).switched((number, 1, number * 10)));
        let numbers: Vec<u64> = state.places().into_iter().map(|(number, ..)| number).collect();
        assert_eq!(numbers, [1, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_pause_ends_what_is_known_but_names() {
        let mut state = State::default();
        state.begins(Some(7), (1, 0, 10));
        state.switched(Some(7), (2, 0, 20), false);
        state.cpu(0).switched((2, 0, 20));
        state.paused(0, (3, 0, 30));
        let numbers: Vec<u64> = state.places().into_iter().map(|(number, ..)| number).collect();
        assert_eq!(numbers, [1, 3]);
    }
}
