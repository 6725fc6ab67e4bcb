//! The reader: sleeps until a ring buffer is filled to its mark, and writes what concerns the program.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hetrace_ctf::class::TraceClass;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::catalog::Kind;
use crate::dump;
use crate::event;
use crate::form::{self, Environment};
use crate::order::{Order, PATIENCE};
use crate::own;
use crate::perf::record::{Record, What, Who};
use crate::sources::{Role, Sources};
use crate::statistics::{self, Statistics};
use crate::stream::Trace;
use crate::syscall::{self, Syscalls};
use crate::tracefs::Tracefs;
use crate::tree::{Concerns, Tree};
use crate::{Options, Place, Report, Scope, Way};

/// Longest sleep, in nanoseconds: what the buffers hold is lost with this process.
const NAP: i64 = 250_000_000;
/// How often packets are written that are not full, in nanoseconds.
const FLUSH: u64 = 1_000_000_000;
/// A thread of its parent's process (`CLONE_THREAD`).
const CLONE_THREAD: i64 = 0x1_0000;
/// Most threads whose beginning waits for its second event.
const MOST_NEW: usize = 1 << 12;
/// The first PID namespace (`PROC_PID_INIT_INO` of the kernel).
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// Where events come from.
#[derive(Debug)]
pub enum Source {
    /// See [`Way::Tracepoints`].
    Tracepoints {
        /// Open tracepoints.
        sources: Box<Sources>,
        /// Their descriptions.
        tracefs: Tracefs,
    },
    /// See [`Way::Switches`].
    Switches(Box<Sources>),
    /// See [`Way::Statistics`].
    Statistics,
}

impl Source {
    fn way(&self) -> Way {
        match self {
            Source::Tracepoints { .. } => Way::Tracepoints,
            Source::Switches(_) => Way::Switches,
            Source::Statistics => Way::Statistics,
        }
    }

    fn sources(&self) -> Option<&Sources> {
        match self {
            Source::Tracepoints { sources, .. } | Source::Switches(sources) => Some(sources),
            Source::Statistics => None,
        }
    }

    fn sources_mut(&mut self) -> Option<&mut Sources> {
        match self {
            Source::Tracepoints { sources, .. } | Source::Switches(sources) => Some(sources),
            Source::Statistics => None,
        }
    }
}

/// The reader's state.
#[derive(Debug)]
pub struct Worker {
    source: Source,
    order: Order,
    writer: Writer,
    statistics: Statistics,
    stop: Arc<OwnedFd>,
}

impl Worker {
    /// Writes the beginning of the trace, of which the source was opened at a time in nanoseconds.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn begin(
        (source, opened): (Source, u64),
        options: &Options,
        pid: u32,
        place: Place,
        stop: Arc<OwnedFd>,
    ) -> io::Result<Self> {
        let cpus = source.sources().map_or_else(|| vec![0], |s| s.cpus.clone());
        let class = class(&place, source.way(), options.scope);
        let trace = Trace::begin(place.folder, place.make, &class, &cpus, opened)?;
        let writer = Writer::new(trace, options, pid, source.way());
        Ok(Self { source, order: Order::default(), writer, statistics: Statistics::of(pid), stop })
    }

    /// Reads until the program has ended, and then all that is left.
    pub fn run(&mut self) -> Report {
        let mut flushed = now();
        loop {
            let ended = self.wait();
            if ended && let Some(sources) = self.source.sources() {
                sources.disable();
            }
            let at = now();
            self.pass(if ended { u64::MAX } else { at.saturating_sub(PATIENCE) }, at);
            if ended {
                break;
            }
            if at.saturating_sub(flushed) >= FLUSH {
                flushed = at;
                self.writer.trace.flush_all();
            }
        }
        // Perhaps nothing came after it.
        self.writer.dump_before(u64::MAX);
        self.writer.trace.finish(now());
        self.report()
    }

    /// Returns the tracepoints that are still open.
    pub fn into_sources(self) -> Option<Box<Sources>> {
        match self.source {
            Source::Tracepoints { sources, .. } => Some(sources),
            Source::Switches(_) | Source::Statistics => None,
        }
    }

    /// Sleeps. Returns whether the program has ended.
    fn wait(&self) -> bool {
        let rings = self.source.sources().map(|s| s.rings.as_slice()).unwrap_or_default();
        let events = rings.iter().map(|ring| ring.event());
        let mut waited: Vec<PollFd> = vec![PollFd::new(&*self.stop, PollFlags::IN)];
        waited.extend(events.map(|event| PollFd::from_borrowed_fd(event, PollFlags::IN)));
        let nap = Timespec { tv_sec: 0, tv_nsec: NAP };
        // An interrupted sleep is a short one.
        let _ = poll(&mut waited, Some(&nap));
        waited.first().is_some_and(|stop| stop.revents().contains(PollFlags::IN))
    }

    /// Reads what there is, and writes what is older than `before`.
    fn pass(&mut self, before: u64, at: u64) {
        let Self { source, order, writer, statistics, .. } = self;
        if let Some(sources) = source.sources_mut() {
            for (cpu, ring) in sources.rings.iter_mut().enumerate() {
                order.add(cpu, |bytes| {
                    ring.take(bytes);
                });
            }
        }
        match source {
            Source::Statistics => writer.statistics(at, statistics.sample()),
            Source::Switches(_) => order.release(before, |cpu, record| writer.own(cpu, &record)),
            Source::Tracepoints { sources, tracefs } => {
                order.release(before, |cpu, record| writer.record(cpu, &record, sources, tracefs));
            }
        }
    }

    fn report(&self) -> Report {
        let written = self.writer.trace.written();
        Report {
            events: written.events,
            bytes: written.bytes,
            dropped: written.dropped,
            unwritten: written.unwritten,
            error: written.error.clone(),
            late: self.writer.late,
            unseen: self.writer.unseen,
            damaged: self.order.damaged() + self.writer.damaged,
            cpu_ns: nanoseconds(ClockId::ThreadCPUTime),
            missing: self.source.sources().map(|s| s.missing.clone()).unwrap_or_default(),
        }
    }
}

