//! The tally of a trace that is being recorded: it grows, and can be looked at any time.
//!
//! ```text
//!  Follower ──► Live (sums of calls and commands: those of `tally`) ──► Picture ──► text, JSON
//!               └ what devices did since the last picture
//! ```
//! What takes more than sums (ranges, collectives, memory, telemetry) is in the tally of the finished trace only.
//! Memory grows with functions, kernels, threads and devices, not with calls.

mod busy;
mod picture;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_trace::follow::{Follower, Look};
use hetrace_trace::spans::fast::{Border, CallSink, Ended, Leaves};
use hetrace_trace::spans::{At, Call, Command, ErrorText, Fold, Open, Unfinished};
use hetrace_trace::trace::{OpenError, Thread, ThreadId, Trace};
use hetrace_trace::values::Values;

use super::By;
use super::by::Group;
use super::device::Devices;
use super::host::{Host, Slice};
use super::labels::Labels;
use super::ways::Way;
use busy::Covered;

pub use picture::{Busy, Calling, LIVE_SCHEMA, Picture};
pub use text::LiveText;

/// A row, from one picture to the next.
type Key = (String, String, Group);

/// Sums of a trace that grows.
#[derive(Debug)]
pub struct Live {
    by: Vec<By>,
    host: Host,
    devices: Devices,
    covered: Covered,
    /// Where the sums of calls are that come now.
    current: usize,
    by_thread: bool,
    /// Calls of functions without a model, by API and name.
    unknown: BTreeMap<(String, String), u64>,
    /// Calls and commands by row in the last picture, and when that was.
    calls: HashMap<Key, u64>,
    commands: HashMap<Key, u64>,
    events: u64,
    taken: Option<u64>,
}

/// Why a trace can't be followed any further.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowError {
    /// It can't be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its times go back.
    #[error(
        "times of a stream go back: such a trace cannot be followed; `hetrace tally` reads it when it is finished"
    )]
    Times,
}

impl Live {
    /// Sums of nothing yet. `by` is what rows are grouped by, as in [`Query`](super::Query); ranges are
    /// not known here.
    pub fn new(trace: &Trace, by: Vec<By>) -> Self {
        let labels = Labels::new(trace, &by, false);
        let by_thread = labels.by_thread;
        let mut host = Host::new(trace, by_thread, false);
        Self {
            current: host.slice(ALL),
            host,
            devices: Devices::new(&labels.commands),
            covered: Covered::default(),
            by_thread,
            unknown: BTreeMap::new(),
            calls: HashMap::new(),
            commands: HashMap::new(),
            events: 0,
            taken: None,
            by,
        }
    }

    /// Takes what is new in a trace and before the time `until`; all of it if there is none. Returns what it found.
    ///
    /// # Errors
    /// When the trace can't be read, or its times go back.
    pub fn follow(&mut self, follower: &mut Follower, until: Option<u64>) -> Result<Look, FollowError> {
        let look = follower.read()?;
        if look.grown {
            self.host.grow(follower.trace(), look.renumbered.as_deref());
            self.current = self.host.slice(ALL);
        }
        follower.walk(until, self).map_err(|_| FollowError::Times)?;
        Ok(look)
    }
}

/// All threads together.
const ALL: Slice = Slice::of_all();

impl CallSink for Live {
    /// The place of its sums, once one was counted.
    type Known = Option<usize>;

    fn thread(&mut self, id: ThreadId, _: &Thread) {
        if self.by_thread {
            self.current = self.host.slice(Slice { thread: id, ..Slice::of_all() });
        }
    }

    #[inline(always)]
    fn leaves(&mut self, thread: ThreadId) -> impl Leaves {
        self.host.leaves(self.current, thread)
    }

    fn call(&mut self, call: &Call) {
        self.host.call(self.current, call);
    }

    fn fold(&mut self, fold: &Fold) {
        self.host.fold(self.current, fold);
    }

    fn unfinished(&mut self, call: &Unfinished) {
        self.host.unfinished(self.current, call);
    }

    fn noted_entry(&mut self, _: &Open, _: &Values<'_>) {}

    fn noted_exit(&mut self, _: &Call, _: &Values<'_>) {}

    fn noted_undecided(&mut self, _: ThreadId) {}

    fn begin_later(&mut self) {}

    fn command(&mut self, _: At<'_>, command: &Command<'_>, known: &mut Option<usize>) {
        let sums = *known.get_or_insert_with(|| self.devices.place(command, None, Way::default()));
        self.devices.add(sums, command);
        if let (Some(device), Some(times)) = (command.on_device, command.times) {
            self.covered.add(device.id, times.start, times.end);
        }
    }

    fn unknown(&mut self, api: &str, function: &str) {
        *self.unknown.entry((api.to_owned(), function.to_owned())).or_default() += 1;
    }

    fn other(&mut self, event: &Event<'_, '_>) {
        if let Some(ErrorText { api, code, text: Some(text) }) = ErrorText::of(event) {
            self.host.error_text(api, code, text);
        }
    }

    // A walk in steps has no parts.
    fn merge(&mut self, _: Self, _: &[Thread], _: &mut dyn FnMut(&Thread) -> ThreadId) {}

    fn joined(&mut self, _: &[Border]) -> Result<(), Ended> {
        Ok(())
    }

    fn watch(&mut self, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
