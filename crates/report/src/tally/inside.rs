//! What went on inside of kernels, in rows.

use std::collections::HashMap;

use hetrace_trace::demangle;
use hetrace_trace::inside::{Inside, Kernel};

use super::query::Query;
use super::rows::{DeviceRow, InsideBlockRow, InsideLoopRow, InsideRow, InsideRows, RefusedRow};

impl InsideRows {
    /// Makes rows of what was recorded of the kernels that a query wants.
    pub fn of(inside: &Inside, query: &Query<'_>) -> Self {
        let wanted = |kernel: &&Kernel| {
            let pid = query.pids.is_empty() || query.pids.contains(&kernel.pid);
            pid && query.has_command("kernel", &kernel.description.name)
        };
        let mut kernels: Vec<(u64, InsideRow)> = inside.kernels.iter().filter(wanted).map(row).collect();
        kernels
            .sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (&a.1.symbol, a.1.pid).cmp(&(&b.1.symbol, b.1.pid))));
        let refused = inside.refused.iter().map(|one| RefusedRow {
            kernel: demangle::full(&one.name).into_owned(),
            reason: one.reason.clone(),
        });
        Self {
            kernels: kernels.into_iter().map(|(_, row)| row).collect(),
            refused: refused.collect(),
            lost: inside.lost,
            problems: inside.problems.clone(),
        }
    }

    /// Takes from the tables of commands what recording cost each kernel.
    #[must_use]
    pub fn compared(mut self, commands: &[DeviceRow]) -> Self {
        let mut times: HashMap<&str, (u64, f64)> = HashMap::new();
        for row in commands {
            let (Some(symbol), timed) = (&row.symbol, row.calls.saturating_sub(row.untimed)) else {
                continue;
            };
            if timed > 0 {
                let (calls, total) = times.entry(symbol).or_default();
                *calls += timed;
                *total += row.avg_ns * timed as f64;
            }
        }
        let mean = |symbol: &str| times.get(symbol).map(|(calls, total)| (*calls, total / *calls as f64));
        for row in &mut self.kernels {
            let recorded = mean(&format!("{}{}", row.symbol, hetrace_trace::inside::TWIN));
            let plain = mean(&row.symbol);
            row.launches_as_they_were = recorded.map(|_| plain.map_or(0, |(calls, _)| calls));
            let both = recorded.zip(plain).filter(|(_, (_, plain))| *plain > 0.0);
            row.slowdown = both.map(|((_, recorded), (_, plain))| recorded / plain);
        }
        self
    }
}

