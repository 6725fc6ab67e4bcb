//! Programs at switches and wake-ups that read what they record out of the threads themselves.
//!
//! perf's tracepoints of these copy two names and make a record, which a program would copy again. Fields are written
//! here as they are: what a tracepoint calls `prev_state` is made of three of them where they are read
//! ([`super::shape`]).

use super::code::{Code, Function, R, Size};
use super::maps::Maps;
use super::programs::{CONTEXT, WHO, follow_child};
use super::room::{self, Of, RECORD};
use super::typed::{Switch, Task};
use super::words::{SWITCH, WAKE, What};

const R0: R = R(0);
const R1: R = R(1);
const R2: R = R(2);
/// The thread that a program is about.
const THREAD: R = R(7);

/// Returns the program for `sched_switch`.
pub fn switch(maps: &Maps, at: Switch, task: Task) -> Code {
    let mut code = Code::default();
    code.copy(CONTEXT, R1);
    code.load(Size::Double, THREAD, CONTEXT, at.prev * 8);
    room::record(&mut code, maps, Of { kind: What::Switch as u8, words: SWITCH }, &|code| {
        // Arguments are words of eight bytes.
        code.load(Size::Double, R2, CONTEXT, at.preempt * 8);
        code.store(Size::Byte, RECORD, 18, R2);
        code.load(Size::Double, R2, CONTEXT, at.state * 8);
        code.store(Size::Word, RECORD, 20, R2);
        let mut field = |size, of, to| {
            code.load(size, R2, THREAD, of);
            code.store(size, RECORD, to, R2);
        };
        field(Size::Word, task.pid, 8);
        field(Size::Word, task.tgid, 12);
        // Bits of this are below 64.
        field(Size::Byte, task.exit_state, 19);
        // Priorities are -1 to 139.
        field(Size::Half, task.prio, 28);
        field(Size::Double, task.comm, 32);
        field(Size::Double, task.comm + 8, 40);
        code.load(Size::Double, R1, CONTEXT, at.next * 8);
        let mut field = |size, of, to| {
            code.load(size, R2, R1, of);
            code.store(size, RECORD, to, R2);
        };
        field(Size::Word, task.pid, 24);
        field(Size::Half, task.prio, 30);
        field(Size::Double, task.comm, 48);
        field(Size::Double, task.comm + 8, 56);
    });
    code.set(R0, 0);
    code.exit();
    code
}

/// Returns the program for a wake-up of this kind. That of a new thread follows it if the thread is followed that runs.
pub fn wake(maps: &Maps, what: What, task: Task) -> Code {
    let mut code = Code::default();
    code.copy(CONTEXT, R1);
    if let (What::New, Some(threads)) = (what, &maps.threads) {
        code.call(Function::Current);
        code.copy_half(R1, R0);
        code.load(Size::Double, THREAD, CONTEXT, 0);
        follow_child(&mut code, maps, threads, (THREAD, task.pid));
    }
    code.call(Function::Current);
    code.copy(WHO, R0);
    room::record(&mut code, maps, Of { kind: what as u8, words: WAKE }, &|code| {
        code.store(Size::Double, RECORD, 8, WHO);
        code.load(Size::Double, R1, CONTEXT, 0);
        let mut field = |size, of, to| {
            code.load(size, R2, R1, of);
            code.store(size, RECORD, to, R2);
        };
        field(Size::Word, task.cpu, 20);
        field(Size::Word, task.pid, 24);
        field(Size::Word, task.prio, 28);
        field(Size::Double, task.comm, 32);
        field(Size::Double, task.comm + 8, 40);
    });
    code.set(R0, 0);
    code.exit();
    code
}
