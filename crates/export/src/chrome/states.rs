//! Rows of what the operating system did to threads: a strip for each of the program's.

use std::collections::HashSet;
use std::io;

use hetrace_trace::system::{Life, State, Stretch, System};

use super::json::Event;
use super::walk::Writer;

/// The category of slices.
const CATEGORY: &str = "os";

/// The number of a strip, by the thread's.
fn row(tid: i64) -> u64 {
    super::STATES + tid.unsigned_abs()
}

impl Writer<'_, '_> {
    /// Writes all states, in the order in which they began.
    pub(super) fn states(&mut self) -> io::Result<()> {
        let Some(system) = self.trace.system() else { return Ok(()) };
        let mut named = HashSet::new();
        for (life, stretch) in system.in_order() {
            if stretch.state == State::Unknown {
                continue;
            }
            let person = system.person(life.person);
            let pid = person.pid.unwrap_or(person.tid);
            let place = (pid, row(person.tid));
            if named.insert(place) {
                self.name_strip(system, life, place)?;
            }
            self.state(system, stretch, place)?;
        }
        Ok(())
    }

    fn name_strip(&mut self, system: &System, life: &Life, place: (i64, u64)) -> io::Result<()> {
        self.process(place.0)?;
        self.meta("thread_name", place, &format!("{}: state", system.who(life.person)))?;
        let rank = system.person(life.person).tid;
        self.events.add("M", place, |e| {
            e.text("name", "thread_sort_index").object("args", |args| {
                args.raw("sort_index", rank);
            });
        })
    }

    fn state(&mut self, system: &System, stretch: &Stretch, place: (i64, u64)) -> io::Result<()> {
        self.events.add("X", place, |e| {
            e.time("ts", stretch.start).duration(stretch.end.saturating_sub(stretch.start));
            e.text("cat", CATEGORY).text("name", &system.title(stretch.state));
            e.object("args", |args| about(args, system, stretch));
        })
    }
}

fn about(args: &mut Event<'_>, system: &System, stretch: &Stretch) {
    match stretch.state {
        State::Ready { behind } => {
            args.raw("CPU", stretch.cpu);
            if let Some(behind) = behind {
                args.text("who has it", &system.who(behind));
            }
        }
        State::Blocked(block) => {
            let block = system.block(block);
            if let Some(address) = block.address {
                args.text(if block.is_lock { "lock" } else { "address" }, &format!("{address:#x}"));
            }
            let holder = system.waker(block.holder).filter(|_| block.is_lock);
            for (what, who) in [("woken by", system.waker(block.waker)), ("held by", holder)] {
                if let Some(who) = who {
                    args.text(what, &who);
                }
            }
        }
        _ => {
            args.raw("CPU", stretch.cpu);
        }
    }
}
