//! Calls with those inside of them below: held until the outermost one ends.
//!
//! Of a tree those calls are shown that are wanted, what is inside of them, and around them
//! the calls that lead to them.

/// Lines that are held of a thread; more are only counted.
const KEPT: usize = 1 << 18;

/// A line that waits for the end of the outermost call.
#[derive(Debug)]
struct Held {
    begin: u64,
    depth: u32,
    line: String,
    wanted: bool,
}

/// What is held of a thread.
#[derive(Debug, Default)]
struct Calls {
    held: Vec<Held>,
    /// How many of them are wanted.
    wanted: u64,
    more: u64,
}

/// Holds the calls of threads.
#[derive(Debug, Default)]
pub(super) struct Tree {
    threads: Vec<Calls>,
}

impl Tree {
    /// Whether a call inside of the thread's outermost one is wanted.
    pub fn has_wanted(&self, thread: usize) -> bool {
        self.threads.get(thread).is_some_and(|calls| calls.wanted > 0)
    }

    /// A call at a depth has ended, with its line. If it is the outermost one, what is to be
    /// shown of all that was inside is let go: into `out`.
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
        calls.wanted += u64::from(wanted);
        calls.held.push(Held { begin, depth, line: line.to_owned(), wanted });
        if depth > 0 {
            return;
        }
        let Calls { mut held, wanted, more } = std::mem::take(calls);
        if wanted == 0 {
            return;
        }
        held.sort_by_key(|held| (held.depth > 0, held.begin, held.depth));
        let shown = shown(&held);
        held.iter().zip(shown).filter(|(_, shown)| *shown).for_each(|(held, _)| out.push_str(&held.line));
        if more > 0 {
            out.push_str(&format!("  … {more} more calls inside\n"));
        }
    }
}

/// Which calls of a tree are shown; each stands before those inside of it.
fn shown(held: &[Held]) -> Vec<bool> {
    let mut shown: Vec<bool> = held.iter().map(|held| held.wanted).collect();
    // What is inside of one that is wanted: all that is deeper, until one is not.
    let mut inside: Option<u32> = None;
    for (held, shown) in held.iter().zip(&mut shown) {
        inside = inside.filter(|depth| held.depth > *depth);
        *shown |= inside.is_some();
        if held.wanted && inside.is_none() {
            inside = Some(held.depth);
        }
    }
    // From behind: what stands before and less deep is around it.
    let mut around: Option<u32> = None;
    for (held, shown) in held.iter().zip(&mut shown).rev() {
        if around.is_some_and(|depth| held.depth <= depth) {
            *shown = true;
        }
        if *shown {
            around = held.depth.checked_sub(1);
        }
    }
    shown
}
