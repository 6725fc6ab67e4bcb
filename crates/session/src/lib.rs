//! A tracing session, from the launcher's side: it makes the shared memory,
//! starts the program, drains what the program records, and writes the trace.
//!
//! ```text
//!   run() ──► Folder, Control ──► inject ──► the program
//!               │                              │ writes rings
//!               └──► Drainer ◄─────────────────┘
//!                      ├──► Stream      one per ring: records as they are
//!                      └──► Devices     commands: clocks related, ordered
//! ```
//! The launcher is another process than the program, so what was recorded
//! survives whatever happens to the program.

mod access;
mod account;
pub mod apis;
mod beside;
mod budget;
mod child;
mod contents;
mod control;
pub mod cost;
mod declare;
mod devices;
mod drain;
mod flags;
mod flight;
mod folder;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod hash;
mod inject;
mod inside;
mod job;
mod keeper;
mod layout;
mod ldcache;
mod lifetime;
mod measuring;
mod options;
mod os;
mod output;
mod place;
mod recorders;
pub mod recover;
mod reference;
pub mod resequence;
mod run;
mod run_options;
pub mod running;
mod samples;
pub mod select;
pub mod service;
pub mod sessions;
mod settings;
mod sink;
mod stream_files;
mod symbols;
pub mod telemetry;
pub mod time;
pub mod trigger;
pub mod usdt;
mod whom;
mod window;

pub use access::Access;
pub use apis::{Found, Library, LibraryError};
pub use child::{end_by, ended, guard};
pub use flight::{Answer, Asked as FlightAsked, Finished as FlightFinished, Snapshot};
pub use hetrace_format::manifest;
pub use hetrace_os::probe as os_probe;
pub use hetrace_os::sampler::{Ability as SampleAbility, ability as sample_ability};
pub use hetrace_ring::abi::inside::{
    KERNELS as INSIDE_KERNELS, PARTS as INSIDE_PARTS, TEXT as INSIDE_TEXT, WEIGHTS as INSIDE_WEIGHTS,
    WHY as INSIDE_WHY,
};
pub use inject::{Injection, Way, dormant, is_absent, loader};
pub use inside::{INSIDE_CHOICES, Inside, Strategy, answer as inside_answer};
pub use ldcache::find as find_library;
pub use lifetime::children_time;
pub use options::{BUFFER_CHOICES, Capture, DeviceTimes, Launches, Options};
pub use os::{Asked as OsAsked, Options as OsOptions, is_syscall};
pub use place::Place;
pub use run::{Early, Outcome, RunError, find_program as program, run};
pub use run_options::RunOptions;
pub use samples::NO_SAMPLES;
pub use select::{Mode, Selection};
pub use sink::Rotate;
pub use whom::Whom;
pub use window::{Asked as WindowAsked, LONGEST_GLOB};
