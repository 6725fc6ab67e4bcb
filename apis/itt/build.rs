//! Link options of the API's library.

fn main() {
    // ITT keeps the addresses of our functions for ever, and so must we stay.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
