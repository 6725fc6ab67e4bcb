//! Link options of the API's library.

fn main() {
    // What NVTX was given stays in its tables for ever, and so must we: it closes
    // a library again that is no tool of one of its extensions.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
