//! What the operating system did to the threads of a program meanwhile.
//!
//! ```text
//!  kernel trace ──► event    one kind for the names of LTTng, old and new, and for our own
//!                     │
//!                  machine   a clock-work of CPUs and threads: who has which CPU, who waits for it,
//!                     │      who is blocked in which system call, and who woke whom
//!                     ▼
//!              `System`    for each thread of the program: stretches of time, each with a state
//! ```
//!
//! A kernel trace is any trace with LTTng's events of the kernel: the one that `hetrace run --os` writes
//! beside the program's, or one that LTTng recorded meanwhile ([`join`] says whether both have one clock).
//!
//! Rules:
//! - What is not known is a state of its own: before a thread's first event, after events were dropped,
//!   and where a trace of one program does not say who had a CPU.
//! - Memory grows with the changes of state of the program's threads.

mod ending;
mod event;
mod join;
mod machine;
mod read;

pub use join::{NotJoined, join};
pub use read::read;
