//! Any bytes as the JSON of CTF 2: refused, or classes that printing and reading
//! again does not change.
#![no_main]

use hetrace_ctf::ctf2;
use hetrace_ctf::read::Trace;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(class) = ctf2::parse(data) else { return };
    let Ok(text) = ctf2::print(&class) else { return };
    match ctf2::parse(text.as_bytes()) {
        Ok(again) => assert_eq!(again, class, "{text}"),
        Err(error) => panic!("{error}: {text}"),
    }
    let _ = Trace::from_class(class, vec![("s".into(), data.to_vec())]);
});