/// Chooses records, and writes them.
#[derive(Debug)]
struct Writer {
    trace: Trace,
    /// The program and its descendants; none if all is recorded.
    tree: Option<Tree>,
    /// The program, by this process's number, until the kernel's is known.
    root: Option<u32>,
    syscalls: Syscalls,
    /// Numbers of events, by the number of the system call and whether it is an entry.
    calls: HashMap<(i64, bool), Option<u16>>,
    /// Processes of threads that have begun, until their second event.
    new: HashMap<u32, u32>,
    /// Numbers of events without a tracepoint.
    own: Vec<Option<u16>>,
    dump: Option<Dump>,
    /// By place of the CPU: the thread that it went to last.
    running: Vec<Option<u32>>,
    unseen: u64,
    late: u64,
    /// Bytes of records that were too short for their layout.
    damaged: u64,
}

/// What there was when recording began, not written yet.
#[derive(Debug)]
struct Dump {
    time: u64,
    threads: Vec<dump::Thread>,
    disks: Vec<(u32, String)>,
}

impl Writer {
    fn new(mut trace: Trace, options: &Options, pid: u32, way: Way) -> Self {
        let own = match way {
            Way::Switches => own::classes().iter().map(|(name, f)| trace.declare(name, f)).collect(),
            Way::Statistics => vec![trace.declare(statistics::EVENT, &statistics::fields())],
            Way::Tracepoints => Vec::new(),
        };
        let first = fs::read_link("/proc/self/ns/pid").is_ok_and(|ns| ns.as_os_str() == FIRST_NAMESPACE);
        let tree = (options.scope == Scope::Tree).then(|| Tree::new(first.then_some(pid)));
        let wanted = options.syscalls.clone();
        let wanted = move |name: &str| wanted.as_ref().is_some_and(|wanted| wanted(name));
        let whose = (options.scope == Scope::Tree).then_some(pid);
        let dump = (way == Way::Tracepoints).then(|| Dump {
            time: now(),
            threads: dump::threads(whose),
            disks: dump::disks(),
        });
        Self {
            trace,
            root: tree.is_some().then_some(pid).filter(|_| !first),
            tree,
            syscalls: Syscalls::new(Box::new(wanted)),
            calls: HashMap::new(),
            new: HashMap::new(),
            own,
            dump,
            running: Vec::new(),
            unseen: 0,
            late: 0,
            damaged: 0,
        }
    }

    fn event(&mut self, cpu: usize, id: Option<u16>, time: u64, body: impl FnOnce(&mut Vec<u8>) -> bool) {
        // More kinds of events than there are numbers: there are not.
        let Some(id) = id else { return };
        self.late += u64::from(self.trace.event(cpu, id, time, body));
    }

    /// Writes the state dump, if it is due.
    fn dump_before(&mut self, time: u64) {
        let Some(dump) = self.dump.take_if(|dump| dump.time <= time) else { return };
        let none = Default::default();
        let start = self.trace.declare(dump::START, &none);
        self.event(0, start, dump.time, |_| true);
        let disk = self.trace.declare(dump::DISK, &dump::disk_fields());
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
    }

    /// Takes a record of one's own threads.
    fn own(&mut self, cpu: usize, record: &Record<'_>) {
        if let What::Lost(events) = record.what {
            self.trace.discard(cpu, events);
        }
        let id = own::kind(&record.what).and_then(|kind| self.own.get(kind).copied().flatten());
        self.event(cpu, id, record.time, |bytes| {
            own::encode(record, bytes);
            true
        });
    }

