//! Marks under hetrace: what programs say of themselves by `include/hetrace.h`.
//!
//! ```text
//! the header in the program ──► entry: table ──► wrappers ──► local
//!                                                (recorded)   (the answer)
//! ```
//! The header, or the Rust crate, loads this library at its first call in a traced program, and asks for a
//! table of functions.
//!
//! * [`entry`]: that table;
//! * `generated/`: a wrapper for every function, made from the model;
//! * [`local`]: what the functions answer.
#![allow(non_snake_case, clippy::missing_safety_doc, missing_docs)]

mod entry;
mod generated;
mod local;

/// Runs when the library is loaded.
extern "C" fn loaded() {
    local::fill();
    hetrace_interpose::start(generated::tables::API);
}

hetrace_interpose::api_library!(loaded, "generated/model.json", "generated/index.txt");
