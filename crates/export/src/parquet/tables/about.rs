//! Tables of what a trace is about: functions, devices, queues, kernels, threads and the trace itself.

use super::*;
use crate::missing;

/// Functions of APIs.
pub static FUNCTIONS: Table = Table {
    name: "functions",
    row: "a function that the trace could have calls of, called or not",
    sorted: None,
    columns: &[
        always("api", Name, "its API"),
        always("name", Name, "its name; unique within the API"),
        always("described", Bool, "whether the trace has a model of it"),
        always("enqueues", Bool, "whether it puts work on a device"),
        unless("roles", Text, "without one", "what it does (`wait`, `create`, …), with spaces between"),
    ],
};

/// Devices.
pub static DEVICES: Table = Table {
    name: "devices",
    row: "a device as one process and API know it; one with an identity has the same `uuid` in all of them",
    sorted: None,
    columns: &[
        always("device", Int32, "its number in this file"),
        always("pid", Int64, "process that reported it"),
        always("handle", Uint64, "its handle, or what else the API knows it by"),
        always("ordinal", Int32, "the API's number of it"),
        unless("name", Name, UNREPORTED, "its name"),
        unless("uuid", Name, UNREPORTED, "its identity"),
        unless("compute_units", Int32, UNREPORTED, "compute units"),
        unless("clock_khz", Int64, UNREPORTED, "highest clock"),
        unless("memory_khz", Int64, UNREPORTED, "highest clock of its memory"),
        unless("bus_bits", Int32, UNREPORTED, "width of its memory's bus"),
        unless("memory_bytes", Int64, UNREPORTED, "size of its memory"),
        unless("properties", Text, "no others", "other properties: a JSON object of numbers"),
        unless("clock_error_ns", Double, "not known", "largest error of a time of its commands"),
        unless("api", Name, "recorded by an older version", "API that reported it"),
    ],
};

/// Queues.
pub static QUEUES: Table = Table {
    name: "queues",
    row: "a queue (a stream); one made anew at the handle of another is another",
    sorted: None,
    columns: &[
        always("queue", Int32, "its number in this file"),
        always("pid", Int64, "process"),
        always("handle", Uint64, "its handle"),
        always("context", Uint64, "handle of its context"),
        always("device", Int32, "number of its device"),
        unless("device_name", Name, UNREPORTED, "the device's name"),
        unless("api", Name, UNREPORTED, "API that reported it"),
        always("properties", Uint64, "what the program asked for, as the API counts"),
        always("priority", Int32, "as the API counts; 0 is ordinary"),
        unless("number", Int32, "there is none", "the API's own small number of it"),
        unless("called", Name, "without one", "what the program called it"),
    ],
};

/// Functions of devices.
pub static KERNELS: Table = Table {
    name: "kernels",
    row: "a function that devices run, of one process; without a name, commands of one kind that run none",
    sorted: None,
    columns: &[
        always("kernel", Int32, "its number in this file"),
        always("pid", Int64, "process"),
        always("symbol", Text, "its name as reported by the API"),
        always("name", Text, "the same demangled"),
        unless("registers", Int32, UNREPORTED, "registers of a work-item"),
        unless("shared_bytes", Int64, UNREPORTED, "local memory that its code asks for"),
        unless("local_bytes", Int64, UNREPORTED, "private memory of a work-item"),
        unless("constant_bytes", Int64, UNREPORTED, "constant memory"),
        unless("max_threads", Int32, UNREPORTED, "most work-items of a work-group"),
        unless("launches", Int64, "all were timed", "how often it was launched"),
        unless("timed", Int64, "all were timed", "how many of these were timed"),
        unless("launched_bytes", Int64, "not counted", "bytes that all of these moved or set"),
    ],
};

/// Communicators.
pub static COMMUNICATORS: Table = Table {
    name: "communicators",
    row: "a communicator as one process has it; its other ranks call it the same",
    sorted: None,
    columns: &[
        always("communicator", Name, "what it is called, as in `collectives`"),
        always("pid", Int64, "process"),
        always("communicator_handle", Uint64, "its handle there"),
        unless("comm_rank", Int64, UNREPORTED, "the process's rank in it"),
        unless("comm_size", Int64, UNREPORTED, "its number of ranks"),
        JOB_RANK,
    ],
};

/// What APIs say of error codes.
pub static ERRORS: Table = Table {
    name: "errors",
    row: "what an API says of one of its error codes, as reported while recording; `error_name` of `calls` needs no such row",
    sorted: None,
    columns: &[
        always("api", Name, "the API"),
        always("error", Int64, "the code"),
        unless("text", Text, "the API has none", "what it says"),
    ],
};

