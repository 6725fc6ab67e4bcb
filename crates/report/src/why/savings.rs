//! What of the run could be saved, and by what: the causes of idle time in groups that one change would end, copies and
//! kernels that do not overlap, kernels that wait for each other on one queue. Each gain is a bound.

use std::collections::BTreeMap;

use super::causes::{Cause, Wait, Words};
use super::ledger::{Idle, Slice};
use hetrace_trace::facts::Work;
use hetrace_trace::trace::FunctionId;

/// Gaps that a call which happens now and then may have a part in, and still be start-up.
const ONCE: u64 = 2;

/// Idle time that one change would end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// A thread waits in this call for each command and enqueues the next one only then.
    Waits(FunctionId),
    /// Host work that nobody waited before.
    Host,
    /// Enqueuing itself, of commands that are shorter.
    Launch,
    /// Making and freeing objects and memory.
    Objects,
    Builds,
    /// In another call.
    Call(FunctionId),
    Poll(FunctionId),
    Submit,
    Latency,
    /// Another device of the process.
    Devices,
    Lock,
    Blocked,
    Preempted,
    Signal(FunctionId),
    /// A thread that was in this call.
    Thread(FunctionId),
    /// One that had not begun.
    Begin,
}

/// Whether idle time is start-up: of what happens once and not in each step.
pub(super) fn is_once(words: &Words<'_, '_>, cause: Cause, gaps: u64) -> bool {
    let makes = |f| matches!(words.work(f), Work::Build | Work::Objects);
    match cause {
        Cause::First(_) => true,
        Cause::Call(f) | Cause::Before(f, _) | Cause::Meanwhile(f, _) => makes(f) && gaps <= ONCE,
        _ => false,
    }
}

/// What of a gap a change would end; none of what happens once, and of what is not known.
fn group(idle: &Idle, waits_in: Option<FunctionId>, words: &Words<'_, '_>) -> Option<Group> {
    let of_call = |f| match words.work(f) {
        Work::Objects => Group::Objects,
        Work::Build => Group::Builds,
        _ => Group::Call(f),
    };
    Some(match idle.cause {
        Cause::Return(f) | Cause::AfterWait(f) => Group::Waits(f),
        // A thread that waits for each command has all this behind the wait.
        Cause::Launch(_) | Cause::Latency | Cause::Host if idle.drained => {
            waits_in.map_or(Group::Host, Group::Waits)
        }
        Cause::Host => Group::Host,
        Cause::Launch(_) => Group::Launch,
        Cause::Submit => Group::Submit,
        Cause::Latency => Group::Latency,
        Cause::Elsewhere(_) | Cause::Dependency => Group::Devices,
        Cause::Poll(f) => Group::Poll(f),
        // Enqueuing for another queue or device is enqueuing, too.
        Cause::Call(f) if words.work(f) == Work::Enqueue => match waits_in.filter(|_| idle.drained) {
            Some(f) => Group::Waits(f),
            None => Group::Launch,
        },
        Cause::Call(f) => of_call(f),
        Cause::Before(f, _) => of_call(f),
        Cause::Meanwhile(f, _) => Group::Thread(f),
        Cause::Absent(_) => Group::Begin,
        Cause::Signal { set, .. } => Group::Signal(set),
        Cause::Preempted(..) => Group::Preempted,
        Cause::Blocked(_, Wait { lock: Some(_), .. }) => Group::Lock,
        Cause::Blocked(..) => Group::Blocked,
        Cause::First(_)
        | Cause::NoCall
        | Cause::Lost
        | Cause::Untimed
        | Cause::Forgotten
        | Cause::EndLost(_)
        | Cause::Sampled
        | Cause::AddedUp => return None,
    })
}

/// Sums of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sum {
    pub group: Group,
    /// Idle time.
    pub idle: u64,
    /// What of it is work of a host, which can at best run beside the device.
    pub host: u64,
    /// The same without enqueuing.
    pub work: u64,
    /// The cause of most of it.
    pub cause: Cause,
}

impl Sum {
    /// How much shorter the time can get: host work can hide behind the device's, and no more than that.
    pub fn gain(&self, busy: u64) -> u64 {
        self.idle.saturating_sub(self.host.saturating_sub(busy))
    }
}

