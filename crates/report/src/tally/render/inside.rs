//! Tables of what went on inside of kernels.

use std::fmt;

use super::{Renderer, others, right};
use crate::tally::rows::{InsideBlockRow, InsideRoofline, InsideRow, InsideRows, InsideTakes};
use crate::text::{Column, Table};
use hetrace_trace::demangle;
use hetrace_trace::text::{bytes, count, flops, plural};

/// Blocks and loops that a kernel's table shows unless `--top` says otherwise.
const BLOCKS: usize = 20;

impl Renderer<'_> {
    pub fn inside(&mut self) -> fmt::Result {
        let Some(rows) = &self.tally.inside else { return Ok(()) };
        for row in &rows.kernels {
            self.inside_kernel(row)?;
            self.inside_blocks(row)?;
            self.inside_loops(row)?;
        }
        if !rows.refused.is_empty() {
            self.heading(&["Not recorded inside".to_owned(), plural(rows.refused.len() as u64, "kernel")])?;
            let mut table = Table::new(vec![Column::left("Name"), Column::left("Why")]);
            for one in &rows.refused {
                table.row(vec![one.kernel.clone(), one.reason.clone()]);
            }
            self.table(&table)?;
        }
        self.inside_lost(rows)?;
        for problem in &rows.problems {
            writeln!(self.out, "Inside kernels: {problem}")?;
        }
        if rows.kernels.is_empty() && rows.refused.is_empty() {
            self.blocks += 1;
            writeln!(
                self.out,
                "Nothing inside of kernels was recorded: `hetrace run --inside 'NAME*' -- PROGRAM` does."
            )?;
        }
        Ok(())
    }

    /// What found no room, by kernel.
    fn inside_lost(&mut self, rows: &InsideRows) -> fmt::Result {
        if !rows.losses.is_empty() {
            self.heading(&["Lost inside".to_owned(), plural(rows.losses.len() as u64, "kernel")])?;
            let mut columns = vec![Column::left("Name")];
            columns.extend(
                ["Records", "Left out", "Launches as they were", "Launches without records"].map(right),
            );
            let is_ring = rows.losses.iter().any(|row| row.launches_overwritten > 0);
            columns.extend(is_ring.then(|| right("Launches overwritten")));
            let mut table = Table::new(columns);
            for row in &rows.losses {
                let name = if self.options.full_names {
                    row.kernel.clone()
                } else {
                    demangle::short(&row.symbol).into_owned()
                };
                let silent = row.launches_without_records.map_or_else(String::new, count);
                let mut cells = vec![
                    name,
                    count(row.records),
                    count(row.left_out),
                    count(row.launches_as_they_were),
                    silent,
                ];
                cells.extend(is_ring.then(|| count(row.launches_overwritten)));
                table.row(cells);
            }
            self.table(&table)?;
        }
        if rows.lost == 0 {
            return Ok(());
        }
        let by_kernel = rows.losses.iter().map(|row| row.records).fold(0, u64::saturating_add);
        let of_any = match rows.lost.saturating_sub(by_kernel) {
            0 => String::new(),
            all if all == rows.lost => String::new(),
            some => format!(", {} of them of a kernel that is not known", count(some)),
        };
        writeln!(
            self.out,
            "{} inside of kernels found no room{of_any}: `--inside-buffer` makes more, `--inside-sample` records less.",
            plural(rows.lost, "record")
        )
    }

    fn inside_kernel(&mut self, row: &InsideRow) -> fmt::Result {
        let name = if self.options.full_names {
            row.kernel.clone()
        } else {
            demangle::short(&row.symbol).into_owned()
        };
        let mut parts = vec![
            format!("Inside {name}"),
            plural(row.launches, "launch"),
            plural(row.thread_blocks, if row.timed { "thread block" } else { "work-group" }),
            plural(row.warps, if row.timed { "warp" } else { "work-item" }),
        ];
        if let Some(slowdown) = row.slowdown {
            parts.push(format!("slowdown {slowdown:.2}"));
        }
        self.heading(&parts)?;
        let mut say = Vec::new();
        if let Some(active) = row.active {
            say.push(format!("{:.1} % of lanes active", 100.0 * active));
        }
        if let Some(imbalance) = row.imbalance.filter(|_| row.multiprocessors > 1) {
            say.push(format!(
                "{} multiprocessors, the busiest {imbalance:.2} of the mean",
                row.multiprocessors
            ));
        }
        if row.ended < row.begun {
            say.push(format!(
                "{} not at their end when the records end",
                plural(row.begun - row.ended, "lane")
            ));
        }
        if row.faults > 0 {
            say.push(format!("{} made no sense", plural(row.faults, "record")));
        }
        if !row.calls.is_empty() {
            say.push(format!("not recorded inside of what it calls: {}", row.calls.join(", ")));
        }
        if !row.timed {
            say.push("when a block ran is not known, as its language has no clock".to_owned());
        }
        if row.slowdown.is_none() {
            say.push("no launch ran as it was, so what recording cost is not known".to_owned());
        }
        if !say.is_empty() {
            writeln!(self.out, "{}", say.join("; "))?;
        }
        let lines = [launches(row), takes(row), work(row), row.roofline.as_ref().and_then(roofline)];
        lines.into_iter().flatten().try_for_each(|line| writeln!(self.out, "{line}"))
    }

    /// Blocks of a kernel without times: how often work-items ran them.
    fn inside_untimed(&mut self, row: &InsideRow) -> fmt::Result {
        let mut table = Table::new(vec![right("Block"), Column::left("Source"), right("Work-items")]);
        let shown = row.blocks.len().min(self.options.top.unwrap_or(BLOCKS));
        let (shown, hidden) = row.blocks.split_at(shown);
        for block in shown {
            let source = block.source.clone().unwrap_or_default();
            table.row(vec![block.block.to_string(), source, count(block.lanes)]);
        }
        if !hidden.is_empty() {
            let lanes = hidden.iter().map(|block| block.lanes).fold(0, u64::saturating_add);
            table.row(vec![String::new(), others(hidden.len()), count(lanes)]);
        }
        self.table(&table)
    }

    fn inside_blocks(&mut self, row: &InsideRow) -> fmt::Result {
        if !row.timed {
            return self.inside_untimed(row);
        }
        let mut columns = vec![right("Block"), Column::left("Source")];
        columns.extend(["Cycles", "Time(%)", "Visits", "Lanes", "Active", "Instructions"].map(right));
        let mut table = Table::new(columns);
        let shown = row.blocks.len().min(self.options.top.unwrap_or(BLOCKS));
        let (shown, hidden) = row.blocks.split_at(shown);
        for block in shown {
            table.row(vec![
                block.block.to_string(),
                block.source.clone().unwrap_or_default(),
                count(block.cycles),
                format!("{:.2}", 100.0 * block.share),
                format!("{}{}", if block.exact { "" } else { "~" }, count(block.visits)),
                count(block.lanes),
                format!("{:.1}", block.lanes as f64 / block.visits.max(1) as f64),
                block.instructions.to_string(),
            ]);
        }
        if !hidden.is_empty() {
            let sum = |of: fn(&InsideBlockRow) -> u64| hidden.iter().map(of).fold(0, u64::saturating_add);
            let share: f64 = hidden.iter().map(|block| block.share).sum();
            let mut cells = vec![String::new(), others(hidden.len()), count(sum(|block| block.cycles))];
            cells.extend([
                format!("{:.2}", 100.0 * share),
                count(sum(|b| b.visits)),
                count(sum(|b| b.lanes)),
            ]);
            cells.extend([String::new(), String::new()]);
            table.row(cells);
        }
        self.table(&table)
    }

    fn inside_loops(&mut self, row: &InsideRow) -> fmt::Result {
        if row.loops.is_empty() {
            return Ok(());
        }
        let mut columns = vec![right("Loop"), Column::left("Source")];
        columns.extend(["Entered", "Trips"].map(right));
        columns.push(Column::left("Lanes by trips"));
        let mut table = Table::new(columns);
        for one in row.loops.iter().take(self.options.top.unwrap_or(BLOCKS)) {
            table.row(vec![
                one.header.to_string(),
                one.source.clone().unwrap_or_default(),
                count(one.entered),
                format!("{:.2}", one.trips),
                distribution(&one.distribution),
            ]);
        }
        self.table(&table)
    }
}

