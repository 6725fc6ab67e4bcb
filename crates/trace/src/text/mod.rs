//! Numbers and words as people read them.

pub mod digits;
mod units;

pub use units::{bandwidth, bytes, count, duration, duration_f, energy, error, flops, percent, power};

/// What is said of a range or a call that has no end.
pub const STILL_OPEN: &str = "still open when the trace ends";
/// What is said of a command or a thread's state that has no end.
pub const STILL_RUNNING: &str = "still running when the trace ends";

/// Says how a program ended that a signal ended.
pub fn ended_by(signal: impl std::fmt::Display) -> String {
    format!("was ended by signal {signal}")
}

/// `1 thread`, `2 threads`.
pub fn plural(n: u64, one: &str) -> String {
    let many = match one.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'i', 'o', 'u'])) {
        Some(stem) => format!("{stem}ies"),
        None if one.ends_with("process") || one.ends_with("ch") => format!("{one}es"),
        None => format!("{one}s"),
    };
    format!("{} {}", count(n), if n == 1 { one } else { &many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_one() {
        let all = ["call", "process", "batch", "CUlibrary", "array"].map(|one| plural(2, one));
        assert_eq!(all, ["2 calls", "2 processes", "2 batches", "2 CUlibraries", "2 arrays"]);
        assert_eq!(plural(1, "library"), "1 library");
    }
}
