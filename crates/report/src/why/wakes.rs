//! Who woke whom, for the critical path: a thread that waited for another one, outside of calls or in one that does not
//! wait for a device, goes on from what that one did until then.
//!
//! ```text
//! thread A   ── host ── ▐ blocked: lock ▌ ── launch ──►
//!                                       ▲
//! thread B   ──────── build ────────────┘  path of A from here on: B's
//! ```
//!
//! That is known where the operating system's events were recorded.

use hetrace_trace::system::{State, System, Waker};

/// A thread is woken by another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wake {
    pub time: u64,
    /// Process and thread.
    pub who: (i64, i64),
    pub by: (i64, i64),
}

/// All of them, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Wakes {
    all: Vec<Wake>,
    next: usize,
}

impl Wakes {
    /// Those of a kernel trace, if there is one.
    pub fn new(system: Option<&System>) -> Self {
        let mut all: Vec<Wake> = system.map_or_else(Vec::new, of);
        all.sort_unstable();
        Self { all, next: 0 }
    }

    /// The next one that was not later than this.
    pub fn until(&mut self, time: u64) -> Option<Wake> {
        let wake = self.all.get(self.next).copied().filter(|wake| wake.time <= time)?;
        self.next += 1;
        Some(wake)
    }
}

fn of(system: &System) -> Vec<Wake> {
    let ids = |person| {
        let person = system.person(person);
        Some((person.pid?, person.tid))
    };
    let of_life = |life: &'_ hetrace_trace::system::Life| {
        let who = ids(life.person);
        let wake = move |stretch: &hetrace_trace::system::Stretch| {
            let State::Blocked(block) = stretch.state else { return None };
            let Waker::Thread(by) = system.block(block).waker else { return None };
            let wake = Wake { time: stretch.end, who: who?, by: ids(by)? };
            (wake.who != wake.by).then_some(wake)
        };
        life.stretches.iter().filter_map(wake).collect::<Vec<Wake>>()
    };
    system.lives.iter().flat_map(of_life).collect()
}
