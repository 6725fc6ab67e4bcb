//! OpenCL C, as far as it has to be known to record which ways work-items go through a kernel.
//!
//! ```text
//!  source ──[`tokens`]──► tokens ──[`parse`]──► statements of each kernel ──[`flow`]──► graph, and where its choices are written
//!    └── as it was, with calls inserted there ([`rewrite`]), which [`DEVICE`] defines
//! ```
//! The source is never printed anew: text is only inserted, so that all that nobody here knows stays as it is. Nothing is
//! preprocessed. Alternatives of `#if` in which there is a choice are a choice themselves, which work-items say as they say
//! all others; and a kernel in which a macro hides a choice, or of which directives leave no one structure, is refused.

pub mod flow;
pub mod globals;
pub mod macros;
pub mod parse;
pub mod rewrite;
pub mod tokens;

pub use rewrite::{Refusal, Request, Rewritten, rewrite};

/// What kernels call that record: the begin of their source, in a line of its own.
pub const DEVICE: &str = include_str!("device.cl");
