//! Memory that programs have allocated through an API and not released, as counters: of each process,
//! by kind and device. What calls do to memory, [`hetrace_trace::memory`] knows.

use std::collections::HashMap;
use std::io;

use hetrace_ctf::read::Event;
use hetrace_model::Place;

use super::devices::device_row;
use super::sheet::{Row, Sheet, Unit};
use super::tracks::{Kind, Tracks, number};
use hetrace_trace::memory::{Change, Ledger, Memory, Table};
use hetrace_trace::spans::{At, Call, Open, Unfinished};
use hetrace_trace::titles::device_label;
use hetrace_trace::trace::{Thread, Trace};

/// Behind queues, whose ranks end there.
const RANK: u64 = i32::MAX as u64;

/// All memory.
#[derive(Debug)]
pub(super) struct Live<'t> {
    memory: Memory<'t>,
    /// Rows by process and account.
    rows: HashMap<(i64, usize), u64>,
}

impl<'t> Live<'t> {
    pub fn new(trace: &'t Trace, table: &'t Table<'t>) -> Self {
        Self { memory: Memory::watched(trace, table), rows: HashMap::new() }
    }

    /// A call begins.
    #[inline]
    pub fn entry(&mut self, call: &Open, event: &Event<'_, '_>) {
        self.memory.entry(call, event);
    }

    /// A call ends.
    #[inline]
    pub fn exit(&mut self, at: At<'_>, call: &Call, event: &Event<'_, '_>) {
        self.memory.exit(at, call, event);
    }

    /// A call will have no end.
    pub fn unfinished(&mut self, call: &Unfinished) {
        self.memory.unfinished(call.thread, call.depth);
    }

    /// Allocations that were not followed.
    pub fn missed(&self) -> u64 {
        self.memory.passed_over()
    }

    /// Writes what is certain of the memory of some processes, all if there is none, before a time.
    #[inline]
    pub fn draw(
        &mut self,
        sheet: &mut Sheet<'_>,
        tracks: &mut Tracks,
        trace: &Trace,
        pids: &[i64],
        until: u64,
    ) -> io::Result<()> {
        let rows = &mut self.rows;
        let mut done = Ok(());
        self.memory.settle(until, |time, ledger, change| {
            if done.is_err() || !(pids.is_empty() || pids.contains(&change.pid)) {
                return;
            }
            let row = *rows.entry((change.pid, change.account)).or_insert_with(|| {
                let process = Thread { pid: change.pid, ..Thread::default() };
                let process = tracks.process(sheet, trace, &process);
                counter(sheet, trace, &change, ledger, process)
            });
            done = sheet.count(time, row, change.bytes as f64);
        });
        done
    }
}

/// The row of a process's memory of one kind: its device's, if it is of one.
fn counter(sheet: &mut Sheet<'_>, trace: &Trace, change: &Change, ledger: &Ledger<'_>, process: u64) -> u64 {
    let (site, uuid) = ledger.site(change.account);
    let devices = trace.names().devices();
    let device =
        devices.into_iter().find(|d| d.pid == change.pid && device_label(d) == site && d.uuid == uuid);
    let kind = match change.place {
        Place::Device => "device memory",
        Place::Host => "host memory of the API",
        Place::Managed => "managed memory",
        Place::Image => "images",
    };
    let (parent, name) = match (change.place, device) {
        (Place::Host, _) => (process, kind.to_owned()),
        (_, Some(device)) => (device_row(sheet, trace, change.pid, Some(device), process), kind.to_owned()),
        (_, None) => (process, format!("{kind}, device {site}")),
    };
    let key = number(Kind::Memory, [change.pid as u64, change.account as u64, 0]);
    let (rank, counter) = (Some(RANK), Some(Unit::Bytes));
    sheet.row(Row { rank, counter, ..Row::new(key, Some(parent), &name) })
}
