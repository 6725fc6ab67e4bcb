//! The table of counters that programs keep themselves.

use super::super::schema::Type::{Double, Int64, Name};
use super::super::schema::{Table, always, unless};
use super::JOB_RANK;

/// Counters of programs.
pub static COUNTERS: Table = Table {
    name: "counters",
    row: "a change of a counter that the program keeps",
    sorted: None,
    columns: &[
        always("pid", Int64, "process"),
        always("tid", Int64, "thread that changed it"),
        unless("domain", Name, "the default one", "its domain"),
        always("name", Name, "its name, or its handle if it has none"),
        always("time_ns", Int64, "when the call began that says so"),
        unless("value", Double, "its type is not known", "what it counts from then on"),
        JOB_RANK,
    ],
};
