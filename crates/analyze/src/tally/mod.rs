//! Where the time went, in tables: calls of the host, commands on devices, and
//! what was moved.

mod collect;
mod device;
mod host;
mod render;
mod rows;

pub use collect::{Options, tally};
pub use render::TextOptions;
pub use rows::{
    ApiTotals, ClockError, DeviceRow, ErrorRow, HostRow, SCHEMA, Tally, TrafficRow, UnfinishedRow,
};
