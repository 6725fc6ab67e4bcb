//! Which calls are the program's own.
//!
//! Most often a call is that no other call is around. But where a runtime says that a thread waits, it may have given the
//! thread a task meanwhile, whose calls lie inside of that wait and have nothing to do with it
//! ([`Function::hosts`](crate::trace::Function::hosts)):
//!
//! ```text
//!  ompt_wait_barrier ───────────────────────────────────────
//!        waits     ompt_target_region ──────────   waits
//!                    cuLaunchKernel ───
//! ```
//!
//! There the region is the program's own call, and so is the wait.

use crate::spans::Open;
use crate::trace::{FunctionId, Functions, ThreadId};

/// A call that hosts, with nothing around it but such.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// Its function.
    pub function: FunctionId,
    /// When it began.
    pub start: u64,
}

/// The open calls of each thread that host and are the program's own, the outermost first.
#[derive(Debug)]
pub struct Outermost {
    /// No function of the trace hosts: then depths say all.
    never: bool,
    threads: Vec<Vec<Host>>,
}

impl Outermost {
    /// Of a trace of which nothing was read yet.
    pub fn new(functions: &Functions) -> Self {
        Self { never: !functions.any_hosts(), threads: Vec::new() }
    }

    /// A call begins. Returns whether it is the program's own.
    #[inline]
    pub fn entry(&mut self, call: &Open, functions: &Functions) -> bool {
        if self.never {
            return call.depth == 0;
        }
        if self.threads.len() <= call.thread.index() {
            self.threads.resize(call.thread.index() + 1, Vec::new());
        }
        let hosts = &mut self.threads[call.thread.index()];
        // What is left there of calls without an end.
        hosts.truncate(call.depth as usize);
        let own = hosts.len() == call.depth as usize;
        if own && functions.get(call.function).hosts {
            hosts.push(Host { function: call.function, start: call.start });
        }
        own
    }

    /// A call ends, or is given up, that was so deep. Returns whether it was the program's own.
    #[inline]
    pub fn exit(&mut self, thread: ThreadId, depth: u32) -> bool {
        match self.threads.get_mut(thread.index()) {
            Some(hosts) if !self.never => {
                let own = depth as usize <= hosts.len();
                hosts.truncate(depth as usize);
                own
            }
            _ => depth == 0,
        }
    }

    /// Whether a call that begins so deep, and hosts nothing, is the program's own.
    #[inline]
    pub fn would_be(&self, thread: ThreadId, depth: u32) -> bool {
        self.threads.get(thread.index()).map_or(0, Vec::len) == depth as usize
    }

    /// The innermost call of a thread that hosts.
    #[inline]
    pub fn host(&self, thread: ThreadId) -> Option<Host> {
        self.threads.get(thread.index())?.last().copied()
    }
}
