//! Memory that programs have allocated through an API and not given back, as counters.
//!
//! Allocations are known by the models: who makes how much memory, at which address or as which
//! object, and who frees or releases it. Of calls inside one another the outermost counts. An
//! object is there as long as the program has a reference. What a failed or lost call did is not
//! counted, and what lies beyond [`KEPT`] allocations at a time is not either.

use std::collections::HashMap;
use std::io;

use hetrace_ctf::read::Event;
use hetrace_model::Place as Whose;

use super::devices::device_row;
use super::sheet::{Row, Sheet, Unit};
use super::tracks::{Kind, number};
use crate::lint::facts::Knowledge;
use crate::lint::values::{Place, Values};
use crate::spans::{Call, Open};
use crate::trace::{Thread, Trace};

/// Allocations that are followed at a time.
const KEPT: usize = 1 << 20;
/// Behind queues, whose ranks end there.
const RANK: u64 = i32::MAX as u64;

/// What is allocated: of a process an object or an address.
type Key = (i64, bool, u64);

#[derive(Clone, Copy, Debug)]
struct Block {
    bytes: u64,
    on_device: bool,
    /// References of the program.
    count: u64,
}

/// A call that has begun and makes or ends memory.
#[derive(Clone, Debug, Default)]
struct Pending {
    depth: u32,
    bytes: Option<u64>,
    /// What it ends, to be put back if it fails.
    ended: Vec<(Key, Block)>,
    retained: Option<Key>,
}

/// All memory.
#[derive(Debug)]
pub(super) struct Live<'t> {
    knowledge: Knowledge<'t>,
    /// By function, whether it makes or ends memory.
    concerned: Vec<bool>,
    /// By thread.
    pending: Vec<Option<Pending>>,
    blocks: HashMap<Key, Block>,
    /// Bytes, and the row; by process and whether it is the device's.
    sums: HashMap<(i64, bool), (u64, Option<u64>)>,
    /// Allocations that were not followed.
    pub missed: u64,
}

