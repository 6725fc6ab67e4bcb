//! What the tables of collectives are made of, when the walk has ended.

use super::Collectives;
use super::rows::{Communicator, Row, Unfinished, bus_factor};
use super::track::{Counted, Known, Pending};
use crate::trace::Names;

impl Collectives {
    /// All that is known when the walk has ended.
    pub fn finish(&mut self) {
        for command in std::mem::take(&mut self.early) {
            self.seen(&command);
        }
        let waiting: Vec<u64> =
            self.threads.values_mut().flat_map(|t| std::mem::take(&mut t.waiting)).collect();
        waiting.into_iter().for_each(|number| self.count(number, false));
    }

    /// The table, those with the most time first.
    pub fn rows(&self, names: &Names) -> Vec<Row> {
        let counted = self.rows.iter().filter(|counted| counted.row.calls > 0);
        let finished = counted.map(|Counted { row, timed_bytes, functions }| {
            let rate = (row.total_ns > 0).then(|| *timed_bytes as f64 * 1e9 / row.total_ns as f64);
            let rate = rate.filter(|rate| *rate > 0.0);
            let factor = bus_factor(&row.operation, row.size);
            let name = |id: &u32| names.kernel(*id).map(|kernel| kernel.name.clone());
            let mut kernels: Vec<String> = functions.iter().filter_map(name).collect();
            kernels.sort();
            kernels.dedup();
            Row {
                kernels,
                algorithm_bandwidth: rate,
                bus_bandwidth: rate.zip(factor).map(|(rate, factor)| rate * factor),
                ..row.clone()
            }
        });
        let mut rows: Vec<Row> = finished.collect();
        let name = |r: &Row| (r.communicator.clone(), r.operation.clone(), r.element.clone(), r.size);
        rows.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| name(a).cmp(&name(b))));
        rows
    }

    /// All communicators, in the order in which they were made.
    pub fn communicators(&self) -> Vec<Communicator> {
        self.communicators.iter().map(|known| known.about.clone()).collect()
    }

    /// What each rank is in at the end: for each communicator the first call
    /// without an end. Of a program that ended by itself, only calls that have not
    /// returned (`all` is false): there, commands may be missing for other reasons.
    /// Ranks that have come out of all of theirs are reported beside others that have not.
    pub fn unfinished(&self, all: bool) -> Vec<Unfinished> {
        let mut rows: Vec<Unfinished> = Vec::new();
        let mut out: Vec<Unfinished> = Vec::new();
        for known in &self.communicators {
            let mut open = known.pending.iter().filter(|p| all || p.returned == 0);
            let first = if known.any_command || !all { open.next() } else { open.next_back() };
            let Some(call) = first else {
                out.extend(known.ended.as_ref().and_then(|call| self.state(known, call, "ended", 0)));
                continue;
            };
            let behind = if known.any_command || !all { open.count() as u64 } else { 0 };
            let state = match (call.returned != 0, known.any_command) {
                (false, _) => "calling",
                (true, true) => "enqueued",
                (true, false) => "last",
            };
            rows.extend(self.state(known, call, state, behind));
        }
        out.retain(|o| o.size != Some(1) && rows.iter().any(|r| r.communicator == o.communicator));
        rows.append(&mut out);
        rows.sort_by(|a, b| {
            let place = |r: &Unfinished| (r.communicator.clone(), r.rank, r.pid);
            place(a).cmp(&place(b))
        });
        rows
    }

    /// What a rank has to do with a call.
    fn state(&self, known: &Known, call: &Pending, state: &str, behind: u64) -> Option<Unfinished> {
        let Counted { row, .. } = self.rows.get(call.row as usize)?;
        Some(Unfinished {
            communicator: known.about.communicator.clone(),
            rank: known.about.rank,
            size: known.about.size,
            pid: known.about.pid,
            tid: call.tid,
            operation: row.operation.clone(),
            element: row.element.clone(),
            count: call.count,
            nth: call.nth,
            since_ns: call.since,
            state: state.to_owned(),
            behind,
        })
    }
}
