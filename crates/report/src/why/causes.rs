//! Why a device had nothing to do, in words.

use std::collections::HashMap;

use super::threads::Threads;
use hetrace_trace::facts::{Facts, Work};
use hetrace_trace::system::{PersonId, System, Waker};
use hetrace_trace::text::plural;
use hetrace_trace::trace::{FunctionId, Trace};

/// Why a part of a gap was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Cause {
    /// The thread was in the call that enqueued the next command.
    Launch(FunctionId),
    /// It was in a call that waits, though nothing ran any more.
    Return(FunctionId),
    /// It waited in a call, and another device ran.
    Elsewhere(FunctionId),
    /// It was in a polling call.
    Poll(FunctionId),
    /// It was in another call.
    Call(FunctionId),
    /// It was outside of calls, and had waited for the device in this one.
    AfterWait(FunctionId),
    /// It was outside of calls.
    Host,
    /// It had not made a call yet, and the thread at this place, which most likely began it, was in this call.
    Before(FunctionId, u32),
    /// It had not made a call yet; the thread at this place was in no call that explains it.
    Absent(Option<u32>),
    /// It was outside of calls, and the thread at this place was in this call, which ended before it went on.
    Meanwhile(FunctionId, u32),
    /// The command waited for an event that the program completed.
    Signal {
        /// With this call.
        set: FunctionId,
        /// In the thread at this place.
        by: u32,
        /// Which was in this call meanwhile.
        doing: Option<FunctionId>,
    },
    /// The call or the device took its time for the first command of a kernel.
    First(FunctionId),
    /// The command was in the queue, but the device did not have it.
    Submit,
    /// The command waited for one on another device.
    Dependency,
    /// The device did not begin what it had.
    Latency,
    /// The call that enqueued the next command is not in the trace.
    NoCall,
    /// Commands were lost.
    Lost,
    /// Commands without times ran.
    Untimed,
    /// What was then is no longer remembered.
    Forgotten,
    /// The end of a call was lost.
    EndLost(FunctionId),
    /// Only some launches were timed.
    Sampled,
    /// The thread added its calls up.
    AddedUp,
    /// The thread was ready to run in this call or outside of calls, and another one had its CPU.
    Preempted(Option<FunctionId>, Option<PersonId>),
    /// It was blocked there.
    Blocked(Option<FunctionId>, Wait),
}

impl Cause {
    /// The call that it names, and the place of the thread that made it, if it is not the one that enqueued.
    pub fn made(self) -> Option<(FunctionId, Option<u32>)> {
        match self {
            Self::Launch(f)
            | Self::Return(f)
            | Self::Elsewhere(f)
            | Self::Poll(f)
            | Self::Call(f)
            | Self::AfterWait(f)
            | Self::First(f)
            | Self::Preempted(Some(f), _)
            | Self::Blocked(Some(f), _) => Some((f, None)),
            Self::Before(f, by) | Self::Meanwhile(f, by) | Self::Signal { set: f, by, .. } => {
                Some((f, Some(by)))
            }
            _ => None,
        }
    }
}

/// What a thread waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Wait {
    /// The system call, by its number in [`System::name`].
    pub call: Option<u32>,
    /// The address of a lock.
    pub lock: Option<u64>,
    /// A signal or a debugger had stopped it.
    pub is_stopped: bool,
    /// Who ended it: of a lock, who had held it.
    pub by: Waker,
    /// What that one waited for itself, at the end of the chain.
    pub behind: Option<Behind>,
    /// The call that it was in meanwhile; with a chain, the thread at the end of it.
    pub doing: Option<FunctionId>,
}

/// The last wait of a chain of threads that wait for each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Behind {
    /// The system call.
    pub call: Option<u32>,
    /// The address of a lock.
    pub lock: Option<u64>,
    /// It did not wait: a signal or a debugger had stopped it.
    pub is_stopped: bool,
    /// Who was waited for.
    pub by: Waker,
    /// Threads of the chain between the one that was waited for first and the one that waited here.
    pub links: u32,
}

