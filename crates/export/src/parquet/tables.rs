//! All tables. What stands here is the promise of `docs/export-parquet.md`, whose
//! lists of columns are made from it.

use hetrace_trace::text::STILL_OPEN;

use super::schema::Type::{Bool, Double, Int32, Int64, Name, Text, Uint64};
use super::schema::{Column, Table, always, unless};

mod about;
mod counters;
mod inside;
mod samples;
mod states;

pub use about::*;
pub use counters::COUNTERS;
pub use inside::INSIDE;
pub use samples::SAMPLES;
pub use states::STATES;

/// Raised when a column goes, or means something else; not when one comes.
pub const SCHEMA: i32 = 1;

/// All tables.
pub static TABLES: [&Table; 18] = [
    &CALLS,
    &COMMANDS,
    &COLLECTIVES,
    &RANGES,
    &COUNTERS,
    &TELEMETRY,
    &SAMPLES,
    &STATES,
    &INSIDE,
    &FUNCTIONS,
    &DEVICES,
    &QUEUES,
    &KERNELS,
    &COMMUNICATORS,
    &ERRORS,
    &THREADS,
    &PROCESSES,
    &TRACE,
];

const UNREPORTED: &str = "not reported";
const UNKNOWN_STACK: &str = "its stack is not known: `--stacks`, `--py-stacks`";
const UNSOURCED: &str = "it is not known: no such stack, or no debug information";
const UNNAMED: &str = "without one";
const UNWAITED: &str = "no wait for it is known";
const UNRANKED: &str = "not known";
const NO_ARGUMENTS: &str = "there are none, or `--no-arguments`";

/// The rank of the process, in tables that have one.
const JOB_RANK: Column =
    unless("job_rank", Int32, UNRANKED, "rank of the process in its job, or what `--rank` said");
/// Of what tracing took.
const UNCOSTED: &str = "unfinished, orphan, unknown; or it was not measured";

/// Calls of the host.
pub static CALLS: Table = Table {
    name: "calls",
    row: "a call of an API by a thread; or several calls of a function in one record: a run of equal ones, or such that were added up",
    sorted: Some("start_ns"),
    columns: &[
        always("call_id", Int64, "number of the call in this file, from 1, as they began"),
        unless(
            "parent_id",
            Int64,
            "no recorded call is around",
            "`call_id` of the innermost call around it, of any API",
        ),
        always("pid", Int64, "process"),
        always("tid", Int64, "thread; unique within its process"),
        unless("thread", Name, UNNAMED, "the thread's name"),
        always(
            "api",
            Name,
            "API of the function, as traces name it; empty in traces of others that name none",
        ),
        always("name", Name, "function"),
        always(
            "state",
            Name,
            "`finished`; `unfinished`: no end is in the trace; `orphan`: no beginning is; `folded`: a run of `count` equal calls; `added up`: `count` calls of a thread that kept within its overhead budget, with others between them; `unknown`: of a function that no model describes, of which only the beginning is recorded",
        ),
        unless(
            "missing",
            Name,
            "`state` is not `unfinished`",
            "why there is no end: `trace ends`, `exit lost`, `thread ended`",
        ),
        always("start_ns", Int64, "when it began; of several, the first; of an orphan, when it ended"),
        unless("end_ns", Int64, "unfinished, unknown", "when it ended; of several, the last"),
        unless(
            "duration_ns",
            Int64,
            "unfinished, orphan, unknown",
            "time in it; of several, in all of its calls together, without what was between them",
        ),
        unless("self_ns", Int64, "unfinished, orphan, unknown", "the same without the calls inside of it"),
        unless(
            "tracing_ns",
            Int64,
            UNCOSTED,
            "what of `duration_ns` tracing took, for it and for calls inside of it; never more",
        ),
        unless("self_tracing_ns", Int64, UNCOSTED, "the same of `self_ns`"),
        always("count", Int64, "calls that the row stands for: 1, more if they are in one record"),
        unless("depth", Int32, "orphan, unknown", "in how many recorded calls of the thread it is"),
        unless("error", Int64, "it did not fail, or has no end", "the error code"),
        unless("error_name", Name, "`error` is", "its name in the API, or the code as text"),
        unless(
            "result",
            Text,
            "it has none, no end, or `--no-arguments`",
            "what it returned, as `hetrace print` shows it",
        ),
        unless(
            "arguments",
            Text,
            NO_ARGUMENTS,
            "what was passed: a JSON object by the names of parameters; numbers are numbers, addresses and handles hexadecimal text, all else text as `hetrace print` shows it",
        ),
        unless("returned", Text, NO_ARGUMENTS, "what came back through parameters, likewise"),
        unless(
            "range",
            Name,
            "none is open",
            "message of the innermost range of the thread (`pushed` or `probed`) that was open when the call began",
        ),
        unless(
            "waited_command_id",
            Int64,
            "it is no wait, or what it waited for had ended before",
            "`command_id` of the command that it ended on: the last to end in it, of those it waited for",
        ),
        JOB_RANK,
        unless(
            "source_file",
            Name,
            UNSOURCED,
            "file of the code that made it, as debug information or Python names it",
        ),
        unless("source_line", Int32, UNSOURCED, "line of it"),
        unless(
            "source_function",
            Name,
            UNKNOWN_STACK,
            "its function; without debug information `library+offset`",
        ),
        unless(
            "stack",
            Name,
            UNKNOWN_STACK,
            "all frames, the innermost first, as `FILE:LINE in FUNCTION`, with `;` between",
        ),
    ],
};

