//! What warps recorded inside of kernels, a line each.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::ControlFlow;

use super::clock::Face;
use super::{Filter, Options};
use hetrace_model::glob_matches;
use hetrace_trace::demangle;
use hetrace_trace::inside::{Event, What};
use hetrace_trace::placed::{Launch, Placed};
use hetrace_trace::trace::Trace;
use hetrace_trace::watch::Watch;

/// Lines between two questions whether to go on.
const WATCHED: u64 = 1 << 14;

/// What was printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insides {
    /// Lines.
    pub lines: u64,
    /// Launches that recorded, whose commands are not known: they have no time and are left out.
    pub unplaced: u64,
}

/// Prints what warps recorded in the order of the host's time; none if `watch` has stopped it, with whole lines. Of the
/// filter, names are those of kernels; processes and times hold; all else asks for what is not inside.
///
/// # Errors
/// Those of `out`.
pub fn print_inside(
    trace: &Trace,
    options: &Options,
    filter: &Filter,
    watch: Watch<'_>,
    out: &mut dyn Write,
) -> io::Result<Option<Insides>> {
    let Ok(placed) = Placed::new(trace, Some(watch)) else { return Ok(None) };
    let mut face = Face::new(options.clock, trace.epoch_offset_ns(), options.deltas);
    face.see(placed.first);
    let mut done = Insides { lines: 0, unplaced: placed.unplaced };
    let (mut line, mut seen) = (String::new(), 0u64);
    let walked = placed.each(|host, launch, event| {
        seen += 1;
        if seen.is_multiple_of(WATCHED) && watch(WATCHED).is_break() {
            return ControlFlow::Break(None);
        }
        if !wants(filter, launch, host.saturating_sub(placed.first)) {
            return ControlFlow::Continue(());
        }
        line.clear();
        face.write(&mut line, host);
        write_event(&mut line, launch, event, options.full_names);
        line.push('\n');
        done.lines += 1;
        out.write_all(line.as_bytes())
            .map_or_else(|error| ControlFlow::Break(Some(error)), ControlFlow::Continue)
    });
    match walked {
        ControlFlow::Continue(()) => out.flush().map(|()| Some(done)),
        ControlFlow::Break(Some(error)) => Err(error),
        ControlFlow::Break(None) => Ok(None),
    }
}

fn wants(filter: &Filter, launch: &Launch<'_>, since: u64) -> bool {
    let symbol = &launch.kernel.name;
    let named = |glob: &String| {
        glob_matches(glob, symbol)
            || glob_matches(glob, &demangle::short(symbol))
            || glob_matches(glob, &demangle::full(symbol))
    };
    (filter.pids.is_empty() || filter.pids.contains(&launch.pid))
        && (filter.names.is_empty() || filter.names.iter().any(named))
        && filter.from.is_none_or(|from| since >= from)
        && filter.to.is_none_or(|to| since < to)
}

/// Appends an event without its time.
fn write_event(line: &mut String, launch: &Launch<'_>, event: &Event, full_names: bool) {
    let symbol = &launch.kernel.name;
    let name = if full_names { demangle::full(symbol) } else { demangle::short(symbol) };
    let ([x, y, z], kind) = (event.block, event.what.name(launch.kernel));
    // Writing to a string does not fail.
    let _ = write!(line, "{} {name} launch {} ({x},{y},{z}) ", launch.pid, launch.records.grid);
    let _ = if launch.kernel.timed {
        write!(line, "warp {} SM {}: {kind}", event.warp, event.multiprocessor)
    } else {
        write!(line, "warp {} (no clock: at its launch's begin or later): {kind}", event.warp)
    };
    if let (Some(block), What::At(record)) = (event.basic_block(launch.kernel), &event.what) {
        if record.repeats > 0 {
            let _ = write!(line, " {} ×", record.repeats);
        }
        let _ = write!(line, " block {block}");
        if let Some(source) = launch.source(block) {
            let _ = write!(line, " {source}");
        }
    }
    let _ = write!(line, " lanes {:08x}", event.what.lanes());
    if let What::At(record) = &event.what
        && record.chosen != record.active
    {
        let _ = write!(line, " took {:08x}", record.chosen);
    }
    if let What::At(record) = &event.what
        && record.case > 0
    {
        let _ = write!(line, " case {}", record.case);
    }
}
