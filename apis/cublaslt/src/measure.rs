//! Sizes that only the API itself knows; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;
