//! What is reported of a trace. Times are in nanoseconds; those of moments count
//! from the trace's first event.

use serde::Serialize;

mod inside;

pub use inside::{InsideCauseRow, InsideRow};

/// Version of this form; it is raised when a member changes its meaning.
pub(super) const SCHEMA: u32 = 1;

/// Where the time of all devices went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// From the trace's first event to its last.
    pub duration_ns: u64,
    /// What was looked at, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<(u64, u64)>,
    /// What part of the run was recorded, in words, if not all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covers: Option<String>,
    /// The run in a sentence; none if it has no device commands with times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictRow>,
    /// What repeats itself, if that makes up most of the time from the first command to the last: gains are of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyRow>,
    /// What is done once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_up: Option<StartUpRow>,
    /// What could be saved, the most first.
    pub savings: Vec<SavingRow>,
    /// What the devices' time went to, the most first.
    pub costs: Vec<CostRow>,
    /// How long threads were ready and had no CPU, if the operating system's events are known and it was long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuRow>,
    /// By device, the one that was used longest first.
    pub devices: Vec<DeviceRow>,
    /// By waiting function, the longest first.
    pub waits: Vec<WaitRow>,
    /// Transfers that were enqueued by one call and waited for in another.
    pub transfers: Vec<TransferRow>,
    /// The critical path to the end of the last command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathRow>,
    /// Kernels that were recorded inside, by their time, with why they are slow; of the whole trace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inside: Vec<InsideRow>,
    /// What is missing from the trace.
    pub missing: MissingRow,
}

/// The run in a sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerdictRow {
    /// The sentence.
    pub text: String,
    /// What shares are of: the time of the trace, or what was looked at.
    pub run_ns: u64,
    /// At least one device was busy.
    pub busy_ns: u64,
    /// The same as a part of the run, from 0 to 1.
    pub busy_share: f64,
    /// Whether a device is all but always busy in the time that gains are of.
    pub always_busy: bool,
    /// The most that a single change could save; 0 if nothing is worth it.
    pub saving_ns: u64,
    /// The same as a part of the run, from 0 to 1.
    pub saving_share: f64,
    /// Which kind of saving that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saving_kind: Option<String>,
}

/// What repeats itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SteadyRow {
    /// What marks a step: a range of the program, or a command.
    pub what: String,
    /// `range` or `command`.
    pub by: String,
    /// When the first step began that counts.
    pub from_ns: u64,
    /// When the last one began.
    pub to_ns: u64,
    /// Steps between.
    pub steps: u64,
    /// The median of the times from one to the next.
    pub period_ns: u64,
    /// 5 % of them are not longer.
    pub p5_ns: u64,
    /// 95 % of them are not longer.
    pub p95_ns: u64,
    /// The difference of both over the median.
    pub variation: f64,
    /// Those of more than twice the median.
    pub outliers: u64,
    /// The longest of all.
    pub longest_ns: u64,
    /// When that began.
    pub longest_at_ns: u64,
}

/// What is done once: before the first command, before the steady part, and between commands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StartUpRow {
    /// All of it in which no device worked.
    pub ns: u64,
    /// Before the first command.
    pub before_ns: u64,
    /// Between commands.
    pub between_ns: u64,
    /// What it was, the longest first.
    pub causes: Vec<OnceRow>,
}

/// A part of what is done once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnceRow {
    /// The cause in words.
    pub cause: String,
    /// How long.
    pub ns: u64,
}

/// What could be saved by one change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SavingRow {
    /// `waits`, `host work`, `launches`, `objects`, `builds`, `overlap`, `queues`, …
    pub kind: String,
    /// The change, in words.
    pub what: String,
    /// At most so much time.
    pub ns: u64,
    /// The same as a part of the run, from 0 to 1.
    pub share: f64,
    /// Idle time that has this cause; 0 if it is not about idle time.
    pub idle_ns: u64,
    /// The cause of most of that, as in `causes` of a device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Threads of the program that were ready and had no CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuRow {
    /// All of them together.
    pub ready_ns: u64,
    /// The one that waited longest.
    pub thread: String,
    /// For how long.
    pub thread_ns: u64,
    /// Who had the CPU that it waited for, the longest first.
    pub behind: Vec<BehindRow>,
}

/// Who had a CPU that others waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BehindRow {
    /// Threads of one name.
    pub who: String,
    /// For how long one waited.
    pub ns: u64,
}

