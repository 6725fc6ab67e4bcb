//! Sealed packets in memory, bounded by time and bytes, and apart from them what their readers need of the time before.
//!
//! ```text
//!   Stream::flush ──► Store::keep ──► packets of all streams, in the order in which they were sealed
//!                                       │ too old, or too many bytes: the oldest goes
//!                                       └──► its lasting records and entries of calls that are open yet
//!   Store::view ──► for each stream: records from before, packets          (nothing is copied but numbers)
//! ```
//! A record is sealed after what it is of has ended. So if all that was sealed since a time is there, all that ended
//! since then is, also commands that were reported late.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hetrace_ctf::write::{PREAMBLE_LEN, PacketPreamble};

use super::noting::{Notes, Piece};

/// What a packet or a record takes of memory beside its bytes, about.
const OVERHEAD: u64 = 160;

/// A sealed packet.
#[derive(Debug)]
pub struct Packet {
    line: u64,
    /// Number in its stream.
    number: u64,
    /// When it was sealed.
    sealed: u64,
    /// Its head.
    pub preamble: PacketPreamble,
    /// How many records it has.
    pub events: u64,
    /// What follows the head.
    body: Vec<u8>,
    compressed: bool,
    lasting: Vec<Piece>,
}

impl Packet {
    fn cost(&self) -> u64 {
        let notes = size_of::<Piece>() * self.lasting.len();
        (self.body.len() + notes) as u64 + OVERHEAD
    }

    /// Returns what follows the head, not compressed.
    ///
    /// # Errors
    /// When it can't be decompressed.
    pub fn body(&self) -> io::Result<Cow<'_, [u8]>> {
        if !self.compressed {
            return Ok(Cow::Borrowed(&self.body));
        }
        let length = (self.preamble.packet_bits / 8) as usize - PREAMBLE_LEN;
        zstd::bulk::decompress(&self.body, length).map(Cow::Owned)
    }
}

/// A record of a packet that is gone.
#[derive(Debug, Clone)]
pub struct Earlier {
    /// Its time in nanoseconds.
    pub time: u64,
    /// The head of its packet.
    pub of: PacketPreamble,
    /// Its bytes, with its own head.
    pub bytes: Arc<[u8]>,
}

impl Earlier {
    fn cost(&self) -> u64 {
        self.bytes.len() as u64 + OVERHEAD
    }
}

#[derive(Debug)]
enum Place {
    Packet(u64, Piece),
    Copied(Earlier),
}

/// A stream.
#[derive(Debug)]
struct Line {
    name: String,
    /// Process and thread of the last packet.
    thread: (i32, i32),
    next: u64,
    earlier: Vec<Earlier>,
    /// Calls that are open where the last packet ends, with their functions.
    open: Vec<(usize, Place)>,
    /// The counter of discarded events where the packets that are there begin.
    discarded_before: u64,
    ended: Option<u64>,
}

/// A stream as it is to be written.
#[derive(Debug)]
pub struct StreamView {
    /// Its number.
    pub line: u64,
    /// Name of its file.
    pub name: String,
    /// Records from before, in the order of time.
    pub earlier: Vec<Earlier>,
    /// Its packets.
    pub packets: Vec<Arc<Packet>>,
    /// The counter of discarded events before them.
    pub discarded_before: u64,
}

/// All that is kept at a moment.
#[derive(Debug, Default)]
pub struct View {
    /// The streams that have something.
    pub streams: Vec<StreamView>,
    /// All that ended since then is there, on the trace's clock; none: nothing was dropped.
    pub since: Option<u64>,
    /// It reaches back less far than was asked for, as there was no memory for more.
    pub short: bool,
    /// Records that packets later than them may need, and that there was no memory for.
    pub unkept: u64,
}

#[derive(Debug, Default)]
struct State {
    lines: BTreeMap<u64, Line>,
    next: u64,
    packets: VecDeque<Arc<Packet>>,
    /// What all of it takes.
    bytes: u64,
    /// What records from before take of that.
    earlier_bytes: u64,
    since: Option<u64>,
    /// The last packet that was dropped was still wanted.
    short: bool,
    unkept: u64,
    /// When streams that are out of the window were looked for.
    cleared: u64,
}

/// Packets, and what stays of those that were dropped.
#[derive(Debug)]
pub struct Store {
    window: u64,
    most: u64,
    compress: bool,
    state: Mutex<State>,
}

/// A packet that is to be kept.
#[derive(Debug)]
pub struct Sealed<'p> {
    /// Its head.
    pub preamble: PacketPreamble,
    /// All its bytes, with room for the head.
    pub bytes: &'p [u8],
    /// How many records it has.
    pub events: u64,
    /// What is to be known of it.
    pub notes: Notes,
}

