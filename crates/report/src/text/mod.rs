//! Tables, and how text looks on a terminal.

mod style;
mod table;

pub(crate) use style::Style;
pub(crate) use table::{Column, Table};
