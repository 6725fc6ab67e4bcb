//! Where packets go instead of into one file for each stream: into memory, for a flight recording, or into the part of
//! the run that is written at that moment.

mod before;
mod noting;
mod series;
mod store;

use std::io;
use std::sync::Arc;

use hetrace_ctf::write::PacketPreamble;
use hetrace_ring::clock;

use crate::stream_files::Before;
pub use before::before;
use noting::Noting;
use store::Sealed;

pub use series::{Fresh, Left, Rotate, Series};
pub use store::{Store, StreamView, View};

/// Where packets go instead of into one file for each stream.
#[derive(Debug, Clone)]
pub enum Sink {
    /// They are kept in memory.
    Store(Arc<Store>),
    /// They are written into the part of the run that is written at that moment.
    Series(Arc<Series>),
}

/// What becomes of a stream's packets.
#[derive(Debug)]
pub struct Kept {
    sink: Sink,
    noting: Noting,
    line: Option<u64>,
}

impl Kept {
    /// Of a stream of this class.
    pub fn new(sink: &Sink, class: u32) -> Self {
        Kept { sink: sink.clone(), noting: Noting::new(class), line: None }
    }

    /// A record begins at a byte of its packet.
    pub fn record(&mut self, id: u16, time: u64, at: usize) {
        self.noting.record(id, time, at);
    }

    /// Takes a packet and how many events it has. Returns the bytes that it takes.
    ///
    /// # Errors
    /// When it can't be compressed or written.
    pub fn keep(
        &mut self,
        name: &str,
        preamble: PacketPreamble,
        (bytes, events): (&mut [u8], u64),
        before: Before<'_>,
    ) -> io::Result<u64> {
        let line = *self.line.get_or_insert_with(|| match &self.sink {
            Sink::Store(store) => store.begin(name),
            Sink::Series(series) => series.begin(name),
        });
        let notes = self.noting.take(bytes.len());
        let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        match &self.sink {
            Sink::Store(store) => store.keep(line, Sealed { preamble, bytes, events, notes }, now),
            Sink::Series(series) => series.keep((line, now), (preamble, events, notes), bytes, before),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let now = clock::nanoseconds(libc::CLOCK_MONOTONIC);
        match (self.line, &self.sink) {
            (Some(line), Sink::Store(store)) => store.end(line, now),
            (Some(line), Sink::Series(series)) => series.end(line, now),
            (None, _) => {}
        }
    }
}