impl Store {
    /// Keeps what was sealed within `window`, as far as `most` bytes go.
    pub fn new(window: Duration, most: u64, compress: bool) -> Self {
        let window = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        Store { window, most, compress, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream has its first packet. Returns its number.
    pub fn begin(&self, name: &str) -> u64 {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        let line = Line {
            name: name.to_owned(),
            thread: (0, 0),
            next: 0,
            earlier: Vec::new(),
            open: Vec::new(),
            discarded_before: 0,
            ended: None,
        };
        state.lines.insert(number, line);
        number
    }

    /// Nothing comes in this stream any more. What it has goes with its window.
    pub fn end(&self, line: u64, now: u64) {
        if let Some(line) = self.state().lines.get_mut(&line) {
            line.ended = Some(now);
        }
    }

    /// Keeps a packet, sealed `now`, and drops what is too old or too much. Returns what it takes.
    ///
    /// # Errors
    /// When it can't be compressed.
    pub fn keep(&self, line: u64, sealed: Sealed<'_>, now: u64) -> io::Result<u64> {
        let Sealed { preamble, bytes, events, notes } = sealed;
        let plain = bytes.get(PREAMBLE_LEN..).unwrap_or_default();
        let body = if self.compress { zstd::bulk::compress(plain, 3)? } else { plain.to_vec() };
        let mut state = self.state();
        let Some(of) = state.lines.get_mut(&line) else { return Ok(0) };
        let number = of.next;
        of.next += 1;
        of.note((preamble.vpid, preamble.vtid), number, &notes);
        let lasting = notes.lasting;
        let compressed = self.compress;
        let packet = Packet { line, number, sealed: now, preamble, events, body, compressed, lasting };
        let cost = packet.cost();
        state.bytes += cost;
        state.packets.push_back(Arc::new(packet));
        self.shrink(&mut state, now);
        Ok(cost)
    }

    fn shrink(&self, state: &mut State, now: u64) {
        let oldest = now.saturating_sub(self.window);
        while let Some(packet) = state.packets.front() {
            let short = packet.sealed >= oldest;
            if short && state.bytes <= self.most {
                break;
            }
            state.since = Some(packet.sealed);
            state.short = short;
            let Some(packet) = state.packets.pop_front() else { break };
            state.bytes = state.bytes.saturating_sub(packet.cost());
            // A half for these at most: with nothing else they are of no use.
            state.retain(&packet, self.most / 2);
        }
        if now.saturating_sub(state.cleared) < self.window / 8 {
            return;
        }
        state.cleared = now;
        let gone = |line: &Line| line.ended.is_some_and(|ended| ended < oldest);
        while let Some((number, _)) = state.lines.iter().find(|(_, line)| gone(line)) {
            let number = *number;
            let Some(line) = state.lines.remove(&number) else { break };
            let cost: u64 = line.earlier.iter().map(Earlier::cost).sum();
            state.bytes = state.bytes.saturating_sub(cost);
            state.earlier_bytes = state.earlier_bytes.saturating_sub(cost);
        }
    }

    /// Returns what is there `now`.
    pub fn view(&self, now: u64) -> View {
        let mut state = self.state();
        self.shrink(&mut state, now);
        let mut packets: BTreeMap<u64, Vec<Arc<Packet>>> = BTreeMap::new();
        for packet in &state.packets {
            packets.entry(packet.line).or_default().push(Arc::clone(packet));
        }
        let streams = state.lines.iter().map(|(number, line)| StreamView {
            line: *number,
            name: line.name.clone(),
            earlier: line.before(),
            packets: packets.remove(number).unwrap_or_default(),
            discarded_before: line.discarded_before,
        });
        let streams = streams.filter(|s| !(s.earlier.is_empty() && s.packets.is_empty())).collect();
        View { streams, since: state.since, short: state.short, unkept: state.unkept }
    }
}

impl State {
    /// Keeps of a packet that goes what later ones need.
    fn retain(&mut self, packet: &Packet, most: u64) {
        let Some(line) = self.lines.get_mut(&packet.line) else { return };
        line.discarded_before = packet.preamble.events_discarded;
        let is_here = |place: &Place| matches!(place, Place::Packet(number, _) if *number == packet.number);
        if packet.lasting.is_empty() && !line.open.iter().any(|(_, place)| is_here(place)) {
            return;
        }
        let body = packet.body().unwrap_or_default();
        let copy = |piece: &Piece| {
            let range = (piece.start as usize).checked_sub(PREAMBLE_LEN)?
                ..(piece.end as usize).checked_sub(PREAMBLE_LEN)?;
            let bytes = Arc::from(body.get(range)?);
            Some(Earlier { time: piece.time, of: packet.preamble, bytes })
        };
        for piece in &packet.lasting {
            match copy(piece).filter(|earlier| self.earlier_bytes + earlier.cost() <= most) {
                Some(earlier) => {
                    self.earlier_bytes += earlier.cost();
                    self.bytes += earlier.cost();
                    line.earlier.push(earlier);
                }
                None => self.unkept += 1,
            }
        }
        // As many as calls are open at a time: not counted.
        for (_, place) in line.open.iter_mut().filter(|(_, place)| is_here(place)) {
            if let Place::Packet(_, piece) = place
                && let Some(earlier) = copy(piece)
            {
                *place = Place::Copied(earlier);
            }
        }
    }
}

/// Calls that are open at a time; deeper ones are those of a program that never returns from them.
const DEEPEST: usize = 1 << 12;

impl Line {
    fn note(&mut self, thread: (i32, i32), packet: u64, notes: &Notes) {
        if thread != self.thread {
            self.open.clear();
            self.thread = thread;
        }
        for function in &notes.closed {
            if let Some(at) = self.open.iter().rposition(|(open, _)| open == function) {
                self.open.truncate(at);
            }
        }
        let opened = notes.opened.iter().map(|(function, piece)| (*function, Place::Packet(packet, *piece)));
        self.open.extend(opened);
        self.open.truncate(DEEPEST);
    }

    /// Returns the records of packets that are gone.
    fn before(&self) -> Vec<Earlier> {
        let open = self.open.iter().filter_map(|(_, place)| match place {
            Place::Copied(earlier) => Some(earlier),
            Place::Packet(..) => None,
        });
        let mut all: Vec<Earlier> = self.earlier.iter().chain(open).cloned().collect();
        all.sort_by_key(|earlier| earlier.time);
        all
    }
}

#[cfg(test)]
mod tests;