    fn statistics(&mut self, time: u64, samples: Vec<statistics::Sample>) {
        let id = self.own.first().copied().flatten();
        for sample in samples {
            self.event(0, id, time, |bytes| {
                sample.encode(bytes);
                true
            });
        }
    }

    /// Takes a record of a tracepoint.
    fn record(&mut self, cpu: usize, record: &Record<'_>, sources: &mut Sources, tracefs: &Tracefs) {
        self.dump_before(record.time);
        let raw = match record.what {
            What::Sample(raw) => raw,
            What::Lost(events) => {
                self.went_to(cpu, None);
                return self.trace.discard(cpu, events);
            }
            _ => return,
        };
        let Some(decoder) = sources.decoder(raw) else {
            self.damaged += raw.len() as u64;
            return;
        };
        let source = event::Source { record: raw, who: record.who, child_pid: 0 };
        let current = decoder.current(&source);
        self.learn_root(record.who, current);
        let concerns = decoder.concerns(raw);
        if let Some(Concerns::Switch(from, to)) = concerns
            && self.went_to(cpu, Some(to)).is_some_and(|last| last != from)
        {
            self.unseen += 1;
        }
        let mine = match (&mut self.tree, concerns) {
            (_, None) => {
                self.damaged += raw.len() as u64;
                return;
            }
            (None, _) => true,
            (Some(tree), Some(concerns)) => tree.take(current, concerns),
        };
        let numbers = (decoder.key(0, raw), decoder.key(1, raw));
        match decoder.role {
            _ if !mine => {}
            Role::Catalog(Kind::NewTask) => self.begins(record.who, numbers),
            Role::Entry => self.entry(cpu, record.time, numbers.0, decoder.key_bytes(1, raw), tracefs),
            Role::Exit => self.exit(cpu, record.time, numbers, tracefs),
            Role::Catalog(kind) => {
                let child = numbers.1.map_or(0, |tid| tid as u32);
                let child_pid = if kind == Kind::Fork { self.process_of(child) } else { 0 };
                let who = Who { tid: current, ..record.who };
                let source = event::Source { who, child_pid, ..source };
                let event = &decoder.event;
                decoder.id = decoder.id.or_else(|| self.trace.declare(&event.name, &event.fields));
                let Some(id) = decoder.id else { return };
                let mut whole = true;
                let encode = |bytes: &mut Vec<u8>| {
                    whole = event.encode(&source, bytes);
                    whole
                };
                self.late += u64::from(self.trace.event(cpu, id, record.time, encode));
                self.damaged += if whole { 0 } else { raw.len() as u64 };
            }
        }
    }

    /// Notes which thread a CPU went to. Returns the one before, if it is known.
    fn went_to(&mut self, cpu: usize, thread: Option<u32>) -> Option<u32> {
        if self.running.len() <= cpu {
            self.running.resize(cpu + 1, None);
        }
        std::mem::replace(&mut self.running[cpu], thread)
    }

    /// In a PID namespace the kernel knows the program by another number than we do.
    fn learn_root(&mut self, who: Who, current: u32) {
        if self.root == Some(who.tid)
            && let Some(tree) = &mut self.tree
        {
            *tree = Tree::new([current]);
            self.root = None;
        }
    }

    /// Notes to which process a thread belongs that begins.
    fn begins(&mut self, parent: Who, (tid, flags): (Option<i64>, Option<i64>)) {
        let (Some(tid), Some(flags)) = (tid, flags) else { return };
        if self.new.len() >= MOST_NEW {
            self.new.clear();
        }
        let process = if flags & CLONE_THREAD != 0 { parent.pid } else { tid as u32 };
        self.new.insert(tid as u32, process);
    }

    /// Returns the process of a thread that begins; its own, if nothing else is known.
    fn process_of(&mut self, tid: u32) -> u32 {
        self.new.remove(&tid).unwrap_or(tid)
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
        self.late += u64::from(trace.event(cpu, id, time, |bytes| call.encode(registers, bytes)));
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

/// Returns the trace's class, without events.
fn class(place: &Place, way: Way, scope: Scope) -> TraceClass {
    let name = rustix::system::uname();
    let environment = Environment {
        host: place.host.clone(),
        release: name.release().to_string_lossy().into_owned(),
        version: name.version().to_string_lossy().into_owned(),
        recorded_by: place.recorder.clone(),
        recorded_with: way.name().to_owned(),
        scope: scope.name().to_owned(),
    };
    form::trace_class(place.uuid, place.clock.clone(), &environment)
}

/// Returns the time on the trace's clock, in nanoseconds.
pub fn now() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
