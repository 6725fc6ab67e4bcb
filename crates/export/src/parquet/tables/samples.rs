//! The table of samples of processors.

use super::super::schema::Type::{Bool, Int32, Int64, Name};
use super::super::schema::{Table, always, unless};
use super::{JOB_RANK, UNNAMED, UNSOURCED};

const UNKNOWN_STACK: &str = "its stack is not known";

/// Where threads were while they had a CPU.
pub static SAMPLES: Table = Table {
    name: "samples",
    row: "a sample of a thread that had a CPU (`hetrace run --cpu-sample`)",
    sorted: Some("time_ns"),
    columns: &[
        always("time_ns", Int64, "when"),
        always("pid", Int64, "process"),
        always("tid", Int64, "thread; unique within its process"),
        unless("thread", Name, UNNAMED, "the thread's name, if it made calls before"),
        always("cpu", Int32, "the CPU"),
        always(
            "kind",
            Name,
            "`user`: the program's own code ran; `kernel`: the kernel worked for the thread, whose stack is that of the system call, fault or interrupt",
        ),
        always("duration_ns", Int64, "time on a CPU that the sample stands for"),
        always(
            "in_call",
            Bool,
            "the thread was in a traced call, recorded or not: the rest is work of the program outside of calls",
        ),
        unless("call_id", Int64, "in no recorded call", "`call_id` of the innermost call that it was in"),
        unless("source_file", Name, UNSOURCED, "file of the code that ran"),
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
        JOB_RANK,
    ],
};
