//! Events of the kernel by what they say, whatever they are called.

use crate::probes::PREFIX;
use std::collections::HashMap;

use hetrace_ctf::class::{EventClass, Scope, TraceClass};
use hetrace_ctf::read::Event;

/// Number of a name in [`Names`].
pub(super) type Name = u32;

/// What an event says. Numbers of threads are those of the first PID namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Happening<'e> {
    /// A CPU goes from one thread to another.
    Switch { from: i64, from_state: i64, to: i64, to_name: &'e str },
    /// A thread that waits is to run.
    Wake { tid: i64, cpu: u32, name: &'e str },
    /// A thread that waits for a CPU waits for another one.
    Migrate { tid: i64, cpu: u32 },
    /// A thread begins another one. The process is none in events that do not have it.
    Fork { parent: i64, child: i64, child_pid: Option<i64>, name: &'e str },
    /// The thread that ran this program runs another one, under this number.
    Exec { tid: i64, old: i64 },
    /// A thread ends; it runs on for a moment.
    Exit { tid: i64 },
    /// The thread that runs enters a system call.
    Enter(Call),
    /// It leaves it, with this result: negative numbers are the kernel's errors.
    Leave { result: Option<i64> },
    /// A CPU serves an interrupt.
    Interrupt(Name),
    /// And is done with it.
    InterruptEnd,
    /// What a thread was when recording began.
    Dump { tid: i64, pid: i64, name: &'e str, is_waiting: bool },
    /// A thread gets a CPU; nothing is said of others.
    In { tid: i64, pid: i64 },
    /// It loses it.
    Out { tid: i64, pid: i64, preempted: bool },
    /// It begins another one.
    Begin { tid: i64, pid: i64 },
    /// It ends.
    End { tid: i64 },
    /// It has a new name.
    Rename { tid: i64, name: &'e str },
    /// Nothing more is recorded of a CPU, for a while.
    Pause,
    /// The thread that runs passes a probe in its code.
    Probe(Name),
}

/// A system call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// Its name.
    pub name: Name,
    /// The address that it may wait on.
    pub address: Option<u64>,
    /// Whether it waits for a lock that others wait for.
    pub is_lock: bool,
}

/// Texts, each once.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub all: Vec<String>,
    by_text: HashMap<String, Name>,
}

impl Names {
    pub fn number(&mut self, text: &str) -> Name {
        if let Some(known) = self.by_text.get(text) {
            return *known;
        }
        let new = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.all.push(text.to_owned());
        self.by_text.insert(text.to_owned(), new);
        new
    }

    pub fn text(&self, name: Name) -> Option<&str> {
        self.all.get(name as usize).map(String::as_str)
    }
}

/// What kind of event a class is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Switch,
    Wake,
    Migrate,
    Fork,
    Exec,
    Exit,
    Enter(Name),
    Leave,
    Interrupt,
    SoftInterrupt,
    /// An interrupt that is known by its class.
    Named(Name),
    InterruptEnd,
    Dump,
    In,
    Out,
    Begin,
    End,
    Rename,
    Pause,
    Probe(Name),
}

/// Where the fields are that a kind of event has.
#[derive(Clone, Debug)]
struct Class {
    kind: Kind,
    /// In the order of [`Kind::fields`].
    fields: [Option<usize>; MOST],
}

/// Most fields that are looked at.
const MOST: usize = 4;

impl Kind {
    /// The fields that are looked at, each by the names that it has had.
    fn fields(self) -> [&'static [&'static str]; MOST] {
        const TID: &[&str] = &["tid", "pid"];
        match self {
            Kind::Switch => {
                [&["prev_tid", "prev_pid"], &["prev_state"], &["next_tid", "next_pid"], &["next_comm"]]
            }
            Kind::Wake => [TID, &["target_cpu"], &["comm"], &[]],
            Kind::Migrate => [TID, &["dest_cpu"], &[], &[]],
            Kind::Fork => [&["parent_tid"], &["child_tid"], &["child_pid"], &["child_comm"]],
            Kind::Exec => [TID, &["old_tid", "old_pid"], &[], &[]],
            Kind::Exit => [TID, &[], &[], &[]],
            Kind::Enter(_) => [&["uaddr"], &["op"], &["val"], &["utime"]],
            Kind::Leave => [&["ret"], &[], &[], &[]],
            Kind::Interrupt => [&["name"], &["irq"], &[], &[]],
            Kind::SoftInterrupt => [&["vec"], &[], &[], &[]],
            Kind::Dump => [&["tid"], &["pid"], &["name"], &["status"]],
            Kind::In | Kind::End => [&["tid"], &["pid"], &[], &[]],
            Kind::Out => [&["tid"], &["pid"], &["preempted"], &[]],
            Kind::Begin => [&["child_tid"], &["child_pid"], &[], &[]],
            Kind::Rename => [&["tid"], &["name"], &[], &[]],
            Kind::Named(_) | Kind::InterruptEnd | Kind::Pause | Kind::Probe(_) => [&[]; MOST],
        }
    }

    fn of(class: &str, names: &mut Names) -> Option<Self> {
        Some(match class {
            "sched_switch" => Kind::Switch,
            "sched_waking" | "sched_wakeup" | "sched_wakeup_new" | "sched_ttwu" => Kind::Wake,
            "sched_migrate_task" => Kind::Migrate,
            "sched_process_fork" => Kind::Fork,
            "sched_process_exec" => Kind::Exec,
            "sched_process_exit" => Kind::Exit,
            "irq_handler_entry" => Kind::Interrupt,
            "irq_softirq_entry" | "softirq_entry" => Kind::SoftInterrupt,
            "irq_handler_exit" | "irq_softirq_exit" | "softirq_exit" => Kind::InterruptEnd,
            "lttng_statedump_process_state" => Kind::Dump,
            "perf_thread_in" => Kind::In,
            "perf_thread_out" => Kind::Out,
            "perf_thread_begin" => Kind::Begin,
            "perf_thread_end" => Kind::End,
            "perf_thread_name" => Kind::Rename,
            "hetrace_recording_paused" => Kind::Pause,
            // LTTng before 2.6 had one event for all exits, and `sys_` before names.
            "exit_syscall" => Kind::Leave,
            other => return Self::of_many(other, names),
        })
    }

    /// Kinds of events of which there is one for each system call, interrupt or probe.
    fn of_many(class: &str, names: &mut Names) -> Option<Self> {
        if let Some(probe) = class.strip_prefix(PREFIX) {
            return Some(Kind::Probe(names.number(probe)));
        }
        let plain = class.strip_prefix("compat_").unwrap_or(class);
        if let Some(call) = plain.strip_prefix("syscall_entry_").or_else(|| plain.strip_prefix("sys_")) {
            return Some(Kind::Enter(names.number(call)));
        }
        if plain.starts_with("syscall_exit_") {
            return Some(Kind::Leave);
        }
        let vector = class.strip_prefix("x86_irq_vectors_").or_else(|| class.strip_prefix("irq_vectors_"))?;
        if let Some(name) = vector.strip_suffix("_entry") {
            return Some(Kind::Named(names.number(name)));
        }
        vector.ends_with("_exit").then_some(Kind::InterruptEnd)
    }
}