/// What words need to know.
#[derive(Clone, Copy)]
pub(super) struct Words<'a, 't> {
    pub trace: &'t Trace,
    pub facts: &'a [Facts<'t>],
    /// Commands lost while recording.
    pub lost: u64,
    pub threads: &'a Threads,
    /// Names of threads, by process and thread.
    pub names: &'a HashMap<(i64, i64), &'a str>,
}

impl Words<'_, '_> {
    pub fn work(&self, function: FunctionId) -> Work {
        self.facts.get(function.index()).map_or(Work::Other, |f| f.work)
    }

    pub fn function(&self, id: FunctionId) -> &str {
        self.trace.functions().all().get(id.index()).map_or("?", |f| &f.name)
    }

    /// A thread by its place.
    fn who(&self, place: Option<u32>) -> String {
        let thread = place.and_then(|place| self.threads.get(place as usize));
        let Some(thread) = thread else { return "another thread".to_owned() };
        match self.names.get(&(thread.pid, thread.tid)) {
            Some(name) if !name.is_empty() => format!("thread {} ({name})", thread.tid),
            _ => format!("thread {}", thread.tid),
        }
    }

    /// The thread that the cause names.
    pub fn by(&self, cause: Cause) -> Option<u32> {
        match cause {
            Cause::Before(_, by) | Cause::Meanwhile(_, by) | Cause::Signal { by, .. } => Some(by),
            Cause::Absent(by) => by,
            _ => None,
        }
    }

