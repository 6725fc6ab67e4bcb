//! Events to calls and commands: one walk over a trace in the order of time.
//!
//! A call is an entry and an exit of one function on one thread; calls nest, over
//! all APIs of the thread. Since events can be lost, pairs are never taken for
//! granted:
//!
//! ```text
//!  entry f … exit f                    a call
//!  exit f                              an orphan: its entry is not in the trace
//!  entry f … exit of what is around    unfinished: its exit was lost
//!  entry f … entry g, in a packet that lost events
//!                                      f is unfinished: of an API's own calls, only
//!                                      those with callbacks have calls inside
//!  entry f … the stream is another thread's, has a gap, or ends
//!                                      unfinished
//!  entry f … another stream of the thread begins with exit f
//!                                      a call: hetrace was killed in it, and the rest was recovered
//! ```
//!
//! [`walk`] passes what it finds to a [`Visitor`]. It holds the open calls and no more.

mod alike;
mod announced;
mod calls;
mod commands;
mod deep;
mod error_text;
pub mod fast;
mod inside;
mod missing;
mod stack;
mod summary;
mod walk;

pub use calls::notable;
pub use calls::{Call, Fold, Open, Orphan, Unfinished, Why};
pub use commands::{Command, NewQueue, cause_id};
pub use commands::{CommandKind, Direction, Geometry, MemoryKind, Sizes, Times};
pub use error_text::ErrorText;
pub use hetrace_format::calls::OWN_WORK;
pub use summary::Summary;
pub use walk::{At, Visitor, walk};
pub use walk::{walk_as_recorded, walk_part};
