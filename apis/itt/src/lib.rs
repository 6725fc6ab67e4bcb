//! ITT under hetrace: the collector that is loaded into the traced program.
//!
//! ITT has no library of its own that does anything: each program and library that uses it has its static part
//! inside, which loads a collector at the first call and has it fill in a table of functions. hetrace is that
//! collector.
//!
//! ```text
//! the static part in the program ──► inject: callbacks ──► wrappers ──► local
//!                                     (structs laid flat)  (recorded)   (the answer)
//! ```
//! * [`inject`]: how ITT gets our functions;
//! * [`callbacks`]: from ITT's structs to the flat parameters of the model;
//! * `generated/`: a wrapper for every function, made from the model;
//! * [`local`]: what the functions answer; [`objects`]: the domains, texts and counters that programs get.
#![allow(non_snake_case, clippy::missing_safety_doc, missing_docs)]

mod callbacks;
mod generated;
mod inject;
mod local;
mod objects;

/// Runs when the library is loaded.
extern "C" fn loaded() {
    local::fill();
    hetrace_interpose::start(generated::tables::API);
}

hetrace_interpose::api_library!(loaded, "generated/model.json", "generated/index.txt");
