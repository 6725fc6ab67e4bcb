//! OpenCL under hetrace: what is loaded into the traced program.
//!
//! * `generated/`: a wrapper for every function, made from the model;
//! * [`layer`]: how the ICD loader's layer mechanism reaches them;
//! * [`entry`]: the way in for loaders without layers;
//! * [`device`]: how commands on devices are timed;
//! * [`hooks`]: functions whose answers must look as if we were not there;
//! * [`measure`]: sizes that only the API itself knows.
#![allow(non_snake_case, clippy::missing_safety_doc, missing_docs)]

mod capture;
mod device;
mod entry;
mod generated;
mod hooks;
mod kernels;
mod layer;
mod measure;
mod queues;
mod shared;

/// Runs when the library is loaded, as a layer or preloaded.
extern "C" fn loaded() {
    hetrace_interpose::start(generated::tables::API);
    entry::started();
}

hetrace_interpose::api_library!(loaded, "generated/model.json", "generated/index.txt");
