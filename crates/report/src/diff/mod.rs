//! Several runs against several: what changed, and what only seems to have.
//!
//! ```text
//!  gather    one walk for each run: sums by call path, function, kernel, copy   (paths, profile)
//!     │
//!  align     rows of all runs that mean the same, by names alone
//!     │
//!  report    trimmed mean of each side, split of the difference, interval (stats), verdict
//!     │
//!  render    text, Markdown; the report itself is the JSON
//! ```
//!
//! Addresses, numbers of processes and threads, and times of day take no part in
//! what is compared with what. `docs/diff.md` has the method.

mod align;
mod cell;
mod gather;
mod judge;
mod paths;
mod profile;
mod render;
mod report;
mod rows;
mod stats;
mod verdict;

pub use gather::Watch;
pub use profile::{DeviceCount, Profile, RunRow};
pub use render::{Form, TextOptions};
pub use report::diff;
pub use rows::{Change, Report, Row, SCHEMA, Step, Table, What, WholeRow};
pub use stats::{CONFIDENCE, TRIMMED};
pub use verdict::{FailOn, Failure, Metric, NotJudged, Verdict};

use serde::Serialize;

/// What rows are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// A call path: a function, called by another, and so on from the outermost.
    Path,
    /// A function.
    Name,
    /// A function, and the code that calls it; of traces with stacks.
    Site,
    /// An API.
    Api,
    /// A kernel, or another kind of command that moves nothing.
    Kernel,
    /// What moves or sets memory, by direction.
    Copy,
}

impl By {
    /// All of them.
    pub const ALL: [By; 6] = [By::Path, By::Name, By::Site, By::Api, By::Kernel, By::Copy];

    /// Its name, as one types it.
    pub fn name(self) -> &'static str {
        match self {
            By::Path => "path",
            By::Name => "name",
            By::Site => "site",
            By::Api => "api",
            By::Kernel => "kernel",
            By::Copy => "copy",
        }
    }

    /// Whether its rows are of calls, not of commands.
    pub fn is_of_calls(self) -> bool {
        matches!(self, By::Path | By::Name | By::Site | By::Api)
    }
}

/// Which time of calls is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Time {
    /// Outside of other recorded calls: rows add up to the whole.
    #[default]
    Own,
    /// All of it, calls inside included.
    Total,
}

/// How small a difference is not shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MinChange {
    /// Less than so many nanoseconds.
    Ns(f64),
    /// Less than such a part of what the row took in A, in percent.
    Percent(f64),
}

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Tables, in this order; kernels, copies and call paths if none is named.
    pub by: Vec<By>,
    /// The time of calls.
    pub time: Time,
    /// Functions, kernels and kinds of commands of these names only: globs, of which
    /// one must match. A path matches with any function of it.
    pub filter: Vec<String>,
    /// Leave out rows that changed less.
    pub min_change: Option<MinChange>,
    /// Divide sums of calls by the run's number of processes, and sums of commands by
    /// its number of devices.
    pub per_process: bool,
    /// What must not happen.
    pub fail_on: Option<FailOn>,
}
