//! Link options of the API's library.

fn main() {
    // The library exports the API's own names. Its own references must stay
    // inside it, whatever the program puts before it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
