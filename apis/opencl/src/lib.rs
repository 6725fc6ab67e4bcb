//! OpenCL under hetrace: what is loaded into the traced program.
//!
//! * `generated/`: a wrapper for every function, made from the model;
//! * [`layer`]: how the ICD loader's layer mechanism reaches them;
//! * [`entry`]: the way in for loaders without layers;
//! * [`device`]: how commands on devices are timed;
//! * [`hooks`]: functions whose answers must look as if we were not there;
//! * [`inside`]: launches of kernels that record what happens inside them;
//! * [`measure`]: sizes that only the API itself knows.
#![allow(non_snake_case, clippy::missing_safety_doc, missing_docs)]

use std::ffi::c_void;

use hetrace_interpose::library::global_scope;
use hetrace_interpose::session;

mod above;
mod capture;
mod device;
mod entry;
mod generated;
mod hooks;
mod inside;
mod kernels;
mod layer;
mod measure;
mod queues;
mod shared;

/// Runs when the library is loaded, as a layer or preloaded.
extern "C" fn loaded() {
    hetrace_interpose::start(generated::tables::API);
    start_preloaded();
}

/// Starts the preloaded way, if this is it.
fn start_preloaded() {
    // SAFETY: a NUL-terminated name that only this library has.
    let own = unsafe { libc::dlsym(global_scope(), c"clGetLayerInfo".as_ptr()) };
    // Dormant, or loaded as a layer: nobody is bound to us.
    if session().is_some() && std::ptr::eq(own, layer::clGetLayerInfo as *const c_void) {
        entry::LIBRARY.started();
    }
}

hetrace_interpose::api_library!(loaded, "generated/model.json", "generated/index.txt");
