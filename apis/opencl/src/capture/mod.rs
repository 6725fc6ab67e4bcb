//! What only a tracer of this API can show, recorded when the user asks for it.
//!
//! ```text
//!   --sources          code      programs' sources, intermediate code, binaries
//!   --build-logs       build     options and logs of builds
//!   --kernel-args      kernels   names and types of kernels' arguments
//!   --properties       properties of platforms and devices
//!   --capture-buffers  objects   which memory objects are a kernel's arguments
//!                      launch    reads them before and after chosen launches
//! ```
//! Each thing becomes a record ([`hetrace_interpose::objects`]), which the drainer turns into an
//! event `object:…` of the trace; contents that are long become files, named
//! by their hash. When an option is off, its hooks look at one word.

pub mod build;
pub mod code;
mod kernels;
pub mod launch;
pub mod objects;
pub mod properties;
pub mod query;
mod reads;

use hetrace_interpose::objects::wanted;

pub use kernels::made as kernel_made;
pub use launch::launch;
pub use query::version;
pub use reads::harvest;
