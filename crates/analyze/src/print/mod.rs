//! Every call on a line of its own, or every event.

mod clock;
mod line;
mod run;

pub use clock::Clock;
pub use run::{Form, Options, print};
