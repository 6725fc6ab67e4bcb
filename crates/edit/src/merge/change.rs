//! What changes in each trace so that nothing in it is taken for something of another.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hetrace_ctf::class::ClockClass;
use hetrace_format::manifest::Boot;

use super::fields::Kind;
use super::input::Input;
use crate::Error;

/// Ids from here on are no process's: Linux gives smaller ones.
const FREE_IDS: u32 = 1 << 22;

/// What changes in a trace.
#[derive(Debug, Default)]
pub(super) struct Change {
    /// The identity of the result.
    pub uuid: [u8; 16],
    /// Added to all times, modulo 2^64.
    pub shift: u64,
    /// Added to numbers.
    pub offsets: [u64; Kind::COUNT],
    /// Processes that get another id.
    pub pids: BTreeMap<u32, u32>,
    /// Their threads, by the process's own id.
    pub tids: BTreeMap<(u32, u32), u32>,
    /// Ids of stream classes, by their positions.
    pub streams: Vec<u32>,
    /// Ids of streams that change, with the positions of their classes.
    pub instances: HashMap<(usize, u64), u64>,
}

impl Change {
    /// Returns whether any numbers change.
    pub fn changes_numbers(&self) -> bool {
        self.offsets.iter().any(|&offset| offset > 0)
    }

    /// Returns what stands for a number.
    pub fn number(&self, kind: Kind, old: u64) -> u64 {
        if old == 0 && !kind.has_zero() { 0 } else { old.wrapping_add(self.offsets[kind as usize]) }
    }

    /// Returns the id of a process.
    pub fn pid(&self, pid: u32) -> u32 {
        self.pids.get(&pid).copied().unwrap_or(pid)
    }

    /// Returns the id of a thread of a process.
    pub fn tid(&self, pid: u32, tid: u32) -> u32 {
        self.tids.get(&(pid, tid)).copied().unwrap_or(tid)
    }
}

/// Gives each trace its numbers.
pub(super) fn numbers(inputs: &[Input], changes: &mut [Change]) -> Result<(), Error> {
    for kind in Kind::ALL {
        let mut next = 0u64;
        for (input, change) in inputs.iter().zip(changes.iter_mut()) {
            // One more than the largest; where 0 stands for none, numbers begin with 1.
            let above = input.survey.numbers[kind as usize];
            let used = if kind.has_zero() { above } else { above.saturating_sub(1) };
            change.offsets[kind as usize] = if used > 0 { next } else { 0 };
            next = next.saturating_add(used);
            if next > u64::from(u32::MAX) {
                return Err(refused(input, "there would be more than 2^32 queues, functions or devices"));
            }
        }
    }
    Ok(())
}

/// Gives other ids to processes whose ids a trace before has.
pub(super) fn processes(inputs: &[Input], changes: &mut [Change]) -> Result<(), Error> {
    const LARGEST: u32 = i32::MAX as u32;
    let all = inputs.iter().flat_map(|input| &input.survey.threads);
    let ids = all.flat_map(|(pid, tids)| tids.iter().chain([pid])).copied();
    let mut next = ids.filter(|&id| id <= LARGEST).max().map_or(FREE_IDS, |id| FREE_IDS.max(id + 1));
    let mut used = BTreeSet::new();
    for (input, change) in inputs.iter().zip(changes) {
        for (&pid, tids) in &input.survey.threads {
            // What has no id is nobody's.
            if pid == 0 || used.insert(pid) {
                continue;
            }
            let mut fresh = || {
                let id = next;
                next = next.saturating_add(1);
                if id > LARGEST { Err(refused(input, "no free id for its processes")) } else { Ok(id) }
            };
            let new = fresh()?;
            used.insert(new);
            change.pids.insert(pid, new);
            change.tids.insert((pid, pid), new);
            for &tid in tids.iter().filter(|&&tid| tid != 0 && tid != pid) {
                change.tids.insert((pid, tid), fresh()?);
            }
        }
    }
    Ok(())
}

