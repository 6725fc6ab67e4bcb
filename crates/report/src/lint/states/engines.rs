//! Groups of engines: what runs where it can't, and numbers that were not queried.

use std::collections::HashSet;

use crate::lint::facts::Facts;
use crate::lint::findings::{Hit, Ref};
use crate::lint::passed::Passed;
use hetrace_model::Engines as Means;
use hetrace_trace::hash::QuickMap;
use hetrace_trace::values::{Place, Values};

/// Groups of a device, in the order of their numbers.
#[derive(Debug, Default)]
struct Groups {
    asked: Ref,
    /// Whether they run kernels, and how many there are.
    each: Vec<(bool, u64)>,
}

/// What queues and command buffers were made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct On {
    pub device: u64,
    pub engine: u64,
    pub made: Ref,
}

/// The engines of all devices.
#[derive(Debug, Default)]
pub(super) struct EngineGroups {
    by_device: QuickMap<(i64, u64), Groups>,
    /// Processes that asked for some.
    asked: HashSet<i64>,
}

impl EngineGroups {
    /// A query was answered. Its device is what it was passed.
    pub fn answered(&mut self, passed: &Passed, device: u64, (list, means): (u16, &Means), out: &Values<'_>) {
        self.asked.insert(passed.call.pid);
        let bits = out.members(Place::Param(list), &means.bits);
        let counts = out.members(Place::Param(list), &means.count);
        let each: Vec<_> = bits.zip(counts).map(|(bits, count)| (bits & means.compute != 0, count)).collect();
        // The call that asks how many there are has none.
        if !each.is_empty() {
            self.by_device.insert((passed.call.pid, device), Groups { asked: passed.call, each });
        }
    }

    /// Something is made for a group by its number.
    pub fn chosen(
        &self,
        passed: &Passed,
        facts: &Facts<'_>,
        (device, engine): (u64, u64),
        index: Option<u64>,
    ) -> Option<Hit> {
        let (pid, name) = (passed.call.pid, &facts.function.name);
        if !self.asked.contains(&pid) {
            let what = format!(
                "{name} is passed group {engine} of a device's engines, and no call has asked which there are"
            );
            return Some(Hit::new("engines-not-asked", name, what, ("call", passed.call)));
        }
        let groups = self.by_device.get(&(pid, device))?;
        let at = usize::try_from(engine).ok()?;
        let what = match (groups.each.get(at), index) {
            (None, _) => format!("{name} is passed group {engine} of {}", groups.each.len()),
            (Some((_, count)), Some(index)) if index >= *count => {
                format!("{name} is passed engine {index} of a group that has {count}")
            }
            _ => return None,
        };
        let hit = Hit::new("wrong-engine", name, what, ("call", passed.call));
        Some(hit.with(Some(("asked", groups.asked))))
    }

    /// Where groups were asked for, if what was made for this one cannot run kernels.
    pub fn only_copies(&self, pid: i64, place: &On) -> Option<Ref> {
        let groups = self.by_device.get(&(pid, place.device))?;
        let (computes, _) = groups.each.get(usize::try_from(place.engine).ok()?)?;
        (!computes).then_some(groups.asked)
    }
}
