//! NVTX under hetrace: what is loaded into the traced program.
//!
//! NVTX has no library of its own that does anything: each program and library
//! that uses it has a copy of its header inside, which loads a tool at the first
//! call and asks it for the functions. hetrace is that tool.
//!
//! ```text
//! the header in the program ──► inject: callbacks ──► wrappers ──► local
//!                                (structs laid flat)  (recorded)   (the answer)
//! ```
//! * [`inject`]: how NVTX gets our functions; [`extensions`]: what it gets instead of
//!   those that are not traced;
//! * [`callbacks`], [`payloads`]: from NVTX's structs and wide texts to the flat parameters of
//!   the model;
//! * `generated/`: a wrapper for every function, made from the model;
//! * [`local`]: what the functions answer; `hetrace_interpose::ranges` knows their levels, and which open and close a capture window.
#![allow(non_snake_case, clippy::missing_safety_doc, missing_docs)]

mod attributes;
mod callbacks;
mod extensions;
mod generated;
mod inject;
mod local;
mod payloads;
mod wide;

/// Runs when the library is loaded.
extern "C" fn loaded() {
    local::fill();
    hetrace_interpose::start(generated::tables::API);
}

hetrace_interpose::api_library!(loaded, "generated/model.json", "generated/index.txt");
