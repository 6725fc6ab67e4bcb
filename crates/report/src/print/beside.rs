//! Events of the operating system between those of the program, by time.

use std::ops::ControlFlow;

use hetrace_ctf::read::StreamError;
use hetrace_trace::args::{Args, Plans};
use hetrace_trace::probes::{Open, PREFIX, Pairs};
use hetrace_trace::trace::{Cursor, Item, Thread, Trace};

use super::line::write_fields;

/// The trace of the operating system, as far as it is read.
pub(super) struct Beside<'t> {
    cursor: Cursor<'t>,
    plans: Plans<'t>,
    fields: Args<'t>,
    contexts: Args<'t>,
    /// The next event or damage, if there is one.
    next: Option<Result<Next<'t>, StreamError>>,
    /// How often something could not be read.
    damaged: u64,
}

/// An event that was read and not shown yet.
pub(super) struct Next<'t> {
    /// Nanoseconds on the clock of both traces.
    pub time: u64,
    /// Its name.
    pub name: &'t str,
    /// What stands behind the name.
    pub text: String,
    /// Its thread, as far as the trace says.
    pub who: Thread,
}

/// The ranges between probes that are open, by process and thread.
#[derive(Debug)]
pub(super) struct Probes {
    pairs: Pairs,
    open: Open<(i64, i64)>,
}

impl Probes {
    pub fn new(trace: &Trace) -> Self {
        Self { pairs: trace.probe_pairs(), open: Open::new() }
    }

    /// Returns the name of the range that an event ends, and how long it was; none if it ends none.
    pub fn ended(&mut self, event: &Next<'_>) -> Option<(String, u64)> {
        let probe = event.name.strip_prefix(PREFIX)?;
        let who = (event.who.pid, event.who.tid);
        let (name, begin, _) = self.open.hit(&self.pairs, who, probe, (event.time, 0))?;
        Some((name, event.time.saturating_sub(begin)))
    }
}

impl<'t> Beside<'t> {
    pub fn new(trace: &'t Trace) -> Self {
        let mut beside = Self {
            cursor: trace.cursor_as_recorded(),
            plans: Plans::new(trace),
            fields: Args::default(),
            contexts: Args::default(),
            next: None,
            damaged: 0,
        };
        beside.read();
        beside
    }

    /// Returns how often something could not be read so far, and how many packets are missing.
    pub fn missing(&self) -> (u64, u64) {
        (self.damaged, self.cursor.losses().packets)
    }

    /// Hands out all events before a time, or all that are left; damage when it is met, which is somewhat before.
    pub fn until<B>(
        &mut self,
        time: Option<u64>,
        mut take: impl FnMut(Result<&Next<'t>, &StreamError>) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let is_due = |next: &Next<'t>| time.is_none_or(|time| next.time < time);
        while let Some(next) = self.next.take_if(|next| next.as_ref().map_or(true, is_due)) {
            take(next.as_ref())?;
            self.read();
        }
        ControlFlow::Continue(())
    }

    fn read(&mut self) {
        let occurrence = match self.cursor.next_item() {
            None => return,
            Some(Item::Damage { error, .. }) => {
                self.damaged += 1;
                self.next = Some(Err(error));
                return;
            }
            Some(Item::Event(occurrence)) => occurrence,
        };
        let event = &occurrence.event;
        let mut text = String::new();
        self.contexts.read_contexts(&self.plans, event);
        if !self.contexts.pieces.is_empty() {
            text.push('{');
            write_fields(&mut text, &self.contexts, &mut true);
            text.push_str("} ");
        }
        self.fields.read(&self.plans, event, None);
        write_fields(&mut text, &self.fields, &mut true);
        let who = occurrence.threads().get(occurrence.thread).clone();
        self.next = Some(Ok(Next { time: occurrence.time, name: &event.class().name, text, who }));
    }
}
