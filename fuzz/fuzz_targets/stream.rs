//! Any bytes as a stream of one of the traces of the tests, read in every way.
#![no_main]

use std::sync::LazyLock;

use hetrace_ctf::class::{Scope, TraceClass};
use hetrace_ctf::metadata;
use hetrace_ctf::read::{Merge, Trace};
use libfuzzer_sys::fuzz_target;

macro_rules! classes {
    ($($trace:literal),*) => {
        [$(&include_bytes!(concat!("../../crates/ctf/tests/data/", $trace, "/metadata"))[..]),*]
    };
}

static CLASSES: LazyLock<Vec<TraceClass>> = LazyLock::new(|| {
    let all = classes!("lttng-ust", "perf", "barectf/trace-le", "barectf/trace-be", "ctf2");
    all.into_iter().filter_map(|text| metadata::parse(text).ok()).collect()
});

fuzz_target!(|data: &[u8]| {
    let Some((&which, data)) = data.split_first() else { return };
    let class = CLASSES[usize::from(which) % CLASSES.len()].clone();
    let suffix = if which & 0x80 != 0 { ".zst" } else { "" };
    let streams = vec![(format!("s{suffix}"), data.to_vec())];
    let trace = Trace::from_class(class, streams).expect("the metadata of the tests");
    let mut merge = Merge::of(trace.parts(0, 3));
    while let Some(event) = merge.next_event() {
        let Ok(event) = event else { continue };
        let _ = (event.ns_from_origin(), event.packet(), event.offset());
        for scope in Scope::ALL {
            let _ = event.value(scope);
        }
        for index in 0..event.class().fields.fields.len() {
            let _ = event.get_at(Scope::EventFields, index);
        }
    }
});
