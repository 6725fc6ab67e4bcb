//! Samples of processors: a row below each thread, of what it was in while it had a CPU.

use std::io;

use super::sheet::{Mark, Row, Sheet};
use super::tracks::{Kind, Tracks, number};
use hetrace_trace::samples::{Sample, function_of};
use hetrace_trace::spans::At;
use hetrace_trace::stacks::Kind as Known;
use hetrace_trace::trace::{Thread, Trace};

/// The category of all samples.
const CATEGORY: &str = "sample";
/// The name of one whose stack is not known.
const UNKNOWN: &str = "[stack not known]";

/// Draws a sample that comes now as an instant with the name of its function; its stack is beside it.
pub(super) fn draw(
    sheet: &mut Sheet<'_>,
    tracks: &mut Tracks,
    trace: &Trace,
    at: At<'_>,
    called: Option<&str>,
    sample: &Sample,
) -> io::Result<()> {
    let name = at.threads.name_of(sample.pid, sample.tid).unwrap_or_default().to_owned();
    let who = Thread { pid: sample.pid, tid: sample.tid, name };
    let thread = tracks.thread_of(sheet, trace, &who, called);
    let key = number(Kind::Samples, [who.pid as u64, who.tid as u64, 0]);
    let row = sheet.row(Row::new(key, Some(thread), "CPU samples"));
    let stacks = trace.names().stacks();
    let innermost = stacks.frames(sample.stack).into_iter().find(|frame| frame.kind != Known::Missing);
    let name = innermost.map_or_else(|| UNKNOWN.to_owned(), function_of);
    if sheet.is_active() {
        sheet.notes.number("CPU", sample.cpu);
        if sample.kernel {
            sheet.notes.text("in", "the kernel");
        }
        sheet.notes.number("stands for ns", sample.period);
        sheet.notes.stack(stacks, sample.stack);
    }
    sheet.mark(Mark::instant(at.time, row, CATEGORY, &name))
}