/// How launches filled the device.
fn launches(row: &InsideRow) -> Option<String> {
    let (warps, tail) = (row.resident_warps?, row.tail?);
    Some(format!(
        "{warps:.1} warps resident in the mean; tail of the last wave {:.1} % of the time",
        100.0 * tail
    ))
}

/// Registers and occupancy, without recording and with.
fn takes(row: &InsideRow) -> Option<String> {
    let one = |takes: &InsideTakes| {
        let occupancy =
            takes.occupancy.map_or_else(String::new, |percent| format!(", {percent:.0} % occupancy"));
        let by = takes.limited_by.as_ref().map_or_else(String::new, |by| format!(" (limited by {by})"));
        format!("{} registers{occupancy}{by}", takes.registers)
    };
    match (&row.plain, &row.recorded) {
        (Some(plain), Some(recorded)) => Some(format!("{}; with recording {}", one(plain), one(recorded))),
        (Some(plain), None) => Some(one(plain)),
        (None, Some(recorded)) => Some(format!("with recording {}", one(recorded))),
        (None, None) => None,
    }
}

/// Operations and bytes.
fn work(row: &InsideRow) -> Option<String> {
    let mut parts = Vec::new();
    for (bits, sum) in [(16, row.flops16), (32, row.flops32), (64, row.flops64)] {
        if sum > 0 {
            parts.push(format!("{} floating-point operations of {bits} bits", count(sum)));
        }
    }
    if row.integer > 0 {
        parts.push(format!("{} on integers", count(row.integer)));
    }
    if row.bytes > 0 {
        let intensity = row.flops as f64 / row.bytes as f64;
        parts.push(format!(
            "{} loaded, {} stored, {intensity:.2} operations a byte",
            bytes(row.loaded),
            bytes(row.stored)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// What it does in a second, of what the device can do.
fn roofline(of: &InsideRoofline) -> Option<String> {
    let (below, part) = (of.below.as_ref()?, of.of_roof?);
    Some(format!(
        "roofline: {} of {}, {}/s of {}/s: {:.1} % of the {below} roof",
        flops(of.flops_per_s),
        flops(of.roof_flops_per_s),
        bytes(of.bytes_per_s as u64),
        bytes(of.roof_bytes_per_s as u64),
        100.0 * part
    ))
}

/// How often lanes left after so many trips: `1: 12, 2-3: 400`.
fn distribution(by_digits: &[u64]) -> String {
    let part = |(digits, lanes): (usize, &u64)| {
        let trips = match digits {
            0 | 1 => digits.to_string(),
            64.. => "more".to_owned(),
            _ => format!("{}-{}", 1u64 << (digits - 1), (1u64 << (digits - 1)) * 2 - 1),
        };
        format!("{trips}: {}", count(*lanes))
    };
    by_digits.iter().enumerate().filter(|(_, lanes)| **lanes > 0).map(part).collect::<Vec<_>>().join(", ")
}
