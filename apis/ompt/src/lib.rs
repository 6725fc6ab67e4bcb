//! OMPT under hetrace: the tool that an OpenMP runtime loads into the traced program.
//!
//! OMPT is OpenMP's own interface for tools. A runtime that begins looks for a function `ompt_start_tool`: in the
//! program and what it is linked to, then in the libraries that `OMP_TOOL_LIBRARIES` names, where the launcher puts
//! this one first. The tool says which events it wants, and the runtime calls it at each.
//!
//! ```text
//! the runtime ──► tool: ompt_start_tool ──► next: the user's own tool
//!       │
//!       └─events─► callbacks, tasks, target ──► wrappers (recorded)
//!                                └──────────► next: the user's own tool
//! ```
//! * [`tool`]: how a runtime starts us; [`events`]: which of its events we want;
//! * [`next`]: a tool that the user has named, which gets all of OMPT but through us;
//! * [`callbacks`]: what is reported of threads, regions and synchronization; [`tasks`], [`target`]: of tasks and of
//!   devices;
//! * [`code`]: which libraries the constructs are in;
//! * `generated/`: what records each function of the model, made from it.
#![allow(non_snake_case, clippy::missing_safety_doc, missing_docs)]

mod callbacks;
mod code;
mod events;
mod generated;
mod next;
mod passed;
mod runtime;
mod target;
mod tasks;
mod tool;

/// Runs when the library is loaded.
extern "C" fn loaded() {
    hetrace_interpose::start(generated::tables::API);
}

hetrace_interpose::api_library!(loaded, "generated/model.json", "generated/index.txt");
