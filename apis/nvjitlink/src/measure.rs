//! Sizes that take knowledge of the API; named in `semantics.toml`.

pub use hetrace_interpose::measure::if_at_most;
