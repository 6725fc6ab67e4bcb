//! Link options of the library.

fn main() {
    // It exports the C library's own names. Its references to itself stay inside it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
