//! Numbers and words as people read them.

pub mod digits;
mod units;

pub use units::{bandwidth, bytes, count, duration, duration_f, energy, error, percent, power};

/// `1 thread`, `2 threads`.
pub fn plural(n: u64, one: &str) -> String {
    let many = match one {
        _ if one.ends_with("process") || one.ends_with("ch") => format!("{one}es"),
        _ => format!("{one}s"),
    };
    format!("{} {}", count(n), if n == 1 { one } else { &many })
}