/// Returns a kernel's row, and the cycles in it.
fn row(kernel: &Kernel) -> (u64, InsideRow) {
    let source = |block: usize| {
        let text = kernel.description.blocks.get(block)?;
        Some(format!("{}:{}", text.file.as_ref()?, text.line?))
    };
    let text = |block: usize| kernel.description.blocks.get(block).cloned().unwrap_or_default();
    let cycles = kernel.counts.blocks.iter().map(|block| block.time).fold(0, u64::saturating_add);
    let part = |of: u64| if cycles == 0 { 0.0 } else { of as f64 / cycles as f64 };
    let (mut flops, mut bytes, mut lanes, mut slots) = (0u64, 0u64, 0.0, 0.0);
    let mut blocks = Vec::new();
    for (number, block) in kernel.counts.blocks.iter().enumerate().filter(|(_, block)| block.lanes > 0) {
        let text = text(number);
        let of = |each: &[u32]| block.lanes.saturating_mul(each.iter().copied().map(u64::from).sum());
        flops = flops.saturating_add(of(&[text.flops16, text.flops32, text.flops64]));
        bytes = bytes.saturating_add(of(&[text.loaded, text.stored]));
        lanes += block.lanes as f64 * f64::from(text.instructions);
        slots += block.visits as f64 * f64::from(text.instructions) * kernel.lanes_per_warp as f64;
        blocks.push(InsideBlockRow {
            block: number as u64,
            source: source(number),
            visits: block.visits,
            exact: block.exact,
            lanes: block.lanes,
            cycles: block.time,
            share: part(block.time),
            instructions: text.instructions,
        });
    }
    blocks.sort_by(|a, b| b.cycles.cmp(&a.cycles).then(a.block.cmp(&b.block)));
    let loops = kernel.counts.loops.iter().filter(|one| one.entered > 0).map(|one| InsideLoopRow {
        header: one.header as u64,
        source: source(one.header),
        entered: one.entered,
        trips: one.back as f64 / one.entered as f64,
        distribution: one.trips.clone(),
    });
    let busiest = kernel.multiprocessors.values().max().copied().unwrap_or(0) as f64;
    let mean = kernel.multiprocessors.values().map(|cycles| *cycles as f64).sum::<f64>()
        / kernel.multiprocessors.len().max(1) as f64;
    let row = InsideRow {
        kernel: demangle::full(&kernel.description.name).into_owned(),
        symbol: kernel.description.name.clone(),
        pid: kernel.pid,
        mode: kernel.description.mode.name().to_owned(),
        launches: kernel.launches,
        launches_as_they_were: None,
        slowdown: None,
        thread_blocks: kernel.thread_blocks,
        warps: kernel.warps,
        begun: kernel.counts.begun,
        ended: kernel.counts.ended,
        active: (slots > 0.0).then(|| lanes / slots),
        multiprocessors: kernel.multiprocessors.len() as u64,
        imbalance: (mean > 0.0).then(|| busiest / mean),
        flops,
        bytes,
        blocks,
        loops: loops.collect(),
        faults: kernel.counts.faults,
    };
    (cycles, row)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hetrace_trace::inside::{BlockCounts, BlockText, Counts, Described, LoopCounts, Refused};

    use super::*;
    use crate::tally::{Tally, TextOptions};

    fn inside() -> Inside {
        let text = |line, instructions, flops32| BlockText {
            file: Some("spin.cu".to_owned()),
            line: Some(line),
            instructions,
            flops32,
            stored: 4,
            ..BlockText::default()
        };
        let description = Described {
            number: 4096,
            name: "_Z4spinPfi".to_owned(),
            mode: hetrace_trace::inside::Mode::Branches,
            successors: vec![vec![1], vec![1, 2], vec![-1], vec![-1]],
            sites: vec![],
            summed: vec![],
            blocks: vec![text(3, 8, 0), text(5, 4, 2), text(8, 2, 0), text(9, 1, 0)],
        };
        let block = |lanes, visits, exact, time| BlockCounts { lanes, visits, exact, time };
        let counts = Counts {
            blocks: vec![
                block(128, 4, false, 100),
                block(960, 40, true, 850),
                block(120, 6, false, 50),
                block(0, 0, false, 0),
            ],
            loops: vec![LoopCounts { header: 1, entered: 128, back: 832, trips: vec![8, 0, 20, 100] }],
            begun: 128,
            ended: 120,
            faults: 0,
        };
        let kernel = Kernel {
            pid: 7,
            description,
            launches: 2,
            thread_blocks: 2,
            warps: 4,
            lanes_per_warp: 32,
            multiprocessors: BTreeMap::from([(0, 750), (5, 250)]),
            counts,
        };
        let refused = vec![Refused { name: "gemm".to_owned(), reason: "it has no PTX".to_owned() }];
        Inside { kernels: vec![kernel], refused, lost: 3, problems: vec!["a file is cut".to_owned()] }
    }

    fn tables() -> Tally {
        let row = |symbol: &str, avg_ns| DeviceRow {
            symbol: Some(symbol.to_owned()),
            calls: 2,
            avg_ns,
            ..DeviceRow::default()
        };
        Tally {
            device: vec![row("_Z4spinPfi", 1000.0), row("_Z4spinPfi__hetrace_inside", 1250.0)],
            ..Tally::default()
        }
    }

    #[test]
    fn rows_are_compared_with_launches_as_they_were() {
        let rows = InsideRows::of(&inside(), &Query::default()).compared(&tables().device);
        let row = &rows.kernels[0];
        assert_eq!(
            (row.kernel.as_str(), row.slowdown, row.launches_as_they_were),
            ("spin(float*, int)", Some(1.25), Some(2))
        );
        // Busiest by mean: 750 of 500.
        assert_eq!((row.imbalance, row.flops, row.bytes), (Some(1.5), 1920, 4 * (128 + 960 + 120)));
        let active =
            (128.0 * 8.0 + 960.0 * 4.0 + 120.0 * 2.0) / (32.0 * (4.0 * 8.0 + 40.0 * 4.0 + 6.0 * 2.0));
        assert_eq!(row.active, Some(active));
        // Alone there is nothing to compare with.
        let alone = InsideRows::of(&inside(), &Query::default()).compared(&[]);
        assert_eq!((alone.kernels[0].slowdown, alone.kernels[0].launches_as_they_were), (None, None));
        let other = Query { names: vec!["gemm*".to_owned()], ..Query::default() };
        assert_eq!(InsideRows::of(&inside(), &other).kernels, []);
    }

    #[test]
    fn json_has_an_array_of_kernels() {
        let rows = InsideRows::of(&inside(), &Query::default());
        let value = serde_json::to_value(Tally { inside: Some(rows), ..Tally::default() }).unwrap();
        let kernel = &value["inside"][0];
        assert_eq!((&kernel["launches"], &kernel["slowdown"]), (&2.into(), &serde_json::Value::Null));
        let block = &kernel["blocks"][0];
        assert_eq!((&block["block"], &block["source"]), (&1.into(), &"spin.cu:5".into()));
        assert_eq!((&block["visits"], &block["lanes"]), (&40.into(), &960.into()));
        assert_eq!(value["inside_refused"][0]["reason"], "it has no PTX");
        assert!(serde_json::to_value(Tally::default()).unwrap().get("inside").is_none());
    }

    #[test]
    fn text_has_blocks_loops_and_what_is_missing() {
        let rows = InsideRows::of(&inside(), &Query::default()).compared(&tables().device);
        let tables = Tally { inside: Some(rows), ..Tally::default() };
        let text = tables.render(&TextOptions::default());
        let from = text.find("Inside spin").unwrap_or_else(|| panic!("{text}"));
        let expected = include_str!("inside.expected.txt");
        assert!(text[from..].starts_with(expected), "{}", &text[from..]);
        let nothing = Tally { inside: Some(InsideRows::default()), ..Tally::default() };
        assert!(nothing.render(&TextOptions::default()).contains("hetrace run --inside"));
    }
}
