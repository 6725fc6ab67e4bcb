//! Rows of samples of processors.

use hetrace_trace::samples::{Sample, Where};
use hetrace_trace::spans::At;

use super::super::tables::SAMPLES;
use super::{Rows, Step, ns};

impl Rows<'_, '_> {
    /// Makes the row of a sample that comes now.
    pub(super) fn sampled(&mut self, at: At<'_>, sample: &Sample) -> Step {
        let call = at.threads.find(sample.pid, sample.tid).map_or(0, |id| self.calls.innermost(id.index()));
        let is_inside = self.inside.place(sample, self.trace.names().stacks()) != Where::Outside;
        let source = self.sources.of(sample.stack);
        let frame = source.as_deref().map(|source| &source.innermost);
        let row = [
            self.clock.of(at.time).into(),
            sample.pid.into(),
            sample.tid.into(),
            at.threads.name_of(sample.pid, sample.tid).into(),
            sample.cpu.into(),
            if sample.kernel { "kernel" } else { "user" }.into(),
            ns(sample.period),
            is_inside.into(),
            Some(call).filter(|id| *id != 0).into(),
            frame.map(|frame| &*frame.file).filter(|file| !file.is_empty()).into(),
            frame.map(|frame| frame.line).filter(|line| *line > 0).into(),
            frame.map(|frame| &*frame.name).into(),
            source.as_deref().map(|source| source.stack.as_str()).into(),
            self.job_rank(sample.pid).into(),
        ];
        self.sheets.push(&SAMPLES, &row)
    }
}
