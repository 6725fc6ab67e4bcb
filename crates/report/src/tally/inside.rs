//! What went on inside of kernels, in rows.

use std::collections::HashMap;

use hetrace_trace::demangle;
use hetrace_trace::inside::{Inside, Kernel, Loss};

use super::query::Query;
use super::rows::{
    DeviceRow, InsideBlockRow, InsideLoopRow, InsideLostRow, InsideRoofline, InsideRow, InsideRows,
    InsideTakes, RefusedRow,
};
use hetrace_trace::inside::{BlockText, Shape};
use hetrace_trace::trace::Trace;
use hetrace_vendor::roofs::{About, Roofs, roofs};

impl InsideRows {
    /// Makes rows of what was recorded of the kernels that a query wants; `roofs` are those of the devices that ran them.
    pub fn of(inside: &Inside, query: &Query<'_>, roofs: Option<Roofs>) -> Self {
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
            losses: losses(inside, query),
            problems: inside.problems.clone(),
        }
        .below(roofs)
    }

    /// Says what the device can do; the rest of the roofline needs times ([`InsideRows::compared`]).
    fn below(mut self, roofs: Option<Roofs>) -> Self {
        let Some(roofs) = roofs else { return self };
        for row in &mut self.kernels {
            let Some(roofline) = &mut row.roofline else { continue };
            let most_double = row.flops64.saturating_mul(2) > row.flops;
            roofline.roof_flops_per_s = if most_double { roofs.flops64 } else { roofs.flops32 };
            roofline.roof_bytes_per_s = roofs.bytes;
        }
        self
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
            row.plain = takes(commands, &row.symbol);
            row.recorded = takes(commands, &format!("{}{}", row.symbol, hetrace_trace::inside::TWIN));
            let time = plain.or(recorded).map(|(_, ns)| ns).filter(|ns| *ns > 0.0);
            row.roofline = time.and_then(|ns| Some(rates(row.roofline.clone()?, row, ns)));
        }
        let twin = hetrace_trace::inside::TWIN;
        let launched =
            times.iter().filter_map(|(symbol, (calls, _))| Some((symbol.strip_suffix(twin)?, *calls)));
        self.silent(launched)
    }

    /// Notes launches of twins that left no record.
    fn silent<'a>(mut self, launched: impl Iterator<Item = (&'a str, u64)>) -> Self {
        for (symbol, launched) in launched {
            let of_symbol = self.kernels.iter().filter(|row| row.symbol == symbol).map(|row| row.launches);
            let silent = launched.saturating_sub(of_symbol.fold(0, u64::saturating_add));
            match self.losses.iter_mut().find(|row| row.symbol == symbol) {
                // Those that left records which are not there any more are not without.
                Some(row) => {
                    row.launches_without_records = Some(silent.saturating_sub(row.launches_overwritten))
                }
                None if silent > 0 => self.losses.push(InsideLostRow {
                    launches_without_records: Some(silent),
                    ..lost_row(symbol, Loss::default())
                }),
                None => {}
            }
        }
        self.losses.sort_by(|a, b| {
            let weight =
                |row: &InsideLostRow| (row.records, row.launches_as_they_were, row.launches_without_records);
            weight(b).cmp(&weight(a)).then_with(|| a.symbol.cmp(&b.symbol))
        });
        self
    }
}

/// What kernels lost that a query wants.
fn losses(inside: &Inside, query: &Query<'_>) -> Vec<InsideLostRow> {
    let wanted = inside.losses.iter().filter(|(symbol, _)| query.has_command("kernel", symbol));
    wanted.map(|(symbol, loss)| lost_row(symbol, *loss)).collect()
}

fn lost_row(symbol: &str, loss: Loss) -> InsideLostRow {
    InsideLostRow {
        kernel: demangle::full(symbol).into_owned(),
        symbol: symbol.to_owned(),
        records: loss.records,
        left_out: loss.left_out,
        launches_as_they_were: loss.launches,
        launches_overwritten: loss.overwritten,
        launches_without_records: None,
    }
}

/// What launches of a function take.
fn takes(commands: &[DeviceRow], symbol: &str) -> Option<InsideTakes> {
    let of = commands.iter().filter(|row| row.symbol.as_deref() == Some(symbol));
    let launch = of.filter_map(|row| row.launch.as_ref()).find(|launch| launch.registers > 0)?;
    Some(InsideTakes {
        registers: launch.registers,
        occupancy: launch.occupancy.as_ref().map(|occupancy| occupancy.percent),
        limited_by: launch.occupancy.as_ref().map(|occupancy| occupancy.limiter.clone()),
    })
}