    /// The name of the kind, for programs that read.
    pub fn kind(&self, cause: Cause) -> &'static str {
        match cause {
            Cause::Launch(_) => "launch",
            Cause::Return(_) => "wake-up latency",
            Cause::Elsewhere(_) => "waiting for another device",
            Cause::Poll(_) => "polling",
            Cause::Call(_) => "call",
            Cause::AfterWait(_) => "host after wait",
            Cause::Host => "host",
            Cause::Before(..) => "call",
            Cause::Absent(_) => "no thread yet",
            Cause::Meanwhile(..) => "another thread",
            Cause::Signal { .. } => "user event",
            Cause::First(_) => "first launch",
            Cause::Submit => "not submitted",
            Cause::Dependency => "dependency",
            Cause::Latency => "device latency",
            Cause::Preempted(..) => "preempted",
            Cause::Blocked(_, Wait { lock: Some(_), .. }) => "lock",
            Cause::Blocked(..) => "blocked",
            Cause::NoCall
            | Cause::Lost
            | Cause::Untimed
            | Cause::Forgotten
            | Cause::EndLost(_)
            | Cause::Sampled
            | Cause::AddedUp => "unknown",
        }
    }

    /// The call that the cause names.
    pub fn call(&self, cause: Cause) -> Option<String> {
        match cause {
            Cause::Launch(f)
            | Cause::Return(f)
            | Cause::Elsewhere(f)
            | Cause::Poll(f)
            | Cause::Call(f)
            | Cause::AfterWait(f)
            | Cause::EndLost(f)
            | Cause::Before(f, _)
            | Cause::Meanwhile(f, _)
            | Cause::Signal { set: f, .. }
            | Cause::First(f)
            | Cause::Preempted(Some(f), _)
            | Cause::Blocked(Some(f), _) => Some(self.function(f).to_owned()),
            _ => None,
        }
    }

    pub fn cause(&self, cause: Cause) -> String {
        let name = self.call(cause).unwrap_or_default();
        match cause {
            Cause::Launch(_) => format!("launch overhead in {name}"),
            Cause::Return(_) => format!("wake-up latency in {name}"),
            Cause::Elsewhere(_) => format!("in {name}, waiting for another device"),
            Cause::Poll(_) => format!("polling with {name}"),
            Cause::Call(_) => format!("in {name}"),
            Cause::AfterWait(_) => format!("host work after waiting in {name}"),
            Cause::Host => "host work outside of calls".to_owned(),
            Cause::Before(_, by) => {
                format!("in {name} of {}, before the next thread made its first call", self.who(Some(by)))
            }
            Cause::Absent(None) => "before the thread made its first call".to_owned(),
            Cause::Absent(by) => {
                format!("host work of {} before the next thread made its first call", self.who(by))
            }
            Cause::Meanwhile(_, by) => {
                format!("{} in {name}, and this one outside of calls", self.who(Some(by)))
            }
            Cause::Signal { by, doing, .. } => {
                let meanwhile = match doing {
                    Some(f) => format!("in {}", self.function(f)),
                    None => "outside of calls".to_owned(),
                };
                format!("user event: {} is {meanwhile} before {name}", self.who(Some(by)))
            }
            Cause::First(_) => format!("first launch of a kernel in {name}"),
            Cause::Submit => "enqueued, but not submitted".to_owned(),
            Cause::Dependency => "waiting for a command of another device".to_owned(),
            Cause::Latency => "enqueued, not yet started by the device".to_owned(),
            Cause::NoCall => "unknown: the call behind the next command is not in the trace".to_owned(),
            Cause::Lost => format!("unknown: {} lost", plural(self.lost, "command")),
            Cause::Untimed => "unknown: commands without times".to_owned(),
            Cause::Forgotten => "unknown: too many calls since".to_owned(),
            Cause::EndLost(_) => format!("unknown: the end of {name} was lost"),
            Cause::Sampled => "unknown: only some launches were timed".to_owned(),
            Cause::AddedUp => "host work, or calls that were added up".to_owned(),
            Cause::Preempted(_, by) => {
                let had = by.zip(self.trace.system()).map(|(by, system)| system.namesakes(by));
                let had = had.map_or_else(String::new, |who| format!(" that {who} had"));
                format!("{}waiting for a CPU{had}", place(&name))
            }
            Cause::Blocked(_, wait) => format!("{}{}", place(&name), self.blocked(wait)),
        }
    }

    /// What a thread waited for.
    fn blocked(&self, wait: Wait) -> String {
        let Some(system) = self.trace.system() else { return "blocked".to_owned() };
        let by = system.waker(wait.by);
        let doing = wait.doing.map(|f| format!(", which was in {}", self.function(f))).unwrap_or_default();
        let doing = wait.behind.map_or_else(String::new, |behind| chained(system, behind)) + &doing;
        match (wait.lock, wait.call, by) {
            (_, _, by) if wait.is_stopped => stopped(by),
            (Some(lock), _, Some(by)) => format!("waiting for lock {lock:#x} held by {by}{doing}"),
            (Some(lock), _, None) => format!("waiting for lock {lock:#x}"),
            (None, Some(call), Some(by)) => {
                format!("blocked in {} until {by} woke it{doing}", system.name(call))
            }
            (None, Some(call), None) => format!("blocked in {}", system.name(call)),
            (None, None, Some(by)) => format!("blocked until {by} woke it{doing}"),
            (None, None, None) => "blocked".to_owned(),
        }
    }

    /// Returns what to do about a call that a device waits for.
    fn remedy_of_call(&self, function: FunctionId) -> &'static str {
        match self.work(function) {
            Work::Build => "Build before the loop, at the same time as other work, or keep the binary.",
            Work::Objects => "Make objects and memory once and use them again.",
            Work::Move => "Copy without blocking, on a queue of its own, ahead of need.",
            Work::Enqueue => "Enqueue for each device or queue on a thread of its own, or less often.",
            Work::Wait => "Wait later, for less.",
            Work::Poll | Work::Other => "Take the call out of the loop, or make it while the device works.",
        }
    }

    /// Returns what to do about what happens once.
    pub fn remedy_once(&self, cause: Cause) -> String {
        match cause {
            Cause::Call(f) | Cause::Before(f, _) if self.work(f) != Work::Build => {
                "It happens once: do it beside other work, if it matters.".to_owned()
            }
            Cause::Call(_) | Cause::Before(..) => {
                "It happens once: do it beside other work, or keep the binary.".to_owned()
            }
            _ => self.remedy(cause),
        }
    }

    /// Returns how to fix it, in a sentence.
    pub fn remedy(&self, cause: Cause) -> String {
        let name = self.call(cause).unwrap_or_default();
        match cause {
            Cause::Launch(_) => "Enqueue ahead, so that enqueuing hides behind running commands, or enqueue \
                fewer and larger commands (a graph)."
                .to_owned(),
            Cause::Return(_) => format!("Enqueue more before {name}, or wait for single events later."),
            Cause::Elsewhere(_) => "Give this device its work before waiting for the other one.".to_owned(),
            Cause::Poll(_) => "Wait in a call, or enqueue the next command before asking.".to_owned(),
            Cause::Call(f) | Cause::Before(f, _) => self.remedy_of_call(f).to_owned(),
            Cause::Absent(_) => "Begin the thread that enqueues earlier.".to_owned(),
            Cause::Meanwhile(f, _) => format!(
                "Whether the thread waited for that call is not known (hetrace run --os tree shows it); if so: {}",
                self.remedy_of_call(f)
            ),
            Cause::Signal { .. } => {
                format!("Call {name} earlier, or do not make the command wait for the event.")
            }
            Cause::First(_) => "Launch each kernel once before the work begins.".to_owned(),
            Cause::AfterWait(_) => format!("Enqueue the next command before {name}: double buffering."),
            Cause::Host => {
                "Enqueue ahead of this work, or do it on another thread or on the device.".to_owned()
            }
            Cause::Submit => "Flush the queue after enqueuing.".to_owned(),
            Cause::Dependency => {
                "Cut the work into smaller pieces, so that both devices always have one.".to_owned()
            }
            Cause::Latency => {
                "Fewer and larger commands, or a graph of them; look at what events it waits for.".to_owned()
            }
            Cause::NoCall | Cause::EndLost(_) | Cause::Lost => {
                "Record again with more room (--buffer), or with --on-full block.".to_owned()
            }
            Cause::Untimed => "Record with another source of times (--device-times).".to_owned(),
            Cause::Forgotten => "Look at a part of the time (--from, --to).".to_owned(),
            Cause::Sampled => {
                "Record with times of all commands (--device-times auto, no --max-overhead).".to_owned()
            }
            Cause::AddedUp => "Record all calls (no --max-overhead).".to_owned(),
            Cause::Preempted(..) => {
                "Give the program CPUs of its own (taskset, a cpuset), or let others run at a \
                lower priority (nice), or start fewer threads."
                    .to_owned()
            }
            Cause::Blocked(_, Wait { lock: Some(_), .. }) => {
                "Hold the lock for a shorter time, or take another one on this path.".to_owned()
            }
            Cause::Blocked(..) => {
                "Do what is waited for earlier or on another thread, and enqueue ahead of it.".to_owned()
            }
        }
    }
}