impl<'t> Live<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let knowledge = Knowledge::new(trace);
        let all = 0..u32::try_from(trace.functions().all().len()).unwrap_or(0);
        let concerned = all.map(|id| {
            knowledge.of(crate::trace::FunctionId(id)).is_some_and(|f| {
                let makes = f.function.memory.as_ref().is_some_and(|m| m.bytes.is_some());
                makes
                    || f.frees.is_some()
                    || f.gives_back.is_some()
                    || f.retains.is_some()
                    || f.function.resets
            })
        });
        let concerned = concerned.collect();
        let (pending, blocks, sums) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { knowledge, concerned, pending, blocks, sums, missed: 0 }
    }

    fn is_concerned(&self, function: crate::trace::FunctionId) -> bool {
        self.concerned.get(function.index()) == Some(&true)
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, who: &Thread, call: &Open, event: &Event<'_, '_>) {
        if self.is_concerned(call.function) {
            self.begin(who.pid, call, event);
        }
    }

    fn begin(&mut self, pid: i64, call: &Open, event: &Event<'_, '_>) {
        let Some(facts) = self.knowledge.of(call.function) else { return };
        let thread = call.thread.index();
        if self.pending.len() <= thread {
            self.pending.resize_with(thread + 1, || None);
        }
        if self.pending[thread].as_ref().is_some_and(|outer| outer.depth < call.depth) {
            return;
        }
        let values = Values::read(facts.function, &facts.handles, event);
        let object = |at: u16| Some((pid, true, values.first(Place::Param(at))?));
        let memory = facts.function.memory.as_ref();
        let mut pending = Pending {
            depth: call.depth,
            bytes: memory.and_then(|m| m.bytes.as_ref()).and_then(|bytes| values.eval(bytes)),
            ..Pending::default()
        };
        let freed = facts.frees.map_or(&[][..], |at| values.all(Place::Param(at)));
        let freed = freed.iter().map(|address| (pid, false, *address));
        let given_back = facts.gives_back.and_then(|(at, _)| object(at));
        let retained = facts.retains.and_then(|(at, _)| object(at));
        for key in freed.chain(given_back) {
            let Some(block) = self.blocks.get_mut(&key) else { continue };
            pending.ended.push((key, *block));
            block.count = block.count.saturating_sub(1);
            if block.count == 0 {
                self.blocks.remove(&key);
            }
        }
        if facts.function.resets {
            let of_process = self.blocks.iter().filter(|(key, _)| key.0 == pid);
            pending.ended.extend(of_process.map(|(key, block)| (*key, *block)));
            self.blocks.retain(|key, _| key.0 != pid);
        }
        pending.retained = retained;
        self.pending[thread] = Some(pending);
    }

    /// A call will have no end: nobody knows what it did.
    pub fn unfinished(&mut self, thread: usize, depth: u32) {
        if let Some(slot) = self.pending.get_mut(thread)
            && slot.as_ref().is_some_and(|pending| pending.depth >= depth)
        {
            *slot = None;
        }
    }

    /// A call ends. `row` is asked for the row of the process.
    #[inline]
    pub fn exit(
        &mut self,
        sheet: &mut Sheet<'_>,
        trace: &Trace,
        (who, call, event): (&Thread, &Call, &Event<'_, '_>),
        row: impl FnOnce(&mut Sheet<'_>) -> u64,
    ) -> io::Result<()> {
        if !self.is_concerned(call.function) {
            return Ok(());
        }
        let Some(slot) = self.pending.get_mut(call.thread.index()) else { return Ok(()) };
        let Some(pending) = slot.take_if(|pending| pending.depth >= call.depth) else { return Ok(()) };
        if pending.depth > call.depth {
            return Ok(());
        }
        let sums = self.apply(who.pid, call, event, pending);
        if sums.is_empty() {
            return Ok(());
        }
        let process = row(sheet);
        for (on_device, change) in sums {
            let (bytes, known) = self.sums.entry((who.pid, on_device)).or_default();
            *bytes = bytes.saturating_add_signed(change);
            let row = *known.get_or_insert_with(|| counter(sheet, trace, who.pid, process, on_device));
            sheet.count(call.end, row, *bytes as f64)?;
        }
        Ok(())
    }

    /// What a call changed: of the device's memory or not, and by how much.
    fn apply(&mut self, pid: i64, call: &Call, event: &Event<'_, '_>, pending: Pending) -> Vec<(bool, i64)> {
        let mut sums = Vec::new();
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        if call.error.is_some() {
            for (key, block) in pending.ended {
                self.blocks.insert(key, block);
            }
            return sums;
        }
        for (_, block) in pending.ended.iter().filter(|(key, _)| !self.blocks.contains_key(key)) {
            sums.push((block.on_device, -signed(block.bytes)));
        }
        if let Some(block) = pending.retained.and_then(|key| self.blocks.get_mut(&key)) {
            block.count = block.count.saturating_add(1);
        }
        let Some(facts) = self.knowledge.of(call.function) else { return sums };
        let (Some(bytes), Some(memory)) = (pending.bytes, facts.function.memory.as_ref()) else {
            return sums;
        };
        let values = Values::read(facts.function, &facts.handles, event);
        let made = match &facts.allocation {
            Some(allocation) => values.first(allocation.address).map(|at| (pid, false, at)),
            None => facts.makes.first().and_then(|(at, _)| Some((pid, true, values.first(*at)?))),
        };
        let Some(key) = made.filter(|key| key.2 != 0) else { return sums };
        if self.blocks.len() >= KEPT {
            self.missed += 1;
            return sums;
        }
        let on_device = memory.place == Whose::Device;
        if let Some(old) = self.blocks.insert(key, Block { bytes, on_device, count: 1 }) {
            // Its end was lost.
            sums.push((old.on_device, -signed(old.bytes)));
        }
        sums.push((on_device, signed(bytes)));
        sums
    }
}

/// The row of a process's memory: its device's if there is only one.
fn counter(sheet: &mut Sheet<'_>, trace: &Trace, pid: i64, process: u64, on_device: bool) -> u64 {
    let mut devices = trace.names().devices().into_iter().filter(|d| d.pid == pid);
    let only = devices.next().filter(|only| devices.all(|d| d.ordinal == only.ordinal));
    let (parent, name) = match only {
        _ if !on_device => (process, "host memory of the API"),
        None => (process, "device memory, all devices"),
        Some(device) => (device_row(sheet, trace, pid, Some(device), process), "device memory"),
    };
    let key = number(Kind::Memory, [pid as u64, on_device.into(), 0]);
    let (rank, counter) = (Some(RANK), Some(Unit::Bytes));
    sheet.row(Row { rank, counter, ..Row::new(key, Some(parent), name) })
}
