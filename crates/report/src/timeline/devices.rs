//! Rows of devices: queues with their commands, and what each part of a device does.
//!
//! ```text
//! Toy GPU                        a process's view of a device
//! ├── kernels: running           how many run at a time, of all queues together
//! ├── copies host → device: running, …
//! ├── … bandwidth                of copies of one direction; copies at a time add up
//! ├── stream 7                   commands with arguments and arrows, each once
//! ├── stream 7: commands in flight    enqueued and not ended
//! └── device memory          what the program has allocated and not freed
//! ```

use std::collections::HashMap;
use std::io;

use super::lanes::{Lanes, Whole};
use super::sheet::{Row, Sheet, Unit};
use super::steps::Steps;
use super::tracks::{Kind, number};
use hetrace_trace::spans::{Command, CommandKind, Direction};
use hetrace_trace::titles::{device_title, queue_label, queue_word};
use hetrace_trace::trace::{Device, Trace};

/// A part of a device, as far as commands show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Engine {
    Kernels,
    ToDevice,
    ToHost,
    Within,
    Peer,
    Fills,
}

/// How many there are.
const ENGINES: usize = 6;

impl Engine {
    const ALL: [Self; ENGINES] =
        [Self::Kernels, Self::ToDevice, Self::ToHost, Self::Within, Self::Peer, Self::Fills];

    fn title(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::ToDevice => "copies host → device",
            Self::ToHost => "copies device → host",
            Self::Within => "copies device → device",
            Self::Peer => "copies between devices",
            Self::Fills => "fills",
        }
    }

    fn is_copy(self) -> bool {
        !matches!(self, Self::Kernels | Self::Fills)
    }

    /// The part that a command needs; none if it needs none or it is not known.
    pub fn of(command: &Command<'_>) -> Option<Self> {
        match (command.kind, command.direction()) {
            (CommandKind::Kernel, _) => Some(Self::Kernels),
            (CommandKind::Fill, _) => Some(Self::Fills),
            (_, Some(Direction::ToDevice)) => Some(Self::ToDevice),
            (_, Some(Direction::ToHost)) => Some(Self::ToHost),
            (_, Some(Direction::Within)) => Some(Self::Within),
            (_, Some(Direction::Peer)) => Some(Self::Peer),
            (_, None) => None,
        }
    }
}

/// Ranks of a device's rows: parts, then their bandwidths, then queues.
const BANDWIDTHS: u64 = 8;
const QUEUES: u64 = 16;
/// Perfetto's ranks have 31 bits.
const LAST_RANK: u64 = i32::MAX as u64;

/// Changes of the number of commands in flight that are held back: so many commands, about, may overtake one.
const HELD: usize = 2048;

/// A queue's rows.
#[derive(Debug)]
pub(super) struct QueueRows {
    name: String,
    /// Its device's row, and position.
    device: u64,
    place_of_device: usize,
    key: u64,
    rank: u64,
    lanes: Lanes,
    /// Rows of the lanes.
    lane_rows: Vec<u64>,
    depth: Steps,
    depth_row: Option<u64>,
    /// Whether its API calls queues streams, and groups blocks.
    pub streams: bool,
}

/// All rows of devices.
#[derive(Debug, Default)]
pub(super) struct Devices {
    /// By process and number of the queue.
    queues: HashMap<(i64, u32), usize>,
    /// The one that was asked for last.
    last: Option<((i64, u32), usize)>,
    rows: Vec<QueueRows>,
    devices: Vec<DeviceRows>,
}

/// A device's rows, as far as they are of all queues.
#[derive(Debug)]
struct DeviceRows {
    row: u64,
    engines: [EngineRows; ENGINES],
}

/// Rows of a part of a device.
#[derive(Debug, Default)]
struct EngineRows {
    /// Commands at a time.
    running: Steps,
    running_row: Option<u64>,
    bandwidth: Steps,
    bandwidth_row: Option<u64>,
}

