//! oneMKL under hetrace: what is preloaded into the traced program.
//!
//! * `generated/`: a wrapper for every function, made from the model;
//! * [`entry`]: how programs reach them, and they the real functions;
//! * [`measure`]: integers that only the API itself knows.
#![allow(non_snake_case, clippy::missing_safety_doc, missing_docs)]

mod entry;
mod generated;
mod measure;

/// Starts the library: when it is loaded, or when something of the API may be there.
extern "C" fn loaded() {
    hetrace_interpose::start_unused(generated::tables::API);
    entry::LIBRARY.started();
}

hetrace_interpose::api_library!(entry::at_start, "generated/model.json", "generated/index.txt");
