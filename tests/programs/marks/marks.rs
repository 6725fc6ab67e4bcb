//! Ranges and marks by the Rust crate, as marks.c makes them by the header.

use hetrace_client as hetrace;

fn works(depth: u32) -> Option<u32> {
    let _range = hetrace::range(c"recursion");
    // A range ends on each way out.
    depth.checked_sub(1).and_then(works)
}

fn main() {
    hetrace::name_thread(c"the main one");
    {
        let _outer = hetrace::range(c"outer");
        hetrace::mark(c"a moment", 17);
        assert_eq!(works(2), None);
        let handed_over = hetrace::start(c"handed over");
        std::thread::spawn(move || {
            hetrace::name_thread(c"the other one");
            drop(handed_over);
        })
        .join()
        .unwrap();
        let _ = std::panic::catch_unwind(|| {
            let _range = hetrace::range(c"unwound");
            std::panic::resume_unwind(Box::new(()));
        });
    }
    if hetrace::is_traced() {
        let text = std::ffi::CString::new(format!("made of {}", 2)).unwrap();
        hetrace::mark(&text, 2);
    }
    hetrace::capture_start();
    hetrace::capture_stop();
    hetrace::snapshot();
    println!("{}", if hetrace::is_traced() { "traced" } else { "not traced" });
}
