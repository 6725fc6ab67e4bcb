//! What was ever written, and reads of what was not.

use super::facts::Facts;
use super::findings::{Findings, Hit};
use super::kinds::KindId;
use super::lifetimes::Lifetimes;
use super::objects::Memory;
use super::passed::{Launched, Passed};

/// What is known of the content of a process's objects.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// By the position of the process: something may write what is not known.
    wild: Vec<bool>,
}

fn whole() -> (u64, u64) {
    (0, u64::MAX)
}

fn write(memory: &mut Memory, (from, to): (u64, u64)) {
    let (first, last) = memory.written;
    memory.written = if first == last { (from, to) } else { (first.min(from), last.max(to)) };
}

impl Contents {
    fn is_wild(&self, process: usize) -> bool {
        self.wild.get(process).copied().unwrap_or(false)
    }

    /// Nothing is claimed of a process any more.
    fn give_up(&mut self, process: usize) {
        if self.wild.len() <= process {
            self.wild.resize(process + 1, false);
        }
        self.wild[process] = true;
    }

    /// A call of the program itself has succeeded that enqueues: what it reads and writes.
    pub fn exit(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        objects: &[(KindId, u64)],
        lifetimes: &mut Lifetimes,
        findings: &mut Findings,
    ) {
        let pid = passed.call.pid;
        if facts.transfers {
            let object =
                |span: Option<super::span::Span>| span.and_then(|s| Some((s.object?, (s.start, s.end()))));
            if let Some((object, range)) = object(passed.source) {
                self.read(passed, facts, (object, range), lifetimes, findings);
            }
            if let Some((object, range)) = object(passed.target)
                && let Some(object) = lifetimes.alive(pid, object)
            {
                write(&mut object.memory, range);
            }
            return;
        }
        for object in objects {
            if facts.reads {
                self.read(passed, facts, (*object, whole()), lifetimes, findings);
            } else if let Some(object) = lifetimes.alive(pid, *object) {
                let reads_map = facts.maps && {
                    let bits = facts.numbers.flags.map_or(0, |bits| bits.means.host_writes);
                    bits != 0 && bits & passed.flags == 0
                };
                object.memory.foreign |= !reads_map && !facts.unmaps;
            }
        }
    }

    /// A launch has succeeded.
    #[inline]
    pub fn launched(
        &mut self,
        passed: &Passed,
        facts: &Facts<'_>,
        lifetimes: &mut Lifetimes,
        findings: &mut Findings,
    ) {
        if passed.launched == Launched::Unknown {
            self.unknown(passed, facts);
        }
        for used in &passed.used {
            if used.memory.only_read {
                self.read(passed, facts, (used.object, whole()), lifetimes, findings);
            } else if used.memory.written != whole()
                && let Some(known) = lifetimes.alive(passed.call.pid, used.object)
            {
                write(&mut known.memory, whole());
            }
        }
    }

    /// Something is launched or recorded in ways that are not followed.
    pub fn unknown(&mut self, passed: &Passed, facts: &Facts<'_>) {
        if facts.has_arguments {
            self.give_up(passed.by.process);
        }
    }

    fn read(
        &self,
        passed: &Passed,
        facts: &Facts<'_>,
        (object, (from, to)): ((KindId, u64), (u64, u64)),
        lifetimes: &mut Lifetimes,
        findings: &mut Findings,
    ) {
        if self.is_wild(passed.by.process) {
            return;
        }
        let Some(known) = lifetimes.alive(passed.call.pid, object) else { return };
        let (first, last) = known.memory.written;
        if known.memory.foreign || (first < to && from < last) {
            return;
        }
        let name = &facts.function.name;
        let what = match first < last {
            true => format!(
                "{name} reads bytes {from} to {to} of {:#x}: only bytes {first} to {last} of it were ever written",
                object.1
            ),
            false if facts.common.launches => {
                format!(
                    "{name} launches a kernel that can only read {:#x}, which nothing has written",
                    object.1
                )
            }
            false => format!("{name} reads {:#x}, which nothing has written", object.1),
        };
        let hit = Hit::new("uninitialized-read", name, what, ("read", passed.call));
        findings.add(hit.with(Some(("made", known.made))));
        // Once for each object.
        known.memory.foreign = true;
    }
}
