//! Chooses records, and writes them as events.

use crate::border::Border;
use crate::catalog::Kind;
use crate::clock::now;
use crate::decoder::{Decoder, Role};
use crate::dump;
use crate::event::Source;
use crate::hash::{NumberMap, NumberSet};
use crate::own;
use crate::perf::bpf::direct::{self, Call, Direct};
use crate::perf::record::{Record, What, Who};
use crate::proc::{first_namespace, numbers};
use crate::running::Running;
use crate::sources::Sources;
use crate::statistics;
use crate::stream::Trace;
use crate::syscall::{self, Syscalls};
use crate::tracefs::Tracefs;
use crate::tree::{Concerns, Tree};
use crate::{Options, Scope, Way};

/// A thread of its parent's process (`CLONE_THREAD`).
const CLONE_THREAD: i64 = 0x1_0000;
/// Most threads of which it is kept to which process they belong.
const MOST_THREADS: usize = 1 << 20;

/// Chooses records, and writes them.
#[derive(Debug)]
pub struct Writer {
    /// Where they are written.
    pub trace: Trace,
    /// The program and its descendants; none if all is recorded.
    tree: Option<Tree>,
    /// Threads by this process's numbers, until the kernel's are known.
    roots: NumberSet<u32>,
    syscalls: Syscalls,
    /// Numbers of events, by the number of the system call and whether it is an entry.
    calls: NumberMap<(i64, bool), Option<u16>>,
    /// Processes of threads that have begun meanwhile, by the kernel's numbers.
    processes: NumberMap<u32, u32>,
    /// Whether our numbers of processes are the kernel's.
    first: bool,
    /// Numbers of events without a tracepoint.
    own: Vec<Option<u16>>,
    dump: Option<Dump>,
    /// Numbers and names of disks, once these are written.
    disks: Vec<(u32, String)>,
    /// Who ran when what is written happened; 0 where that is nobody.
    who: Who,
    /// By place of the CPU.
    running: Running,
    /// Switches that the kernel did not deliver; of a tree those of its threads.
    pub unseen: u64,
    /// Events that came too late for their order.
    pub late: u64,
    /// Bytes of records that were too short for their layout.
    pub damaged: u64,
}

/// What there was when recording began, not written yet.
#[derive(Debug)]
struct Dump {
    time: u64,
    threads: Vec<dump::Thread>,
    disks: Vec<(u32, String)>,
}

impl Writer {
    /// Writes into a trace what options and way ask for; `pid` is the program, if there is one that all others
    /// descend from.
    pub fn new(mut trace: Trace, options: &Options, pid: Option<u32>, way: Way) -> Self {
        let own = match way {
            Way::Switches => own::classes().iter().map(|(name, f)| trace.declare(name, f)).collect(),
            Way::Statistics => vec![trace.declare(statistics::EVENT, &statistics::fields())],
            Way::Tracepoints => Vec::new(),
        };
        let first = first_namespace();
        let tree = (options.scope == Scope::Tree).then(|| Tree::new(pid.filter(|_| first)));
        let wanted = options.syscalls.clone();
        let wanted = move |name: &str| wanted.as_ref().is_some_and(|wanted| wanted(name));
        Self {
            trace,
            roots: pid.filter(|_| tree.is_some() && !first).into_iter().collect(),
            tree,
            syscalls: Syscalls::new(Box::new(wanted)),
            calls: NumberMap::default(),
            processes: NumberMap::default(),
            first,
            own,
            dump: None,
            disks: Vec::new(),
            who: Who::default(),
            running: Running::default(),
            unseen: 0,
            late: 0,
            damaged: 0,
        }
    }

    fn event(&mut self, cpu: usize, id: Option<u16>, time: u64, body: impl FnOnce(&mut Vec<u8>) -> bool) {
        // More kinds of events than there are numbers: there are not.
        let Some(id) = id else { return };
        self.late += u64::from(self.trace.event(cpu, id, time, self.who, body));
    }

