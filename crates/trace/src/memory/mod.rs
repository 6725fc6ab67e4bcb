//! High-water marks of memory, by device.
//!
//! ```text
//!  table    what each function does to memory: from roles and tables of the models
//!    │
//!  calls    steps (`step`: made, released, what is current), by the
//!    │      outermost call that does such a thing
//!  ledger   all steps in the order of time: what is held where, and how much it was at most
//! ```
//!
//! A call that says on which device a thread's memory is may be of another API, and memory that
//! one thread made may be freed by another one, so steps are put into order before they count.
//! Addresses and handles are an API's own, if it has queues or devices of its own in the trace; what calls of an API
//! that is layered on another name is of the API of the calls inside of them, or may be of any if there are none
//! ([`Owners`](crate::owners::Owners)).
//! A walk for sums shows it the values of just the calls that the table has a row for.
//! A timeline takes the steps as soon as they are certain, and draws what they change.

mod calls;
mod ledger;
mod rows;
mod sites;
mod step;
mod table;
#[cfg(test)]
mod tests;

pub use calls::Memory;
pub use ledger::{Change, Ledger};
pub use rows::{MemoryProcessRow, MemoryReleases, MemoryRow};
pub use table::Table;
