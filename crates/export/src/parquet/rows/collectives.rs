//! Rows of operations among ranks, and of communicators.

use std::ops::ControlFlow;

use hetrace_ctf::read::Event;
use hetrace_model::Collective;
use hetrace_trace::spans::{At, Call, Open, Unfinished};
use hetrace_trace::trace::FunctionId;

use super::super::batch::Cell;
use super::super::tables::{COLLECTIVES, COMMUNICATORS};
use super::calls::api_of;
use super::{Rows, Step};
use crate::operations::{Amount, Meaning, number};

/// An operation that was called.
#[derive(Clone, Debug)]
pub(super) struct Called<'t> {
    id: i64,
    pid: i64,
    tid: i64,
    start: u64,
    function: FunctionId,
    about: &'t Collective,
    communicator: u64,
    peer: Option<u64>,
    element: Option<String>,
    count: u64,
    bytes: u64,
    queue: Option<u64>,
}

impl<'t> Rows<'t, '_> {
    /// A call, whose number is `id`, begins.
    pub(super) fn operates(&mut self, at: At<'_>, call: &Open, id: i64, event: &Event<'_, '_>) {
        let operation = match self.operations.meaning(call.function) {
            Meaning::Nothing | Meaning::Enqueues => return,
            Meaning::Flush => None,
            Meaning::Operation(about, queue) => {
                let who = at.who();
                let amount = Amount::of(self.trace, call.function, about, event);
                Some(Called {
                    id,
                    pid: who.pid,
                    tid: who.tid,
                    start: call.start,
                    function: call.function,
                    about,
                    communicator: number(event, &about.communicator).unwrap_or(0),
                    peer: about.peer.as_deref().and_then(|peer| number(event, peer)),
                    element: amount.element.map(str::to_owned),
                    count: amount.count,
                    bytes: amount.bytes,
                    queue: queue.and_then(|queue| number(event, queue)),
                })
            }
        };
        self.operations.enter(call, id, operation);
    }

    /// A call ends.
    pub(super) fn operated(&mut self, call: &Call) -> Step {
        let known = self.operations.exit(call);
        known.iter().try_for_each(|(called, launched)| self.operation(called, *launched))
    }

    /// A call has no end.
    pub(super) fn unfinished_operation(&mut self, call: &Unfinished) -> Step {
        let known = match self.operations.meaning(call.function) {
            Meaning::Nothing | Meaning::Enqueues => return ControlFlow::Continue(()),
            Meaning::Flush | Meaning::Operation(..) => self.operations.leave(call.thread, call.depth, false),
        };
        known.iter().try_for_each(|(called, launched)| self.operation(called, *launched))
    }

    /// Writes what nothing launched, and all communicators.
    pub(super) fn finish_operations(&mut self) -> Step {
        let rest = self.operations.take_unlaunched();
        rest.iter().try_for_each(|called| self.operation(called, None))?;
        for about in self.collectives.communicators() {
            let digits = about.handle.strip_prefix("0x");
            let handle = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            let cells: [Cell<'_>; COMMUNICATORS.columns.len()] = [
                about.communicator.as_str().into(),
                about.pid.into(),
                handle.unwrap_or(0).into(),
                about.rank.into(),
                about.size.into(),
                self.job_rank(about.pid).into(),
            ];
            self.sheets.push(&COMMUNICATORS, &cells)?;
        }
        ControlFlow::Continue(())
    }

    fn operation(&mut self, called: &Called<'_>, launched: Option<i64>) -> Step {
        let known = self.collectives.communicator_of(called.pid, called.function, called.communicator);
        let handle;
        let name = match known {
            Some(known) => known.communicator.as_str(),
            None => {
                handle = format!("{:#x}", called.communicator);
                &handle
            }
        };
        let cells: [Cell<'_>; COLLECTIVES.columns.len()] = [
            called.id.into(),
            launched.into(),
            called.pid.into(),
            called.tid.into(),
            self.clock.of(called.start).into(),
            api_of(self.trace, called.function).into(),
            called.about.operation.as_str().into(),
            name.into(),
            called.communicator.into(),
            known.and_then(|known| known.rank).into(),
            known.and_then(|known| known.size).into(),
            called.peer.into(),
            called.element.as_deref().into(),
            called.count.into(),
            called.bytes.into(),
            called.queue.into(),
            self.job_rank(called.pid).into(),
        ];
        self.sheets.push(&COLLECTIVES, &cells)
    }
}
