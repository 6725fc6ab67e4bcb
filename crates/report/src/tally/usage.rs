//! How long devices were busy: the time in which at least one command ran.

use std::collections::VecDeque;

use super::labels::Labels;
use super::rows::DeviceUseRow;
use hetrace_trace::hash::Places;
use hetrace_trace::spans::Command;

/// Times that are kept apart, so that one which comes late still joins them; older ones are added up.
const KEPT: usize = 4096;

/// How long at least one of many times was. They come in about the order of their beginnings.
#[derive(Clone, Debug, Default)]
struct Union {
    /// Disjoint, in order.
    open: VecDeque<(u64, u64)>,
    /// The first that were added up, for what comes before.
    head: Vec<(u64, u64)>,
    /// Where these end, and what was added up after them.
    head_end: u64,
    closed: u64,
    /// Nothing before this is added any more.
    floor: u64,
}

impl Union {
    fn add(&mut self, start: u64, end: u64) {
        let start = start.max(self.floor);
        if start >= end {
            return;
        }
        // Nearly always it begins in the last one or behind it.
        match self.open.back_mut() {
            Some(last) if last.0 <= start && start <= last.1 => last.1 = last.1.max(end),
            Some(last) if start < last.0 => self.insert(start, end),
            _ => {
                self.open.push_back((start, end));
                self.bound();
            }
        }
    }

    /// Joins it with all that it touches, wherever it begins.
    fn insert(&mut self, mut start: u64, mut end: u64) {
        // Behind those that end before it.
        let mut at = self.open.len();
        while at > 0 && self.open.get(at - 1).is_some_and(|known| known.1 >= start) {
            at -= 1;
        }
        while let Some(known) = self.open.get(at).copied().filter(|known| known.0 <= end) {
            (start, end) = (start.min(known.0), end.max(known.1));
            self.open.remove(at);
        }
        self.open.insert(at, (start, end));
        self.bound();
    }

    /// Adds the first one up if there are too many.
    fn bound(&mut self) {
        if self.open.len() > KEPT
            && let Some(run) = self.open.pop_front()
        {
            self.close(run);
        }
    }

    fn close(&mut self, (start, end): (u64, u64)) {
        if self.head.len() < KEPT {
            self.head.push((start, end));
            self.head_end = end;
        } else {
            self.closed = self.closed.saturating_add(end - start);
        }
        self.floor = end;
    }

    /// Adds times of which none begins before those that are here.
    fn append(&mut self, later: &Union) {
        later.head.iter().for_each(|(start, end)| self.add(*start, *end));
        if later.closed > 0 {
            // What is here and goes on for longer than all that was kept apart is counted twice at most up to here.
            let until = self.open.back().map_or(self.floor, |(_, end)| *end);
            let twice = until.saturating_sub(later.head_end);
            while let Some(run) = self.open.pop_front() {
                self.close(run);
            }
            self.closed = self.closed.saturating_add(later.closed.saturating_sub(twice));
            self.floor = self.floor.max(later.floor);
        }
        later.open.iter().for_each(|(start, end)| self.add(*start, *end));
    }

    fn total(&self) -> u64 {
        let runs = self.head.iter().chain(&self.open).map(|(start, end)| end - start);
        runs.fold(self.closed, u64::saturating_add)
    }
}

/// What a process did with a device.
#[derive(Clone, Debug, Default)]
struct Used {
    busy: Union,
    commands: u64,
    /// Some commands are not in `busy`: only others were timed, or their times are not known.
    partly: bool,
}

/// How long each device of each process was busy.
#[derive(Clone, Debug, Default)]
pub(super) struct Usage {
    /// By process and number of the device.
    devices: Places<(i64, u32), Used>,
}

impl Usage {
    pub fn command(&mut self, command: &Command<'_>) {
        let place = self.place(command);
        self.add(place, command);
    }

    /// Returns the place of the device of a command, and of all that differ from it in nothing but their times; one
    /// behind all others if it has none.
    pub fn place(&mut self, command: &Command<'_>) -> usize {
        command.on_queue.map_or(usize::MAX, |queue| self.devices.place((command.pid, queue.device)))
    }

    /// Adds a command whose device has this place.
    pub fn add(&mut self, place: usize, command: &Command<'_>) {
        let Some(used) = self.devices.at(place) else { return };
        used.commands = used.commands.saturating_add(command.weight);
        used.partly |= command.weight > 1 || command.times.is_none() && !command.failed();
        if let Some(times) = command.times {
            used.busy.add(times.start, times.end);
        }
    }

