//! Tables for other programs: comma-separated values, as RFC 4180 has them.

use std::io::{self, Write};
use std::str::FromStr;

use serde::Serialize;
use serde_json::{Map, Value};

use super::rows::Tally;

/// A table that can be exported by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Table {
    /// Calls.
    #[default]
    Host,
    /// Layers.
    Apis,
    /// Failed calls.
    Errors,
    /// Commands.
    Device,
    /// Bytes moved and set.
    Traffic,
    /// Memory that programs asked for.
    Memory,
    /// Ranges of the program.
    Ranges,
}

/// Columns of what rows are grouped by; left out where no row has them.
const GROUP: [&str; 10] =
    ["host", "process", "thread", "rank", "device", "queue", "range", "error", "layer", "line"];

/// Columns of rows by layer, likewise.
const NESTED: [&str; 2] = ["nested_calls", "nested_ns"];

/// Columns of how durations are distributed.
const DURATIONS: &str = "avg_ns min_ns max_ns p50_ns p99_ns dev_ns";

impl Table {
    /// All of them, by their names.
    pub const ALL: [(&'static str, Self); 7] = [
        ("host", Self::Host),
        ("apis", Self::Apis),
        ("errors", Self::Errors),
        ("device", Self::Device),
        ("traffic", Self::Traffic),
        ("memory", Self::Memory),
        ("ranges", Self::Ranges),
    ];

    /// Columns, named as in JSON.
    fn columns(self) -> Vec<&'static str> {
        let (before, durations, after) = match self {
            Self::Host => (
                "name api calls folded added_up total_ns self_ns",
                DURATIONS,
                "errors error_ns error_self_ns cost_ns self_cost_ns error_cost_ns",
            ),
            Self::Apis => ("api title processes threads calls errors self_ns cost_ns error_self_ns", "", ""),
            Self::Errors => ("name api error code text calls total_ns", "", ""),
            Self::Device => (
                "name symbol kind api calls samples unseen untimed of_graphs total_ns total_error_ns",
                DURATIONS,
                "bytes in_graph errors",
            ),
            Self::Traffic => (
                "name from to calls samples unseen of_graphs bytes total_ns total_error_ns",
                DURATIONS,
                "bytes_per_second errors failed_bytes",
            ),
            Self::Memory => (
                "device uuid host kind peak_bytes peak_ns allocations allocated_bytes",
                "",
                "unsized_allocations failed live_bytes live_allocations process_count",
            ),
            Self::Ranges => ("domain name category style calls total_ns", DURATIONS, "commands device_ns"),
        };
        [before, durations, after].into_iter().flat_map(str::split_whitespace).collect()
    }
}

impl FromStr for Table {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, table)| *table);
        known.ok_or_else(|| format!("it is one of {}", Self::ALL.map(|(name, _)| name).join(", ")))
    }
}

impl Tally {
    /// Writes a table as comma-separated values, a line of names first. Times are
    /// in nanoseconds; what is not known is empty.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_csv(&self, table: Table, out: &mut dyn Write) -> io::Result<()> {
        match table {
            Table::Host => csv(table, &self.host, out),
            Table::Apis => csv(table, &self.apis, out),
            Table::Errors => csv(table, &self.errors, out),
            Table::Device => csv(table, &self.device, out),
            Table::Traffic => csv(table, &self.traffic, out),
            Table::Memory => csv(table, &self.memory, out),
            Table::Ranges => csv(table, &self.ranges, out),
        }
    }
}

fn csv<R: Serialize>(table: Table, rows: &[R], out: &mut dyn Write) -> io::Result<()> {
    let members = |row: &R| match serde_json::to_value(row) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let rows: Vec<Map<String, Value>> = rows.iter().map(members).collect();
    let own = table.columns();
    // A column of the table's own is shown already.
    let is_there = |name: &&&str| !own.contains(name) && rows.iter().any(|r| r.contains_key(**name));
    let (group, nested) = (GROUP.iter().filter(is_there), NESTED.iter().filter(is_there));
    let (names, numbers) = own.split_at(own.iter().take_while(|name| is_name(name)).count());
    let columns: Vec<&str> = names.iter().chain(group).chain(numbers).chain(nested).copied().collect();
    writeln!(out, "{}", columns.join(","))?;
    for row in &rows {
        let cells = columns.iter().map(|name| row.get(*name).map_or_else(String::new, cell));
        writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))?;
    }
    Ok(())
}

/// Whether a column says what a row is of.
fn is_name(column: &str) -> bool {
    ["name", "api", "symbol", "kind", "from", "to", "domain", "category", "style"].contains(&column)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains([',', '"', '\n', '\r']) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
