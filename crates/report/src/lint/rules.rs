//! All rules in one table: what each claims, how severe that is, and what to do.

use serde::{Deserialize, Serialize};

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Time may be saved, or something is odd.
    Hint,
    /// Time or memory is lost, or something may be wrong.
    Warning,
    /// The program breaks the API's rules.
    Error,
}

impl Severity {
    /// As the reports and options spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// One step less severe.
    pub(super) fn lowered(self) -> Self {
        match self {
            Self::Error => Self::Warning,
            _ => Self::Hint,
        }
    }
}

/// What rules look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Objects from their making to their end.
    Lifetimes,
    /// Calls that failed, did not end, or should not be used.
    Calls,
    /// Memory and what is moved.
    Memory,
    /// Waiting, launching, and work that is done again.
    Flow,
}

impl Group {
    /// As the table spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lifetimes => "lifetimes",
            Self::Calls => "calls",
            Self::Memory => "memory",
            Self::Flow => "flow",
        }
    }
}

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// What it is selected by.
    pub id: &'static str,
    /// What it looks at.
    pub group: Group,
    /// How severe its findings are, if nothing is in doubt.
    pub severity: Severity,
    /// What it claims.
    pub title: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
    /// Whether it claims something about calls that may be among those which are not in
    /// the trace, so that it is in doubt when there are such.
    pub(super) needs_all: bool,
}

/// Rules that look at each call or command by itself. All others say nothing of a process that adds calls up: what they
/// miss may be among these.
const BY_THEMSELVES: [&str; 10] = [
    "unfinished-call",
    "deprecated",
    "pageable-async",
    "default-stream",
    "small-launch",
    "busy-poll",
    "local-size-one",
    "null-argument",
    "wrong-tag",
    "uninitialized-next",
];

impl Rule {
    /// Whether it looks at nothing but which objects are made and freed.
    pub(super) fn looks_at_objects(&self) -> bool {
        self.id == "leak"
    }

    /// Whether it looks at each call or command by itself.
    pub(super) fn looks_at_one(&self) -> bool {
        BY_THEMSELVES.contains(&self.id)
    }
}

const fn rule(
    id: &'static str,
    group: Group,
    severity: Severity,
    needs_all: bool,
    title: &'static str,
    remedy: &'static str,
) -> Rule {
    Rule { id, group, severity, title, remedy, needs_all }
}

use Group::{Calls, Flow, Lifetimes, Memory};
use Severity::{Error, Hint, Warning};