/// The kinds of soft interrupts by their numbers (`linux/interrupt.h`).
const SOFT: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

/// LTTng's number of a thread that waits, in a state dump (`lttng-statedump-impl.c`).
const WAITS: i64 = 5;
/// What of a `futex` is the command (`linux/futex.h`), and the bit that says whose time its timeout is.
const COMMAND: i64 = 127;
const REALTIME: i64 = 256;
/// Commands that wait: `FUTEX_WAIT`, `FUTEX_LOCK_PI`, `FUTEX_WAIT_BITSET`, `FUTEX_WAIT_REQUEUE_PI`, `FUTEX_LOCK_PI2`.
const WAITING: [i64; 5] = [0, 6, 9, 11, 13];
/// Those of them that wait for a lock by name.
const LOCKING: [i64; 2] = [6, 13];
/// `FUTEX_WAIT` and `FUTEX_WAIT_BITSET`.
const WAIT: i64 = 0;
const WAIT_BITSET: i64 = 9;
/// The value of a lock that others wait for: in glibc (`lowlevellock.h`), and in Rust's standard library.
const CONTENDED: u32 = 2;
/// The bit beside its holder's number in a robust lock that others wait for, and the bits of that number.
const WAITERS: u32 = 1 << 31;
const HOLDER: u32 = (1 << 30) - 1;