    /// Looks at what there is, for the state dump. In another namespace `/proc` has other numbers than the
    /// kernel's events: there are no threads in it then.
    pub fn look(&mut self, program: Option<u32>, disks: Vec<(u32, String)>) {
        let time = now();
        let threads = match (self.first, &self.tree) {
            (false, _) => Vec::new(),
            // Of what is followed later, then.
            (true, Some(_)) => program.map(|program| dump::threads(Some(program))).unwrap_or_default(),
            (true, None) => dump::threads(None),
        };
        self.dump = Some(Dump { time, threads, disks });
    }

    /// Follows threads of a process that runs already.
    pub fn follow(&mut self, process: u32, threads: &[u32]) {
        let Some(tree) = &mut self.tree else { return };
        if !self.first {
            self.roots.extend(threads);
            return;
        }
        threads.iter().for_each(|thread| tree.add(*thread));
        let found = dump::threads(Some(process));
        let dump =
            self.dump.get_or_insert_with(|| Dump { time: now(), threads: Vec::new(), disks: Vec::new() });
        dump.threads.extend(found);
    }

    /// Returns the threads that are followed, by the kernel's numbers where these are ours.
    pub fn followed(&self) -> Vec<u32> {
        self.tree.iter().filter(|_| self.first).flat_map(Tree::threads).collect()
    }

    /// Writes that nothing is recorded from now on, on each CPU, and forgets whom it follows.
    pub fn pause(&mut self, time: u64, event: &str) {
        let id = self.trace.declare(event, &Default::default());
        self.who = Who::default();
        for cpu in 0..self.trace.cpus().len() {
            self.event(cpu, id, time, |_| true);
        }
        self.trace.flush_all();
        self.running = Running::default();
        self.roots.clear();
    }

    /// Forgets whom it follows.
    pub fn forget(&mut self) {
        if let Some(tree) = &mut self.tree {
            *tree = Tree::default();
        }
    }

    /// Writes the state dump, if it is due.
    pub fn dump_before(&mut self, time: u64) {
        let Some(dump) = self.dump.take_if(|dump| dump.time <= time) else { return };
        if self.trace.keep().is_some() {
            // In a packet of its own, which stays.
            self.trace.flush_all();
        }
        self.who = Who::default();
        let none = Default::default();
        let start = self.trace.declare(dump::START, &none);
        self.event(0, start, dump.time, |_| true);
        let disk = self.trace.declare(dump::DISK, &dump::disk_fields());
        if !dump.disks.is_empty() {
            self.disks.clone_from(&dump.disks);
        }
        for (number, name) in dump.disks {
            self.event(0, disk, dump.time, |bytes| {
                bytes.extend_from_slice(&number.to_le_bytes());
                bytes.extend_from_slice(name.as_bytes());
                bytes.push(0);
                true
            });
        }
        let process = self.trace.declare(dump::PROCESS, &dump::thread_fields());
        for thread in dump.threads {
            self.event(0, process, dump.time, |bytes| {
                thread.encode(bytes);
                true
            });
        }
        let end = self.trace.declare(dump::END, &none);
        self.event(0, end, dump.time, |_| true);
        if self.trace.keep().is_some() {
            self.trace.lasting(0);
        }
    }

    /// Returns the threads that there are, of those whose events are recorded. In another namespace `/proc` has other
    /// numbers than the kernel's events: there are none then.
    pub fn threads(&self) -> Vec<dump::Thread> {
        let Some(tree) = &self.tree else {
            return if self.first { dump::threads(None) } else { Vec::new() };
        };
        let processes = if self.first { numbers("/proc") } else { Vec::new() };
        // Threads that are not the first of their process have no place in that list.
        let followed = processes.into_iter().filter(|pid| tree.has(*pid));
        followed.flat_map(|pid| dump::threads(Some(pid))).collect()
    }

    /// Goes over to the next part, which begins with a state dump of these threads, and of those of them only that belong
    /// to the program by then.
    pub fn go_over(&mut self, border: &Border, mut threads: Vec<dump::Thread>) {
        if let Some(tree) = &self.tree {
            threads.retain(|thread| tree.has(thread.tid.cast_unsigned()));
        }
        self.trace.go_over(border.folder.clone(), border.number, border.at);
        let waiting = self.dump.take();
        let disks = self.disks.clone();
        if !threads.is_empty() {
            self.dump = Some(Dump { time: border.at, threads, disks });
            self.dump_before(border.at);
        }
        self.trace.repeated();
        self.dump = waiting;
    }