/// Commands of devices.
pub static COMMANDS: Table = Table {
    name: "commands",
    row: "a command on a device: a kernel, a copy, …",
    sorted: Some("start_ns"),
    columns: &[
        always("command_id", Int64, "number of the command in this file, from 1"),
        always("pid", Int64, "process"),
        unless("api", Name, UNREPORTED, "API of its queue"),
        unless("device", Int32, UNREPORTED, "number of its device: `device` of `devices`"),
        unless("device_name", Name, UNREPORTED, "the device's name"),
        unless("device_uuid", Name, UNREPORTED, "the device's identity, the same in all processes and APIs"),
        unless("queue", Int32, UNREPORTED, "number of its queue: `queue` of `queues`"),
        unless("queue_handle", Uint64, UNREPORTED, "the queue's handle, which another queue may have later"),
        always("name", Name, "what people look for: the function demangled, or the kind where none runs"),
        always("kind", Name, "`kernel`, `read`, `write`, `copy`, … as the API's model calls it"),
        unless("kernel", Int32, "no known function runs", "number of its function: `kernel` of `kernels`"),
        unless(
            "kernel_symbol",
            Name,
            "no known function runs",
            "the function's name as reported by the API, mangled or not",
        ),
        unless("kernel_name", Name, "no known function runs", "the same demangled"),
        always("start_ns", Int64, "when it began to run; if its times are not known, when it was recorded"),
        unless("end_ns", Int64, "its times are not known", "when it had run"),
        unless("duration_ns", Int64, "its times are not known", "how long it ran"),
        unless(
            "queued_ns",
            Int64,
            "its times are not known",
            "when it came into the queue; `start_ns` if that was not reported",
        ),
        unless(
            "submitted_ns",
            Int64,
            "its times are not known",
            "when it came to the device; `start_ns` if that was not reported",
        ),
        unless("times_error", Int64, "its times are known", "why they are not, as the API says"),
        always("weight", Int64, "launches that the row stands for: 1, more where only some were timed"),
        always("bytes", Int64, "bytes moved; 0 of what moves none"),
        unless("from_memory", Name, UNREPORTED, "where they came from: `device`, `pageable`, `pinned`, …"),
        unless("to_memory", Name, UNREPORTED, "where they went"),
        unless("peer", Int32, "not a copy between two devices", "number of the other device"),
        unless("peer_name", Name, "not a copy between two devices", "its name"),
        always("status", Int64, "negative if it failed, as the device says"),
        unless("global_x", Int64, "not launched so", "work-items in the first dimension"),
        unless("global_y", Int64, "fewer dimensions", "in the second"),
        unless("global_z", Int64, "fewer dimensions", "in the third"),
        unless("local_x", Int64, UNREPORTED, "work-items of a work-group in the first dimension"),
        unless("local_y", Int64, "fewer dimensions", "in the second"),
        unless("local_z", Int64, "fewer dimensions", "in the third"),
        unless("offset_x", Int64, UNREPORTED, "where work-items begin to count in the first dimension"),
        unless("offset_y", Int64, "fewer dimensions", "in the second"),
        unless("offset_z", Int64, "fewer dimensions", "in the third"),
        unless("cluster_x", Int64, "no clusters", "work-groups of a cluster in the first dimension"),
        unless("cluster_y", Int64, "fewer dimensions", "in the second"),
        unless("cluster_z", Int64, "fewer dimensions", "in the third"),
        always("shared_bytes", Int64, "local memory that the launch asked for, beside what the code does"),
        unless("graph", Uint64, "not launched with one", "the graph that it was launched with"),
        unless("node", Uint64, "not launched with a graph", "its node of the graph"),
        unless(
            "cause_call_id",
            Int64,
            "not known, or the call is more than a million such calls back",
            "`call_id` of the call that enqueued it",
        ),
        unless("cause_tid", Int64, "not known", "thread of that call; its process is `pid`"),
        unless("cause_start_ns", Int64, "not known", "`start_ns` of that call"),
        unless(
            "wait_call_id",
            Int64,
            UNWAITED,
            "`call_id` of the call in which the program learned that it had ended",
        ),
        unless("wait_start_ns", Int64, UNWAITED, "`start_ns` of that call; after `end_ns` if it came late"),
        unless("wait_end_ns", Int64, UNWAITED, "`end_ns` of that call"),
        unless(
            "launch_call_id",
            Int64,
            "it is of no such operation",
            "`launch_call_id` of the operations among ranks that it is of",
        ),
        JOB_RANK,
    ],
};