    /// Adds what a later part of the trace has.
    pub fn merge(&mut self, later: &Usage) {
        for (key, used) in later.devices.iter() {
            let here = self.devices.entry(*key);
            here.busy.append(&used.busy);
            here.commands = here.commands.saturating_add(used.commands);
            here.partly |= used.partly;
        }
    }

    /// A row for each device, those that were busy for longest first; `partly`: commands are missing in the trace.
    pub fn rows(&self, labels: &Labels<'_>, duration: u64, partly: bool) -> Vec<DeviceUseRow> {
        let mut rows: Vec<(String, DeviceUseRow)> = Vec::new();
        let mut devices: Vec<(&(i64, u32), &Used)> = self.devices.iter().collect();
        devices.sort_unstable_by_key(|(key, _)| **key);
        for (key, used) in devices {
            let device = labels.names().device(key.1);
            let identity = match device {
                Some(device) if !device.uuid.is_empty() => device.uuid.clone(),
                _ => format!("{}:{}", key.0, key.1),
            };
            let busy = used.busy.total();
            match rows.iter_mut().find(|(known, _)| *known == identity) {
                Some((_, row)) => {
                    row.busy_ns = row.busy_ns.saturating_add(busy).min(duration);
                    row.commands = row.commands.saturating_add(used.commands);
                    row.partly |= used.partly;
                    row.processes += 1;
                }
                None => {
                    let (device, busy_ns) = (labels.device(device), busy.min(duration));
                    let (commands, partly) = (used.commands, used.partly);
                    rows.push((
                        identity,
                        DeviceUseRow { device, busy_ns, commands, partly, processes: 1, percent: 0.0 },
                    ));
                }
            }
        }
        let mut rows: Vec<DeviceUseRow> = rows.into_iter().map(|(_, row)| row).collect();
        for row in &mut rows {
            row.partly |= partly;
            let percent = if duration > 0 { row.busy_ns as f64 / duration as f64 * 100.0 } else { 0.0 };
            // As many digits as come back from a file as they are.
            row.percent = (percent * 1e6).round() / 1e6;
        }
        rows.sort_by(|a, b| b.busy_ns.cmp(&a.busy_ns).then_with(|| a.device.cmp(&b.device)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All nanoseconds that lie in one of the times.
    fn slowly(times: &[(u64, u64)]) -> u64 {
        let inside = |ns: &u64| times.iter().any(|(start, end)| start <= ns && ns < end);
        (0..times.iter().map(|(_, end)| *end).max().unwrap_or(0)).filter(inside).count() as u64
    }

    fn union(times: &[(u64, u64)]) -> Union {
        let mut union = Union::default();
        times.iter().for_each(|(start, end)| union.add(*start, *end));
        union
    }

    #[test]
    fn times_that_overlap_count_once_in_any_order() {
        let times = [(10, 20), (5, 12), (40, 50), (30, 35), (19, 31), (60, 60), (2, 3)];
        assert_eq!(union(&times).total(), slowly(&times));
        let mut back = times;
        back.reverse();
        assert_eq!(union(&back).total(), slowly(&times));
    }

    #[test]
    fn slices_are_as_the_whole() {
        // More than is kept apart, one that covers some of them, and a cut within it.
        let mut times: Vec<(u64, u64)> = (0..6000).map(|i| (i * 10, i * 10 + 4)).collect();
        times.push((20_000, 20_100));
        times.sort_unstable();
        let whole = union(&times).total();
        assert_eq!(whole, 6000 * 4 + 100 - 10 * 4);
        for at in [0, 1, 2003, 3000, 5999] {
            let mut first = union(&times[..at]);
            first.append(&union(&times[at..]));
            assert_eq!(first.total(), whole, "cut at {at}");
        }
    }

    #[test]
    fn what_runs_into_a_later_slice_is_not_counted_again() {
        let mut first = union(&[(0, 100)]);
        first.append(&union(&[(50, 60), (90, 120)]));
        assert_eq!(first.total(), 120);
        // Longer than all that the later slice keeps apart.
        let many: Vec<(u64, u64)> = (0..20_000).map(|i| (10 + i * 10, 14 + i * 10)).collect();
        let mut first = union(&[(0, 300_000)]);
        first.append(&union(&many));
        assert_eq!(first.total(), 300_000);
    }
}
