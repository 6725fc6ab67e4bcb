//! Link options of the library.

fn main() {
    // It exports the C library's own names. Its references to itself stay inside it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // Without the standard library nothing else names the C library, and its functions would be of no known version: those
    // of an older one could not be distinguished, and `dlsym` would be missing where it is in a library of its own.
    println!("cargo:rustc-cdylib-link-arg=-lc");
    println!("cargo:rustc-cdylib-link-arg=-ldl");
    println!("cargo:rerun-if-changed=build.rs");
}
