//! Every call on a line of its own, or every event; all of them, or those that are asked for.

mod clock;
mod filter;
mod line;
mod lost;
mod options;
mod run;
mod tree;

pub use clock::Clock;
pub use filter::Filter;
pub use options::{Form, Options};
pub use run::{Watch, print, print_some};