/// A thread was stopped; whoever woke it let it go on.
fn stopped(by: Option<String>) -> String {
    by.map_or_else(|| "stopped".to_owned(), |by| format!("stopped until {by} let it go on"))
}

/// The end of a chain of waits.
fn chained(system: &System, behind: Behind) -> String {
    let through = match behind.links {
        0 => String::new(),
        links => format!(", through {} more,", plural(links.into(), "thread")),
    };
    let by = system.waker(behind.by);
    match (behind.lock, behind.call, by) {
        (_, _, by) if behind.is_stopped => format!(", which was{through} {}", stopped(by)),
        (Some(lock), _, Some(by)) => format!(", which waited{through} for lock {lock:#x} held by {by}"),
        (Some(lock), _, None) => format!(", which waited{through} for lock {lock:#x}"),
        (None, Some(call), Some(by)) => {
            format!(", which was blocked{through} in {} until {by} woke it", system.name(call))
        }
        (None, Some(call), None) => format!(", which was blocked{through} in {}", system.name(call)),
        (None, None, Some(by)) => format!(", which was blocked{through} until {by} woke it"),
        (None, None, None) => format!(", which was blocked{through}"),
    }
}

/// In which call a thread was; nothing is said of one outside of calls.
fn place(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("in {name}, ") }
}
