//! Where the time went, in tables: calls of the host by layer, commands on
//! devices, what was moved; ranges of the program, operations among ranks, and what
//! devices reported.
//!
//! ```text
//!  collect   one walk: sums by function, thread, queue, range (host, device, marked)
//!     │
//!  Aggregate   sums by what rows are grouped by; they add up, and go to files and back
//!     │
//!  Tally     rows: sorted and cut as text, Markdown, CSV or JSON (render, export)
//!
//!  live      the same sums of a trace that is being recorded, and pictures of them
//! ```

mod add;
mod aggregate;
mod budget;
mod by;
mod cells;
mod collect;
mod counted;
mod counters;
mod device;
mod energy;
mod estimate;
mod export;
mod file;
mod host;
mod inside;
mod labels;
mod lines;
mod live;
mod makers;
mod marked;
mod monitor;
mod monitored_host;
mod next;
mod order;
mod probed;
mod query;
mod render;
mod rows;
mod sampled;
mod shapes;
mod sketch;
mod times;
mod usage;
mod ways;
mod whole;

pub use aggregate::{Aggregate, Unlike};
pub use by::{By, Group};
pub use collect::{Options, aggregate, tally};
pub use export::Table;
pub use file::{FileError, is_aggregate};
pub use hetrace_trace::watch::Stopped;
pub use inside::roofs_of;
pub use live::{Busy, Calling, LIVE_SCHEMA, Live, LiveText, Picture};
pub use next::NextStep;
pub use order::Sort;
pub use query::{Query, Reading, Watch};
pub use render::{Form, TextOptions};
pub use rows::{
    ApiTotals, BudgetRow, ClockError, CollectiveRow, CommunicatorRow, DeviceRow, DeviceUseRow, EnergyRow,
    ErrorRow, HostRow, InsideBlockRow, InsideLoopRow, InsideLostRow, InsideRoofline, InsideRow, InsideRows,
    InsideTakes, LaunchRow, LevelRow, MemoryProcessRow, MemoryReleases, MemoryRow, OccupancyRow,
    OpenRangeRow, ProbeRangeRow, ProbeRow, RangeRow, RefusedRow, SCHEMA, SampleRow, SampledRow, SteppedRow,
    Tally, TelemetryRow, ThrottleRow, TraceRow, TracingRow, TrafficRow, UnfinishedCollectiveRow,
    UnfinishedRow, UnknownRow,
};
pub use sketch::ERROR as QUANTILE_ERROR;
pub use whole::SumsError;