/// Threads.
pub static THREADS: Table = Table {
    name: "threads",
    row: "a thread of which the trace has an event",
    sorted: None,
    columns: &[
        always("pid", Int64, "process"),
        always("tid", Int64, "its id"),
        unless("name", Name, UNNAMED, "its name, as the system has it"),
        unless("called", Name, "without one", "what the program called it"),
        always("lost_records", Int64, "records that found no room"),
        always("lost_calls", Int64, "calls of which nothing was recorded"),
    ],
};

/// Processes.
pub static PROCESSES: Table = Table {
    name: "processes",
    row: "a process that recorded",
    sorted: None,
    columns: &[
        always("pid", Int64, "its id"),
        unless("parent_pid", Int64, UNREPORTED, "that of the process that made it"),
        unless("command", Text, UNREPORTED, "its command line"),
        JOB_RANK,
        unless("job_size", Int32, UNRANKED, "how many ranks its job has"),
        unless("local_rank", Int32, UNRANKED, "its rank among those of its machine"),
    ],
};

/// The trace itself.
pub static TRACE: Table = Table {
    name: "trace",
    row: "the trace: what it is of, what it lost, what the tables leave out; one row",
    sorted: None,
    columns: &[
        always("schema", Int32, "version of these tables"),
        always("hetrace", Text, "version of hetrace that wrote them"),
        unless("recorder", Text, "not by hetrace", "version of hetrace that recorded it"),
        unless("trace_uuid", Text, "without one", "identity of the trace"),
        unless("command", Text, UNREPORTED, "the program and its arguments"),
        unless("exit_code", Int32, "ended by a signal, or not seen", "how the program ended"),
        unless("exit_signal", Int32, "it ended by itself, or was not seen", "signal that ended it"),
        unless(
            "clock_offset_ns",
            Int64,
            "not known: all times are those of `clock` itself",
            "what was added to times of `clock` to have them since 1970 in UTC",
        ),
        unless(
            "clock",
            Text,
            UNNAMED,
            "clock of the trace; `monotonic` of one machine is the same in all traces of one boot",
        ),
        unless("host_clock_error_ns", Double, "not by hetrace", "largest error seen of a host's time"),
        unless("started_ns", Int64, UNREPORTED, "when recording began"),
        unless("ended_ns", Int64, UNREPORTED, "when it ended"),
        unless("first_ns", Int64, "without events", "time of the first event"),
        unless("last_ns", Int64, "without events", "time of the last, ends of commands included"),
        always("has_arguments", Bool, "whether `arguments`, `returned` and `result` were written"),
        always("events", Int64, "events read"),
        always("calls", Int64, "calls with entry and exit, those in runs included"),
        always("unfinished", Int64, "calls without an end"),
        always("orphans", Int64, "ends without a call"),
        always("unknown_calls", Int64, "calls of functions that no model describes"),
        always("commands", Int64, "commands"),
        always("untimed", Int64, "commands whose times are not known"),
        always("commands_without_call", Int64, "commands of which `cause_call_id` is null"),
        always("unmatched_ranges", Int64, "ends of ranges of which the beginning is not in the trace"),
        always("lost_events", Int64, missing::LOST_EVENTS),
        always("lost_calls", Int64, "calls that the losses concern, wholly or in part"),
        always("lost_commands", Int64, "commands lost while recording"),
        always("lost_processes", Int64, "processes whose records could not be read, all or some"),
        always(
            "lost_os_events",
            Int64,
            "events of the operating system that the kernel dropped or that could not be written",
        ),
        always("unseen_switches", Int64, missing::UNSEEN_SWITCHES),
        always("lost_packets", Int64, missing::LOST_PACKETS),
        always("damaged", Int64, "places where a stream is cut or damaged"),
        unless("damages", Text, "none", "the first of these places, one on a line"),
        always("differences", Int64, missing::DIFFERENCES),
        unless("different", Text, "none", "the first of these, one on a line"),
        unless("cut_ns", Int64, "no stream is cut", "up to when all cut streams are whole"),
        unless(
            "left_out",
            Text,
            "nothing was",
            "events that no table has: a JSON object of their names and how many there are",
        ),
        unless("notes", Text, "none", "remarks of the recorder, one on a line"),
        unless(
            "job_variable",
            Name,
            "no ranks reported by a launcher",
            "variable of the environment by which `job_rank` is known",
        ),
    ],
};