    /// Counts events of a CPU that the kernel dropped. Switches may be among them.
    pub fn dropped(&mut self, cpu: usize, events: u64) {
        self.running.forget(cpu);
        self.trace.discard(cpu, events);
    }

    /// Takes a record of one's own threads.
    pub fn own(&mut self, cpu: usize, record: &Record<'_>) {
        if let What::Lost(events) = record.what {
            self.trace.discard(cpu, events);
        }
        self.who = record.who;
        let id = own::kind(&record.what).and_then(|kind| self.own.get(kind).copied().flatten());
        self.event(cpu, id, record.time, |bytes| {
            own::encode(record, bytes);
            true
        });
    }

    /// Writes samples of statistics.
    pub fn statistics(&mut self, time: u64, samples: Vec<statistics::Sample>) {
        let id = self.own.first().copied().flatten();
        for sample in samples {
            self.event(0, id, time, |bytes| {
                sample.encode(bytes);
                true
            });
        }
    }

    /// Takes a record of a tracepoint.
    pub fn record(&mut self, cpu: usize, record: &Record<'_>, sources: &mut Sources, tracefs: &Tracefs) {
        self.dump_before(record.time);
        let raw = match record.what {
            What::Sample(raw) => raw,
            What::Lost(events) => return self.dropped(cpu, events),
            _ => return,
        };
        let number = sources.cpus.get(cpu).copied().unwrap_or(0);
        let Some(decoder) = sources.decoder(raw) else {
            self.damaged += raw.len() as u64;
            return;
        };
        let current = decoder.current(raw).unwrap_or(record.who.tid);
        self.learn_root(record.who, current);
        let Some(concerns) = decoder.concerns(number, raw) else {
            self.damaged += raw.len() as u64;
            return;
        };
        self.went(cpu, concerns);
        let mine = self.tree.as_mut().is_none_or(|tree| tree.take(current, concerns));
        let who = Who { tid: current, ..record.who };
        self.who = Who { pid: self.process_of(who), ..who };
        let numbers = (decoder.key(0, raw), decoder.key(1, raw));
        match decoder.role {
            Role::Catalog(Kind::NewTask) => self.begins(who, numbers),
            _ if !mine => {}
            Role::Entry => self.entry(cpu, record.time, numbers.0, decoder.key_bytes(1, raw), tracefs),
            Role::Exit => self.exit(cpu, record.time, numbers, tracefs),
            Role::Catalog(_) => self.catalogued(cpu, record.time, self.who, decoder, raw),
        }
        if let Concerns::Free(thread) = concerns {
            self.processes.remove(&thread);
        }
    }

    /// Takes a switch or a wake-up of a CPU, by its place and its number, as our programs record it. What runs has the
    /// kernel's number in it.
    pub fn scheduled(
        &mut self,
        (cpu, number): (usize, u32),
        words: &[u64],
        direct: Direct,
        decoder: &mut Decoder,
    ) {
        let (Some((time, who)), Some(concerns)) = (direct::head(words), direct.concerns(number, words))
        else {
            self.damaged += size_of_val(words) as u64;
            return;
        };
        self.dump_before(time);
        self.learn_root(who, who.tid);
        self.went(cpu, concerns);
        if !self.tree.as_mut().is_none_or(|tree| tree.take(who.tid, concerns)) {
            return;
        }
        self.who = Who { pid: self.process_of(who), ..who };
        let event = &decoder.event;
        decoder.id = decoder.id.or_else(|| self.trace.declare(&event.name, &event.fields));
        self.event(cpu, decoder.id, time, |bytes| direct.encode(words, bytes));
    }

