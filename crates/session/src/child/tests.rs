//! The launcher's own faults. Each is tried in a process of its own: this test, run again.

use std::process::Command;
use std::sync::atomic::AtomicU32;

use super::*;

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
