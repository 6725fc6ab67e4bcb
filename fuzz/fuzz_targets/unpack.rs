//! Any bytes as a packed trace, unpacked and checked: nothing is written beside the target.
#![no_main]

use std::ops::ControlFlow;
use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let inner = scratch.path().join("inner");
    std::fs::create_dir(&inner).expect("a folder");
    let packed = inner.join("packed");
    std::fs::write(&packed, data).expect("written");
    let go_on = |_: u64| ControlFlow::Continue(());
    let _ = hetrace_edit::check(&packed, &go_on);
    let _ = hetrace_edit::unpack(&packed, &inner.join("unpacked"), &go_on);
    assert_eq!(names(scratch.path()), ["inner"]);
    let beside: Vec<String> =
        names(&inner).into_iter().filter(|n| n != "packed" && n != "unpacked").collect();
    assert!(beside.is_empty(), "{beside:?}");
});

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect()
}
