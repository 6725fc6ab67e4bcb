//! Commands whose kernels recorded.

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;

use crate::inside::TWIN;
use crate::spans::{At, Command, CommandKind, Visitor, walk};
use crate::trace::Trace;
use crate::watch::{Pace, Stopped, Watch};

/// A command that launched a twin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ran {
    /// Its process.
    pub pid: i64,
    /// The kernel that it is a twin of, as the API has it.
    pub symbol: String,
    /// When the call that enqueued it began; 0 if that is not known.
    pub cause: u64,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The number of its device.
    pub device: u32,
    /// The number of its queue.
    pub queue: u32,
    /// The number of the twin among functions.
    pub function: u32,
    /// Bytes of shared memory of a block that the launch asked for.
    pub shared: u64,
}

impl Ran {
    /// Returns whether a command is this one.
    pub fn is(&self, command: &Command<'_>) -> bool {
        let times = command.times.map(|times| (times.start, times.end));
        let queue = command.on_queue.map_or(0, |queue| queue.id);
        command.pid == self.pid && times == Some((self.start, self.end)) && queue == self.queue
    }
}

/// Returns the commands of twins that have times, by when they began, and the time of the trace's first event.
pub(super) fn commands(trace: &Trace, watch: Option<Watch<'_>>) -> Result<(Vec<Ran>, u64), Stopped> {
    let mut finder = Finder { found: Vec::new(), first: None, pace: Pace::new(watch) };
    match walk(trace, &mut finder) {
        ControlFlow::Break(stopped) => Err(stopped),
        ControlFlow::Continue(_) => Ok((finder.found, finder.first.unwrap_or(0))),
    }
}

struct Finder<'w> {
    found: Vec<Ran>,
    first: Option<u64>,
    pace: Pace<'w>,
}

impl Visitor for Finder<'_> {
    type Break = Stopped;

    fn event(&mut self, at: At<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        self.first.get_or_insert(at.time);
        self.pace.step()
    }

    fn command(&mut self, _: At<'_>, command: &Command<'_>, _: &Event<'_, '_>) -> ControlFlow<Stopped> {
        let symbol = command.name.strip_suffix(TWIN).filter(|_| command.kind == CommandKind::Kernel);
        if let (Some(symbol), Some(times)) = (symbol, command.times) {
            self.found.push(Ran {
                pid: command.pid,
                symbol: symbol.to_owned(),
                cause: command.cause,
                start: times.start,
                end: times.end.max(times.start),
                device: command.on_device.map_or(0, |device| device.id),
                queue: command.on_queue.map_or(0, |queue| queue.id),
                function: command.function.map_or(0, |function| function.id),
                shared: command.shared,
            });
        }
        ControlFlow::Continue(())
    }
}
