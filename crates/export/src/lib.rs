//! Traces in the formats of other tools, one folder each.
//!
//! Each goes over the trace as a [`Visitor`](hetrace_trace::spans::Visitor) does, in one
//! pass and bounded memory, and asks its [`Watch`] now and then whether to go on. What a
//! format cannot hold is said in the document of the format, and what the trace lost is
//! written along where the format has a place for it.

mod causes;
pub mod chrome;
pub mod inside;
mod missing;
mod operations;
pub mod otf2;
pub mod parquet;
mod sources;
pub mod stacks;

pub use hetrace_trace::Watch;

/// Why nothing, or not all, was written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be written.
    #[error("{path}: {source}")]
    Io {
        /// The file, or what stands for it.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The trace has nothing that the format could represent.
    #[error("nothing to export: {why}")]
    Nothing {
        /// Why, and what records it.
        why: String,
    },
    /// The [`Watch`] said so.
    #[error("stopped")]
    Stopped,
}