/// What a kernel does in a second, if a launch takes so long.
fn rates(roofline: InsideRoofline, row: &InsideRow, launch_ns: f64) -> InsideRoofline {
    let rate = |of: u64| of as f64 / row.launches.max(1) as f64 / launch_ns * 1e9;
    let (flops_per_s, bytes_per_s) = (rate(row.flops), rate(row.bytes));
    let (compute, memory) = (roofline.roof_flops_per_s, roofline.roof_bytes_per_s);
    let known = compute > 0.0 && memory > 0.0 && row.flops + row.bytes > 0;
    // The lower roof is the one that it is nearer to.
    let (of_compute, of_memory) = (flops_per_s / compute, bytes_per_s / memory);
    let (below, of_roof) =
        if of_memory >= of_compute { ("memory", of_memory) } else { ("compute", of_compute) };
    InsideRoofline {
        launch_ns,
        flops_per_s,
        bytes_per_s,
        intensity: (row.bytes > 0).then(|| row.flops as f64 / row.bytes as f64),
        below: known.then(|| below.to_owned()),
        of_roof: known.then_some(of_roof),
        ..roofline
    }
}

/// Returns the roofs of a trace's devices, if all have the same.
pub fn roofs_of(trace: &Trace) -> Option<Roofs> {
    let devices = trace.names().devices();
    let mut all = devices.iter().map(|device| {
        roofs(&About {
            properties: &device.properties,
            compute_units: device.compute_units,
            clock_khz: device.clock_khz,
            memory_khz: device.memory_khz,
            bus_bits: device.bus_bits,
        })
    });
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// Sums over the blocks of a kernel: what lanes did by the text's instructions.
#[derive(Default)]
struct Work {
    flops16: u64,
    flops32: u64,
    flops64: u64,
    integer: u64,
    loaded: u64,
    stored: u64,
}

impl Work {
    fn add(&mut self, lanes: u64, text: &BlockText) {
        let add = |sum: &mut u64, each: u32| *sum = sum.saturating_add(lanes.saturating_mul(each.into()));
        add(&mut self.flops16, text.flops16);
        add(&mut self.flops32, text.flops32);
        add(&mut self.flops64, text.flops64);
        add(&mut self.integer, text.integer);
        add(&mut self.loaded, text.loaded);
        add(&mut self.stored, text.stored);
    }
}

/// A sum over launches by that of their times.
fn by_time(shapes: &[Shape], of: impl Fn(&Shape) -> f64) -> Option<f64> {
    let ns: f64 = shapes.iter().map(|shape| shape.ns as f64).sum();
    (ns > 0.0).then(|| shapes.iter().map(of).sum::<f64>() / ns)
}

/// Where a block begins in the source.
fn source(kernel: &Kernel, block: usize) -> Option<String> {
    hetrace_trace::placed::source(kernel.description.blocks.get(block)?)
}

/// Blocks that were run, of so many cycles in all, by the time in them; what they did; and lanes that were active.
fn blocks(kernel: &Kernel, cycles: u64) -> (Vec<InsideBlockRow>, Work, Option<f64>) {
    let (mut work, mut lanes, mut slots) = (Work::default(), 0.0, 0.0);
    let mut blocks = Vec::new();
    for (number, block) in kernel.counts.blocks.iter().enumerate().filter(|(_, block)| block.lanes > 0) {
        let text = kernel.description.blocks.get(number).cloned().unwrap_or_default();
        work.add(block.lanes, &text);
        lanes += block.lanes as f64 * f64::from(text.instructions);
        slots += block.visits as f64 * f64::from(text.instructions) * kernel.lanes_per_warp as f64;
        blocks.push(InsideBlockRow {
            block: number as u64,
            source: source(kernel, number),
            visits: block.visits,
            exact: block.exact,
            lanes: block.lanes,
            cycles: block.time,
            share: block.time as f64 / cycles.max(1) as f64,
            instructions: text.instructions,
        });
    }
    blocks.sort_by(|a, b| b.cycles.cmp(&a.cycles).then(a.block.cmp(&b.block)));
    (blocks, work, (slots > 0.0).then(|| lanes / slots))
}

/// Returns a kernel's row, and the cycles in it.
fn row(kernel: &Kernel) -> (u64, InsideRow) {
    let cycles = kernel.counts.blocks.iter().map(|block| block.time).fold(0, u64::saturating_add);
    let (blocks, work, active) = blocks(kernel, cycles);
    let loops = kernel.counts.loops.iter().filter(|one| one.entered > 0).map(|one| InsideLoopRow {
        header: one.header as u64,
        source: source(kernel, one.header),
        entered: one.entered,
        trips: one.back as f64 / one.entered as f64,
        distribution: one.trips.clone(),
    });
    let busiest = kernel.multiprocessors.values().max().copied().unwrap_or(0) as f64;
    let mean = kernel.multiprocessors.values().map(|cycles| *cycles as f64).sum::<f64>()
        / kernel.multiprocessors.len().max(1) as f64;
    let whole = kernel.shapes.iter().all(|shape| shape.blocks.0 == shape.blocks.1);
    let row = InsideRow {
        kernel: demangle::full(&kernel.description.name).into_owned(),
        symbol: kernel.description.name.clone(),
        pid: kernel.pid,
        mode: kernel.description.mode.name().to_owned(),
        launches: kernel.launches,
        launches_as_they_were: None,
        slowdown: None,
        timed: kernel.description.timed,
        thread_blocks: kernel.thread_blocks,
        warps: kernel.warps,
        begun: kernel.counts.begun,
        ended: kernel.counts.ended,
        active: active.filter(|_| kernel.description.timed),
        multiprocessors: kernel.multiprocessors.len() as u64,
        imbalance: (mean > 0.0).then(|| busiest / mean),
        tail: by_time(&kernel.shapes, |shape| shape.tail_ns as f64),
        resident_warps: by_time(&kernel.shapes, |shape| shape.mean_warps * shape.ns as f64),
        plain: None,
        recorded: None,
        flops: work.flops16.saturating_add(work.flops32).saturating_add(work.flops64),
        flops16: work.flops16,
        flops32: work.flops32,
        flops64: work.flops64,
        integer: work.integer,
        loaded: work.loaded,
        stored: work.stored,
        bytes: work.loaded.saturating_add(work.stored),
        roofline: (whole && kernel.description.timed).then(InsideRoofline::default),
        blocks,
        loops: loops.collect(),
        calls: kernel.description.calls.iter().map(|name| demangle::full(name).into_owned()).collect(),
        faults: kernel.counts.faults,
    };
    (cycles, row)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hetrace_trace::inside::{BlockCounts, BlockText, Counts, Described, LoopCounts, Refused};

    use super::*;
    use crate::tally::rows::{LaunchRow, OccupancyRow};
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
            timed: true,
            successors: vec![vec![1], vec![1, 2], vec![-1], vec![-1]],
            sites: vec![],
            summed: vec![],
            blocks: vec![text(3, 8, 0), text(5, 4, 2), text(8, 2, 0), text(9, 1, 0)],
            calls: vec!["_Z5sharef".to_owned()],
            text: String::new(),
            weights: None,
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
            ..Counts::default()
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
            shapes: vec![shape(1), shape(2)],
        };
        let refused = vec![Refused { name: "gemm".to_owned(), reason: "it has no PTX".to_owned() }];
        let loss = |records, launches| Loss { records, launches, left_out: records, ..Loss::default() };
        let losses = [("_Z4spinPfi".to_owned(), loss(2, 5)), ("gone".to_owned(), loss(0, 1))].into();
        Inside { kernels: vec![kernel], refused, lost: 3, losses, problems: vec!["a file is cut".to_owned()] }
    }

    fn shape(grid: u64) -> Shape {
        Shape {
            grid,
            blocks: (1, 1),
            threads: 64,
            ns: 1000,
            peak_warps: 2,
            mean_warps: 1.5,
            peak_blocks: 1,
            tail_ns: 250,
            tail_warps: 0.5,
            ..Shape::default()
        }
    }

    fn launch(registers: u64, percent: f64) -> Option<LaunchRow> {
        let occupancy =
            OccupancyRow { percent, limiter: "registers".to_owned(), blocks: 2, warps: 32, max_warps: 64 };
        Some(LaunchRow {
            grid: vec![1],
            items: vec![64],
            block: vec![64],
            cluster: vec![],
            calls: 2,
            shapes: 1,
            registers,
            shared_static: 0,
            shared_dynamic: 0,
            local: 0,
            occupancy: Some(occupancy),
        })
    }

    const ROOFS: Option<Roofs> = Some(Roofs { flops32: 2e9, flops64: 1e9, bytes: 1e10 });

    fn tables() -> Tally {
        let row = |symbol: &str, avg_ns, launch| DeviceRow {
            symbol: Some(symbol.to_owned()),
            calls: 2,
            avg_ns,
            launch,
            ..DeviceRow::default()
        };
        Tally {
            device: vec![
                row("_Z4spinPfi", 1000.0, launch(40, 75.0)),
                row("_Z4spinPfi__hetrace_inside", 1250.0, launch(56, 50.0)),
                row("mute__hetrace_inside", 10.0, None),
            ],
            ..Tally::default()
        }
    }

    #[test]
    fn rows_are_compared_with_launches_as_they_were() {
        let rows = InsideRows::of(&inside(), &Query::default(), None).compared(&tables().device);
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
        assert_eq!((row.tail, row.resident_warps), (Some(0.25), Some(1.5)));
        let takes =
            |takes: &Option<InsideTakes>| takes.as_ref().map(|takes| (takes.registers, takes.occupancy));
        assert_eq!(
            (takes(&row.plain), takes(&row.recorded)),
            (Some((40, Some(75.0))), Some((56, Some(50.0))))
        );
        // Alone there is nothing to compare with.
        let alone = InsideRows::of(&inside(), &Query::default(), None).compared(&[]);
        assert_eq!((alone.kernels[0].slowdown, alone.kernels[0].launches_as_they_were), (None, None));
        let other = Query { names: vec!["gemm*".to_owned()], ..Query::default() };
        assert_eq!(InsideRows::of(&inside(), &other, None).kernels, []);
    }

    #[test]
    fn kernels_that_lost_are_named() {
        let rows = InsideRows::of(&inside(), &Query::default(), None).compared(&tables().device);
        let lost: Vec<_> = rows
            .losses
            .iter()
            .map(|row| (&*row.kernel, row.records, row.launches_as_they_were, row.launches_without_records))
            .collect();
        // Two launches of the first are there; of the last nothing is.
        assert_eq!(
            lost,
            [("spin(float*, int)", 2, 5, Some(0)), ("gone", 0, 1, None), ("mute", 0, 0, Some(2))]
        );
        let other = Query { names: vec!["gone".to_owned()], ..Query::default() };
        assert_eq!(InsideRows::of(&inside(), &other, None).losses.len(), 1);
    }

    #[test]
    fn a_kernel_is_below_a_roof() {
        let rows = InsideRows::of(&inside(), &Query::default(), ROOFS).compared(&tables().device);
        let roofline = rows.kernels[0].roofline.clone().expect("a roofline");
        // 1,920 operations and 4,832 bytes in two launches of 1 µs.
        assert_eq!(
            (roofline.launch_ns, roofline.flops_per_s, roofline.bytes_per_s),
            (1000.0, 0.96e9, 2.416e9)
        );
        assert_eq!((roofline.below.as_deref(), roofline.of_roof), (Some("compute"), Some(0.48)));
        // Of a part of the thread blocks nothing can be said.
        let mut part = inside();
        part.kernels[0].shapes[0].blocks = (8, 1);
        let rows = InsideRows::of(&part, &Query::default(), ROOFS).compared(&tables().device);
        assert_eq!(rows.kernels[0].roofline, None);
        let unknown = InsideRows::of(&inside(), &Query::default(), None).compared(&tables().device);
        assert_eq!(unknown.kernels[0].roofline.clone().map(|r| r.below), Some(None));
    }

    #[test]
    fn json_has_an_array_of_kernels() {
        let rows = InsideRows::of(&inside(), &Query::default(), None);
        let value = serde_json::to_value(Tally { inside: Some(rows), ..Tally::default() }).unwrap();
        let kernel = &value["inside"][0];
        assert_eq!((&kernel["launches"], &kernel["slowdown"]), (&2.into(), &serde_json::Value::Null));
        let block = &kernel["blocks"][0];
        assert_eq!((&block["block"], &block["source"]), (&1.into(), &"spin.cu:5".into()));
        assert_eq!((&block["visits"], &block["lanes"]), (&40.into(), &960.into()));
        assert_eq!(value["inside_refused"][0]["reason"], "it has no PTX");
        let lost = &value["inside_lost"][0];
        assert_eq!((&lost["records"], &lost["launches_as_they_were"]), (&2.into(), &5.into()));
        assert_eq!(lost["left_out"], 2);
        assert_eq!(lost["launches_without_records"], serde_json::Value::Null);
        assert!(serde_json::to_value(Tally::default()).unwrap().get("inside").is_none());
    }

    #[test]
    fn text_has_blocks_loops_and_what_is_missing() {
        let rows = InsideRows::of(&inside(), &Query::default(), ROOFS).compared(&tables().device);
        let tables = Tally { inside: Some(rows), ..Tally::default() };
        let text = tables.render(&TextOptions::default());
        let from = text.find("Inside spin").unwrap_or_else(|| panic!("{text}"));
        let expected = include_str!("inside.expected.txt");
        assert!(text[from..].starts_with(expected), "{}", &text[from..]);
        let nothing = Tally { inside: Some(InsideRows::default()), ..Tally::default() };
        assert!(nothing.render(&TextOptions::default()).contains("hetrace run --inside"));
    }
}
