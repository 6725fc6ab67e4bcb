//! What if the launcher itself has a fault: the program runs on, and its status counts.

use std::io::Write;
use std::panic;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use super::{Event, wait};
use crate::manifest::Exit;

static PROGRAM: AtomicI32 = AtomicI32::new(0);
static DRAINER: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// From now on a panic does not end this process before the program: it waits for it and ends
/// with its status. `drainer` is what programs look at before they wait for room in a ring;
/// it must stay mapped.
pub fn while_it_runs(pid: libc::pid_t, drainer: &AtomicU32) {
    PROGRAM.store(pid, Ordering::Relaxed);
    DRAINER.store(std::ptr::from_ref(drainer).cast_mut(), Ordering::Relaxed);
    let main = rustix::thread::gettid();
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |what| {
        if rustix::thread::gettid() != main {
            before(what);
            // A thread beside the main one (telemetry): the run goes on without it.
            loop {
                std::thread::park();
            }
        }
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "hetrace: internal error: {what}");
        let _ = writeln!(stderr, "hetrace: the program continues untraced; please report this");
        outlast();
    }));
}

/// The program was buried with this status; the control file may go.
pub fn end(exit: Exit) {
    DRAINER.store(std::ptr::null_mut(), Ordering::Relaxed);
    let status = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    // Never a process id, so what was the program's number holds its status from now on.
    PROGRAM.store(-1 - status, Ordering::Relaxed);
}

fn outlast() -> ! {
    // SAFETY: null, or in a page that is mapped until `end` was called.
    if let Some(alive) = unsafe { DRAINER.load(Ordering::Relaxed).as_ref() } {
        alive.store(0, Ordering::Relaxed);
    }
    let pid = PROGRAM.load(Ordering::Relaxed);
    let status = if pid < 0 {
        -1 - pid
    } else {
        loop {
            match wait(pid, 0) {
                Ok(Event::Ended(Exit::Code(code))) => break code,
                Ok(Event::Ended(Exit::Signal(signal))) => break 128 + signal,
                Ok(_) => {}
                Err(_) => break 125,
            }
        }
    };
    // SAFETY: ends this process.
    unsafe { libc::_exit(status) }
}
