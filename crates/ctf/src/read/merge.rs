//! All streams of a trace in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::error::StreamError;
use super::stream::{Event, Losses, StreamReader};
use super::trace::Trace;

/// Gives the events of several streams in the order of their time.
///
/// It holds one event per stream. Events of the same time come in the order of
/// the streams; those without a time come first. A stream that is not in order
/// itself stays so.
///
/// It stays in a stream as long as no other has an earlier event, so that bursts
/// of one thread cost no search.
#[derive(Debug)]
pub struct Merge<'t> {
    readers: Vec<StreamReader<'t>>,
    heap: BinaryHeap<Reverse<(i64, usize)>>,
    /// Streams to advance before the next event can be chosen; the last first.
    pending: Vec<usize>,
}

impl<'t> Merge<'t> {
    /// Returns all streams of a trace.
    pub fn new(trace: &'t Trace) -> Self {
        Self::of(trace.streams())
    }

    /// Returns some streams, which may be of several traces with one origin of time.
    pub fn of(readers: impl IntoIterator<Item = StreamReader<'t>>) -> Self {
        let readers: Vec<_> = readers.into_iter().collect();
        let pending = (0..readers.len()).rev().collect();
        Self { heap: BinaryHeap::with_capacity(readers.len()), readers, pending }
    }

    /// Returns the next event; none at the end. Damage of a stream is given when the
    /// stream is read ahead over it, so somewhat before its time.
    pub fn next_event(&mut self) -> Option<Result<Event<'_, 't>, StreamError>> {
        match self.advance()? {
            Ok(index) => self.readers[index].current().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    fn advance(&mut self) -> Option<Result<usize, StreamError>> {
        while let Some(&index) = self.pending.last() {
            match self.readers[index].advance() {
                Some(Err(error)) => return Some(Err(error)),
                None => {}
                Some(Ok(())) => {
                    let event = self.readers[index].current();
                    let time = event.and_then(|e| e.ns_from_origin()).unwrap_or(i64::MIN);
                    let next = Reverse((time, index));
                    if self.pending.len() == 1 && self.heap.peek().is_none_or(|top| next > *top) {
                        // Still pending: the caller is about to look at its event.
                        return Some(Ok(index));
                    }
                    self.heap.push(next);
                }
            }
            self.pending.pop();
        }
        let Reverse((_, index)) = self.heap.pop()?;
        // Not advanced yet: the caller is about to look at its event.
        self.pending.push(index);
        Some(Ok(index))
    }

    /// Returns the readers, for their packets and names.
    pub fn readers(&self) -> &[StreamReader<'t>] {
        &self.readers
    }

    /// Returns what all streams have lost so far.
    pub fn losses(&self) -> Losses {
        self.readers.iter().map(StreamReader::losses).fold(Losses::default(), |a, b| Losses {
            events: a.events.saturating_add(b.events),
            packets: a.packets.saturating_add(b.packets),
            damaged: a.damaged.saturating_add(b.damaged),
        })
    }
}
