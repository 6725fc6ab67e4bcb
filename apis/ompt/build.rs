//! Link options of the API's library.

fn main() {
    // A runtime keeps the addresses of our callbacks until its end, and calls them from threads that outlive `main`.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
