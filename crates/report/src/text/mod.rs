//! Tables, and how text looks on a terminal.

mod style;
mod table;
mod wrap;

pub(crate) use style::Style;
pub(crate) use table::{Column, Table};
pub use wrap::wrap;
