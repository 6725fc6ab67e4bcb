//! NVIDIA's PTX, as far as it has to be known to record what a kernel does.
//!
//! The text is never printed anew: it is cut into statements by where they lie ([`scan`]), a graph is made of those that
//! end blocks ([`flow`]), and what is recorded is inserted between them. So all that nobody here knows, instructions of
//! tomorrow among them, stays as it is, byte for byte.

mod code;
mod counts;
pub mod flow;
pub mod image;
pub mod link;
mod pressure;
pub mod rewrite;
pub mod scan;
mod twin;

pub use flow::{Body, Flow, flow};
pub use rewrite::{Base, Refusal, Request, Rewritten, rewrite};
pub use scan::{BadText, Function, Kind, Module, Statement, scan};

/// What is behind the name of a kernel in that of its twin.
pub const TWIN: &str = "__hetrace_inside";
/// The variable of a module that has the address of the pool.
pub const POOL: &str = "__hetrace_inside";