/// What a device's time went to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostRow {
    /// The kernel, or the kind of command.
    pub name: String,
    /// How long.
    pub ns: u64,
    /// Of the time of all commands, from 0 to 1.
    pub share: f64,
}

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceRow {
    /// Its number in the trace; of several processes, in the first of them.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// The same in every process.
    pub uuid: String,
    /// Processes that used it.
    pub processes: u64,
    /// Queues that commands were on.
    pub queues: u64,
    /// Commands with times.
    pub commands: u64,
    /// Commands without.
    pub untimed: u64,
    /// When the first command began.
    pub first_ns: u64,
    /// From then to the end of the last one.
    pub total_ns: u64,
    /// At least one command ran.
    pub busy_ns: u64,
    /// A kernel ran and nothing was copied.
    pub computing_ns: u64,
    /// Something was copied and no kernel ran.
    pub copying_ns: u64,
    /// Both.
    pub both_ns: u64,
    /// Nothing ran.
    pub idle_ns: u64,
    /// `busy_ns` of `total_ns`, from 0 to 1.
    pub utilization: f64,
    /// Commands at a time while any ran.
    pub concurrency: f64,
    /// Most commands at a time.
    pub most_at_a_time: u32,
    /// Queue depth: commands that were enqueued and had not started, over `total_ns`.
    pub queue_depth: f64,
    /// The part of `total_ns` with none, from 0 to 1.
    pub queue_empty: f64,
    /// From the beginning of the enqueuing call to that of the command, where
    /// its queue had nothing else to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launch_latency: Option<Distribution>,
    /// The same of all commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enqueue_to_start: Option<Distribution>,
    /// Gaps between commands.
    pub gaps: u64,
    /// The longest of them.
    pub longest_gap_ns: u64,
    /// Why there were gaps; together they are `idle_ns`.
    pub causes: Vec<CauseRow>,
    /// What was before the first command.
    pub before: Vec<CauseRow>,
    /// What was after the last one.
    pub after: Vec<CauseRow>,
    /// Of a device that several processes share: how long commands of one were ready while only another's ran.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<SharedRow>,
    /// What the same work might take.
    pub bounds: Vec<BoundRow>,
    /// Single gaps, if asked for.
    pub listed: Vec<GapRow>,
    /// More of them than are listed.
    pub not_listed: u64,
}

/// Durations in short.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Average.
    pub avg_ns: f64,
    /// Shortest.
    pub min_ns: u64,
    /// Half of them are not longer, within 1/64.
    pub p50_ns: u64,
    /// 99 of 100 are not longer, within 1/64.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// What was around a time without commands; none of what is not known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Around {
    /// The thread that enqueued the next command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The command before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_before: Option<String>,
    /// The command after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command_after: Option<String>,
}

/// A place in the code that makes calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteRow {
    /// `solver.cpp:42 in step`.
    pub site: String,
    /// The part of the time whose place is known, from 0 to 1.
    pub share: f64,
}

/// A function that a thread spent its time in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkRow {
    /// The function, and its file or library.
    pub function: String,
    /// The part of the samples, from 0 to 1.
    pub share: f64,
}

/// A cause of idle time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseRow {
    /// The kind of cause: `call`, `host after wait`, …
    pub kind: String,
    /// The cause in words.
    pub cause: String,
    /// The call in it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// Idle time that it explains.
    pub ns: u64,
    /// The part of the time that is to be explained, from 0 to 1.
    pub share: f64,
    /// The part of the whole run, from 0 to 1.
    pub run_share: f64,
    /// The thread that the cause names, if it names another one than `thread`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_thread: Option<String>,
    /// Whether it is start-up: it happens once and not in each step.
    pub start_up: bool,
    /// The code that made most of the calls which it names, by their time in it, if stacks were recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<SiteRow>,
    /// The functions in which most of the samples of the thread's work lie, if it was sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<WorkRow>,
    /// Gaps that it has a part in.
    pub gaps: u64,
    /// The longest part of one.
    pub longest_ns: u64,
    /// When that began.
    pub longest_at_ns: u64,
    /// What was around it.
    #[serde(flatten)]
    pub around: Around,
    /// How to fix it.
    pub remedy: String,
}

/// What the same work might take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BoundRow {
    /// What would have to be so.
    pub what: String,
    /// What the steady part, or without one all from the first command to the last, would take then, at best.
    pub ns: u64,
    /// The speedup, at most.
    pub speedup: f64,
    /// What that would save.
    pub saved_ns: u64,
    /// The same as a part of the whole run, from 0 to 1.
    pub saved_share: f64,
}

