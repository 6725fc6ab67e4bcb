//! The table of what the operating system did to threads.

use super::super::schema::Type::{Bool, Int32, Int64, Name, Uint64};
use super::super::schema::{Table, always, unless};
use super::{JOB_RANK, UNNAMED};

/// States of threads.
pub static STATES: Table = Table {
    name: "states",
    row: "a time in which a thread of the program was in one state (`hetrace run --os`, `--kernel`); between the rows of a thread nothing is known of it",
    sorted: Some("start_ns"),
    columns: &[
        always("start_ns", Int64, "when it began"),
        always("end_ns", Int64, "when it ended"),
        always("pid", Int64, "process"),
        always("tid", Int64, "thread"),
        unless("thread", Name, UNNAMED, "the thread's name in the operating system"),
        always(
            "state",
            Name,
            "`user`: it ran its own code; `system`: it ran in a system call; `interrupted`: its CPU served an interrupt; `ready`: it would run and had no CPU; `blocked`: it waited; `stopped`: a signal or a debugger had stopped it",
        ),
        always("cpu", Int32, "the CPU that it had, waited for, or had last"),
        unless(
            "inside",
            Name,
            "in none, or not known",
            "the system call that it ran or waited in, or the interrupt",
        ),
        unless("address", Uint64, "no `futex` waits", "the address that a `futex` waited on"),
        always("is_lock", Bool, "what it waited for is a lock"),
        unless(
            "by_tid",
            Int64,
            "no thread, or not known",
            "of `ready`, the thread that had the CPU; of a lock, the one that held it; of other waits, the one that ended them",
        ),
        unless("by", Name, "not known", "its name; or the interrupt, timer or signal that ended the wait"),
        JOB_RANK,
    ],
};
