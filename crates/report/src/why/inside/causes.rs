//! The causes, each by a rule of its own.

use hetrace_trace::inside::{BlockSpan, BlockText, Kernel, Shape};
use hetrace_trace::placed::source;
use hetrace_trace::text::{count, duration, duration_f, plural};
use hetrace_vendor::occupancy::Limiter;

use super::{Around, InsideCauseRow};

/// Less of a kernel's time is not worth a word.
const WORTH: f64 = 0.1;
/// Lanes that may be idle before it is divergence.
const IDLE_LANES: f64 = 0.2;
/// Trips of a loop for each time that lanes come in, from which on it may be waiting.
const MANY_TRIPS: f64 = 64.0;
/// Lanes that go round together in a loop that waits for something, at most; or
const FEW_LANES: f64 = 4.0;
/// instructions of a loop that only looks.
const FEW_INSTRUCTIONS: u32 = 16;
/// Theoretical occupancy below which it may be too little to hide latencies, percent.
const LOW_OCCUPANCY: f64 = 50.0;
/// Multiprocessors of the device that run a kernel, from which on all of them are in use.
const MOST_OF_THEM: f64 = 0.75;

/// Returns why a kernel is slow, what weighs most first.
pub(super) fn causes(kernel: &Kernel, around: &Around) -> Vec<InsideCauseRow> {
    let mut found: Vec<InsideCauseRow> = [
        divergence(kernel),
        blocks(kernel),
        multiprocessors(kernel),
        idle(kernel, around),
        tail(kernel),
        occupancy(kernel, around),
    ]
    .into_iter()
    .flatten()
    .chain(waiting(kernel))
    .collect();
    let weight = |cause: &InsideCauseRow| cause.share.unwrap_or(0.0);
    found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    found
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn text(kernel: &Kernel, block: usize) -> &BlockText {
    const NOTHING: &BlockText = &BlockText {
        file: None,
        line: None,
        instructions: 0,
        flops32: 0,
        flops64: 0,
        flops16: 0,
        integer: 0,
        loaded: 0,
        stored: 0,
        barriers: 0,
    };
    kernel.description.blocks.get(block).unwrap_or(NOTHING)
}

/// A basic block in words.
fn place(kernel: &Kernel, block: usize) -> String {
    let source = source(text(kernel, block)).map_or_else(String::new, |source| format!(" at {source}"));
    format!("block {block}{source}")
}

/// Part of the kernel's cycles in some blocks.
fn cycles(kernel: &Kernel, of: impl Iterator<Item = usize>) -> f64 {
    let all: u64 = kernel.counts.blocks.iter().map(|block| block.time).fold(0, u64::saturating_add);
    let time = |block: usize| kernel.counts.blocks.get(block).map_or(0, |block| block.time);
    of.map(time).fold(0, u64::saturating_add) as f64 / all.max(1) as f64
}

/// Lanes of the warps that began did not run together.
fn divergence(kernel: &Kernel) -> Option<InsideCauseRow> {
    // Lanes that the launch has: its last warp may be a part of one.
    let whole = (kernel.counts.begun as f64 / kernel.warps.max(1) as f64).min(kernel.lanes_per_warp as f64);
    let (mut slots, mut used, mut worst) = (0.0, 0.0, (0.0, 0));
    for (block, counts) in kernel.counts.blocks.iter().enumerate() {
        let each = f64::from(text(kernel, block).instructions);
        let (room, lanes) = (counts.visits as f64 * whole * each, counts.lanes as f64 * each);
        (slots, used) = (slots + room, used + lanes.min(room));
        if room - lanes > worst.0 {
            worst = (room - lanes, block);
        }
    }
    let idle = 1.0 - used / slots;
    if !(slots > 0.0 && idle >= IDLE_LANES) {
        return None;
    }
    let block = worst.1;
    let counts = kernel.counts.blocks.get(block)?;
    let lanes = counts.lanes as f64 / counts.visits.max(1) as f64;
    Some(InsideCauseRow {
        kind: "divergence".to_owned(),
        cause: format!("divergence: {} of the lanes are idle while others of their warp run", percent(idle)),
        share: Some(idle),
        block: Some(block as u64),
        source: source(text(kernel, block)),
        evidence: format!(
            "{}: {lanes:.1} of {whole:.0} lanes in {}{}, {} of the lanes' time that is lost, {} of the cycles",
            place(kernel, block),
            if counts.exact { "" } else { "about " },
            plural(counts.visits, "visit"),
            percent(worst.0 / (slots - used)),
            percent(cycles(kernel, std::iter::once(block)))
        ),
        remedy: "let the threads of a warp go the same way: sort or group the work by what decides, or replace short branches by selection"
            .to_owned(),
        ..InsideCauseRow::default()
    })
}

/// What a share is of: the time of all launches.
fn total(kernel: &Kernel) -> f64 {
    kernel.shapes.iter().map(|shape| shape.ns as f64).sum::<f64>().max(1.0)
}

/// The launch of which something is most.
fn most(kernel: &Kernel, of: impl Fn(&Shape) -> f64) -> Option<&Shape> {
    kernel.shapes.iter().max_by(|a, b| of(a).total_cmp(&of(b)))
}

fn span(block: &BlockSpan) -> String {
    let [x, y, z] = block.at;
    format!("thread block ({x},{y},{z}) on multiprocessor {}", block.multiprocessor)
}

/// Thread blocks that ran at a time took longer than others.
fn blocks(kernel: &Kernel) -> Option<InsideCauseRow> {
    // Of several waves, the others can make up for it.
    let of = |shape: &Shape| match shape.peak_blocks >= shape.blocks.1 && shape.blocks.1 > 1 {
        true => shape.longest.ns as f64 - shape.mean_block_ns,
        false => 0.0,
    };
    let share = kernel.shapes.iter().map(of).sum::<f64>() / total(kernel);
    let worst = most(kernel, of).filter(|_| share >= WORTH)?;
    Some(InsideCauseRow {
        kind: "imbalance".to_owned(),
        cause: format!("imbalance: {} of the time most thread blocks are done and wait for the longest one", percent(share)),
        share: Some(share),
        grid: Some(worst.grid),
        thread_block: Some(worst.longest.at),
        multiprocessor: Some(worst.longest.multiprocessor),
        evidence: format!(
            "launch {}: {} took {}, a thread block in the mean {}",
            worst.grid,
            span(&worst.longest),
            duration(worst.longest.ns),
            duration_f(worst.mean_block_ns)
        ),
        remedy: "give each thread block as much work, or make more and smaller ones, so that those that are done early get others"
            .to_owned(),
        ..InsideCauseRow::default()
    })
}

/// Multiprocessors were in use for unequal times.
fn multiprocessors(kernel: &Kernel) -> Option<InsideCauseRow> {
    let busiest = |shape: &Shape| shape.busy.iter().max_by_key(|(_, ns)| **ns).map(|(n, ns)| (*n, *ns));
    let mean = |shape: &Shape| {
        shape.busy.values().map(|ns| *ns as f64).sum::<f64>() / shape.busy.len().max(1) as f64
    };
    // Of one wave, the blocks say it.
    let of = |shape: &Shape| match busiest(shape) {
        Some((_, ns)) if shape.peak_blocks < shape.blocks.1 => ns as f64 - mean(shape),
        _ => 0.0,
    };
    let share = kernel.shapes.iter().map(of).sum::<f64>() / total(kernel);
    let worst = most(kernel, of).filter(|_| share >= WORTH)?;
    let (number, ns) = busiest(worst)?;
    Some(InsideCauseRow {
        kind: "imbalance".to_owned(),
        cause: format!(
            "imbalance: {} of the time multiprocessors are done and wait for the busiest one",
            percent(share)
        ),
        share: Some(share),
        grid: Some(worst.grid),
        multiprocessor: Some(number),
        evidence: format!(
            "launch {}: multiprocessor {number} was in use for {}, {} in the mean for {}",
            worst.grid,
            duration(ns),
            plural(worst.busy.len() as u64, "multiprocessor"),
            duration_f(mean(worst))
        ),
        remedy: "make the work of thread blocks alike; more and smaller ones even out".to_owned(),
        ..InsideCauseRow::default()
    })
}

/// There are fewer thread blocks than multiprocessors.
fn idle(kernel: &Kernel, around: &Around) -> Option<InsideCauseRow> {
    let all = around.multiprocessors;
    // Where thread blocks were sampled, others ran elsewhere.
    let of = |shape: &Shape| match shape.blocks.0 == shape.blocks.1 && all > 0 {
        true => (1.0 - shape.busy.len() as f64 / all as f64).max(0.0) * shape.ns as f64,
        false => 0.0,
    };
    let share = kernel.shapes.iter().map(of).sum::<f64>() / total(kernel);
    let worst = most(kernel, of).filter(|_| share > 1.0 - MOST_OF_THEM)?;
    Some(InsideCauseRow {
        kind: "idle-multiprocessors".to_owned(),
        cause: format!("idle multiprocessors: {} of the device's run nothing of it", percent(share)),
        share: Some(share),
        grid: Some(worst.grid),
        evidence: format!(
            "launch {}: {} of {} threads on {} of {all} multiprocessors",
            worst.grid,
            plural(worst.blocks.0, "thread block"),
            count(worst.threads),
            worst.busy.len()
        ),
        remedy: "launch more thread blocks than there are multiprocessors, or run other kernels beside it"
            .to_owned(),
        ..InsideCauseRow::default()
    })
}

/// The last wave of thread blocks does not fill the device.
fn tail(kernel: &Kernel) -> Option<InsideCauseRow> {
    let of = |shape: &Shape| match shape.peak_blocks < shape.blocks.1 && shape.peak_warps > 0 {
        true => shape.tail_ns as f64 * (1.0 - shape.tail_warps / shape.peak_warps as f64),
        false => 0.0,
    };
    let share = kernel.shapes.iter().map(of).sum::<f64>() / total(kernel);
    let worst = most(kernel, of).filter(|_| share >= WORTH)?;
    let waves = worst.blocks.1 as f64 / worst.peak_blocks.max(1) as f64;
    Some(InsideCauseRow {
        kind: "tail".to_owned(),
        cause: format!("tail: {} of the time is lost while the last thread blocks run", percent(share)),
        share: Some(share),
        grid: Some(worst.grid),
        thread_block: Some(worst.last.at),
        multiprocessor: Some(worst.last.multiprocessor),
        evidence: format!(
            "launch {}: for the last {} of {} there were {:.1} warps in the mean of {} before; {waves:.1} waves of {}; last {}, which took {}",
            worst.grid,
            duration(worst.tail_ns),
            duration(worst.ns),
            worst.tail_warps,
            worst.peak_warps,
            plural(worst.peak_blocks, "thread block"),
            span(&worst.last),
            duration(worst.last.ns)
        ),
        remedy: "make the number of thread blocks a multiple of what runs at a time, or the thread blocks smaller; begin with the longest"
            .to_owned(),
        ..InsideCauseRow::default()
    })
}

/// Loops that go round often and do nothing but look.
fn waiting(kernel: &Kernel) -> Vec<InsideCauseRow> {
    let Ok(graph) = kernel.description.graph() else { return Vec::new() };
    let loops = graph.loops();
    let found = loops.loops.iter().zip(&kernel.counts.loops).filter_map(|(one, counts)| {
        let trips = counts.back as f64 / counts.entered.max(1) as f64;
        let header = kernel.counts.blocks.get(counts.header)?;
        let lanes = header.lanes as f64 / header.visits.max(1) as f64;
        let of = |member: fn(&BlockText) -> u32| {
            one.body.iter().map(|block| member(text(kernel, *block))).fold(0, u32::saturating_add)
        };
        let works = of(|text| text.stored | text.flops16 | text.flops32 | text.flops64 | text.barriers) > 0;
        let looks = of(|text| text.instructions) <= FEW_INSTRUCTIONS && of(|text| text.loaded) > 0;
        let share = cycles(kernel, one.body.iter().copied());
        let waits = trips >= MANY_TRIPS && !works && (looks || lanes <= FEW_LANES) && share >= WORTH;
        waits.then(|| InsideCauseRow {
            kind: "waiting".to_owned(),
            cause: format!("waiting: {} of the cycles in a loop that stores and computes nothing", percent(share)),
            share: Some(share),
            block: Some(counts.header as u64),
            source: source(text(kernel, counts.header)),
            evidence: format!(
                "{}: {} came in {}, {trips:.0} trips each, {lanes:.1} lanes together",
                place(kernel, counts.header),
                if counts.entered == 1 { "a lane" } else { "lanes" },
                plural(counts.entered, "time"),
            ),
            remedy: "it looks like a lock, a flag or a barrier of several thread blocks: let one thread of a block wait, back off, or do without"
                .to_owned(),
            ..InsideCauseRow::default()
        })
    });
    found.collect()
}

/// Few warps fit at a time.
fn occupancy(kernel: &Kernel, around: &Around) -> Option<InsideCauseRow> {
    let (fits, needs, of_twin) = around.fits.filter(|(fits, ..)| fits.percent() < LOW_OCCUPANCY)?;
    let by = match fits.limiter {
        Limiter::Registers => format!("registers: {} of each thread", needs.registers),
        Limiter::Shared => format!("shared memory: {} bytes of each thread block", count(needs.shared)),
        Limiter::Threads | Limiter::Blocks => format!("block size: {} threads", needs.threads),
    };
    let remedy = match fits.limiter {
        Limiter::Registers => {
            "fewer registers (`__launch_bounds__`, `-maxrregcount`), if that does not spill"
        }
        Limiter::Shared => "less shared memory, or larger thread blocks that share it",
        Limiter::Threads | Limiter::Blocks => {
            "thread blocks of another size: a multiple of a warp that divides what a multiprocessor holds"
        }
    };
    let longest = most(kernel, |shape| shape.ns as f64)?;
    let room = fits.of.saturating_mul(longest.busy.len() as u64);
    let twin = if of_twin { ", with recording, as no launch ran as it was" } else { "" };
    Some(InsideCauseRow {
        kind: "occupancy".to_owned(),
        cause: format!(
            "low occupancy: {:.0} % ({} of {} warps), limited by {by}{twin}",
            fits.percent(),
            fits.warps,
            fits.of
        ),
        grid: Some(longest.grid),
        evidence: format!(
            "launch {}: {:.1} warps in the mean on {} ({:.0} %), with recording",
            longest.grid,
            longest.mean_warps,
            plural(longest.busy.len() as u64, "multiprocessor"),
            longest.mean_warps * 100.0 / room.max(1) as f64
        ),
        remedy: remedy.to_owned(),
        ..InsideCauseRow::default()
    })
}

#[cfg(test)]
mod tests;
