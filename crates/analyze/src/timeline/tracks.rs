//! Rows: processes, threads, queues.

use std::collections::{HashMap, HashSet};
use std::io;

use super::packets::field::{packet, track};
use super::packets::{Packets, field};
use super::proto::Message;
use crate::spans::{At, NewQueue, cause_id};
use crate::trace::Trace;

/// What a row is of. Each has a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Track {
    Process(i64),
    Thread(i64, i64),
    /// Runs of equal calls, which other APIs' calls may cross.
    Runs(i64, i64),
    /// A queue, and which of its rows: commands of one queue may overlap.
    Queue(i64, u64, u32),
    /// What hetrace has to say.
    Remarks,
}

impl Track {
    pub fn uuid(self) -> u64 {
        let (kind, a, b) = match self {
            Track::Process(pid) => (1, pid, 0),
            Track::Thread(pid, tid) => (2, pid, tid as u64),
            Track::Runs(pid, tid) => (3, pid, tid as u64),
            Track::Queue(pid, queue, row) => {
                let row = i64::from(row).wrapping_mul(0x9e37);
                (4i64.wrapping_add(row << 8), pid, queue)
            }
            Track::Remarks => (5, 0, 0),
        };
        cause_id(kind, a, b)
    }
}

/// At most so many commands of one queue side by side.
const MAX_ROWS: usize = 64;

/// All rows so far.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    known: HashSet<Track>,
    /// Names of devices by process and queue.
    devices: HashMap<(i64, u64), String>,
    /// Until when each row of a queue is taken.
    taken: HashMap<(i64, u64), Vec<u64>>,
}

impl Tracks {
    /// Notes the name of a queue's device.
    pub fn name_queue(&mut self, queue: &NewQueue<'_>) {
        self.devices.insert((queue.pid, queue.queue), queue.name.to_owned());
    }

    /// The row of a process.
    fn process(&mut self, packets: &mut Packets<'_>, trace: &Trace, at: At<'_>) -> io::Result<u64> {
        let pid = at.who().pid;
        let uuid = Track::Process(pid).uuid();
        if self.known.insert(Track::Process(pid)) {
            let process = trace.manifest().processes.iter().find(|p| p.pid == pid);
            let command = process.map_or("", |p| p.command.as_str());
            let program = command.split(' ').next().and_then(|c| c.rsplit('/').next());
            let name = program.filter(|p| !p.is_empty()).unwrap_or(&at.who().name);
            describe(packets, uuid, None, |d| {
                d.message(track::PROCESS, |p| {
                    p.varint(track::PROCESS_PID, pid as u64);
                    if !command.is_empty() {
                        p.string(track::PROCESS_CMDLINE, command);
                    }
                    p.string(track::PROCESS_NAME, name);
                });
            })?;
        }
        Ok(uuid)
    }

    /// The row of a thread.
    pub fn thread(&mut self, packets: &mut Packets<'_>, trace: &Trace, at: At<'_>) -> io::Result<u64> {
        let who = at.who();
        let key = Track::Thread(who.pid, who.tid);
        if self.known.insert(key) {
            let process = self.process(packets, trace, at)?;
            describe(packets, key.uuid(), Some(process), |d| {
                d.message(track::THREAD, |t| {
                    t.varint(track::THREAD_PID, who.pid as u64);
                    t.varint(track::THREAD_TID, who.tid as u64);
                    t.string(track::THREAD_NAME, &who.name);
                });
            })?;
        }
        Ok(key.uuid())
    }

    /// The row of a thread's runs of equal calls.
    pub fn runs(&mut self, packets: &mut Packets<'_>, trace: &Trace, at: At<'_>) -> io::Result<u64> {
        let thread = self.thread(packets, trace, at)?;
        let key = Track::Runs(at.who().pid, at.who().tid);
        if self.known.insert(key) {
            describe(packets, key.uuid(), Some(thread), |d| {
                d.string(track::NAME, "runs of equal calls");
            })?;
        }
        Ok(key.uuid())
    }

    /// A row of a queue that is free from `start`; it is taken until `end`.
    pub fn queue(
        &mut self,
        packets: &mut Packets<'_>,
        trace: &Trace,
        at: At<'_>,
        queue: u64,
        (start, end): (u64, u64),
    ) -> io::Result<u64> {
        let pid = at.who().pid;
        let rows = self.taken.entry((pid, queue)).or_default();
        let free = rows.iter().position(|&until| until <= start);
        let row = match free {
            Some(row) => row,
            None if rows.len() < MAX_ROWS => {
                rows.push(0);
                rows.len() - 1
            }
            None => 0,
        };
        rows[row] = rows[row].max(end);
        let key = Track::Queue(pid, queue, row as u32);
        if self.known.insert(key) {
            let process = self.process(packets, trace, at)?;
            let device = self.devices.get(&(pid, queue)).map_or("", String::as_str);
            let space = if device.is_empty() { "" } else { " " };
            // Rows of one name are shown as one.
            let name = format!("{device}{space}queue {queue:#x}");
            describe(packets, key.uuid(), Some(process), |d| d.string(track::NAME, &name))?;
        }
        Ok(key.uuid())
    }

    /// The row of remarks.
    pub fn remarks(&mut self, packets: &mut Packets<'_>) -> io::Result<u64> {
        let uuid = Track::Remarks.uuid();
        if self.known.insert(Track::Remarks) {
            describe(packets, uuid, None, |d| d.string(track::NAME, "hetrace: what is missing"))?;
        }
        Ok(uuid)
    }
}

fn describe(
    packets: &mut Packets<'_>,
    uuid: u64,
    parent: Option<u64>,
    write: impl FnOnce(&mut Message),
) -> io::Result<()> {
    packets.add(|p| {
        p.message(packet::TRACK_DESCRIPTOR, |d| {
            d.varint(field::track::UUID, uuid);
            if let Some(parent) = parent {
                d.varint(track::PARENT, parent);
            }
            write(d);
        });
    })
}
