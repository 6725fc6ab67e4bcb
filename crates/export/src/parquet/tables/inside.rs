//! The table of what warps recorded inside of kernels.

use super::super::schema::Type::{Int32, Int64, Name, Uint64};
use super::super::schema::{Table, always, unless};

const UNSOURCED: &str = "the code has no line information, or lanes end";
const NO_SITE: &str = "lanes begin or end";

/// Records inside of kernels.
pub static INSIDE: Table = Table {
    name: "inside",
    row: "a record of a warp inside of a kernel (`hetrace run --inside`); launches whose commands have no known times are left out",
    sorted: Some("time_ns"),
    columns: &[
        always("pid", Int64, "process"),
        always("kernel_symbol", Name, "the kernel's name as its module has it"),
        always("kernel_name", Name, "the same demangled"),
        always(
            "grid_id",
            Int64,
            "the launch: `%gridid`, unique and in order within its context, but for the runs of a graph's node, which have one",
        ),
        always(
            "command_start_ns",
            Int64,
            "`start_ns` of the command that the launch was, which has the twin's name (`…__hetrace_inside`)",
        ),
        always("queue", Int32, "number of its queue: `queue` of `queues`"),
        always("device", Int32, "number of its device: `device` of `devices`"),
        always(
            "time_ns",
            Int64,
            "when, on the clock of all tables: by the device's timer, within the times of the command",
        ),
        always(
            "may_be_off_ns",
            Int64,
            "by how much `time_ns` may be off, for all records of the launch alike",
        ),
        always("clock", Int64, "`%clock64` of the multiprocessor, cycles"),
        always("thread_block_x", Int64, "the thread block: `%ctaid.x`"),
        always("thread_block_y", Int32, "`%ctaid.y`"),
        always("thread_block_z", Int32, "`%ctaid.z`"),
        always("warp", Int32, "number of the warp in its thread block"),
        always("multiprocessor", Int32, "`%smid`"),
        always(
            "kind",
            Name,
            "`begin`, `end`: lanes begin, end; `branch`, `edge`, `block`: lanes come to a site of that kind; `sum`: passes of a branch that were added up, at the time of the record behind them",
        ),
        unless("site", Int32, NO_SITE, "number of the site in the kernel's description"),
        unless(
            "basic_block",
            Int32,
            "lanes end",
            "the basic block that the site is in, or leads from; 0 is where a kernel begins",
        ),
        unless("source_file", Name, UNSOURCED, "file of the source that the block begins in"),
        unless("source_line", Int32, UNSOURCED, "line there"),
        always("lanes", Uint64, "lanes that were there, a bit each"),
        unless(
            "taken",
            Uint64,
            NO_SITE,
            "those of them that took the branch, or its case; of other sites all",
        ),
        unless(
            "successor",
            Int32,
            NO_SITE,
            "which successor of its block they took; the others of two the other one",
        ),
        unless("repeats", Int64, "`kind` is not `sum`", "how often"),
    ],
};