/// Every rule.
pub const RULES: &[Rule] = &[
    rule(
        "leak",
        Lifetimes,
        Warning,
        true,
        "an object or allocation is never released",
        "Release each object or allocation after its last use.",
    ),
    rule(
        "use-after-release",
        Lifetimes,
        Error,
        true,
        "a released object is used",
        "Release it after its last use, or retain it before.",
    ),
    rule(
        "double-release",
        Lifetimes,
        Error,
        true,
        "a released object is released again",
        "Release it once for each time it was created or retained.",
    ),
    rule(
        "wrong-context",
        Lifetimes,
        Error,
        true,
        "objects of different contexts meet in one call",
        "Make all objects of a call in the same context.",
    ),
    rule(
        "event-unused",
        Lifetimes,
        Hint,
        true,
        "events are asked for and never looked at",
        "Pass no event where none is needed: making and keeping one costs time in each call.",
    ),
    rule(
        "ignored-error",
        Calls,
        Warning,
        false,
        "a call failed, and the program goes on as if it had not",
        "Look at the result of each call, and stop or take another way when it reports an error.",
    ),
    rule(
        "unfinished-call",
        Calls,
        Warning,
        false,
        "a call had not returned when its thread or the trace ended",
        "Let calls return before their threads or the program end; look for a deadlock.",
    ),
    rule(
        "deprecated",
        Calls,
        Hint,
        false,
        "a function is used that the API has deprecated",
        "Use what took its place.",
    ),
    rule(
        "out-of-bounds",
        Memory,
        Error,
        true,
        "a copy or fill passes the end of an allocation",
        "Check offset and size against what was allocated.",
    ),
    rule(
        "overlapping-copies",
        Memory,
        Error,
        true,
        "copies with common bytes, of which one writes, within one call or at the same time",
        "Order them by one queue or an event, or copy by way of another buffer.",
    ),
    rule(
        "pageable-async",
        Memory,
        Warning,
        false,
        "an asynchronous copy has pageable host memory",
        "Allocate the host's side pinned: the copy gets faster and does not make the caller wait.",
    ),
    rule(
        "small-copies",
        Memory,
        Hint,
        false,
        "many small copies follow each other from and to adjacent memory",
        "Copy all of it at once.",
    ),
    rule(
        "same-bytes",
        Memory,
        Hint,
        true,
        "a range is written again before anything could read it",
        "Send it once, after its last change.",
    ),
    rule(
        "alloc-in-loop",
        Memory,
        Hint,
        false,
        "memory of the same size is allocated and freed between launches again and again",
        "Allocate it once before the loop, or take it from a pool.",
    ),
    rule(
        "build-in-loop",
        Flow,
        Warning,
        false,
        "the same code is built again between launches",
        "Build once and keep the program or module.",
    ),
    rule(
        "sync-after-launch",
        Flow,
        Hint,
        false,
        "the host waits after almost every launch",
        "Enqueue what follows without waiting, and wait once for the last of it.",
    ),
    rule(
        "default-stream",
        Flow,
        Hint,
        false,
        "work goes to the default queue beside others, which it serializes with",
        "Give it a queue of its own that does not wait for the default one.",
    ),
    rule(
        "small-launch",
        Flow,
        Hint,
        false,
        "launches have fewer groups than the device has compute units",
        "Give the device more groups at a time: smaller groups, more work per launch, or several queues.",
    ),
    rule(
        "busy-poll",
        Flow,
        Warning,
        false,
        "a thread asks for the same state again and again",
        "Wait by the call that blocks, or sleep between two questions.",
    ),
    rule(
        "redundant-set-arg",
        Flow,
        Hint,
        true,
        "an argument is set to the value that it has",
        "Set only what changed; arguments keep their value from launch to launch.",
    ),
    rule(
        "argument-size",
        Calls,
        Warning,
        false,
        "an argument of a kernel is set with different sizes",
        "Pass the size of the argument's type in the kernel: it is one of both at most.",
    ),
    rule(
        "shared-kernel",
        Calls,
        Error,
        true,
        "threads set the arguments of one kernel, and one launches it with another one's",
        "Give each thread a kernel object of its own (setting arguments is not safe between threads), or lock from the \
         first argument to the launch.",
    ),
    rule(
        "event-never-set",
        Flow,
        Error,
        true,
        "commands wait for an event of the program's own that is never completed",
        "Complete the event on every path, also after errors: what waits for it never begins.",
    ),
    rule(
        "race",
        Memory,
        Error,
        true,
        "two commands use the same memory, one of them writes, and nothing orders them",
        "Pass the event of the first in the wait list of the second, wait for it, or use one queue that has an order.",
    ),
    rule(
        "unwaited-read",
        Memory,
        Warning,
        true,
        "a read is enqueued, and nothing waits for it before its memory is used or the program ends",
        "Wait for its event or its queue before its memory is used, or let the call block.",
    ),
    rule(
        "uninitialized-read",
        Memory,
        Warning,
        true,
        "memory is read that nothing has written",
        "Write or fill it before, or check which buffer and which bytes are meant.",
    ),
    rule(
        "map-leak",
        Memory,
        Warning,
        true,
        "memory is mapped for the host, and that never ends",
        "Unmap it after its last use by the host: until then devices may not see what was written.",
    ),
    rule(
        "mapped-in-use",
        Memory,
        Error,
        true,
        "a command uses memory while it is mapped for the host",
        "Unmap it before commands use it, in the same queue or with an event.",
    ),
    rule(
        "ping-pong",
        Memory,
        Hint,
        true,
        "bytes go from a device to the host and back, or the other way, unchanged",
        "Copy on the device, or keep what the other side has already.",
    ),
    rule(
        "unused-read",
        Memory,
        Hint,
        true,
        "bytes are read that the next read overwrites before anything could look at them",
        "Read only what is looked at, after the last change.",
    ),
    rule(
        "redundant-sync",
        Flow,
        Hint,
        true,
        "a queue or device is waited for that has nothing left to do",
        "Wait once after the last command; a blocking copy has waited already.",
    ),
    rule(
        "double-wait",
        Flow,
        Hint,
        true,
        "the same commands are waited for again",
        "Wait once: what was waited for is over.",
    ),
    rule(
        "local-size-one",
        Flow,
        Hint,
        false,
        "a kernel is launched in work-groups of one item",
        "Use groups of at least as many items as the device runs at once (32 or 64 on GPUs), or let the platform choose.",
    ),
    rule(
        "list-state",
        Calls,
        Error,
        true,
        "a command buffer is submitted, filled or emptied in a state in which it may not be",
        "Close it before it is submitted; empty it when it is over and before it is filled again; one that runs commands \
         at once is none to submit.",
    ),
    rule(
        "event-not-reset",
        Flow,
        Error,
        true,
        "an event or fence is signalled again that was not reset",
        "Reset it, by the host or a command, after the last wait for it and before its next use.",
    ),
    rule(
        "deadlock",
        Flow,
        Error,
        true,
        "commands wait for each other, or for what only comes behind them",
        "Let what signals come before what waits, in the order of the queue and of the events.",
    ),
    rule(
        "released-in-use",
        Lifetimes,
        Error,
        true,
        "memory or an object ends while a command that uses it may not be over",
        "Wait for the command, its fence or its queue before.",
    ),
    rule(
        "outlives-owner",
        Lifetimes,
        Error,
        true,
        "an object ends before what was made of it",
        "End what was made of it first.",
    ),
    rule(
        "slot-in-use",
        Lifetimes,
        Error,
        true,
        "two objects have the same place in a pool, or one is beyond its end",
        "Give each its own place, below the number that the pool was made with.",
    ),
    rule(
        "wrong-queue",
        Calls,
        Error,
        true,
        "what was made for one queue is used with another",
        "Use it with the queue that it was made for.",
    ),
    rule(
        "wrong-engine",
        Calls,
        Error,
        false,
        "kernels go to engines that only copy, or an engine is chosen that there is not",
        "Choose engines by what the device says that they can do.",
    ),
    rule(
        "engines-not-asked",
        Calls,
        Hint,
        true,
        "engines are chosen by number, without a query of which the device has",
        "Ask for the groups of engines and choose by their properties: numbers differ from device to device.",
    ),
    rule(
        "null-argument",
        Calls,
        Error,
        false,
        "a call is passed NULL, or nothing, where something must be",
        "Pass what it asks for; look at the result of the call that should have made it.",
    ),
    rule(
        "unknown-object",
        Calls,
        Error,
        true,
        "a call fails with a handle or an address that no call has made or handed out",
        "Pass what the API returned, unchanged.",
    ),
    rule(
        "not-initialized",
        Calls,
        Error,
        true,
        "a call fails, and its API has not been initialized",
        "Initialize the API first, and look at the result of that.",
    ),
    rule(
        "overlapping-allocation",
        Memory,
        Warning,
        true,
        "an allocation lies within another that was never freed",
        "If the program has not ended the other in a way that is not recorded, report it to whoever made the driver.",
    ),
    rule(
        "concurrent-use",
        Calls,
        Error,
        false,
        "two threads use an object at the same time that is not made for it",
        "Lock, or give each thread an object of its own.",
    ),
    rule(
        "wrong-tag",
        Calls,
        Warning,
        false,
        "a struct does not say of itself what it is",
        "Set its tag to the value of its type: drivers that look at it refuse it.",
    ),
    rule(
        "uninitialized-next",
        Calls,
        Error,
        false,
        "the address of a following struct was not set, and leads nowhere",
        "Set the whole struct to 0 before its members.",
    ),
];

/// The rule of an id.
pub fn rule_of(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

/// Position of a rule in [`RULES`].
pub(super) fn position(id: &str) -> usize {
    RULES.iter().position(|rule| rule.id == id).unwrap_or(0)
}