/// All classes of a trace.
#[derive(Debug)]
pub(super) struct Classes {
    /// By stream class and event class.
    all: Vec<Vec<Option<Class>>>,
    /// By stream class: where events say which thread ran.
    contexts: Vec<Option<usize>>,
    /// Whether there are switches with both threads.
    pub has_switches: bool,
    /// Whether there are switches of threads by themselves.
    pub has_own_switches: bool,
    /// Whether there are system calls.
    pub has_calls: bool,
}

impl Classes {
    pub fn new(trace: &TraceClass, names: &mut Names) -> Self {
        let mut class = |class: &EventClass| {
            let kind = Kind::of(&class.name, names)?;
            let index = |names: &[&str]| names.iter().find_map(|name| class.fields.index(name));
            Some(Class { kind, fields: kind.fields().map(index) })
        };
        let all: Vec<Vec<Option<Class>>> =
            trace.streams.iter().map(|s| s.events.iter().map(&mut class).collect()).collect();
        let any = |wanted: fn(Kind) -> bool| all.iter().flatten().flatten().any(|c| wanted(c.kind));
        Self {
            has_switches: any(|kind| kind == Kind::Switch),
            has_own_switches: any(|kind| kind == Kind::Out),
            has_calls: any(|kind| matches!(kind, Kind::Enter(_))),
            all,
            contexts: trace.streams.iter().map(|s| s.event_context.as_ref()?.index("tid")).collect(),
        }
    }

    /// Who ran when an event happened, if it says so; it is the kernel's number.
    pub fn who(&self, stream: usize, event: &Event<'_, '_>) -> Option<i64> {
        let at = self.contexts.get(stream).copied().flatten()?;
        event.integer_at(Scope::StreamEventContext, at)
    }

    /// What an event says; none if it says nothing of threads, or lacks a field.
    pub fn decode<'e>(
        &self,
        stream: usize,
        event: &Event<'e, '_>,
        names: &mut Names,
    ) -> Option<Happening<'e>> {
        let class = self.all.get(stream)?.get(event.class_index())?.as_ref()?;
        let at = |field: usize| class.fields.get(field).copied().flatten();
        let number = |field| event.integer_at(Scope::EventFields, at(field)?);
        let text = |field| {
            let scalar = at(field).and_then(|index| event.get_at(Scope::EventFields, index));
            scalar.and_then(|scalar| scalar.as_str()).unwrap_or("")
        };
        let cpu = |field| number(field).and_then(|cpu| u32::try_from(cpu).ok());
        Some(match class.kind {
            Kind::Switch => Happening::Switch {
                from: number(0)?,
                from_state: number(1)?,
                to: number(2)?,
                to_name: text(3),
            },
            Kind::Wake => Happening::Wake { tid: number(0)?, cpu: cpu(1)?, name: text(2) },
            Kind::Migrate => Happening::Migrate { tid: number(0)?, cpu: cpu(1)? },
            Kind::Fork => {
                let (parent, child) = (number(0)?, number(1)?);
                Happening::Fork { parent, child, child_pid: number(2), name: text(3) }
            }
            Kind::Exec => {
                let tid = number(0)?;
                Happening::Exec { tid, old: number(1).unwrap_or(tid) }
            }
            Kind::Exit => Happening::Exit { tid: number(0)? },
            Kind::Enter(name) => {
                let wait = Futex { address: number(0), op: number(1), value: number(2), timeout: number(3) };
                Happening::Enter(call(name, wait))
            }
            Kind::Leave => Happening::Leave { result: number(0) },
            Kind::Interrupt => Happening::Interrupt(match (text(0), number(1)) {
                ("", irq) => names.number(&format!("interrupt {}", irq?)),
                (name, _) => names.number(name),
            }),
            Kind::SoftInterrupt => {
                let vector = number(0)?;
                let known = usize::try_from(vector).ok().and_then(|at| SOFT.get(at));
                let name = known.map_or_else(|| format!("softirq {vector}"), |n| format!("softirq {n}"));
                Happening::Interrupt(names.number(&name))
            }
            Kind::Named(name) => Happening::Interrupt(name),
            Kind::InterruptEnd => Happening::InterruptEnd,
            Kind::Dump => Happening::Dump {
                tid: number(0)?,
                pid: number(1)?,
                name: text(2),
                is_waiting: number(3) == Some(WAITS),
            },
            Kind::In => Happening::In { tid: number(0)?, pid: number(1)? },
            Kind::Out => Happening::Out { tid: number(0)?, pid: number(1)?, preempted: number(2)? != 0 },
            Kind::Begin => Happening::Begin { tid: number(0)?, pid: number(1)? },
            Kind::End => Happening::End { tid: number(0)? },
            Kind::Rename => Happening::Rename { tid: number(0)?, name: text(1) },
            Kind::Pause => Happening::Pause,
            Kind::Probe(name) => Happening::Probe(name),
        })
    }
}

