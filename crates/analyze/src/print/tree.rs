//! Calls with those inside of them below: held until the outermost one ends.

/// Lines that are held of a thread; more are only counted.
const KEPT: usize = 1 << 18;

/// A line that waits for the end of the outermost call.
#[derive(Debug)]
struct Held {
    begin: u64,
    depth: u32,
    line: String,
}

/// What is held of a thread.
#[derive(Debug, Default)]
struct Calls {
    held: Vec<Held>,
    more: u64,
}

/// Holds the calls of threads.
#[derive(Debug, Default)]
pub(super) struct Tree {
    threads: Vec<Calls>,
}

impl Tree {
    /// A call at a depth has ended, with its line. If it is the outermost one,
    /// all that was inside is let go: into `out`, if it is `wanted`.
    pub fn call(
        &mut self,
        thread: usize,
        begin: u64,
        depth: u32,
        line: &str,
        wanted: bool,
        out: &mut String,
    ) {
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Calls::default);
        }
        let calls = &mut self.threads[thread];
        if depth > 0 && calls.held.len() >= KEPT {
            calls.more += 1;
            return;
        }
        calls.held.push(Held { begin, depth, line: line.to_owned() });
        if depth > 0 {
            return;
        }
        let mut held = std::mem::take(&mut calls.held);
        let more = std::mem::take(&mut calls.more);
        if !wanted {
            return;
        }
        held.sort_by_key(|held| (held.depth > 0, held.begin, held.depth));
        held.iter().for_each(|held| out.push_str(&held.line));
        if more > 0 {
            out.push_str(&format!("  … {more} more calls inside\n"));
        }
    }
}
