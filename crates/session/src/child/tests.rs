//! The launcher's own faults. Each is tried in a process of its own: this test, run again.

use std::process::Command;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

use super::*;
use crate::control::Control;

/// Set for the process that has the fault.
const FAULT: &str = "HETRACE_TEST_FAULT";

/// Runs a test of this module again with a fault. Returns its exit status.
fn again(test: &str, fault: &str) -> Option<i32> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("child::tests::{test}"), "--nocapture", "--test-threads", "1"]);
    command.env(FAULT, fault).output().unwrap().status.code()
}

fn start(script: &str) -> Child {
    let command = ["/bin/sh", "-c", script].map(OsString::from);
    Child::start(&command, &[], &Inherited::take()).unwrap()
}

#[test]
fn a_panic_waits_for_the_program_and_takes_its_status() {
    let Some(fault) = std::env::var_os(FAULT) else {
        assert_eq!(again("a_panic_waits_for_the_program_and_takes_its_status", "main"), Some(7));
        assert_eq!(again("a_panic_waits_for_the_program_and_takes_its_status", "thread"), Some(9));
        return;
    };
    static DRAINER: AtomicU32 = AtomicU32::new(1);
    let child = start("sleep 0.2; exit 7");
    guard::while_it_runs(child.pid(), &DRAINER);
    if fault == "main" {
        panic!("a fault of ours");
    }
    // One beside the main thread costs nothing but that thread.
    std::thread::spawn(|| panic!("a fault of telemetry"));
    while child.look().unwrap() != Event::Ended(Exit::Code(7)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::process::exit(9);
}

/// If nothing woke it, the launcher would sleep for all of the time that it asks for.
#[test]
fn the_end_wakes_the_launcher_and_is_still_there_to_be_seen() {
    let session = tempfile::tempdir().unwrap();
    let settings = crate::control::Settings {
        options: crate::options::Options::default(),
        ring_bytes: 4096,
        caps: (255, 64, 32),
        most_in_flight: 0,
        overhead_ppm: 0,
        stack_depth: 0,
        window: None,
        apis: Vec::new(),
    };
    let control = Control::make(session.path(), &settings).unwrap();
    let ending = Ending::new(control.waker());
    let child = start("sleep 0.2; exit 3");
    ending.of(child.pid());
    let began = Instant::now();
    let mut looked = child.look().unwrap();
    while looked == Event::None && began.elapsed() < Duration::from_secs(30) {
        control.wait(Duration::from_secs(60));
        looked = child.look().unwrap();
    }
    assert_eq!(looked, Event::Ended(Exit::Code(3)));
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[test]
fn a_program_that_somebody_else_buried_has_ended() {
    let (send, receive) = std::sync::mpsc::channel();
    let child = start("sleep 0.1");
    // SAFETY: buries a child of ours.
    let buried = unsafe { libc::waitpid(child.pid(), std::ptr::null_mut(), 0) };
    assert_eq!(buried, child.pid());
    Ending::new(move || send.send(()).unwrap()).of(child.pid());
    receive.recv_timeout(Duration::from_secs(30)).unwrap();
    assert!(child.look().is_err());
}
