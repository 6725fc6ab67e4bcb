//! Options of the commands that read: `tally` and `print`.

use std::path::PathBuf;

use clap::Args;
use hetrace_report::tally::{By, Sort, Table};

use super::kernel::Kernel;
use super::time::time;

/// Options of `tally`.
#[derive(Debug, Args)]
pub struct Tally {
    /// Traces, and aggregates written by --save [default: the newest trace in this folder]
    #[arg(value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    #[command(flatten)]
    pub kernel: Kernel,
    /// Group rows by these keys, separated by commas: api, name, host, process, thread, rank, device,
    /// queue, range, error, layer, line [default: api,name]
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub by: Vec<By>,
    /// Also what went on inside of kernels that `run --inside` recorded: basic blocks, loops, lanes
    #[arg(long, conflicts_with_all = ["csv", "save"])]
    pub inside: bool,
    /// Maximum number of rows of each table
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Sort rows by time, self, calls, name, avg, max, errors or bytes
    #[arg(long, value_name = "KEY", default_value = "time")]
    pub sort: Sort,
    /// Count only functions, commands and ranges that match this glob (may be repeated)
    #[arg(long, value_name = "GLOB")]
    pub filter: Vec<String>,
    /// Count only calls of this API, and commands on its queues (may be repeated)
    #[arg(long, value_name = "API", value_delimiter = ',')]
    pub api: Vec<String>,
    /// Count only what this process did (may be repeated)
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<i64>,
    /// Count only what this thread did (may be repeated)
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub tid: Vec<i64>,
    /// Count only what starts at or after this time since the first event, such as 1.5s, 20ms or 300us;
    /// in seconds without a unit
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<u64>,
    /// Count only what starts before this time since the first event
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<u64>,
    /// Also show median, 99th percentile and standard deviation
    #[arg(long)]
    pub stats: bool,
    /// Do not subtract the tracing overhead from the times of calls
    #[arg(long)]
    pub gross: bool,
    /// Write the aggregates to a file of a few kilobytes for `hetrace tally FILE…` instead of printing them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv", "markdown", "top"])]
    pub save: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long, group = "form")]
    pub json: bool,
    /// Print one table as comma-separated values: host, apis, errors, device, traffic, memory or ranges
    #[arg(
        long,
        group = "form",
        value_name = "TABLE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "host"
    )]
    pub csv: Option<Table>,
    /// Print the tables in Markdown
    #[arg(long, group = "form")]
    pub markdown: bool,
    /// Group by device and queue, and show times of failed calls
    #[arg(long)]
    pub extended: bool,
    /// Truncate longer names
    #[arg(long, value_name = "BYTES")]
    pub max_name: Option<usize>,
    /// Show kernel names with all template arguments and parameters
    #[arg(long)]
    pub full_names: bool,
}

/// Options of `print`.
#[derive(Debug, Args)]
pub struct Print {
    /// The trace [default: the newest in this folder]
    pub trace: Option<PathBuf>,
    #[command(flatten)]
    pub kernel: Kernel,
    /// Print entry and exit of each call as separate events
    #[arg(long)]
    pub events: bool,
    /// Print what warps recorded inside of kernels (run --inside), a line each: kernel, launch (%gridid), thread block, warp,
    /// multiprocessor, basic block with its source, lanes in hexadecimal; --filter takes names of kernels
    #[arg(long, conflicts_with_all = ["events", "tree", "api", "tid", "errors", "min_duration", "arg"])]
    pub inside: bool,
    /// Print calls as a tree; for calls that match the filters, their callers and callees are shown,
    /// too
    #[arg(short = 'c', long, conflicts_with_all = ["events", "deltas"])]
    pub tree: bool,
    /// Print the time of day instead of the time since the start
    #[arg(long)]
    pub wall: bool,
    /// Print CLOCK_MONOTONIC, which is comparable with other traces of the same boot
    #[arg(long, conflicts_with = "wall")]
    pub monotonic: bool,
    /// Also print the time since the previous line
    #[arg(long)]
    pub deltas: bool,
    /// Show kernel names with all template arguments and parameters
    #[arg(long)]
    pub full_names: bool,
    /// Print only functions, kernels, command kinds and events that match this glob (may be repeated)
    #[arg(long, alias = "name", value_name = "GLOB")]
    pub filter: Vec<String>,
    /// Print only calls of this API, and commands on its queues (may be repeated)
    #[arg(long, value_name = "API", value_delimiter = ',')]
    pub api: Vec<String>,
    /// Print only what this process did (may be repeated)
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<i64>,
    /// Print only what this thread did (may be repeated)
    #[arg(long, alias = "thread", value_name = "TID", value_delimiter = ',')]
    pub tid: Vec<i64>,
    /// Print only calls and commands that failed
    #[arg(long)]
    pub errors: bool,
    /// Print only calls and commands that took at least this long
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub min_duration: Option<u64>,
    /// Print only what starts at or after this time since the first event, such as 1.5s, 20ms or 300us;
    /// in seconds without a unit
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub from: Option<u64>,
    /// Print only what starts before this time since the first event
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub to: Option<u64>,
    /// Print only calls with this argument; the value, as printed, may be a glob (may be repeated: all
    /// must match)
    #[arg(long, value_name = "NAME=VALUE", value_parser = argument)]
    pub arg: Vec<(String, String)>,
}

fn argument(text: &str) -> Result<(String, String), String> {
    let split = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = split.ok_or_else(|| "expected NAME=VALUE".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_have_a_name() {
        assert_eq!(argument("size=16"), Ok(("size".to_owned(), "16".to_owned())));
        assert_eq!(argument("text=a=b"), Ok(("text".to_owned(), "a=b".to_owned())));
        assert!(argument("size").is_err() && argument("=1").is_err());
    }
}