/// Arguments of `futex`, which other system calls do not have.
#[derive(Clone, Copy, Debug, Default)]
struct Futex {
    address: Option<i64>,
    op: Option<i64>,
    value: Option<i64>,
    timeout: Option<i64>,
}

impl Futex {
    /// Whether it waits for a lock, as far as the value shows that it expects there.
    fn is_lock(self, command: i64) -> bool {
        // 32 bits, recorded with or without a sign.
        let Some(value) = self.value.map(|value| value as u32) else { return LOCKING.contains(&command) };
        let is_robust = value & WAITERS != 0 && value & HOLDER != 0 && value != u32::MAX;
        // glibc waits like that on counters of conditions, which may be 2; its locks have a timeout then.
        let is_counter = self.op.is_some_and(|op| op & REALTIME != 0) && self.timeout == Some(0);
        match command {
            WAIT => value == CONTENDED || is_robust,
            WAIT_BITSET => (value == CONTENDED || is_robust) && !is_counter,
            other => LOCKING.contains(&other),
        }
    }
}

/// A system call with what it waits on.
fn call(name: Name, futex: Futex) -> Call {
    let command = futex.op.map(|op| op & COMMAND).filter(|command| WAITING.contains(command));
    let address = command.and(futex.address).map(i64::cast_unsigned);
    let is_lock = address.is_some() && command.is_some_and(|command| futex.is_lock(command));
    Call { name, address, is_lock }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_lock(op: i64, value: i64, timeout: i64) -> bool {
        let some = |n| Some(n);
        call(0, Futex { address: some(0x10), op: some(op), value: some(value), timeout: some(timeout) })
            .is_lock
    }

    #[test]
    fn locks_of_several_kinds_are_known_by_what_they_wait_for() {
        const PRIVATE: i64 = 128;
        // glibc's locks: plain, robust (with WAITERS and a thread), with a timeout by either clock, with inheritance.
        assert!(is_lock(PRIVATE, 2, 0) && is_lock(0, 0x8000_1234, 0) && is_lock(0, -0x7fff_edcc, 0));
        assert!(is_lock(9 | REALTIME | PRIVATE, 2, 0x7ff0) && is_lock(9 | PRIVATE, 2, 0x7ff0));
        assert!(is_lock(6 | PRIVATE, 0, 0) && is_lock(13, 0, 0));
        // Rust's locks.
        assert!(is_lock(9 | PRIVATE, 2, 0));
        // Semaphores, conditions, the end of a thread, Rust's parked threads, and what wakes.
        assert!(
            !is_lock(9 | REALTIME, 0, 0) && !is_lock(9 | REALTIME, 2, 0) && !is_lock(9 | REALTIME, 4711, 0)
        );
        assert!(!is_lock(9 | PRIVATE, 0xffff_ffff, 0) && !is_lock(9 | PRIVATE, -1, 0) && !is_lock(1, 2, 0));
    }
}