/// Operations among ranks.
pub static COLLECTIVES: Table = Table {
    name: "collectives",
    row: "a call of an operation among the ranks of a communicator; sends and receives, too",
    sorted: Some("start_ns"),
    columns: &[
        always("call_id", Int64, "the call: `call_id` of `calls`"),
        unless(
            "launch_call_id",
            Int64,
            "no such call is in the trace, or nothing was enqueued in it",
            "`call_id` of the call in which its commands were enqueued: itself, or the end of its group",
        ),
        always("pid", Int64, "process"),
        always("tid", Int64, "thread"),
        always("start_ns", Int64, "when the call began"),
        always("api", Name, "the API"),
        always("operation", Name, "`all-reduce`, `broadcast`, `send`, …, whatever the function is called"),
        always(
            "communicator",
            Name,
            "what the communicator is called: a short form of the id that its ranks share",
        ),
        always("communicator_handle", Uint64, "its handle in the process"),
        unless("comm_rank", Int64, UNREPORTED, "the caller's rank in it"),
        unless("comm_size", Int64, UNREPORTED, "its number of ranks"),
        unless(
            "peer_rank",
            Int64,
            "it has neither",
            "rank of the root, or of the other one of a send or receive",
        ),
        unless("element", Name, UNREPORTED, "type of the elements"),
        always("elements", Int64, "the count that was passed; what it counts is up to the operation"),
        always("bytes", Int64, "the same in bytes; 0 if the type's size is not known"),
        unless("queue_handle", Uint64, UNREPORTED, "handle of the queue that was passed"),
        JOB_RANK,
    ],
};

/// Ranges and marks.
pub static RANGES: Table = Table {
    name: "ranges",
    row: "a range or a mark that the program set",
    sorted: Some("start_ns"),
    columns: &[
        always("range_id", Int64, "number of the range in this file, as they began"),
        always("pid", Int64, "process"),
        always("tid", Int64, "thread that began it"),
        unless("thread", Name, UNNAMED, "that thread's name"),
        always(
            "style",
            Name,
            "`pushed`: on one thread, in those pushed before; `started`: any thread may end it; `probed`: between two probes in the code of one thread (`--usdt`); `mark`: a moment",
        ),
        unless("domain", Name, "the default one", "its domain"),
        unless("category", Name, "without one", "its category, or the number of it"),
        unless("message", Name, "without one", "its message"),
        unless("color", Int64, "without one", "ARGB"),
        unless("payload", Text, "without one", "the value that the program gave it"),
        always("start_ns", Int64, "when the call that began it had returned"),
        unless("end_ns", Int64, STILL_OPEN, "when the call that ended it began; of a mark, `start_ns`"),
        unless("duration_ns", Int64, STILL_OPEN, "time between them"),
        unless("ended_by_tid", Int64, "not ended, or a mark", "thread that ended it"),
        JOB_RANK,
    ],
};

/// Telemetry.
pub static TELEMETRY: Table = Table {
    name: "telemetry",
    row: "one value of one answer of a device (`hetrace run --sample`); rows of a device and quantity follow each other in the order of time",
    sorted: None,
    columns: &[
        always("monitor", Int32, "number of the device among those with telemetry; not that of `devices`"),
        always("device_index", Int32, "the driver's number of the device"),
        unless("device_name", Name, UNREPORTED, "its name"),
        unless("device_uuid", Name, UNREPORTED, "its identity, as `commands` and `devices` have it"),
        unless("source", Name, UNREPORTED, "the source of telemetry"),
        always(
            "quantity",
            Name,
            "`power`, `energy`, `clocks`, `utilization`, `memory`, `temperature`, `performance_state`, `throttle`, `nvlink`, `pcie`; of the host `cpu`, `frequency`, `host_memory`, `resident`, `pressure`, `disk`, `network`",
        ),
        always("field", Name, "which value of it: `sm` of `clocks`, `used` of `memory`, …"),
        unless("unit", Name, "it has none", "unit of `value`: mW, mJ, MHz, %, B, °C, B/s, mCPU, kHz, ‰"),
        always("time_ns", Int64, "the middle of the question"),
        always("value", Int64, "the value"),
        unless(
            "text",
            Name,
            "not `throttle`",
            "names of the bits in `value`, with `|` between; empty for none",
        ),
        unless(
            "took_ns",
            Int64,
            UNREPORTED,
            "how long the question lasted; of `nvlink`, what the rate is over",
        ),
    ],
};
