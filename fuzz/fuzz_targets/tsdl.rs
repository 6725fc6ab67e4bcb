//! Any bytes as TSDL: refused, or classes that can be printed in both languages.
#![no_main]

use hetrace_ctf::read::Trace;
use hetrace_ctf::{ctf2, tsdl};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(class) = tsdl::parse(data) else { return };
    // Names that no grammar takes are printed as others, so this may not parse.
    let _ = tsdl::parse(tsdl::print(&class).as_bytes());
    if let Ok(text) = ctf2::print(&class) {
        let _ = ctf2::parse(text.as_bytes());
    }
    let _ = Trace::from_class(class, vec![("s".into(), data.to_vec())]);
});
