//! Recording of a process that runs already, against the kernel of this machine.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hetrace_ctf::class::ClockClass;
use hetrace_os::{Attached, Options, Place, Scope, Target};

/// Enough for all that happens here: what is dropped was not for want of room.
const ROOM: usize = 32 << 20;

fn place(folder: &Path) -> Place {
    let make = Arc::new(|path: &Path| File::create_new(path));
    Place {
        to: Target::new(folder.into(), make, false),
        borders: None,
        uuid: [9; 16],
        clock: ClockClass::new("monotonic", 1_000_000_000),
        host: "host".to_owned(),
        recorder: "hetrace 0".to_owned(),
    }
}

/// To say by a system call which threads are followed kept programs in the kernel from recording on that CPU meanwhile.
#[test]
fn nothing_is_dropped_while_threads_that_run_are_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = Options { scope: Scope::Tree, syscalls: None, ring_bytes: ROOM, probes: Vec::new() };
    let attached = match Attached::begin(options, place(folder.path())) {
        Ok(attached) => attached,
        Err(error) => {
            eprintln!("SKIPPED: nothing can be recorded here: {error}");
            return;
        }
    };
    let ends = Arc::new(AtomicBool::new(false));
    let wakes = |ends: Arc<AtomicBool>| {
        move || {
            while !ends.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(10));
            }
        }
    };
    let threads: Vec<_> = (0..400).map(|_| thread::spawn(wakes(Arc::clone(&ends)))).collect();
    attached.follow(vec![std::process::id()]);
    thread::sleep(Duration::from_millis(300));
    let report = attached.finish();
    ends.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
    assert!(report.events > 400, "{report:?}");
    assert_eq!((report.dropped, report.error.as_deref()), (0, None), "{report:?}");
}
