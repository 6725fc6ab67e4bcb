//! Commands that are in flight, lane by lane: those of an immediate command buffer, or of what a queue was handed.
//!
//! A command *can run* when the events that it waits for are signalled and what is before it in its order has run; rules
//! take it that it does so at once. It is *over* when the program has seen that it is.

use std::collections::VecDeque;

use crate::lint::findings::Ref;
use crate::lint::kinds::KindId;
use crate::lint::span::Span;

/// What a command does.
#[derive(Clone, Debug)]
pub(super) struct Op {
    /// The call that appended it.
    pub call: Ref,
    /// Events that it waits for.
    pub waits: Vec<u64>,
    /// The event that it signals or resets; 0 for none.
    pub event: u64,
    pub resets: bool,
    /// It waits for all before it in its command buffer, and all behind wait for it.
    pub barrier: bool,
    pub launch: bool,
    /// Memory that it uses, by address.
    pub spans: Vec<Span>,
    /// Objects that it uses.
    pub objects: Vec<(KindId, u64)>,
}

/// A command in flight.
#[derive(Clone, Debug)]
pub(super) struct Flying {
    pub op: Op,
    /// The number of the submission: those of one lane run one after the other.
    pub unit: u64,
    /// The command buffer.
    pub list: u64,
    /// The call that put it in flight.
    pub by: Ref,
    pub in_order: bool,
    pub ran: bool,
}

/// The commands of one order.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub flying: VecDeque<Flying>,
    /// The number of the first.
    pub first: u64,
    /// How many have not run.
    pub blocked: usize,
}

impl Lane {
    /// The number that the next one gets.
    pub fn end(&self) -> u64 {
        self.first + self.flying.len() as u64
    }

    pub fn get(&self, number: u64) -> Option<&Flying> {
        self.flying.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Flying> {
        self.flying.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The command before that must have run and has not.
    pub fn held_by(&self, number: u64) -> Option<u64> {
        let flying = self.get(number)?;
        if self.blocked == 0 || (self.blocked == 1 && !flying.ran) {
            return None;
        }
        let before = usize::try_from(number - self.first).ok()?;
        let holds = |other: &Flying| {
            let orders =
                other.unit != flying.unit || flying.in_order || flying.op.barrier || other.op.barrier;
            orders && !other.ran
        };
        let at = self.flying.iter().take(before).rposition(holds)?;
        Some(self.first + at as u64)
    }
}

impl Op {
    /// Whether it uses a byte of this memory.
    pub fn touches(&self, span: &Span) -> bool {
        self.spans.iter().any(|own| own.meets(span))
    }

    /// Whether it uses an object.
    pub fn uses(&self, kind: KindId, handle: u64) -> bool {
        self.objects.contains(&(kind, handle))
    }
}
