//! Words and tables that reports share.

pub(crate) mod digits;
mod style;
mod table;
mod units;

pub(crate) use style::Style;
pub(crate) use table::{Column, Table};
pub(crate) use units::{bandwidth, bytes, count, duration, duration_f, energy, error, percent, power};

/// `1 thread`, `2 threads`.
pub(crate) fn plural(n: u64, one: &str) -> String {
    let many = match one {
        "process" => "processes".to_owned(),
        _ => format!("{one}s"),
    };
    format!("{} {}", count(n), if n == 1 { one } else { &many })
}
