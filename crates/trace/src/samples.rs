//! Samples of processors (`hetrace run --cpu-sample`): where the program's threads were while they had one, and whether that
//! was in a traced call.

use std::collections::HashMap;
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use crate::spans::{At, Call, Open, Unfinished, Visitor, walk_part};
use crate::stacks::{Frame, Kind, Stacks};
pub use crate::trace::Sample;
use crate::trace::{FunctionId, Trace};
use crate::watch::{Pace, Stopped, Watch};

/// Whether a sample was in a traced call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Where {
    /// In none.
    Outside,
    /// In this one, the innermost; none where only its stack says so: calls that were added up or not recorded.
    In(Option<FunctionId>),
}

/// The calls that threads are in, while a trace is walked over.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// By process and thread.
    open: HashMap<(i64, i64), Vec<FunctionId>>,
}

impl Inside {
    /// A call begins.
    pub fn entry(&mut self, at: At<'_>, call: &Open) {
        let who = at.threads.get(call.thread);
        let open = self.open.entry((who.pid, who.tid)).or_default();
        open.truncate(call.depth as usize);
        open.push(call.function);
    }

    /// A call ends, or is found to have no end; it has this depth.
    pub fn end(&mut self, at: At<'_>, depth: u32) {
        let who = at.who();
        if let Some(open) = self.open.get_mut(&(who.pid, who.tid)) {
            open.truncate(depth as usize);
        }
    }

    /// Where a sample was that comes now.
    pub fn place(&self, sample: &Sample, stacks: &Stacks) -> Where {
        let open = self.open.get(&(sample.pid, sample.tid)).and_then(|open| open.last());
        match open {
            Some(function) => Where::In(Some(*function)),
            None if stacks.is_traced(sample.stack) => Where::In(None),
            None => Where::Outside,
        }
    }
}

/// Gives all samples of a trace: when since its first event, when on its clock, and where.
///
/// # Errors
/// When `watch` says so.
pub fn each(
    trace: &Trace,
    watch: Option<Watch<'_>>,
    give: &mut dyn FnMut(u64, u64, &Sample, Where),
) -> Result<(), Stopped> {
    if !trace.has_samples() {
        return Ok(());
    }
    // The events are counted by who reads all of them.
    let ask = |_| watch.map_or(ControlFlow::Continue(()), |watch| watch(0));
    let (inside, pace) = (Inside::default(), Pace::new(Some(&ask)));
    let mut walk = Each { stacks: trace.names().stacks(), inside, first: None, pace, give };
    match walk_part(trace.cursor(), &mut walk) {
        ControlFlow::Continue(_) => Ok(()),
        ControlFlow::Break(stopped) => Err(stopped),
    }
}

struct Each<'a> {
    stacks: &'a Stacks,
    inside: Inside,
    first: Option<u64>,
    pace: Pace<'a>,
    give: &'a mut dyn FnMut(u64, u64, &Sample, Where),
}

impl Visitor for Each<'_> {
    type Break = Stopped;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.first.get_or_insert(at.time);
        self.pace.step()
    }

    fn entry(&mut self, at: At<'_>, call: &Open, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.inside.entry(at, call);
        ControlFlow::Continue(())
    }

    fn exit(&mut self, at: At<'_>, call: &Call, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.inside.end(at, call.depth);
        ControlFlow::Continue(())
    }

    fn unfinished(&mut self, at: At<'_>, call: &Unfinished) -> ControlFlow<Stopped> {
        self.inside.end(at, call.depth);
        ControlFlow::Continue(())
    }

    fn sample(&mut self, at: At<'_>, sample: &Sample, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        let since = at.time.saturating_sub(self.first.unwrap_or(at.time));
        (self.give)(since, at.time, sample, self.inside.place(sample, self.stacks));
        ControlFlow::Continue(())
    }
}

/// `hot (app.c)`, `memcpy (libc.so.6)`, `libc.so.6+0x1234`.
pub fn function_of(frame: &Frame) -> String {
    let place = if frame.file.is_empty() { &*frame.module } else { frame.file_name() };
    match frame.kind {
        Kind::Missing => frame.name.to_string(),
        _ if place.is_empty() || frame.name.starts_with(place) => frame.name.to_string(),
        _ => format!("{} ({place})", frame.name),
    }
}