impl Devices {
    /// The rows of a command's queue. A new one is described: `process` is the row
    /// of its process and `called` is what the program calls the queue.
    pub fn queue(
        &mut self,
        sheet: &mut Sheet<'_>,
        trace: &Trace,
        command: &Command<'_>,
        process: impl FnOnce(&mut Sheet<'_>) -> u64,
        called: impl FnOnce() -> Option<String>,
    ) -> usize {
        let id = command.on_queue.map_or(0, |q| q.id);
        let key = (command.pid, id);
        if let Some((_, at)) = self.last.filter(|(last, _)| *last == key) {
            return at;
        }
        if let Some(&at) = self.queues.get(&key) {
            self.last = Some((key, at));
            return at;
        }
        let process = process(sheet);
        let device = device_row(sheet, trace, command.pid, command.on_device, process);
        let name = queue_label(trace, command.on_queue, called());
        let place_of_device = self.devices.iter().position(|d| d.row == device).unwrap_or_else(|| {
            self.devices.push(DeviceRows { row: device, engines: Default::default() });
            self.devices.len() - 1
        });
        self.rows.push(QueueRows {
            name,
            device,
            place_of_device,
            key: number(Kind::Queue, [command.pid as u64, id.into(), 0]),
            rank: QUEUES.saturating_add(u64::from(id) * 2).min(LAST_RANK - 1),
            lanes: Lanes::default(),
            lane_rows: Vec::new(),
            depth: Steps::default(),
            depth_row: None,
            streams: command.on_queue.is_some_and(|q| queue_word(trace, &q.api) == "stream"),
        });
        self.queues.insert(key, self.rows.len() - 1);
        self.rows.len() - 1
    }

    /// A queue's rows.
    pub fn rows(&self, at: usize) -> Option<&QueueRows> {
        self.rows.get(at)
    }

    /// The row for a command from `start` to `end`, and whether it lies inside of
    /// the graph that it is a part of; none if there are too many at a time.
    pub fn row(
        &mut self,
        sheet: &mut Sheet<'_>,
        at: usize,
        command: &Command<'_>,
        (start, end): (u64, u64),
    ) -> Option<(u64, bool)> {
        let queue = self.rows.get_mut(at)?;
        let of = || number(Kind::Queue, [command.cause_tid as u64, command.cause, command.graph]);
        let lane = match (command.kind, command.graph) {
            (CommandKind::Graph, _) => {
                queue.lanes.take_whole(start, Whole { of: of(), end }).map(|lane| (lane, false))
            }
            (_, 0) => queue.lanes.take(start, end).map(|lane| (lane, false)),
            _ => queue.lanes.take_part(start, end, of()),
        };
        let (lane, part) = lane?;
        Some((queue.describe(sheet, lane), part))
    }

    /// The row for what has no length.
    pub fn instants(&mut self, sheet: &mut Sheet<'_>, at: usize) -> Option<u64> {
        Some(self.rows.get_mut(at)?.describe(sheet, 0))
    }

    /// Counts a command as in flight from when it was enqueued to its end.
    pub fn in_flight(&mut self, sheet: &mut Sheet<'_>, at: usize, enqueued: u64, end: u64) -> io::Result<()> {
        let Some(queue) = self.rows.get_mut(at) else { return Ok(()) };
        queue.depth.add(enqueued, end, 1);
        // Commands come as they begin, and not all queues begin first what was enqueued first.
        queue.count(sheet, |depth| depth.next_beyond(HELD))
    }

    /// Counts a command as running where all queues of the device are together, and what it copies.
    pub fn overview(
        &mut self,
        sheet: &mut Sheet<'_>,
        at: usize,
        command: &Command<'_>,
        (start, end): (u64, u64),
    ) -> io::Result<()> {
        let (Some(queue), Some(engine)) = (self.rows.get(at), Engine::of(command)) else { return Ok(()) };
        let Some(device) = self.devices.get_mut(queue.place_of_device) else { return Ok(()) };
        let (parent, rows) = (device.row, &mut device.engines[engine as usize]);
        rows.running(sheet, parent, engine, start)?;
        rows.running.add(start, end, 1);
        let time = end.saturating_sub(start);
        if !engine.is_copy() || command.bytes == 0 || time == 0 {
            return Ok(());
        }
        let rate = u128::from(command.bytes) * 1_000_000_000 / u128::from(time);
        rows.bandwidth(sheet, parent, engine, start)?;
        rows.bandwidth.add(start, end, i64::try_from(rate).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Writes what counters have held back and is before a time.
    pub fn count_until(&mut self, sheet: &mut Sheet<'_>, time: u64) -> io::Result<()> {
        for queue in &mut self.rows {
            queue.count(sheet, |depth| depth.next_before(time))?;
        }
        for device in &mut self.devices {
            for (engine, rows) in Engine::ALL.into_iter().zip(&mut device.engines) {
                rows.running(sheet, device.row, engine, time)?;
                rows.bandwidth(sheet, device.row, engine, time)?;
            }
        }
        Ok(())
    }
}

impl QueueRows {
    fn describe(&mut self, sheet: &mut Sheet<'_>, lane: usize) -> u64 {
        of_lane(&mut self.lane_rows, lane, || {
            let key = number(Kind::Queue, [self.key, lane as u64, 1]);
            sheet.row(Row { rank: Some(self.rank), ..Row::new(key, Some(self.device), &self.name) })
        })
    }

    /// Writes the numbers of commands in flight that come next.
    fn count(
        &mut self,
        sheet: &mut Sheet<'_>,
        next: impl Fn(&mut Steps) -> Option<(u64, f64)>,
    ) -> io::Result<()> {
        while let Some((time, level)) = next(&mut self.depth) {
            let row = *self.depth_row.get_or_insert_with(|| {
                let key = number(Kind::Depth, [self.key, 0, 0]);
                let name = format!("{}: commands in flight", self.name);
                let (rank, counter) = (Some(self.rank + 1), Some(Unit::Count));
                sheet.row(Row { rank, counter, ..Row::new(key, Some(self.device), &name) })
            });
            sheet.count(time, row, level)?;
        }
        Ok(())
    }
}

impl EngineRows {
    /// Writes how many commands run up to a time.
    fn running(&mut self, sheet: &mut Sheet<'_>, device: u64, engine: Engine, until: u64) -> io::Result<()> {
        while let Some((time, level)) = self.running.next_before(until) {
            let row = *self.running_row.get_or_insert_with(|| {
                let key = number(Kind::Engine, [device, engine as u64, 0]);
                let name = format!("{}: running", engine.title());
                let (rank, counter) = (Some(engine as u64), Some(Unit::Count));
                sheet.row(Row { rank, counter, ..Row::new(key, Some(device), &name) })
            });
            sheet.count(time, row, level)?;
        }
        Ok(())
    }

    /// Writes bytes per second up to a time.
    fn bandwidth(
        &mut self,
        sheet: &mut Sheet<'_>,
        device: u64,
        engine: Engine,
        until: u64,
    ) -> io::Result<()> {
        while let Some((time, level)) = self.bandwidth.next_before(until) {
            let row = *self.bandwidth_row.get_or_insert_with(|| {
                let key = number(Kind::Bandwidth, [device, engine as u64, 0]);
                let name = format!("{}: bandwidth", engine.title());
                let (rank, counter) = (Some(BANDWIDTHS + engine as u64), Some(Unit::Named("B/s")));
                sheet.row(Row { rank, counter, ..Row::new(key, Some(device), &name) })
            });
            sheet.count(time, row, level)?;
        }
        Ok(())
    }
}

/// The row of a lane; lanes are met one after the other.
fn of_lane(rows: &mut Vec<u64>, lane: usize, describe: impl FnOnce() -> u64) -> u64 {
    match rows.get(lane) {
        Some(row) => *row,
        None => {
            let row = describe();
            rows.push(row);
            row
        }
    }
}

/// The row of a device in a process.
pub(super) fn device_row(
    sheet: &mut Sheet<'_>,
    trace: &Trace,
    pid: i64,
    device: Option<&Device>,
    process: u64,
) -> u64 {
    let key = number(Kind::Device, [pid as u64, device.map_or(0, |d| d.id).into(), 0]);
    sheet.find(key).unwrap_or_else(|| {
        let title = device_title(trace, device);
        sheet.row(Row { sorts: true, ..Row::new(key, Some(process), &title) })
    })
}
