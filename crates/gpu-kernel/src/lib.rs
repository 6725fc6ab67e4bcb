//! The insides of a kernel: which lanes of a warp went through which basic blocks, and when.
//!
//! ```text
//!  Graph ──► Plan: where to record ──► (the instrumented kernel runs) ──► Record… ──► decode ──► Step… per lane
//!  blocks,    one of four modes                                                        replays each lane
//!  loops                                                                               through the graph
//! ```
//! These know no device and no language of kernels. Beside them are [`ptx`], which makes graphs of NVIDIA's texts and twins
//! of kernels that record, [`pool`], which reads what those wrote, and [`description`], which is kept between the two.
//!
//! What binds it:
//! - Lanes of a warp may run apart and come together in any order (independent thread scheduling), so equations between
//!   sets of lanes hold for single lanes only. Each lane is replayed by itself, from the records that have it.
//! - What was not recorded is inferred, and says so: it has an interval of time, not a point.
//! - A record that does not fit is a [`Violation`], and never changes what other lanes did.

pub mod counts;
pub mod decode;
pub mod description;
pub mod graph;
pub mod instrument;
pub mod opencl_c;
pub mod plan;
pub mod pool;
pub mod ptx;
pub mod record;
mod ways;
pub mod weights;

pub use counts::{BlockCounts, Counter, Counts, Entry, LoopCounts};
pub use decode::{Decoder, Ended, Fault, Path, Step, Violation};
pub use description::{Description, Weighted};
pub use graph::{Block, Edge, Graph, Loops};
pub use hetrace_pool::Strategy;
pub use instrument::{Ask, Instrumented, instrument, instrument_source};
pub use plan::{Mode, Plan, Site};
pub use ptx::Base;
pub use record::{Lanes, Record};
pub use weights::{KernelWeights, Weights};
