//! What to look at next.

use super::rows::Tally;
use hetrace_trace::text::plural;

/// A device that was busy for less of the time idles.
const BUSY_PERCENT: f64 = 90.0;

/// The command that is worth most for a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// The command: `why`, `lint` or `timeline`.
    pub command: &'static str,
    /// What of the trace is the reason; none for the usual one.
    pub reason: Option<String>,
}

impl Tally {
    /// Returns what to look at next: calls that failed come before time, and time before memory.
    pub fn next_step(&self) -> NextStep {
        let step = |command, reason: String| NextStep { command, reason: Some(reason) };
        let failed = self.errors.iter().map(|row| row.calls).fold(0, u64::saturating_add);
        if failed > 0 {
            return step("lint", format!("{} failed", plural(failed, "call")));
        }
        // The busiest one: others may be meant for little.
        let busiest = self.utilization.iter().max_by(|a, b| a.percent.total_cmp(&b.percent));
        if let Some(row) = busiest.filter(|row| row.percent < BUSY_PERCENT && !row.partly) {
            let idle = 100.0 - row.percent;
            return step(
                "why",
                match self.utilization.len() {
                    1 => format!("the device was idle for {idle:.1}% of the time"),
                    _ => format!("the busiest device was idle for {idle:.1}% of the time"),
                },
            );
        }
        let left = self.memory.iter().map(|row| row.live_allocations).fold(0, u64::saturating_add);
        if left > 0 {
            return step("lint", format!("{} never released", plural(left, "allocation")));
        }
        NextStep { command: "timeline", reason: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tally::{DeviceUseRow, ErrorRow, MemoryRow};

    #[test]
    fn failures_come_before_idle_devices_and_these_before_memory() {
        let mut tally = Tally::default();
        assert_eq!(tally.next_step(), NextStep { command: "timeline", reason: None });
        tally.memory = vec![MemoryRow { live_allocations: 2, ..MemoryRow::default() }];
        assert_eq!(tally.next_step().reason.as_deref(), Some("2 allocations never released"));
        let busy = |percent| DeviceUseRow { percent, ..DeviceUseRow::default() };
        tally.utilization = vec![busy(5.0), busy(95.0)];
        assert_eq!(tally.next_step().command, "lint", "the other device is meant for little");
        tally.utilization = vec![busy(5.0), busy(60.0)];
        let reason = "the busiest device was idle for 40.0% of the time";
        assert_eq!((tally.next_step().command, tally.next_step().reason.as_deref()), ("why", Some(reason)));
        let (name, api, error) = (String::new(), String::new(), String::new());
        tally.errors = vec![ErrorRow { name, api, error, code: -1, text: None, calls: 1, total_ns: 0 }];
        assert_eq!(tally.next_step().reason.as_deref(), Some("1 call failed"));
    }
}