    /// Takes a system call as our programs record it, whose head is this.
    pub fn called(&mut self, cpu: usize, (time, who): (u64, Who), call: Call, tracefs: &Tracefs) {
        self.dump_before(time);
        self.learn_root(who, who.tid);
        self.who = Who { pid: self.process_of(who), ..who };
        match call {
            Call::Entry(number, arguments) => self.entry(cpu, time, Some(number), Some(&arguments), tracefs),
            Call::Exit(number, result) => self.exit(cpu, time, (Some(number), Some(result)), tracefs),
        }
    }

    /// Writes a record of a tracepoint of the catalog.
    fn catalogued(&mut self, cpu: usize, time: u64, who: Who, decoder: &mut Decoder, raw: &[u8]) {
        let child = decoder.key(1, raw).map_or(0, |tid| tid as u32);
        let child_pid = self.process_of(Who { pid: child, tid: child });
        let source = Source { record: raw, who, child_pid };
        let event = &decoder.event;
        decoder.id = decoder.id.or_else(|| self.trace.declare(&event.name, &event.fields));
        let mut whole = true;
        self.event(cpu, decoder.id, time, |bytes| {
            whole = event.encode(&source, bytes);
            whole
        });
        self.damaged += if whole { 0 } else { raw.len() as u64 };
    }

    /// Notes which thread a CPU runs, and counts switches that were not delivered; of a tree those of its threads.
    fn went(&mut self, cpu: usize, concerns: Concerns) {
        match concerns {
            Concerns::Switch { from, to, .. } => {
                if let Some(last) = self.running.switch(cpu, from, to)
                    && self.tree.as_ref().is_none_or(|tree| tree.has(last) || tree.has(from))
                {
                    self.unseen += 1;
                }
            }
            Concerns::Exec { tid, old } => self.running.renamed(cpu, old, tid),
            _ => {}
        }
    }

    /// In a PID namespace the kernel knows the program by another number than we do.
    fn learn_root(&mut self, who: Who, current: u32) {
        if !self.roots.is_empty()
            && self.roots.remove(&who.tid)
            && let Some(tree) = &mut self.tree
        {
            tree.add(current);
        }
    }

    /// Notes to which process a thread belongs that begins.
    fn begins(&mut self, parent: Who, (tid, flags): (Option<i64>, Option<i64>)) {
        let (Some(tid), Some(flags)) = (tid, flags) else { return };
        if self.processes.len() >= MOST_THREADS {
            self.processes.clear();
        }
        let process = if flags & CLONE_THREAD != 0 { self.process_of(parent) } else { tid as u32 };
        self.processes.insert(tid as u32, process);
    }

    /// Returns the process of a thread, which has the kernel's number: of one that has not begun meanwhile
    /// it is what the kernel says to us, if our numbers are its own.
    fn process_of(&self, who: Who) -> u32 {
        let known = self.processes.get(&who.tid).copied();
        known.unwrap_or(if self.first { who.pid } else { who.tid })
    }

    fn entry(
        &mut self,
        cpu: usize,
        time: u64,
        number: Option<i64>,
        registers: Option<&[u8]>,
        tracefs: &Tracefs,
    ) {
        let (Some(number), Some(registers)) = (number, registers) else { return };
        let Some(call) = self.syscalls.get(number, tracefs) else { return };
        let trace = &mut self.trace;
        let declare = || trace.declare(&format!("syscall_entry_{}", call.name), &call.arguments);
        let Some(id) = *self.calls.entry((number, true)).or_insert_with(declare) else { return };
        self.late += u64::from(trace.event(cpu, id, time, self.who, |bytes| call.encode(registers, bytes)));
    }

    fn exit(
        &mut self,
        cpu: usize,
        time: u64,
        (number, result): (Option<i64>, Option<i64>),
        tracefs: &Tracefs,
    ) {
        let (Some(number), Some(result)) = (number, result) else { return };
        let Some(call) = self.syscalls.get(number, tracefs) else { return };
        let trace = &mut self.trace;
        let declare = || trace.declare(&format!("syscall_exit_{}", call.name), &syscall::result());
        let id = *self.calls.entry((number, false)).or_insert_with(declare);
        self.event(cpu, id, time, |bytes| {
            bytes.extend_from_slice(&result.to_le_bytes());
            true
        });
    }
}