/// The groups of a part of the time, that of most idle time first. `once` says of causes whether they are start-up.
pub(super) fn sums(slice: &Slice, words: &Words<'_, '_>, once: impl Fn(&Idle) -> bool) -> Vec<Sum> {
    // Where a thread waits for each command, the call that it mostly waits in.
    let mut waits: BTreeMap<FunctionId, u64> = BTreeMap::new();
    for idle in &slice.causes {
        if let Cause::Return(f) | Cause::AfterWait(f) = idle.cause {
            let sum = waits.entry(f).or_default();
            *sum = sum.saturating_add(idle.ns);
        }
    }
    let waits_in = waits.iter().max_by_key(|(f, ns)| (**ns, std::cmp::Reverse(**f))).map(|(f, _)| *f);
    let mut sums: BTreeMap<Group, (Sum, u64)> = BTreeMap::new();
    for idle in slice.causes.iter().filter(|idle| !once(idle)) {
        let Some(group) = group(idle, waits_in, words) else { continue };
        let new = (Sum { group, idle: 0, host: 0, work: 0, cause: idle.cause }, 0);
        let (sum, most) = sums.entry(group).or_insert(new);
        sum.idle = sum.idle.saturating_add(idle.ns);
        let works = matches!(idle.cause, Cause::AfterWait(_) | Cause::Host);
        if works || (idle.drained && matches!(idle.cause, Cause::Launch(_))) {
            sum.host = sum.host.saturating_add(idle.ns);
        }
        if works {
            sum.work = sum.work.saturating_add(idle.ns);
        }
        if idle.ns > *most {
            (sum.cause, *most) = (idle.cause, idle.ns);
        }
    }
    let mut sums: Vec<Sum> = sums.into_values().map(|(sum, _)| sum).collect();
    sums.sort_by_key(|sum| (std::cmp::Reverse(sum.idle), sum.group));
    sums
}

impl Words<'_, '_> {
    /// What would end a group, as it goes on behind "could be saved by".
    pub fn change(&self, sum: &Sum) -> String {
        match sum.group {
            Group::Waits(f) => self.change_of_waits(f, sum.work > sum.idle / 2),
            Group::Host => {
                "enqueuing ahead of the host work between commands, or doing it on another thread".to_owned()
            }
            Group::Launch => {
                "fewer and larger commands, or a graph of them: the device is faster than they are \
                enqueued"
                    .to_owned()
            }
            Group::Objects => {
                "making memory and objects once and using them again, not between commands".to_owned()
            }
            Group::Builds => "building once, before the work or beside it, or keeping the binary".to_owned(),
            Group::Call(f) => format!("taking {} out of the time between commands", self.function(f)),
            Group::Poll(f) => {
                format!(
                    "waiting in a call instead of polling with {}, or enqueuing before asking",
                    self.function(f)
                )
            }
            Group::Submit => "flushing the queue after enqueuing".to_owned(),
            Group::Latency => "fewer and larger commands: the device begins late what it has".to_owned(),
            Group::Devices => "giving each device its work before waiting for another one".to_owned(),
            Group::Lock => "holding the lock for a shorter time, or not taking it to enqueue".to_owned(),
            Group::Blocked => "doing earlier, or elsewhere, what the thread is blocked for".to_owned(),
            Group::Preempted => "CPUs of its own for the thread that enqueues".to_owned(),
            Group::Signal(f) => {
                format!(
                    "completing the event earlier ({}), or not making commands wait for it",
                    self.function(f)
                )
            }
            Group::Thread(f) => {
                let name = self.function(f);
                format!(
                    "not waiting for another thread's {name}, if that is what it waits for (--os tree shows it)"
                )
            }
            Group::Begin => "beginning the thread that enqueues earlier".to_owned(),
        }
    }

    fn change_of_waits(&self, f: FunctionId, mostly_host: bool) -> String {
        let name = self.function(f);
        match (self.work(f), mostly_host) {
            (Work::Move, host) => format!(
                "not blocking in {name}: enqueue the next commands before its data is needed, so that the device works \
                 meanwhile{}",
                if host { ", beside the host work behind it" } else { "" }
            ),
            (_, true) => format!(
                "enqueuing the next command before waiting in {name}, so that host work runs beside the device (double \
                 buffering)"
            ),
            (_, false) => {
                format!("not waiting in {name} after each command: enqueue several, then wait once")
            }
        }
    }

    /// The kind of a group, for programs that read.
    pub fn kind_of(&self, group: Group) -> &'static str {
        match group {
            Group::Waits(f) if self.work(f) == Work::Move => "blocking copies",
            Group::Waits(_) => "waits",
            Group::Host => "host work",
            Group::Launch => "launches",
            Group::Objects => "objects",
            Group::Builds => "builds",
            Group::Call(_) => "calls",
            Group::Poll(_) => "polling",
            Group::Submit => "not submitted",
            Group::Latency => "device latency",
            Group::Devices => "devices in turn",
            Group::Lock => "lock",
            Group::Blocked => "blocked",
            Group::Preempted => "preempted",
            Group::Signal(_) => "user event",
            Group::Thread(_) => "another thread",
            Group::Begin => "no thread yet",
        }
    }
}