/// A gap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapRow {
    /// When it began.
    pub at_ns: u64,
    /// How long it was.
    pub ns: u64,
    /// What was around it.
    #[serde(flatten)]
    pub around: Around,
    /// Its causes, the longest first.
    pub parts: Vec<GapPart>,
}

/// What part of a gap a cause has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapPart {
    /// How long together.
    pub ns: u64,
    /// The cause in words.
    pub cause: String,
}

/// Commands of one process that were ready while the device ran commands of another one, and none of the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedRow {
    /// The process that waited: its number, and its program if that is known.
    pub process: String,
    /// The one that had the device.
    pub other: String,
    /// Commands that were delayed.
    pub commands: u64,
    /// For how long in all.
    pub ns: u64,
    /// The longest time without a break.
    pub longest_ns: u64,
    /// When that began.
    pub longest_at_ns: u64,
}

/// Waits in one function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitRow {
    /// Its name.
    pub name: String,
    /// Its API.
    pub api: String,
    /// Threads that waited.
    pub threads: u64,
    /// Whether it asked again and again instead of waiting in a call.
    pub polling: bool,
    /// How often.
    pub calls: u64,
    /// For how long.
    pub ns: u64,
    /// Commands that were waited for ran.
    pub busy_ns: u64,
    /// They did not run: not yet, or not all the time.
    pub before_ns: u64,
    /// All had ended: from then to the return.
    pub after_ns: u64,
    /// Waits in which no command ended.
    pub immediate: u64,
    /// Time in these.
    pub immediate_ns: u64,
}

/// Asynchronous transfers of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TransferRow {
    /// `read`, `write`, …
    pub kind: String,
    /// Transfers that a later call waited for.
    pub count: u64,
    /// Those that ended in a wait for nothing else: their times are right.
    pub measured: u64,
    /// Bytes of these.
    pub measured_bytes: u64,
    /// From the enqueuing call to the end of the wait (t2 - t0).
    pub seen_ns: u64,
    /// What the device took for these.
    pub device_ns: u64,
    /// Those that had ended before the wait began.
    pub hidden: u64,
    /// What the thread did meanwhile (t1 - t0), of all.
    pub other_work_ns: u64,
}

/// The critical path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathRow {
    /// From the first event to the end of the last command.
    pub ns: u64,
    /// By kind and what it was, the longest first.
    pub shares: Vec<PathShare>,
    /// Part of it is not remembered.
    pub cut: bool,
}

/// What time on the critical path went to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathShare {
    /// `host`, `call`, `launch`, `kernel`, `copy`, `device latency`, `wake-up`, `unknown`.
    pub kind: String,
    /// The function, command or thread.
    pub name: String,
    /// How long.
    pub ns: u64,
    /// Of the path, from 0 to 1.
    pub share: f64,
}

/// What is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MissingRow {
    /// Events lost.
    pub lost_events: u64,
    /// Threads that lost some: process, thread, records.
    pub lost_by: Vec<(i64, i64, u64)>,
    /// Calls that the losses concern, wholly or in part, as the manifest has it.
    pub lost_calls: u64,
    /// Commands lost.
    pub lost_commands: u64,
    /// Processes whose records could not be read, all or some.
    pub lost_processes: u64,
    /// Events of the operating system that the kernel dropped or that could not be written.
    pub lost_os_events: u64,
    /// Context switches that the kernel did not deliver; of those that it dropped some may be among them.
    pub unseen_switches: u64,
    /// Commands in flight at the end.
    pub commands_in_flight: u64,
    /// Commands without times.
    pub untimed_commands: u64,
    /// Calls without an end.
    pub unfinished_calls: u64,
    /// Packets missing from the streams.
    pub lost_packets: u64,
    /// Places where a stream is cut or damaged.
    pub damaged: u64,
    /// Files that are missing, or not as they were written.
    pub differences: u64,
    /// Events whose time lies before that of the event before in their stream.
    pub steps_back: u64,
    /// Only some launches were timed, so idle time is not known.
    pub sampled: bool,
    /// More commands at a time than were followed.
    pub given_up: u64,
    /// Nothing says what the launcher saw.
    pub manifest_missing: bool,
    /// Largest error of a device's times; none if it is not known.
    pub clock_error_ns: Option<f64>,
    /// What recording a call took, which is in the times of the host; none if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_cost_ns: Option<u32>,
}
