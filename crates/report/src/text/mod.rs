//! Tables, and how text looks on a terminal.

mod style;
mod table;
mod wrap;

pub(crate) use style::Style;
pub(crate) use table::{Column, Table};
pub use wrap::wrap;

/// Says how many rows of a table were left out, and which option shows all.
pub fn more(left: usize, all: usize) -> String {
    format!("({left} more: --top {all})")
}