/// Gives other ids to streams whose ids a trace before has.
pub(super) fn streams(inputs: &[Input], changes: &mut [Change]) {
    let mut used: BTreeSet<(u32, u64)> = BTreeSet::new();
    for (input, change) in inputs.iter().zip(changes) {
        let class = |position: usize| change.streams.get(position).copied().unwrap_or(0);
        let own: BTreeSet<(u32, u64)> =
            input.survey.instances.iter().map(|&(position, id)| (class(position), id)).collect();
        let mut taken: BTreeSet<_> = used.union(&own).copied().collect();
        let mut changed = HashMap::new();
        for &(position, id) in &input.survey.instances {
            let class = class(position);
            if used.contains(&(class, id)) {
                // Any unused one: above the largest, or in a gap.
                let above = taken.range((class, 0)..=(class, u64::MAX)).next_back();
                let above = above.and_then(|(_, id)| id.checked_add(1));
                let new = above.or_else(|| (0..).find(|&id| !taken.contains(&(class, id))));
                if let Some(new) = new {
                    taken.insert((class, new));
                    changed.insert((position, id), new);
                }
            }
        }
        used.extend(
            input.survey.instances.iter().map(|&(position, id)| {
                (class(position), changed.get(&(position, id)).copied().unwrap_or(id))
            }),
        );
        change.instances = changed;
    }
}

/// How the clocks of the traces were brought together.
#[derive(Debug)]
pub(super) struct Clocks {
    /// That of the result.
    pub class: ClockClass,
    /// For the manifest: the boots whose clocks are in the result, and what was added to each.
    pub known: Vec<Boot>,
    /// Which traces have no clock in common with those before, so that UTC had to do.
    pub aligned: Vec<bool>,
}

/// Brings the times of all traces to one clock: that of the machine that was booted
/// first, so that no time becomes less than 0.
pub(super) fn clocks(inputs: &[Input], changes: &mut [Change]) -> Result<Clocks, Error> {
    // Where tick 0 of each boot's clock, and of each trace's, lies in UTC.
    let mut boots: Vec<(String, i128)> = Vec::new();
    let mut origins: Vec<i128> = Vec::new();
    let mut aligned = Vec::new();
    for input in inputs {
        let clock = input.trace.class().clocks.first();
        let own = clock.and_then(|clock| clock.ns_from_origin(0));
        let own = own.ok_or_else(|| refused(input, "the offset of its clock to UTC is invalid"))?;
        let inside = boots_of(input, clock.and_then(|clock| clock.uuid));
        let common = inside.iter().find_map(|(boot, shift)| {
            let (_, origin) = boots.iter().find(|(known, _)| known == boot)?;
            Some(origin - shift)
        });
        aligned.push(common.is_none() && !origins.is_empty());
        let origin = common.unwrap_or(i128::from(own));
        origins.push(origin);
        for (boot, shift) in inside {
            if !boots.iter().any(|(known, _)| *known == boot) {
                boots.push((boot, origin + shift));
            }
        }
    }
    let first = origins.iter().copied().min().unwrap_or(0);
    for (change, origin) in changes.iter_mut().zip(&origins) {
        change.shift = (origin - first) as u64;
    }
    let reference = origins.iter().position(|&origin| origin == first);
    let of = reference.and_then(|index| inputs.get(index)?.trace.class().clocks.first());
    let mut class = of.cloned().unwrap_or_else(|| ClockClass::new("", 1_000_000_000));
    class.offset_seconds = i64::try_from(first.div_euclid(1_000_000_000)).unwrap_or(0);
    class.offset = first.rem_euclid(1_000_000_000) as u64;
    let shift = |origin: i128| i64::try_from(origin - first).unwrap_or(0);
    let known = boots.iter().map(|(boot, origin)| Boot { boot: boot.clone(), shift_ns: shift(*origin) });
    Ok(Clocks { class, known: known.collect(), aligned })
}

/// Returns the boots whose clocks are in a trace, and what was added to each.
fn boots_of(input: &Input, uuid: Option<[u8; 16]>) -> Vec<(String, i128)> {
    let known = input.manifest.as_ref().and_then(|manifest| manifest.clocks.as_ref());
    match known {
        Some(known) => known.iter().map(|b| (b.boot.clone(), i128::from(b.shift_ns))).collect(),
        // Zeros are those of who could not find out.
        None => uuid.filter(|uuid| *uuid != [0; 16]).map(|uuid| (text(uuid), 0)).into_iter().collect(),
    }
}

/// Returns an identity as people write it.
fn text(uuid: [u8; 16]) -> String {
    uuid::Uuid::from_bytes(uuid).to_string()
}

fn refused(input: &Input, why: &str) -> Error {
    Error::Unmergeable { path: input.path.clone(), why: why.into() }
}
