//! Link options of the API's library.

fn main() {
    // The library exports the API's own names. Its own references must stay
    // inside it: as a layer it is loaded after the loader, whose equal names
    // would else be taken instead.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
