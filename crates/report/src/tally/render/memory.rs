//! Memory that programs asked for.

use std::fmt;

use super::{Renderer, errors, others, right, some};
use crate::tally::rows::MemoryRow;
use crate::text::{Column, Table};
use hetrace_trace::text::{bytes, count, duration, plural};

impl Renderer<'_> {
    /// Most memory that was held at a time, by device.
    pub fn memory(&mut self) -> fmt::Result {
        let rows = &self.tally.memory;
        if rows.is_empty() {
            return Ok(());
        }
        self.heading(&["Memory".to_owned(), "high-water marks".to_owned()])?;
        let mut columns = vec![Column::left("Device"), Column::left("Kind")];
        columns
            .extend(["Peak", "At", "Allocations", "Total", "Live at exit", "Not freed", "Failed"].map(right));
        let mut table = Table::new(columns);
        let (shown, hidden) = self.cut(rows);
        for row in shown {
            table.row(vec![
                row.device.clone(),
                row.kind.clone(),
                bytes(row.peak_bytes),
                row.peak_ns.map_or_else(String::new, duration),
                count(row.allocations),
                bytes(row.allocated_bytes),
                some(row.live_bytes, bytes),
                some(row.live_allocations, count),
                errors(row.failed),
            ]);
            // Of a single one there is nothing more to say.
            for process in row.processes.iter().filter(|_| row.process_count > 1) {
                table.row(vec![
                    format!("  process {}", process.pid),
                    String::new(),
                    bytes(process.peak_bytes),
                    process.peak_ns.map_or_else(String::new, duration),
                    count(process.allocations),
                    String::new(),
                    some(process.live_bytes, bytes),
                    some(process.live_allocations, count),
                ]);
            }
            let more = row.process_count.saturating_sub(row.processes.len() as u64);
            if more > 0 {
                table.row(vec![format!("  ({})", plural(more, "more process"))]);
            }
        }
        if !hidden.is_empty() {
            table.row(vec![others(hidden.len())]);
        }
        self.narrow_table(&table)
    }

    /// What the marks lack.
    pub fn memory_remarks(&self, lines: &mut Vec<String>) {
        let releases = &self.tally.memory_releases;
        let sum = |of: fn(&MemoryRow) -> u64| self.tally.memory.iter().map(of).fold(0, u64::saturating_add);
        if releases.unknown > 0 {
            let (all, unknown) = (plural(releases.releases, "release"), count(releases.unknown));
            lines.push(format!("Memory: of {unknown} of {all} the allocation is not in the trace."));
        }
        if releases.replaced > 0 {
            let allocations = plural(releases.replaced, "allocation");
            lines.push(format!("Memory: {allocations} ended unseen: the address was handed out again."));
        }
        let unknown = sum(|row| row.unsized_allocations);
        if unknown > 0 {
            let allocations = plural(unknown, "allocation");
            lines.push(format!(
                "Memory: {allocations} of a size that the call does not have, counted as 0 B."
            ));
        }
        if releases.passed_over > 0 {
            let allocations = plural(releases.passed_over, "allocation");
            lines.push(format!("Memory: {allocations} not followed: too many at a time."));
        }
        if !self.tally.memory.is_empty() && self.tally.traces.len() > 1 {
            lines.push("Memory: a mark is the largest of the single traces'.".to_owned());
        }
    }
}
